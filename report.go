package kurabe

import "time"

// FailureKind says what the planner can make of a failed step.
type FailureKind string

// The kinds. Parameters: the engine refuses its settings. Network: the address
// or port is taken. Snapshot, Log: what is to be restored is damaged, and after
// RestoreTries it is not tried again. Locked: clients hold locks, which is nobody's fault
// and may last. Other: tried again with backoff.
const (
	FailureParameters FailureKind = "parameters"
	FailureNetwork    FailureKind = "network"
	FailureStorage    FailureKind = "storage"
	FailureSnapshot   FailureKind = "snapshot"
	FailureLog        FailureKind = "log"
	FailureLocked     FailureKind = "held"
	FailureOther      FailureKind = "other"
)

// RestoreTries is how often damage must be met before it is believed: once, it may
// have happened on the way.
const RestoreTries = 2

// Final says that the host has given up: what it restores from is damaged.
func (f *Failure) Final() bool {
	return f != nil && (f.Kind == FailureSnapshot || f.Kind == FailureLog) && f.Attempts >= RestoreTries
}

// StepWaitReady is the step of the Failure of a server that does not come up.
const StepWaitReady = "wait-ready"

// StepStart is the step that starts a server.
const StepStart = "start"

// Failure is why a host is not done with a generation.
type Failure struct {
	Kind     FailureKind `json:"kind"`
	Step     string      `json:"step"`
	Message  string      `json:"message"` // the engine's own words where it has any
	Attempts int         `json:"attempts"`
	At       time.Time   `json:"at"`
	// Since is when the first of these attempts failed, zero where the host does not say it.
	Since time.Time `json:"since,omitzero"`
}

// InstanceReport is what a host sees of one instance. Only that host's agent
// writes it.
type InstanceReport struct {
	Host       HostID     `json:"host"`
	Instance   InstanceID `json:"instance"`
	Generation Generation `json:"generation"` // the assignment that this report speaks of
	Done       bool       `json:"done"`       // that assignment is true of the running database
	Step       string     `json:"step,omitempty"`
	Failure    *Failure   `json:"failure,omitempty"`

	// Filtered: the kernel enforces the Filter of that assignment.
	Filtered bool `json:"filtered,omitempty"`

	Running bool `json:"running"`
	// Serving: a client has logged in to this very process over the endpoint and
	// written. One that runs and does not serve is starting or recovering.
	Serving       bool      `json:"serving"`
	Absent        bool      `json:"absent"` // nothing of the instance is left on the host
	PID           int       `json:"pid,omitempty"`
	Boot          int64     `json:"boot"`
	StartedAt     time.Time `json:"startedAt,omitzero"`
	EngineVersion string    `json:"engineVersion,omitempty"`

	// UnresponsiveSince is when a server that had answered ceased to; Responsive says that it
	// answers. Neither: not known yet.
	UnresponsiveSince time.Time `json:"mute,omitzero"`
	Responsive        bool      `json:"answers,omitempty"`

	// Crashes and OOMKills count since the instance was made; LastCrash is the
	// newest one's last words.
	Crashes   int64  `json:"crashes"`
	LastCrash string `json:"lastCrash,omitempty"`
	OOMKills  int64  `json:"oomKills"`

	// LogBegan is when the run of the instance's log began that goes on now, LogSince
	// from when on it is there, which moves as what is old is removed; both are zero
	// while none does. LogEnded says why the one before it, or the last one, ended, and
	// LogDamaged that it ended because a part of the stored log is lost.
	LogBegan time.Time `json:"logBegan,omitzero"`
	LogSince time.Time `json:"logSince,omitzero"`
	// LogFrom is the position that goes with LogSince.
	LogFrom    LogPosition `json:"logFrom,omitzero"`
	LogEnded   string      `json:"logEnded,omitempty"`
	LogDamaged bool        `json:"logDamaged,omitempty"`
	// LogContinues says from where that run goes on, nil where it stands alone.
	LogContinues *LogContinues `json:"logContinues,omitempty"`

	// Role is nil of an instance with one server.
	Role *RoleReport `json:"role,omitempty"`

	// DiskExhausted: next to nothing can be written on the host's disk, the reserve is used up, too.
	DiskExhausted bool  `json:"diskEnds,omitempty"`
	UsedBytes     int64 `json:"usedBytes"`
	// Lost is what the host lost of what it had measured of this instance, the newest of each kind.
	Lost                 []LostMeasurements `json:"lost,omitempty"`
	CertificateExpiresAt time.Time          `json:"certificateExpiresAt,omitzero"`
}

// LostMeasurements says that a host's file of measurements was repaired, set aside or begun anew.
type LostMeasurements struct {
	What   string    `json:"what"` // for people: metrics, database load
	At     time.Time `json:"at"`
	Reason string    `json:"reason"`
}

// LogContinues is what a run of an instance's log goes on from: the one that began then, and
// the place in it. Before are the runs up to that, oldest first, as far as this host has them:
// where it is another host's (Elsewhere) there are none.
type LogContinues struct {
	Began     time.Time   `json:"began"`
	After     LogPosition `json:"after"`
	Elsewhere bool        `json:"elsewhere,omitempty"`
	Before    []LogRun    `json:"before,omitempty"`
}

// Lever is one way to enforce a limit, and why it is missing if it is.
type Lever struct {
	Name      string `json:"name"` // cpu, memory, io
	Available bool   `json:"available"`
	Detail    string `json:"detail"` // "cgroup v1", or the reason
}

// HostReport is what a host is and can do. Only its agent writes it.
type HostReport struct {
	Host         HostID          `json:"host"`
	Zones        []string        `json:"zones"`
	CPUs         int             `json:"cpus"`
	MemoryBytes  int64           `json:"memoryBytes"` // what instances may reserve
	StorageBytes int64           `json:"storageBytes"`
	FreeBytes    int64           `json:"freeBytes"`
	Levers       []Lever         `json:"levers"`
	Engines      []EngineVersion `json:"engines"`
	AddressPool  string          `json:"addressPool"` // CIDR that endpoints come from
	// Network is the one that the pool is a part of, as CIDR: what is in it this host can hold.
	// "" of a loopback pool.
	Network string `json:"network,omitempty"`
	// Address is the one of the host in Network, from which it connects to databases of others.
	Address   string    `json:"address,omitempty"`
	StartedAt time.Time `json:"startedAt"`
	// Clones says that files where its data is can be cloned without being copied.
	Clones bool `json:"clones,omitempty"`
	// Server says that a server of the service runs on it.
	Server bool `json:"server,omitempty"`
}

// Has says whether the host can enforce the named limit.
func (h HostReport) Has(lever string) bool {
	for _, l := range h.Levers {
		if l.Name == lever {
			return l.Available
		}
	}
	return false
}

// Detail says how the host enforces the named limit, or why it cannot.
func (h HostReport) Detail(lever string) string {
	for _, l := range h.Levers {
		if l.Name == lever {
			return l.Detail
		}
	}
	return "the host reports no such lever"
}

// ActiveSession is one session of a server that works or waits within a statement at a moment.
type ActiveSession struct {
	ID             int64  // the server's number for it
	WaitType, Wait string // both WaitCPU for one that computes
	Statement      string // its text as the server shows it, perhaps cut off
	Seconds        int64  // since the statement began
	NativeID       string // the server's own number for the statement without literals, if it has one
	User           string
	Host           string // of the client, without the port; "" of the server's own sessions
	Database       string
	Application    string
	Kind           string // of the session: "client backend", "autovacuum worker" and so on
	// Blocker is the session for which this one waits, 0 for none or an unknown one; with what
	// is known of it.
	Blocker          int64  `json:",omitempty"`
	BlockerUser      string `json:",omitempty"`
	BlockerStatement string `json:",omitempty"`
}

// The wait types that do not come from a server. A session that computes waits for WaitCPU.
const (
	WaitCPU    = "CPU"
	WaitIO     = "IO"
	WaitLock   = "Lock"
	WaitClient = "Client"
	WaitOther  = "Other"
)

// StatementCounts is what a server has counted of a statement in some time.
type StatementCounts struct {
	NativeID string // as of ActiveSession
	Counts   [StatementCounters]uint64
}

// StatementCounter is a number in StatementCounts.
type StatementCounter int

// The counters of a statement, in the order in which they are stored: new ones go to the end.
// Blocks are of 8 KiB.
const (
	StatementCalls StatementCounter = iota
	StatementRows
	StatementMicroseconds // of execution
	SharedBlocksHit
	SharedBlocksRead
	SharedBlocksDirtied
	SharedBlocksWritten
	LocalBlocksHit
	LocalBlocksRead
	LocalBlocksDirtied
	LocalBlocksWritten
	TemporaryBlocksRead
	TemporaryBlocksWritten
	StatementCounters
)
