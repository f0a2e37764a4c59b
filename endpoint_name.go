package kurabe

import (
	"crypto/rand"
	"encoding/base32"
	"fmt"
	"regexp"
	"strings"
)

// EndpointDomain is what the names of endpoints end with: ID.REGION.rds.SUFFIX, as on RDS,
// where the suffix is amazonaws.com. Without a suffix endpoints have no names, and clients
// are told their addresses. The zero value is that of a service that was never given one.
type EndpointDomain struct {
	// ID tells the services below one suffix apart; it stays when the suffix changes.
	ID     string `json:"id,omitempty"`
	Region string `json:"region,omitempty"`
	Suffix string `json:"suffix,omitempty"`
}

// domainIDBytes are drawn for an id: 7.5 of them make RDS's twelve characters.
const domainIDBytes = 8

// suffixBytesMax leaves room for the rest of the longest name: DNS has 253 bytes for a name,
// and "NAME-instance-1.cluster-ro-ID.REGION.rds." takes 63 + 11 + 24 + 30 + 6 of them.
const suffixBytesMax = 110

var dnsLabel = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)

// NewEndpointDomain returns a domain with an id of its own.
func NewEndpointDomain(region, suffix string) EndpointDomain {
	var raw [domainIDBytes]byte
	rand.Read(raw[:]) // never fails (crypto/rand)
	text := strings.ToLower(base32.HexEncoding.EncodeToString(raw[:]))
	return EndpointDomain{ID: "c" + text[:11], Region: region, Suffix: suffix}
}

// CheckEndpointSuffix says why a domain cannot end the names of endpoints.
func CheckEndpointSuffix(suffix string) error {
	if len(suffix) > suffixBytesMax {
		return fmt.Errorf("%q has %d bytes; at most %d", suffix, len(suffix), suffixBytesMax)
	}
	for _, label := range strings.Split(suffix, ".") {
		if !dnsLabel.MatchString(label) {
			return fmt.Errorf("%q is no domain name: labels of lower-case letters, digits and hyphens with dots between them", suffix)
		}
	}
	return nil
}

// Named says whether endpoints have names.
func (d EndpointDomain) Named() bool { return d.Suffix != "" }

func (d EndpointDomain) String() string {
	return d.ID + "." + d.Region + ".rds." + d.Suffix
}

// What an endpoint is of, as RDS writes it before the id.
const (
	clusterLabel = "cluster-"
	readerLabel  = "cluster-ro-"
	proxyLabel   = "proxy-"
	// proxyEndpointLabel is of the endpoints of a proxy beside its default one.
	proxyEndpointLabel = "endpoint."
)

// Instance is the name of the endpoint of a DB instance, or of one server of a cluster.
func (d EndpointDomain) Instance(name string) string { return name + "." + d.String() }

// Cluster is the name of the endpoint of a DB cluster that leads to its writer.
func (d EndpointDomain) Cluster(name string) string { return name + "." + clusterLabel + d.String() }

// ClusterReader is the name of the reader endpoint of a DB cluster.
func (d EndpointDomain) ClusterReader(name string) string {
	return name + "." + readerLabel + d.String()
}

// ProxyEndpoint is the name of an endpoint of a proxy.
func (d EndpointDomain) ProxyEndpoint(proxy, endpoint string) string {
	if endpoint == ProxyDefaultEndpoint {
		return proxy + "." + proxyLabel + d.String()
	}
	return endpoint + "." + proxyEndpointLabel + proxyLabel + d.String()
}

// EndpointOf says what an endpoint name leads to.
type EndpointOf struct {
	Name            string // of the instance, the cluster, the proxy or its endpoint, in lower case
	Cluster, Reader bool
	// Proxy: it is a proxy's default endpoint, or with ProxyEndpoint the further one of that name.
	Proxy, ProxyEndpoint bool
}

// Within says whether a DNS name is the domain or lies below it, or below what the endpoints
// of clusters end with: whether this service, and nobody else, can answer for it.
func (d EndpointDomain) Within(name string) bool {
	_, ok := d.below(name)
	return ok
}

// labelled is what stands between a name and the domain.
var labelled = map[string]EndpointOf{
	"": {}, clusterLabel: {Cluster: true}, readerLabel: {Cluster: true, Reader: true},
	proxyLabel: {Proxy: true}, proxyEndpointLabel + proxyLabel: {Proxy: true, ProxyEndpoint: true},
}

// Find takes the name of an endpoint apart; ok is false of any other name.
func (d EndpointDomain) Find(name string) (of EndpointOf, ok bool) {
	head, ok := d.below(name)
	if !ok {
		return EndpointOf{}, false
	}
	head, label, _ := strings.Cut(head, ".")
	if !dnsLabel.MatchString(head) {
		return EndpointOf{}, false
	}
	if of, ok = labelled[label]; ok {
		of.Name = head
	}
	return of, ok
}

// below returns what stands before the domain: "", NAME, "NAME.cluster-", "cluster-" and so on.
func (d EndpointDomain) below(name string) (string, bool) {
	if !d.Named() {
		return "", false
	}
	name = strings.TrimSuffix(strings.ToLower(name), ".")
	if name == d.String() {
		return "", true
	}
	head, ok := strings.CutSuffix(name, d.String())
	if !ok {
		return "", false
	}
	if whole, ok := strings.CutSuffix(head, "."); ok {
		return whole, true
	}
	for _, label := range []string{readerLabel, clusterLabel, proxyLabel} {
		if before, ok := strings.CutSuffix(head, label); ok && (before == "" || strings.HasSuffix(before, ".")) {
			return head, true
		}
	}
	return "", false
}
