package hostlink

import (
	"errors"
	"fmt"
	"time"

	"kurabe"
	"kurabe/internal/hostread"
)

// The link over the network is HTTP/1.1 in TLS 1.3, with JSON bodies. Both ends show
// certificates of the internal authority; only joinPath takes a client without one, and
// enterPath and askPath are for other servers of the service.
const (
	joinPath        = "/link/v1/join"
	enterPath       = "/link/v1/enter"
	askPath         = "/link/v1/ask"
	assignmentsPath = "/link/v1/assignments"
	questionsPath   = "/link/v1/questions"
	callPath        = "/link/v1/call/"
)

// The calls, each a POST to callPath and its name.
const (
	callAlive              = "alive"
	callRenew              = "renew"
	callPutReport          = "put-report"
	callDropReport         = "drop-report"
	callPutSnapshotReport  = "put-snapshot-report"
	callDropSnapshotReport = "drop-snapshot-report"
	callPutProxyReport     = "put-proxy-report"
	callProxyUsers         = "proxy-users"
	callPutTaskReport      = "put-task-report"
	callDropTaskReport     = "drop-task-report"
	callPutLogs            = "put-logs"
	callPutHost            = "put-host"
	callPutCatalog         = "put-catalog"
	callSign               = "sign"
	callAnswer             = "answer"
)

// lifeHeader names, with every word of a host, which machine it is: RemoteConfig.Life.
const (
	lifeHeader   = "Kurabe-Life"
	lifeBytesMax = 200
)

const (
	// connectionsMax bounds the connections from one address: a host has a stream and some calls
	// under way, and a few hosts may stand behind one address.
	connectionsMax = 256
	// joinBytesMax bounds what a stranger may send, who has shown nothing yet.
	joinBytesMax = 64 << 10
	// bodyBytesMax bounds a request: a catalog is the largest, below 1 MB.
	bodyBytesMax = 8 << 20
	// lineBytesMax bounds one update: a thousand assignments of 16 KB.
	lineBytesMax = 64 << 20
)

const (
	// beat is how often either end says that it is there.
	beat = time.Second
	// silenceMax is after which silence a connection is given up, and a host is lost.
	silenceMax = kurabe.HostLostAfter
	// aliveTime bounds the word of a host, so that the next one is said while the lease of the
	// one before runs.
	aliveTime = 1500 * time.Millisecond
	// quietMax is silenceMax where another server may be the planner by now.
	quietMax = 2500 * time.Millisecond
	// dialTime bounds a connection: a machine that was switched off answers nothing.
	dialTime = 2 * time.Second
	// callTime bounds a call; a server may wait that long for its store.
	callTime = 15 * time.Second
	// reportTime bounds a call for which a database may wait. What was not told in time is
	// told again.
	reportTime = 3 * time.Second
)

// JoinRequest asks to be let in.
type JoinRequest struct {
	TokenID string
	Secret  string
	Host    kurabe.HostID
	Zones   []string
	CSRPEM  []byte
	// Server is set by a machine that wants to be a server of the service too.
	Server *ServerRequest `json:",omitempty"`
}

// ServerRequest is what a server that joins says of itself.
type ServerRequest struct {
	kurabe.ServerPlace
	Layout int // of the state that it knows
	// State says which etcd of others it is set to use, "" for none.
	State string `json:",omitempty"`
}

// JoinAnswer is what a host is let in with.
type JoinAnswer struct {
	CertPEM []byte
}

// EnterAnswer is what makes a machine a server of the service. All of its secrets are in
// it: it goes to a server that was let in, over a link on which both ends have shown who
// they are, and into no log and no record.
type EnterAnswer struct {
	CAKeyPEM, CAPEM      []byte
	AccessKey, SecretKey string
	Region, Account      string
	ScopeRegion          string // of signatures, "" for any
	Zones                []string
	Cluster              string   // what the member of the state store starts with
	Servers              []string // HOST:PORT of the links of all servers
}

// errorAnswer is the body of a call that failed. Of one that went to a server that is not
// the elected planner's it says where that one is, "" when nobody knows, and all others.
type errorAnswer struct {
	Error   string
	Planner string   `json:",omitempty"`
	Servers []string `json:",omitempty"`
}

// message is a line of the stream of assignments, or of one of questions alone; an empty one
// says that the server is there.
type message struct {
	Update   *Update         `json:",omitempty"`
	Question *hostread.Frame `json:",omitempty"`
	Servers  []string        `json:",omitempty"` // HOST:PORT of all, at first and when they change
}

// ErrRefused says that the service does not let this host in, or not do this: trying
// again does not help until a person has done something.
var ErrRefused = errors.New("the service refused the request")

// ErrDouble is an ErrRefused: the service hears this host from another machine. A machine that
// was started anew is let in as soon as it is not heard any more; a copy never is.
var ErrDouble = fmt.Errorf("%w: another machine with this host's identity is connected", ErrRefused)
