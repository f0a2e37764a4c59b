package hostlink

import (
	"context"
	"encoding/json"
	"net"

	"kurabe"
	"kurabe/internal/logkey"
)

// Update is what a watch of assignments delivers. Of things that changed in one moment, any
// may be told first; a full update holds no snapshot that is newer than its servers.
type Update struct {
	// Full says that Orders is the whole set of the host, as at the start and after every
	// lost connection; else it holds only those that changed.
	Full   bool
	Orders []kurabe.Word // assignments
	// Withdrawn are the things whose assignment record is gone; in a full update, those of
	// which the host's report is still there. It is not an order: data goes only when an
	// assignment says so.
	Withdrawn []kurabe.Ref
}

// empty says that there is nothing to tell.
func (u Update) empty() bool { return len(u.Orders)+len(u.Withdrawn) == 0 }

// Certificate is a signed certificate and the authority that signed it, both
// in PEM.
type Certificate struct {
	CertPEM []byte
	CAPEM   []byte
}

// SignRequest asks for a server certificate.
type SignRequest struct {
	CSRPEM   []byte
	IPs      []net.IP
	DNSNames []string
}

// Link connects one host's agent with the control plane.
type Link interface {
	// Assignments delivers the host's whole set, then changes, until ctx ends;
	// then the channel closes. A lost connection heals inside and shows as
	// another full update. Updates may repeat. An assignment that cannot be read
	// is neither delivered nor withdrawn.
	Assignments(ctx context.Context, host kurabe.HostID) <-chan Update
	// PutReport says what the host sees of a thing.
	PutReport(ctx context.Context, r kurabe.Word) error
	// DropReport says that there is nothing to see any more.
	DropReport(ctx context.Context, host kurabe.HostID, ref kurabe.Ref) error
	// PutLogs says what the host keeps of the logs of its instances.
	PutLogs(ctx context.Context, r kurabe.LogReport) error
	// PutHost says what the host is and can do.
	PutHost(ctx context.Context, h kurabe.HostReport) error
	// PutCatalog says which parameters an engine version of the host has.
	PutCatalog(ctx context.Context, host kurabe.HostID, c kurabe.Catalog) error
	// Sign returns a server certificate for the key in the request.
	Sign(ctx context.Context, r SignRequest) (Certificate, error)
	// ProxyUsers returns the users of the secrets of a proxy that is assigned to the host.
	ProxyUsers(ctx context.Context, host kurabe.HostID, id kurabe.ProxyID) ([]ProxyUser, error)
}

// ProxyUser is a database user whom a secret names.
type ProxyUser struct {
	Name     string        `json:"name"`
	Password logkey.Secret `json:"password"`
}

// MarshalJSON reveals the password: it is on its way to the host of the proxy, and on no other.
func (u ProxyUser) MarshalJSON() ([]byte, error) {
	return json.Marshal(map[string]string{"name": u.Name, "password": u.Password.Reveal()})
}
