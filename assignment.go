package kurabe

import "time"

// Goal is what a host must make of an instance.
type Goal string

// The goals. Absent is explicit: a host never removes data because a record is
// missing.
const (
	GoalRunning Goal = "running"
	GoalStopped Goal = "stopped"
	GoalAbsent  Goal = "absent"
)

// Limits are the enforced bounds of an instance; 0 means unlimited.
type Limits struct {
	CPUs                float64 `json:"cpus"`
	MemoryBytes         int64   `json:"memoryBytes"` // 0 when not enforced; the formulas use ClassMemoryBytes
	ReadIOPS            int64   `json:"readIOPS"`
	WriteIOPS           int64   `json:"writeIOPS"`
	ReadBytesPerSecond  int64   `json:"readBytesPerSecond"`
	WriteBytesPerSecond int64   `json:"writeBytesPerSecond"`
	StorageBytes        int64   `json:"storageBytes"`
}

// Assignment is everything that one host must do for one instance, complete
// and numbered. Only the planner writes it.
type Assignment struct {
	Generation Generation `json:"generation"`
	Host       HostID     `json:"host"`
	Instance   InstanceID `json:"instance"`
	Name       string     `json:"name"`
	Goal       Goal       `json:"goal"`

	Engine  EngineName `json:"engine"`
	Version string     `json:"version"`
	Address string     `json:"address"` // the endpoint
	// ListensAt is where the server listens, if not at the endpoint; then the agent of the
	// writer's host holds the endpoint and passes on.
	ListensAt string `json:"listensAt,omitempty"`
	Port      int    `json:"port"`
	// ReaderAddress is the reader endpoint of a DB cluster, which the host of its writer has.
	ReaderAddress string `json:"readerAddress,omitempty"`
	// Names are those by which clients reach the server, beside its addresses; none where
	// endpoints have no names.
	Names []string `json:"names,omitempty"`
	// Topology are the servers that clients can reach one by one, which the database shows to
	// drivers that look for a new writer themselves.
	Topology []TopologyServer `json:"topology,omitempty"`
	// Role is what the server is in its group; nil of an instance with one server.
	Role   *Role  `json:"role,omitempty"`
	Limits Limits `json:"limits"`

	MasterUsername string   `json:"masterUsername"`
	Password       Password `json:"password"`
	DatabaseName   string   `json:"databaseName,omitempty"`
	Locale         string   `json:"locale"`
	Origin         *Origin  `json:"origin,omitempty"`

	// Settings are the values of every parameter that is not the engine's own
	// default, formulas evaluated. Static ones change only together with Boot.
	Settings map[string]string `json:"settings"`
	// Log says that the instance's log is kept without a gap: for MariaDB a binary
	// log is written. It changes only together with Boot where the engine needs that,
	// and outlasts what the user wants until a crashed server has recovered with it.
	Log bool `json:"log,omitempty"`
	// LogSince is when the oldest automated snapshot was taken, where several hosts have some:
	// the log of one may be needed for those of another. Zero where the host's own count.
	LogSince time.Time `json:"logSince,omitzero"`
	// Binlog says that MariaDB writes its binary log although nobody keeps it: a standby
	// lives on it, or lived on it since the server was started. It is never set with Log.
	Binlog bool `json:"binlog,omitempty"`
	// LoadKept says that the server is asked each second what its sessions do, and that the
	// host keeps it.
	LoadKept bool `json:"loadKept,omitempty"`
	// MonitoringSeconds is how often the host pictures the operating system around the server; 0 is never.
	MonitoringSeconds int `json:"monitoringSeconds,omitempty"`
	// LogTypes are the logs whose events the host keeps in log groups.
	LogTypes []string `json:"logTypes,omitempty"`
	// Filter is what its security groups permit; nil: everything.
	Filter *PacketFilter `json:"filter,omitempty"`
	// Cluster says that the server is one of a DB cluster, an instance of its own to users.
	Cluster bool `json:"cluster,omitempty"`
	// Boot rises when the server must restart; a server that runs with a lower
	// one is restarted.
	Boot int64 `json:"boot"`
}

// TopologyServer is one server as drivers of clients see it.
type TopologyServer struct {
	ID       string `json:"id"`       // its DbiResourceId
	Endpoint string `json:"endpoint"` // a name where endpoints have names, else an address
}
