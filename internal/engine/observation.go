package engine

import (
	"context"
	"time"

	"kurabe"
)

// Observation is what a look at an instance's folder and processes shows.
type Observation struct {
	Home    bool // the folder and those in it exist
	Remains bool // something of the folder exists, be it what a removal that was cut off has left
	Data    bool // the data folder is complete
	// Record: a process was started and not stopped by us. Running: it lives.
	Record, Running bool
	Survivors       bool // processes in the data folder although the recorded one is dead
	Stillborn       bool // the recorded one, of this boot of the host, has ended before it was ready

	Process   string // identity of the running process
	PID       int
	Boot      int64
	Version   string // that the process was started with; "": by a service that did not note it
	StartedAt time.Time
	// Wait returns nil when the running process has ended; nil when none runs.
	Wait func(ctx context.Context) error

	// OtherAccount: the files are to be another account's when the server starts next.
	OtherAccount bool

	Applied            Applied
	SettingsCurrent    bool   // the rendered files are on disk
	Fingerprint        string // of the settings and certificate on disk
	CertificateCurrent bool
	CertificateExpires time.Time
	LimitsGroup        bool // the control group exists
	LimitsMissing      bool // it does not, and this host could have one
	OOMKills           int64

	// Follower: the data folder is one of a server that follows another.
	Follower bool
	// Role is the newest answer of the running server, nil when there is none; Covered are
	// those of WaitsFor that have all that was written before every commit waited for them.
	// Neither is in files: whoever watches the server puts them here, before it asks for
	// the steps.
	Role    *RoleView
	Covered []kurabe.InstanceID
}

// WaitsFor are those whose answer every commit of the running process waits for.
func (o Observation) WaitsFor() []kurabe.InstanceID {
	if !o.Running || o.Applied.Process != o.Process || o.Applied.WaitsStale {
		return nil
	}
	return o.Applied.Waits
}

// SeenTo are the followers that the running process holds its log back for, unless
// something has happened to that since.
func (o Observation) SeenTo() []kurabe.InstanceID {
	if !o.Running || o.Applied.Process != o.Process || !o.Applied.FollowersSet {
		return nil
	}
	return o.Applied.Followers
}

// Serving says whether a client has logged in to the process that runs now.
func (o Observation) Serving() bool {
	return o.Running && o.Applied.Probed && o.Applied.Process == o.Process
}

// StepName names a step; names are stable because tests kill the service before
// and after each of them.
type StepName string

// The steps, in the order in which a new instance takes them; then those of a server of a
// group.
const (
	StepMakeHome         StepName = "make-home"
	StepHandOver         StepName = "hand-over"
	StepCopyTemplate     StepName = "copy-template"
	StepRestoreSnapshot  StepName = "restore-snapshot" // in its place, for an instance with an origin
	StepIssueCertificate StepName = "issue-certificate"
	StepWriteSettings    StepName = "write-settings"
	StepSetLimits        StepName = "set-limits"
	StepNoteCrash        StepName = "note-crash"
	StepEndSurvivors     StepName = "end-survivors"
	StepStart            StepName = kurabe.StepStart
	StepWaitReady        StepName = kurabe.StepWaitReady
	StepEnsureMaster     StepName = "ensure-master"
	StepSetPassword      StepName = "set-password"
	StepReload           StepName = "reload"
	StepProbe            StepName = "probe"
	StepStop             StepName = "stop"
	StepKill             StepName = "kill"
	StepRemoveLimits     StepName = "remove-limits"
	StepRemoveHome       StepName = "remove-home"

	StepClone         StepName = "clone"        // in the place of copy-template, for a follower
	StepFence         StepName = "fence"        // end at once one that may not serve any more
	StepReattach      StepName = "rejoin"       // make a primary's data a follower's
	StepDiscardData   StepName = "discard-data" // where that cannot be: clone is next
	StepPromote       StepName = "promote"
	StepWaits         StepName = "waits"
	StepFollowers     StepName = "followers"
	StepAwaitOldLease StepName = "outlast" // wait until the primary before has ended
	StepRelease       StepName = "release" // let clients in that were kept out
	StepStepDown      StepName = "yield"
	StepHold          StepName = "hold"    // have a follower follow nobody
	StepCompare       StepName = "compare" // whether a read replica can go on after its source
)

// Step is one named, idempotent deed. Disruptive ones cut client sessions.
type Step struct {
	Name       StepName
	Disruptive bool
	Do         func(ctx context.Context) error
}

// Engine is what the agent drives: real engines are a Lifecycle over a Driver.
type Engine interface {
	// Observe looks, and changes nothing.
	Observe(ctx context.Context, a kurabe.Assignment) (Observation, error)
	// Steps lists what is left to do, in order; none when the assignment is
	// true. The caller does the first one and looks again.
	Steps(a kurabe.Assignment, o Observation) []Step
	// Stop ends a server cleanly, Fence at once.
	Stop(ctx context.Context, a kurabe.Assignment) error
	Fence(ctx context.Context, a kurabe.Assignment) error
	// Tidy keeps the logs for people in bounds. Files that are unread are kept for longer.
	Tidy(ctx context.Context, a kurabe.Assignment, unread func(name string) bool) error
	// OOMKills counts what the kernel killed for the memory limit of an instance.
	OOMKills(id kurabe.InstanceID) (int64, bool)
	// Reserve is that of the instances' disk.
	Reserve() (Reserve, error)
	// OpenWatch begins to look at the running server of an instance.
	OpenWatch(ctx context.Context, a kurabe.Assignment) (Watcher, error)
	// OpenSampler opens a session that reads the metrics of the running server.
	OpenSampler(ctx context.Context, a kurabe.Assignment) (Sampler, error)
	// CountWaits begins to count commits which end their wait for a standby early, nil where the
	// server does not tell.
	CountWaits(a kurabe.Assignment) (WaitCounter, error)
	// Feed brings a copy of a server to a follower on another host.
	Feed(ctx context.Context, a kurabe.Assignment, to Ask) error
	// OpenLog looks at the log of a running server, OpenLogHolder has a standby hold it, DropLog
	// has the server hold none.
	OpenLog(ctx context.Context, a kurabe.Assignment) (Log, error)
	OpenLogHolder(ctx context.Context, a kurabe.Assignment) (LogHolder, error)
	DropLog(ctx context.Context, a kurabe.Assignment) error
}

// StartError is why a server did not come up, in the engine's own words.
type StartError struct {
	Kind    kurabe.FailureKind
	Message string
}

// Error implements error.
func (e *StartError) Error() string { return e.Message }
