package kurabe

// ActiveSession is one session of a server that works or waits within a statement at a moment.
type ActiveSession struct {
	ID             int64  // the server's number for it
	WaitType, Wait string // both WaitCPU for one that computes
	Statement      string // its text as the server shows it, perhaps cut off
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
