package kurabe_test

// A room is a package or a tree of packages with one responsibility. This table
// is section 11 of the design as a program reads it. Widening a row is a design
// change: say in the reason why the edge is right.
type room struct {
	path  string   // of the folder; "x/..." is the whole tree, whose packages may import each other
	may   []string // rooms of this module; "*" is all of them
	third []string // import paths outside module and standard library; "*" is all of them
	why   string
}

// anybody may import these: assertions, the names and secrets of the log, and the
// places where tests break things.
// They import the standard library only. The root and plan do without.
var anybody = []string{"internal/must", "internal/logkey", "internal/faultpoint"}

var without = []string{".", "internal/event", "internal/plan/...", "lab/...", "internal/must", "internal/logkey", "internal/faultpoint"}

// testOnly are rooms that no product code may import. So are suites: a folder
// "x/xtest" holds what every implementation of x must pass, and needs no row.
var testOnly = []string{"internal/harness", "internal/engine/fake", "test/..."}

// testEdges are what the tests of a room may import beyond what the room builds on.
var testEdges = map[string][]string{
	"internal/cgroup":        {"internal/proc"},                                          // something must run to be limited
	"internal/proxy/process": {"internal/daemon", "internal/pki"},                        // started and found again as an agent does; a certificate
	"internal/store":         {"internal/etcdnode"},                                      // the suite on a real etcd
	"internal/etcdnode":      {"internal/pki"},                                           // several nodes behind real certificates
	"internal/gateway":       {"internal/sklookup"},                                      // the real shortcut
	"internal/api/...":       {"internal/logs"},                                          // real log files below a real client
	"internal/api/logs":      {"internal/hostread", "internal/store"},                    // several hosts and a real store of events below a real client
	"internal/engine":        {"internal/agent/watch"},                                   // several purposes in one real server
	"internal/reconcile":     {"internal/agent", "internal/hostlink", "internal/engine"}, // a whole fleet in one bubble
}

// testThird are libraries that any test may use.
var testThird = []string{"pgregory.net/rapid", "github.com/google/go-cmp", "github.com/anishathalye/porcupine", "github.com/johannesboyne/gofakes3"}

const (
	sdk    = "github.com/aws/aws-sdk-go-v2"
	smithy = "github.com/aws/smithy-go"
	pgx    = "github.com/jackc/pgx/v5"
	mysql  = "github.com/go-sql-driver/mysql"
	xsys   = "golang.org/x/sys"
	xtext  = "golang.org/x/text"
	etcd   = "go.etcd.io"
	grpc   = "google.golang.org/grpc" // the codes of etcd's errors
)

var rooms = []room{
	{".", nil, nil, "nouns and rules that every room shares: if it imported a room, every room would import that"},
	{"cmd/...", []string{"*"}, []string{"*"}, "flags, calls and printing: it may know all parts"},
	{"internal/service", []string{"*"}, []string{xsys}, "assembles server and agent: the only place of the product that knows all parts (x/sys: which file the data folder is)"},
	{"internal/aws/...", nil, []string{sdk, smithy, "github.com/fxamacker/cbor/v2"}, "wire formats know no service, so a codec can be tested against the SDK alone"},
	{"internal/api/...", []string{".", "internal/aws/...", "internal/control/..."}, []string{sdk, smithy}, "decode, permit, handle, encode; the rules live in control, so two services cannot disagree"},
	{"internal/api/sns", []string{".", "internal/api/...", "internal/aws/...", "internal/control/...", "internal/control/topic"}, []string{sdk, smithy}, "SNS: it names what the use cases of topics do"},
	{"internal/api/secretsmanager", []string{".", "internal/api/...", "internal/aws/...", "internal/control/..."}, []string{sdk, smithy}, "Secrets Manager: it names what the use cases of secrets do"},
	{"internal/api/logs", []string{".", "internal/api/...", "internal/aws/...", "internal/control/...", "internal/insights", "internal/logevents", "internal/logpattern", "internal/logquery", "internal/logread"}, []string{sdk, smithy}, "CloudWatch Logs: it reads through logread and keeps what is put in the store of its own host"},
	{"internal/logpattern", []string{"."}, nil, "filter patterns: pure"},
	{"internal/logread", []string{".", "internal/hostread", "internal/logevents", "internal/logpattern"}, nil, "log events of all hosts; it knows no record and no API"},
	{"internal/api/kurabe/...", []string{".", "internal/proxy/process", "internal/load", "internal/logread", "internal/store", "internal/api/...", "internal/control/...", "internal/reconcile", "internal/drill", "internal/hostlink", "internal/hostread", "internal/importer"}, nil, "what the service tells and does beside AWS's APIs: it shows plans (reconcile), lets hosts in (hostlink) and asks them (hostread, drill; proxy/process: what a proxy tells)"},
	{"internal/api/pi", []string{".", "internal/api/...", "internal/aws/...", "internal/control/...", "internal/load"}, nil, "Performance Insights: it names what internal/load counts, and knows no host"},
	{"internal/alarm", []string{".", "internal/store"}, nil, "decides on data points that it is given, and writes transitions; it knows no metric"},
	{"internal/control/alarm", []string{".", "internal/alarm", "internal/control/...", "internal/store"}, nil, "use cases of alarms (alarm: what a change of state writes)"},
	{"internal/api/monitoring", []string{".", "internal/alarm", "internal/api/...", "internal/aws/...", "internal/control/alarm", "internal/control/...", "internal/metrics/catalog", "internal/metrics/...", "internal/metrics/series"}, []string{sdk, smithy}, "CloudWatch: it asks for series, also for those of alarms (alarm), and knows neither host nor store (metrics: their names and shape, and the expressions over them)"},
	{"internal/importer", []string{".", "internal/control/...", "internal/snapshot"}, nil, "takes up snapshots that are not on record: it reads the repository and has control write"},
	{"internal/event", []string{"."}, nil, "names and words that others tell with; it knows nothing of when"},
	{"internal/control/topic", []string{".", "internal/control/...", "internal/store", "internal/notify", "internal/notify/filter"}, nil, "topics and subscriptions: it asks the deliverer's rules what could be delivered, and delivers nothing"},
	{"internal/control/...", []string{".", "internal/event", "internal/store"}, nil, "a request ends when its spec is stored: control can reach neither an agent nor an engine"},
	{"internal/store", []string{"."}, []string{etcd, grpc}, "typed records; who may write what is decided by its callers' roles, not by their imports"},
	{"internal/etcdnode", nil, []string{etcd, grpc, xsys, "go.uber.org/zap"}, "runs etcd as a server, or reaches one of others; what is kept in it is the store's business"},
	{"internal/plan/...", []string{".", "internal/event"}, nil, "a pure decision: no clock, chance, log or I/O can leak in through an import (event: words only)"},
	{"internal/reconcile", []string{".", "internal/event", "internal/store", "internal/plan/..."}, nil, "the loop around the plan; it acts on the store alone and calls no agent"},
	{"internal/proxy", []string{"internal/tokenize"}, nil, "what both protocols of the proxy share: settings, counters, reasons of pins"},
	{"internal/proxy/eventloop", nil, []string{xsys}, "connections and their bytes; it knows no protocol"},
	{"internal/proxy/pool", []string{"internal/proxy/eventloop"}, nil, "lends connections; it knows no protocol"},
	{"internal/nameserver", nil, []string{"github.com/miekg/dns", "golang.org/x/net"}, "answers for names and asks its caller what they lead to: it knows no store (x/net: how many connections at once)"},
	{"internal/connlimit", nil, nil, "counts connections by address, of whatever server"},
	{"internal/hostread", []string{"."}, nil, "questions to a host and their answers; it knows neither what is read nor the way there"},
	{"internal/hostlink", []string{".", "internal/event", "internal/store", "internal/pki", "internal/connlimit", "internal/hostread"}, []string{xsys}, "carries assignments, reports and questions; it stands between the agent and the store, so that the agent cannot see the store (pki: who is at the other end; connlimit: strangers reach it; x/sys: the clock of leases, a lost connection)"},
	{"internal/netaddr", nil, []string{xsys, "github.com/vishvananda/netlink"}, "addresses on this machine's interfaces, whoever listens there"},
	{"internal/warden", []string{"internal/proc", "internal/netaddr", "internal/volume"}, []string{xsys}, "ends a server at the end of its lease when the agent cannot: it knows no instance, role or epoch, and what it needs to kill is small enough to be read on one page"},
	{"internal/agent/watch", nil, nil, "keeps sessions and knows neither what is asked in them nor what an answer means"},
	{"internal/agent/replication", []string{".", "internal/engine"}, nil, "judges what looks at a server have shown, and looks at none"},
	{"internal/agent/endpoint", []string{".", "internal/gateway"}, nil, "holds addresses and leads clients by what assignments say; it knows no server and no step"},
	{"internal/agent/unit", []string{".", "internal/hostlink"}, nil, "what is common to all that a host is assigned; it knows no kind"},
	{"internal/agent/proxy", []string{".", "internal/account", "internal/agent/unit", "internal/cgroup", "internal/daemon", "internal/hostlink", "internal/metrics/catalog", "internal/metrics/series", "internal/pki", "internal/proc", "internal/proxy", "internal/proxy/pool", "internal/proxy/process", "internal/volume"}, nil, "keeps the processes of the host's proxies; it knows their files and their socket, and no protocol (pki: their keys; account: their users)"},
	{"internal/agent/snapshot", []string{".", "internal/agent/unit", "internal/engine", "internal/snapshot", "internal/volume"}, nil, "makes the host's snapshots what assignments say; of servers it knows their assignments only"},
	{"internal/agent", []string{".", "internal/account", "internal/agent/proxy", "internal/proxy/process", "internal/logevents", "internal/logs/export", "internal/load", "internal/metrics/catalog", "internal/metrics/osmetrics", "internal/metrics/sample", "internal/metrics/series", "internal/agent/snapshot", "internal/agent/unit", "internal/agent/endpoint", "internal/agent/watch", "internal/agent/replication", "internal/engine", "internal/proc", "internal/cgroup", "internal/volume", "internal/snapshot", "internal/hostlink", "internal/gateway", "internal/packetfilter", "internal/tcpbytes"}, []string{xsys}, "makes one host true to its assignment, endpoints of writers that cannot hold theirs included; it cannot see specs or the store"},
	{"internal/engine", []string{".", "internal/metrics/sample", "internal/daemon", "internal/proc", "internal/account", "internal/cgroup", "internal/volume", "internal/snapshot", "internal/logstream", "internal/pki"}, nil, "what both engines share; it knows neither, or the contract would bend to one (pki: the server certificate is a step; snapshot: so is what a restored instance begins with; logstream: what it wants of a server's log)"},
	{"internal/engine/scratch", []string{"internal/engine", "internal/daemon", "internal/proc", "internal/volume"}, nil, "folders and private servers of data that are no instance's yet, whatever the engine"},
	{"internal/engine/postgres/sampling", []string{".", "internal/metrics/sample"}, []string{pgx}, "asks for metrics in a session that others open"},
	{"internal/engine/postgres/parameter", []string{"."}, nil, "what the parameters are, from rows that others have asked for"},
	{"internal/engine/postgres/tree", nil, []string{xsys}, "private installations and the extensions in them: it knows no instance (x/sys: syncfs)"},
	{"internal/engine/postgres/wal/...", []string{".", "internal/volume"}, nil, "the form of WAL, read from files: it knows no server"},
	{"internal/engine/postgres", []string{".", "internal/engine/postgres/parameter", "internal/engine/postgres/tree", "internal/engine/postgres/wal/...", "internal/engine/postgres/sampling", "internal/engine", "internal/engine/scratch", "internal/daemon", "internal/ownconn", "internal/proc", "internal/volume", "internal/wire/pg/scram"}, []string{pgx}, "all knowledge of PostgreSQL"},
	{"internal/engine/mariadb/...", []string{".", "internal/metrics/sample", "internal/engine", "internal/engine/scratch", "internal/daemon", "internal/ownconn", "internal/proc", "internal/threadwait", "internal/volume"}, []string{mysql, xsys}, "all knowledge of MariaDB"},
	{"internal/engine/fake", []string{".", "internal/metrics/sample", "internal/engine", "internal/proc", "internal/volume"}, nil, "a scripted engine for tests of the fleet"},
	{"internal/proc", nil, []string{xsys}, "runs processes and knows nothing of engines"},
	{"internal/daemon", []string{"internal/proc", "internal/volume"}, nil, "keeps processes that outlive the service, whatever they serve"},
	{"internal/account", []string{"internal/proc", "internal/volume"}, nil, "which user ids a host has given to what; it asks the kernel only whether anything of one is left"},
	{"internal/cgroup", nil, []string{xsys}, "limits on processes, not on instances"},
	{"internal/volume", nil, []string{xsys}, "folders, clones and atomic files, whatever is in them"},
	{"internal/snapshot", []string{".", "internal/volume", "internal/blob"}, nil, "copies folders and keeps copies in the repository; the engine says when they are consistent"},
	{"internal/logstream", []string{".", "internal/volume", "internal/blob"}, nil, "the continuous log of an instance: it asks the server only through an interface that the engine's drivers satisfy"},
	{"internal/blob", []string{".", "internal/volume"}, []string{sdk, smithy, xsys, "github.com/klauspost/compress", "filippo.io/age"}, "the repository of backups: named bytes in a folder or S3; what they mean it does not know"},
	{"internal/gateway", []string{".", "internal/ownconn"}, []string{xsys}, "forwards bytes and knows no protocol; it must live on when the control plane is down"},
	{"internal/sklookup", []string{"internal/sockdestroy"}, []string{xsys, "github.com/cilium/ebpf", "github.com/vishvananda/netlink"}, "gives connections to sockets, whosever they are; with netcut the only place that loads a program into the kernel"},
	{"internal/netcut", nil, []string{xsys, "github.com/cilium/ebpf", "github.com/vishvananda/netlink"}, "loses what processes say to each other for a time: it knows no server"},
	{"internal/ownconn", nil, []string{xsys}, "connections of the service to servers, marked; it knows no server"},
	{"internal/sockdestroy", nil, []string{xsys, "github.com/vishvananda/netlink"}, "ends connections, whosever they are"},
	{"internal/packetfilter", []string{".", "internal/ownconn", "internal/sockdestroy"}, []string{xsys, "github.com/google/nftables", "github.com/mdlayher/netlink", "github.com/vishvananda/netlink"}, "security groups in the kernel; the only place that writes rules of packets (ownconn: whose pass)"},
	{"internal/tcpbytes", nil, []string{xsys}, "counts bytes of sockets, whosever they are"},
	{"internal/pulse", []string{"internal/ownconn"}, []string{pgx, mysql}, "a client that knows endpoints only, so that it sees what any client sees"},
	{"internal/drill", []string{".", "internal/engine", "internal/hostread", "internal/netcut", "internal/proc", "internal/pulse"}, nil, "rehearses a fault of a running service: it signals its servers and watches what is told of them; it decides nothing (hostread: strikes on other hosts)"},
	{"internal/proxy/postgres", []string{"internal/tokenize", "internal/proxy", "internal/proxy/eventloop", "internal/proxy/pool", "internal/wire/...", "internal/wire/pg/scram"}, nil, "PostgreSQL's clients; the protocol only through its codec"},
	{"internal/proxy/mariadb", []string{"internal/tokenize", "internal/proxy", "internal/proxy/eventloop", "internal/proxy/pool", "internal/wire/..."}, []string{mysql}, "MariaDB's clients; the protocol only through its codec (the driver: in tests)"},
	{"internal/proxy/process", []string{".", "internal/hostread", "internal/proxy", "internal/proxy/eventloop", "internal/proxy/pool", "internal/proxy/postgres", "internal/proxy/mariadb", "internal/proc", "internal/volume"}, []string{xsys}, "the process of one proxy: configuration, endpoints, control socket"},
	{"internal/wire/pg/scram", nil, []string{xtext}, "verifiers of passwords and both sides of a login, by RFC alone (x/text: SASLprep)"},
	{"internal/wire/...", nil, []string{"filippo.io/edwards25519"}, "codecs, fuzzed on their own (edwards25519: MariaDB signs with a key that is made of the whole password)"},
	{"internal/metrics/catalog", nil, nil, "names, units and meanings"},
	{"internal/metrics/osmetrics", []string{".", "internal/cgroup"}, nil, "pictures of the operating system around a server; it keeps none"},
	{"internal/metrics/sample", []string{".", "internal/cgroup"}, nil, "makes samples of what others have read, and reads nothing (cgroup: the counters of a group are values of its type)"},
	{"internal/metrics/series", []string{"."}, []string{"github.com/prometheus", "github.com/oklog/ulid"}, "the only place that knows the database of series; it knows no metric (ulid: the names of its blocks)"},
	{"internal/metrics/...", []string{".", "internal/metrics/catalog"}, []string{"github.com/prometheus"}, "samples and serves; it changes nothing"},
	{"internal/threadwait", nil, []string{xsys}, "reads what the kernel says of threads; it knows no engine (x/sys: numbers of system calls)"},
	{"internal/logevents", []string{"internal/volume"}, []string{xsys, "github.com/klauspost/compress/zstd"}, "keeps the log events of a host; it knows no engine and no API"},
	{"internal/logquery", []string{"internal/logevents"}, nil, "the language of queries of logs, over blocks of events; it knows no host and no API (logevents: the form of a block)"},
	{"internal/insights", []string{".", "internal/hostread", "internal/logevents", "internal/logquery", "internal/logread"}, nil, "runs queries of logs where the events lie and merges their results; it knows no API"},
	{"internal/tokenize", nil, nil, "statements without their values: pure"},
	{"internal/load", []string{".", "internal/hostread", "internal/tokenize"}, nil, "keeps what sessions of a database do; who asks the database is the agent"},
	{"internal/logs", []string{".", "internal/volume"}, nil, "reads the files that engines write, without following their links"},
	{"internal/logs/export", []string{".", "internal/logevents", "internal/volume"}, nil, "makes events of these files (logevents: their form); it stores none"},
	{"internal/audit", []string{"."}, nil, "activity streams, spool to sink"},
	{"internal/notify/filter", []string{"."}, nil, "filter policies and what they match: pure, fuzzed"},
	{"internal/notify", []string{".", "internal/event", "internal/store", "internal/notify/filter"}, nil, "delivers what waits in the store to subscribers; who may subscribe it does not know"},
	{"internal/pki", nil, nil, "keys and certificates; a mistake here must be readable on one page"},
	{"internal/logkey", nil, nil, "imported by all, so it imports nothing"},
	{"internal/must", nil, nil, "imported by all, so it imports nothing"},
	{"internal/faultpoint", nil, nil, "imported by all, so it imports nothing"},
	{"lab/load/raw", nil, []string{xsys}, "system calls only"},
	{"lab/...", []string{"lab/load/raw"}, []string{"*"}, "sees public APIs only, so that a study of Kurabe and one of another service are the same"},
	{"console", nil, nil, "embeds files that were built elsewhere"},
	{"internal/harness", []string{"*"}, []string{"*"}, "starts the real thing for tests"},
	{"test/...", []string{"*"}, []string{"*"}, "tests from the outside"},
}

// guard keeps one import path to a few rooms. Tests and suites may use os/exec everywhere.
type guard struct {
	prefix string
	rooms  []string
	tests  bool // also free in tests of any room
	why    string
}

var guards = []guard{
	{etcd, []string{"internal/store", "internal/etcdnode", "internal/harness", "test/..."}, false, "all state goes through typed records; a second user of etcd would be a second schema"},
	{"os/exec", []string{"internal/proc", "internal/harness", "internal/service", "cmd/...", "lab/...", "test/..."}, true, "proc locks, records and reaps; a process started elsewhere is one that nobody finds again"},
	{"math/rand", []string{"internal/store", "internal/reconcile", "internal/hostlink", "internal/agent/unit", "internal/agent", "internal/proxy/pool", "internal/harness", "lab/...", "test/..."}, true, "only for jitter and the moment of a sample; identifiers and secrets come from crypto/rand"},
	{"unsafe", []string{"internal/proc", "internal/cgroup", "internal/volume", "internal/gateway", "internal/tcpbytes", "internal/proxy/eventloop", "lab/load/raw"}, false, "only for system calls"},
}

// pureCalls must not be called in internal/plan or below, and pureImports not imported:
// time and chance are inputs there, and reasons are its only output.
var (
	pureCalls   = []string{"time.Now", "time.Since", "time.Until", "time.Sleep", "time.After", "time.AfterFunc", "time.Tick", "time.NewTimer", "time.NewTicker"}
	pureImports = []string{"math/rand", "math/rand/v2", "crypto/rand", "log", "log/slog", "os", "io", "net", "net/http", "context", "sync"}
)
