package catalog

// The dimensions of the metrics of proxies. Their series have them as those of users' own
// metrics do.
const (
	ProxyName   = "ProxyName"
	EndpointOf  = "EndpointName"
	TargetGroup = "TargetGroup"
	Target      = "Target"
	PinReason   = "Reason"
)

// Proxies are the metrics of proxies, by namespace and name. Those of the database's side have
// the target as a dimension, those of the clients' side the endpoint.
var Proxies = []Definition{
	{RDS, "AvailabilityPercentage", "Percent", "", "100 while a login of the proxy at the server succeeds, else 0"},
	{RDS, "ClientConnections", "Count", "", "sessions of clients"},
	{RDS, "ClientConnectionsClosed", "Count", "", "sessions of clients that ended, in the second"},
	{RDS, "ClientConnectionsNoTLS", "Count", "", "sessions of clients without TLS"},
	{RDS, "ClientConnectionsReceived", "Count", "", "connections that clients asked for, in the second"},
	{RDS, "ClientConnectionsSetupFailedAuth", "Count", "", "clients whose login was refused, in the second"},
	{RDS, "ClientConnectionsSetupSucceeded", "Count", "", "clients that logged in, in the second"},
	{RDS, "ClientConnectionsTLS", "Count", "", "sessions of clients with TLS"},
	{RDS, "DatabaseConnectionRequests", "Count", "", "connections that clients needed, in the second"},
	{RDS, "DatabaseConnections", "Count", "", "connections to the servers"},
	{RDS, "DatabaseConnectionsBorrowLatency", "Microseconds", "", "mean time that a client waited for a connection; absent in a second without a request"},
	{RDS, "DatabaseConnectionsCurrentlyBorrowed", "Count", "", "connections that clients have"},
	{RDS, "DatabaseConnectionsCurrentlyInTransaction", "Count", "", "connections with a transaction open"},
	{RDS, "DatabaseConnectionsCurrentlySessionPinned", "Count", "", "connections that a client keeps"},
	{RDS, "DatabaseConnectionsSetupFailed", "Count", "", "connections that could not be opened, in the second"},
	{RDS, "DatabaseConnectionsSetupSucceeded", "Count", "", "connections that were opened, in the second"},
	{RDS, "DatabaseConnectionsWithTLS", "Count", "", "connections to the servers with TLS"},
	{RDS, "MaxDatabaseConnectionsAllowed", "Count", "", "the bound of connections to a server"},
	{RDS, "QueryDatabaseResponseLatency", "Microseconds", "", "mean time of the servers for a query; absent in a second without one"},
	{RDS, "QueryRequests", "Count", "", "queries, in the second"},
	{RDS, "QueryRequestsNoTLS", "Count", "", "queries of clients without TLS, in the second"},
	{RDS, "QueryRequestsTLS", "Count", "", "queries of clients with TLS, in the second"},
	{RDS, "QueryResponseLatency", "Microseconds", "", "mean time of a query, its wait for a connection included; absent in a second without one"},

	{Kurabe, "ProxyPins", "Count", "", "clients that were pinned, in the second, by reason"},
}
