package engine

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"kurabe"
	"kurabe/internal/logkey"
	"kurabe/internal/metrics/sample"
	"kurabe/internal/proc"
)

// Instance is what a driver needs to know to act on one instance. User is the
// account that the engine runs as, nil for the service's own.
type Instance struct {
	kurabe.Assignment
	Home    Home
	Version kurabe.EngineVersion
	User    *proc.Credential
	// SourceUser is that of the source that the role names, where that is on this host.
	SourceUser *proc.Credential
	// Cgroups are files of control groups that every process which the driver starts
	// for the instance by itself joins; none as a rule.
	Cgroups []string
	// SeenDir is the path under which the engine process itself sees Home.Dir:
	// the same, or a short bind mount where a parent folder bars its user. Paths
	// inside rendered files and arguments use it; Kurabe's own use Home.
	SeenDir string
	// Fresh: its data was restored and no server has served on it yet.
	Fresh bool
	// ClientsKeptOut: the rendered access rules let no client in, only the service and members of
	// the group.
	ClientsKeptOut bool
}

// Seen is the home as the engine process sees it.
func (i Instance) Seen() Home { return Home{Dir: i.SeenDir} }

// Command is how to start the server in the foreground.
type Command struct {
	Argv []string // Argv[0] is an absolute path; no secret
	Env  []string
	// OOMScoreAdj is how the kernel weighs the server's first process when memory
	// runs out, from -1000 (last) to 1000 (first). An engine whose workers can die
	// alone asks to be spared.
	OOMScoreAdj int
}

// NoReason is what StartFailure says of a server that left no word.
const NoReason = "the server ended without a reason in its log"

// TemplateRequest asks for a data folder that new instances are copied from.
type TemplateRequest struct {
	Version kurabe.EngineVersion
	Locale  string
	Dir     string           // absent before; complete when MakeTemplate returns nil
	Scratch string           // folder for logs and sockets of the making
	User    *proc.Credential // owner of the files, nil for the service's own
}

// Driver is what differs between engines. Every method is idempotent. Methods
// that talk to a live server use the administrative socket in Home.RunDir and
// take their time limit from ctx.
type Driver interface {
	Name() kurabe.EngineName

	// Discover lists the versions installed on this host.
	Discover(ctx context.Context) ([]kurabe.EngineVersion, error)
	// MakeTemplate makes a complete data folder: initialised, checksums on, the
	// service's own roles made, no password anywhere, cleanly shut down.
	MakeTemplate(ctx context.Context, r TemplateRequest) error
	// ReadCatalog reads every parameter from the engine itself, by means of a
	// template or its binary, and marks what Kurabe sets or does not let change.
	ReadCatalog(ctx context.Context, r TemplateRequest) (kurabe.Catalog, error)

	// Render is pure: the files below Home.ConfDir, by name.
	Render(i Instance) map[string]string
	// Command is pure: how to start the server on Home.DataDir.
	Command(i Instance) Command
	// StartFailure is pure: what the tail of the log says about a server that
	// did not come up; kind FailureParameters when it refused its settings,
	// FailureNetwork when address or port were taken.
	StartFailure(logTail string) (kurabe.FailureKind, string)
	// ErrorLog is pure: the path of the newest error log, from the names in
	// Home.LogDir.
	ErrorLog(i Instance, names []string) string

	// Ready asks the live server whether it accepts statements: nil, ErrNotReady
	// while it starts or recovers, or what is wrong.
	Ready(ctx context.Context, i Instance) error
	// EnsureMaster makes the master user, its role and the initial database as
	// the assignment says, whatever of it exists already. It sets the password
	// only when it creates the user. Where the password is inherited it makes nothing of
	// the user's: only what the service itself needs.
	EnsureMaster(ctx context.Context, i Instance) error
	// SetPassword gives the master user the assignment's verifier and its rights, and notes
	// that in the data; where the note is there already it does nothing. NotePassword
	// writes the note alone.
	SetPassword(ctx context.Context, i Instance) error
	NotePassword(ctx context.Context, i Instance) error
	// Reload makes the rendered dynamic settings, the certificate and the
	// access rules true of the running server.
	Reload(ctx context.Context, i Instance) error
	// Probe logs in over the advertised endpoint with TLS as a client would,
	// with a throw-away login, and writes; caFile verifies the server.
	Probe(ctx context.Context, i Instance, caFile string) error
	// StopSignal is the signal for a clean and prompt shutdown (sessions are
	// ended, nothing is lost); KillSignal ends the server at once, to recover
	// later.
	StopSignal() int
	KillSignal() int

	// OpenSampler opens a session that reads the metrics of the running server.
	OpenSampler(ctx context.Context, i Instance) (Sampler, error)

	// Demands says what its parameters make a server take.
	Demands() kurabe.Demands
	// Preparations come before each start of a server, in order, on data on which none runs.
	Preparations() []Preparation

	Copier
	Logger
	Replicator
}

// Preparation is one; it may give further arguments for the start, which win over the rendered
// files.
type Preparation struct {
	What string // for an error
	Do   func(ctx context.Context, i Instance) (arguments []string, err error)
}

// Sampler reads the metrics of one running server over one session. After an error the caller
// can only close it.
type Sampler interface {
	// Sample returns values in one order. Those that are not read each time come last.
	Sample(ctx context.Context) ([]sample.Value, error)
	// Sessions lists the sessions of clients, and the server's own that serve them, that are
	// within a statement now.
	Sessions(ctx context.Context) ([]kurabe.ActiveSession, error)
	// Statements returns what the server has counted of its statements since it was last asked,
	// and how long ago that was: 0 at the first time, and of a server that counts nothing.
	Statements(ctx context.Context) ([]kurabe.StatementCounts, time.Duration, error)
	Close()
}

// Mender is a Driver whose server can leave data on which it refuses to start, although
// nothing is lost.
type Mender interface {
	// AfterFailedStart makes the next start possible where message, which is
	// StartFailure's, says that it would fail in the same way. No server runs.
	AfterFailedStart(i Instance, message string) error
}

// Verifier turns a password into what the engine checks it with. It is pure
// but for the salt.
type Verifier func(password logkey.Secret) (string, error)

// ErrNotReady says that the server is starting or recovering; ask again.
var ErrNotReady = errors.New("the server does not accept connections yet")

// ErrHeld says that clients hold locks which a step waits for: it is bounded, and tried again
// for as long as they do.
var ErrHeld = errors.New("locks of clients block this step")

// Identifier is implemented by a driver whose data folders carry an identity.
// GiveIdentity gives a fresh copy of a template its own, before the copy takes
// its final name: of two folders with one identity, the log of either could be
// replayed into the other.
type Identifier interface {
	GiveIdentity(dataDir string) error
}

// withOwn adds the parameters that the service has beside an engine's.
func withOwn(c kurabe.Catalog) kurabe.Catalog {
	c.Parameters = append(slices.Clone(c.Parameters), kurabe.ServiceParameters()...)
	slices.SortFunc(c.Parameters, func(a, b kurabe.Parameter) int { return cmp.Compare(a.Name, b.Name) })
	return c
}

// enginesOnly are settings without those that no engine knows.
func enginesOnly(settings map[string]string) map[string]string {
	own := func(name string, _ string) bool {
		return slices.ContainsFunc(kurabe.ServiceParameters(), func(p kurabe.Parameter) bool { return p.Name == name })
	}
	settings = maps.Clone(settings)
	maps.DeleteFunc(settings, own)
	return settings
}
