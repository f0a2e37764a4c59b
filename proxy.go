package kurabe

import (
	"crypto/rand"
	"encoding/base32"
	"slices"
	"strings"
	"time"
)

// ProxyID is the immutable id of a proxy ("prx-" and 26 letters and digits), by which its ARN
// names it.
type ProxyID string

// ProxyEndpointID is the immutable id of an endpoint of a proxy, by which its ARN names it.
type ProxyEndpointID string

// NewProxyID returns a fresh random id with 128 bits of entropy.
func NewProxyID() ProxyID { return ProxyID("prx-" + randomWord()) }

// NewProxyEndpointID returns a fresh random id with 128 bits of entropy.
func NewProxyEndpointID() ProxyEndpointID { return ProxyEndpointID("prx-endpoint-" + randomWord()) }

func randomWord() string {
	var b [16]byte
	rand.Read(b[:]) // never fails since Go 1.24
	return strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(b[:]))
}

// TargetGroupID is the id of the only target group of a proxy.
func (id ProxyID) TargetGroupID() string { return "prx-tg-" + strings.TrimPrefix(string(id), "prx-") }

// The names that RDS gives the only target group of a proxy, and the endpoint made with it.
const (
	ProxyTargetGroup     = "default"
	ProxyDefaultEndpoint = "default"
)

// The bounds are RDS's: the quotas of an account, and the ranges of the API reference.
const (
	ProxiesMax           = 20
	ProxyEndpointsMax    = 20 // of a proxy, beside the default one
	ProxySecretsMax      = 200
	proxyIdleClientMax   = 8 * 60 * 60
	proxyBorrowMax       = 300
	proxyInitQueryMax    = 16 << 10 // bytes; no bound of RDS's, a record has to stay small
	proxyDescriptionMax  = 1000
	ProxyIdleClient      = 1800 // seconds, where none is given
	proxyBorrow          = 120
	proxyPercent         = 100
	ProxyFilterVariables = "EXCLUDE_VARIABLE_SETS"
)

// Proxy is a proxy that a user asked for. Only the API writes it. Revision rises with each
// write.
type Proxy struct {
	ID        ProxyID    `json:"id"`
	Name      string     `json:"name"`
	Revision  int64      `json:"revision"`
	CreatedAt time.Time  `json:"createdAt"`
	UpdatedAt time.Time  `json:"updatedAt"`
	Engine    EngineName `json:"engine"` // of every target
	// RoleARN is the role that the user named for the secrets. RDS demands one; nothing assumes
	// it here.
	RoleARN string      `json:"role"`
	Auth    []ProxyAuth `json:"auth"`

	RequireTLS         bool      `json:"requireTLS,omitempty"` // of clients
	IdleClientTimeoutS int       `json:"idleClientTimeout"`    // seconds
	DebugLogging       bool      `json:"debugLogging,omitempty"`
	Pool               ProxyPool `json:"pool"`
	PoolUpdatedAt      time.Time `json:"poolUpdatedAt"`
	// Target is the instance or cluster whose servers it leads to, "" while none is registered.
	Target InstanceID `json:"target,omitempty"`
	// Endpoints begins with the default one. Its subnets and security groups are the proxy's.
	Endpoints []ProxyEndpoint `json:"endpoints"`
	Tags      []Tag           `json:"tags,omitempty"`
	Deleting  *Deletion       `json:"deleting,omitempty"`
}

// ProxyAuth lets the user log in whose name and password a secret has.
type ProxyAuth struct {
	SecretARN   string `json:"secret"`
	Description string `json:"description,omitempty"`
}

// ProxyPool bounds the connections to the servers of the target group.
type ProxyPool struct {
	// MaxConnectionsPercent and MaxIdleConnectionsPercent are of the servers' max_connections.
	MaxConnectionsPercent     int      `json:"maxConnectionsPercent"`
	MaxIdleConnectionsPercent int      `json:"maxIdleConnectionsPercent"`
	BorrowTimeoutS            int      `json:"borrowTimeout"` // seconds; 0: no waiting
	InitQuery                 string   `json:"initQuery,omitempty"`
	PinningFilters            []string `json:"pinningFilters,omitempty"`
}

// ProxyEndpoint is an address of a proxy.
type ProxyEndpoint struct {
	ID   ProxyEndpointID `json:"id"`
	Name string          `json:"name"` // of all but default ones unique among all proxies
	// Reads: its clients are served by readers (READ_ONLY).
	Reads          bool      `json:"reads,omitempty"`
	Subnets        []Subnet  `json:"subnets,omitempty"`
	SecurityGroups []string  `json:"securityGroups,omitempty"`
	CreatedAt      time.Time `json:"createdAt"`
	Tags           []Tag     `json:"tags,omitempty"`
}

// Port is that on which the endpoints of a proxy listen: the engine's own, as on RDS.
func (p *Proxy) Port() int { return p.Engine.DefaultPort() }

// Endpoint returns the endpoint of that name.
func (p *Proxy) Endpoint(name string) (*ProxyEndpoint, bool) {
	at := slices.IndexFunc(p.Endpoints, func(e ProxyEndpoint) bool { return e.Name == name })
	if at < 0 {
		return nil, false
	}
	return &p.Endpoints[at], true
}

// ProxyState is the status of a proxy or of an endpoint of one, in RDS's words.
type ProxyState string

// The states. Available means that a client can log in at the endpoint, whatever the health of
// the target.
const (
	ProxyCreating             ProxyState = "creating"
	ProxyAvailable            ProxyState = "available"
	ProxyModifying            ProxyState = "modifying"
	ProxyDeleting             ProxyState = "deleting"
	ProxyIncompatibleNetwork  ProxyState = "incompatible-network"
	ProxyInsufficientResource ProxyState = "insufficient-resource-limits"
)

// ProxyStatus is what users are told of a proxy. Only the planner writes it.
type ProxyStatus struct {
	ID           ProxyID               `json:"id"`
	SpecRevision int64                 `json:"specRevision"` // the spec that this status answers
	State        ProxyState            `json:"state"`
	Reason       string                `json:"reason,omitempty"`
	Since        time.Time             `json:"since"`
	Host         HostID                `json:"host,omitempty"`
	Endpoints    []ProxyEndpointStatus `json:"endpoints,omitempty"`
	Targets      []ProxyTargetHealth   `json:"targets,omitempty"`
}

// ProxyEndpointStatus is what users are told of an endpoint.
type ProxyEndpointStatus struct {
	ID      ProxyEndpointID `json:"id"`
	State   ProxyState      `json:"state"`
	Address string          `json:"address,omitempty"`
	Port    int             `json:"port,omitempty"`
}

// Endpoint returns what is told of an endpoint, that it is being created where nothing is.
func (s *ProxyStatus) Endpoint(id ProxyEndpointID) ProxyEndpointStatus {
	if s != nil {
		for _, e := range s.Endpoints {
			if e.ID == id {
				return e
			}
		}
	}
	return ProxyEndpointStatus{ID: id, State: ProxyCreating}
}

// ProxyHealth is the state of the connections to a target, in RDS's words.
type ProxyHealth string

// The states of a target.
const (
	TargetRegistering ProxyHealth = "REGISTERING"
	TargetAvailable   ProxyHealth = "AVAILABLE"
	TargetUnavailable ProxyHealth = "UNAVAILABLE"
)

// ProxyHealthReason is why a target is not available, in RDS's words.
type ProxyHealthReason string

// The reasons. Unreachable: no connection to the server. ConnectionFailed: the server ended it
// or answered with an error. AuthFailure: it refused the user of a secret. PendingCapacity: the
// proxy is not there yet. InvalidReplicationState: a reader that is too far behind.
const (
	TargetUnreachable             ProxyHealthReason = "UNREACHABLE"
	TargetConnectionFailed        ProxyHealthReason = "CONNECTION_FAILED"
	TargetAuthFailure             ProxyHealthReason = "AUTH_FAILURE"
	TargetPendingCapacity         ProxyHealthReason = "PENDING_PROXY_CAPACITY"
	TargetInvalidReplicationState ProxyHealthReason = "INVALID_REPLICATION_STATE"
)

// ProxyTargetHealth is how a proxy sees a server of its target.
type ProxyTargetHealth struct {
	Server      InstanceID        `json:"server"`
	Reads       bool              `json:"reads,omitempty"` // it serves READ_ONLY endpoints
	State       ProxyHealth       `json:"state"`
	Reason      ProxyHealthReason `json:"reason,omitempty"`
	Description string            `json:"description,omitempty"`
}

// ProxyAssignment is everything that one host must do for one proxy. Only the planner writes it.
type ProxyAssignment struct {
	Generation Generation `json:"generation"`
	Host       HostID     `json:"host"`
	Proxy      ProxyID    `json:"proxy"`
	Name       string     `json:"name"`
	// Absent: nothing of the proxy is to be left on the host.
	Absent bool `json:"absent,omitempty"`

	Engine    EngineName      `json:"engine"`
	Port      int             `json:"port"`
	Endpoints []ProxyListener `json:"endpoints,omitempty"`
	// Names are those by which clients reach the endpoints, beside their addresses.
	Names              []string `json:"names,omitempty"`
	RequireTLS         bool     `json:"requireTLS,omitempty"`
	ServerTLS          bool     `json:"serverTLS,omitempty"` // on the way to the servers
	IdleClientTimeoutS int      `json:"idleClientTimeout,omitempty"`
	DebugLogging       bool     `json:"debugLogging,omitempty"`
	// MaxServers bounds the connections to each server, MaxIdle those that nobody uses.
	MaxServers     int      `json:"maxServers,omitempty"`
	MaxIdle        int      `json:"maxIdle,omitempty"`
	BorrowTimeoutS int      `json:"borrowTimeout,omitempty"`
	InitQuery      string   `json:"initQuery,omitempty"`
	PinningFilters []string `json:"pinningFilters,omitempty"`
	// Secrets have the users. The host asks for their passwords when a version is another one.
	Secrets []ProxySecret `json:"secrets,omitempty"`
	Route   ProxyRoute    `json:"route"`
	Servers []ProxyServer `json:"servers,omitempty"`
	// Target is what they are of, as CloudWatch names it: "db:NAME" or "cluster:NAME".
	Target string `json:"target,omitempty"`
	// TargetEpoch is that of the target's group for which the route was made, 0 without one.
	TargetEpoch Epoch `json:"targetEpoch,omitempty"`
}

// ProxyListener is an address at which a proxy takes clients.
type ProxyListener struct {
	ID      ProxyEndpointID `json:"id"`
	Name    string          `json:"name"`
	Address string          `json:"address"`
	Reads   bool            `json:"reads,omitempty"`
}

// ProxySecret is a version of a secret whose user may log in.
type ProxySecret struct {
	ARN     string          `json:"arn"`
	Version SecretVersionID `json:"version"`
}

// ProxyRoute says where the servers of a proxy are, as HOST:PORT. Epoch rises whenever a server
// may not be written to any more. Writer is "" while there is none.
type ProxyRoute struct {
	Epoch   int64    `json:"epoch"`
	Writer  string   `json:"writer,omitempty"`
	Readers []string `json:"readers,omitempty"`
}

// ProxyServer is a server of the target, by whose name its health is told.
type ProxyServer struct {
	ID      InstanceID `json:"id"`
	Address string     `json:"address"` // HOST:PORT
	Reads   bool       `json:"reads,omitempty"`
}

// ProxyReport is what a host sees of a proxy. Only its agent writes it.
type ProxyReport struct {
	Host       HostID              `json:"host"`
	Proxy      ProxyID             `json:"proxy"`
	Generation Generation          `json:"generation"`
	Done       bool                `json:"done"` // its process serves by that assignment
	Absent     bool                `json:"absent,omitempty"`
	Failure    *Failure            `json:"failure,omitempty"`
	PID        int                 `json:"pid,omitempty"`
	StartedAt  time.Time           `json:"startedAt,omitzero"`
	Targets    []ProxyTargetHealth `json:"targets,omitempty"`
}

// endpointMark begins the name of an endpoint where it stands among names of proxies.
const endpointMark = "endpoint:"

// ProxyEndpointKey is the name by which an endpoint is unique.
func ProxyEndpointKey(name string) string { return endpointMark + name }

// CheckProxy says in RDS's words what of a proxy is out of its range.
func CheckProxy(p *Proxy) error {
	switch {
	case p.IdleClientTimeoutS < 1 || p.IdleClientTimeoutS > proxyIdleClientMax:
		return Errorf(CodeInvalidParameterValue, "IdleClientTimeout must be from 1 to %d seconds, not %d", proxyIdleClientMax, p.IdleClientTimeoutS)
	case len(p.Auth) > ProxySecretsMax:
		return Errorf(CodeInvalidParameterValue, "Auth has at most %d entries", ProxySecretsMax)
	case !roleARN(p.RoleARN):
		return Errorf(CodeInvalidParameterValue, "RoleArn is not the ARN of a role: %.80q", p.RoleARN)
	}
	seen := map[string]bool{}
	for _, a := range p.Auth {
		switch {
		case a.SecretARN == "":
			return Errorf(CodeInvalidParameterValue, "Each entry of Auth needs a SecretArn")
		case seen[a.SecretARN]:
			return Errorf(CodeInvalidParameterValue, "Auth has the secret %s twice", a.SecretARN)
		case len([]rune(a.Description)) > proxyDescriptionMax:
			return Errorf(CodeInvalidParameterValue, "A Description of Auth has at most %d characters", proxyDescriptionMax)
		}
		seen[a.SecretARN] = true
	}
	return CheckTags(p.Tags)
}

// DefaultProxyPool is the pool where nothing is asked for.
func DefaultProxyPool() ProxyPool {
	return ProxyPool{MaxConnectionsPercent: proxyPercent, MaxIdleConnectionsPercent: proxyPercent / 2, BorrowTimeoutS: proxyBorrow}
}

// CheckProxyPool says in RDS's words what of a pool is out of its range.
func CheckProxyPool(engine EngineName, p ProxyPool) error {
	switch {
	case p.MaxConnectionsPercent < 1 || p.MaxConnectionsPercent > 100:
		return Errorf(CodeInvalidParameterValue, "MaxConnectionsPercent must be between 1 and 100, not %d", p.MaxConnectionsPercent)
	case p.MaxIdleConnectionsPercent < 0 || p.MaxIdleConnectionsPercent > p.MaxConnectionsPercent:
		return Errorf(CodeInvalidParameterValue, "MaxIdleConnectionsPercent must be between 0 and MaxConnectionsPercent, %d, not %d", p.MaxConnectionsPercent, p.MaxIdleConnectionsPercent)
	case p.BorrowTimeoutS < 0 || p.BorrowTimeoutS > proxyBorrowMax:
		return Errorf(CodeInvalidParameterValue, "ConnectionBorrowTimeout must be between 0 and %d seconds, not %d", proxyBorrowMax, p.BorrowTimeoutS)
	case len(p.InitQuery) > proxyInitQueryMax || strings.ContainsRune(p.InitQuery, 0):
		return Errorf(CodeInvalidParameterValue, "InitQuery is a text of at most %d bytes", proxyInitQueryMax)
	}
	for _, f := range p.PinningFilters {
		if f != ProxyFilterVariables || len(p.PinningFilters) > 1 {
			return Errorf(CodeInvalidParameterValue, "The only value of SessionPinningFilters is %s, not %.80q", ProxyFilterVariables, f)
		}
		if engine != MariaDB {
			return Errorf(CodeInvalidParameterCombo, "SessionPinningFilters is for the engine family MYSQL only")
		}
	}
	return nil
}
