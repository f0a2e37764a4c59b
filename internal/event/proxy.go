package event

// Events of DB proxies.
var (
	ProxyCreated          = of(Proxy, 203, creation, "RDS created DB proxy %s")
	ProxyDeleted          = of(Proxy, 205, deletion, "RDS deleted DB proxy %s")
	ProxyModified         = of(Proxy, 204, configuration, "RDS modified DB proxy %s")
	ProxyEndpointCreated  = of(Proxy, 206, creation, "RDS created endpoint %s for DB proxy %s")
	ProxyEndpointModified = of(Proxy, 207, configuration, "RDS modified the end point of the DB proxy %s")
	ProxyEndpointDeleted  = of(Proxy, 208, deletion, "RDS deleted endpoint %s for DB proxy %s")
	// ProxyInstanceGone and ProxyClusterGone are of the target, its group and the proxy.
	ProxyInstanceGone = of(Proxy, 214, configuration, "RDS detected deletion of DB instance %s and automatically removed it from target group %s of DB proxy %s")
	ProxyClusterGone  = of(Proxy, 215, configuration, "RDS detected deletion of DB cluster %s and automatically removed it from target group %s of DB proxy %s")
)
