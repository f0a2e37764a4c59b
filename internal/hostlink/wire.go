package hostlink

import (
	"errors"
	"time"

	"kurabe"
)

// The link over the network is HTTP/1.1 in TLS 1.3, with JSON bodies. Both ends show
// certificates of the internal authority; only joinPath takes a client without one.
const (
	joinPath        = "/link/v1/join"
	assignmentsPath = "/link/v1/assignments"
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
	callPutLogs            = "put-logs"
	callPutHost            = "put-host"
	callPutCatalog         = "put-catalog"
	callSign               = "sign"
	callAnswer             = "answer"
)

const (
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
	silenceMax = kurabe.LostAfter
	// aliveTime bounds the word of a host, so that the next one is said while the lease of the
	// one before runs.
	aliveTime = 1500 * time.Millisecond
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
}

// JoinAnswer is what a host is let in with.
type JoinAnswer struct {
	CertPEM []byte
}

// errorAnswer is the body of a call that failed.
type errorAnswer struct {
	Error string
}

// message is a line of the stream of assignments; an empty one says that the server is
// there.
type message struct {
	Update   *Update   `json:",omitempty"`
	Question *Question `json:",omitempty"`
}

// dropRequest names what is to be dropped.
type dropRequest struct {
	Instance kurabe.InstanceID
	Snapshot kurabe.SnapshotID
}

// ErrRefused says that the service does not let this host in, or not do this: trying
// again does not help until a person has done something.
var ErrRefused = errors.New("refused by the service")
