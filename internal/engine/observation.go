package engine

import (
	"context"
	"time"

	"kurabe"
)

// Applied is what has been done to a database, as far as the data folder cannot
// tell by itself. It is saved after each deed; a deed whose note was lost is
// done again, which is harmless.
type Applied struct {
	Master      bool  `json:"master"`      // EnsureMaster came through
	PasswordSeq int64 `json:"passwordSeq"` // newest password given
	// Process names the server process that the rest of the note speaks of:
	// the note of an earlier process is void.
	Process string `json:"process"`
	Ready   bool   `json:"ready"`  // it has accepted statements
	Loaded  string `json:"loaded"` // fingerprint of the settings it has loaded
	Probed  bool   `json:"probed"` // a client has logged in over the endpoint and written

	Limits    kurabe.Limits `json:"limits"`
	LimitsSet bool          `json:"limitsSet"`
	Crashes   int64         `json:"crashes"`
	LastCrash string        `json:"lastCrash,omitempty"`
}

// Observation is what a look at an instance's folder and processes shows.
type Observation struct {
	Home    bool // the folder and those in it exist
	Remains bool // something of the folder exists
	Data    bool // the data folder is complete
	// Record: a process was started and not stopped by us. Running: it lives.
	Record, Running bool
	Survivors       bool // processes in the data folder although the recorded one is dead

	Process   string // identity of the running process
	PID       int
	Boot      int64
	StartedAt time.Time
	// Wait returns nil when the running process has ended; nil when none runs.
	Wait func(ctx context.Context) error

	Applied            Applied
	SettingsCurrent    bool   // the rendered files are on disk
	Fingerprint        string // of the settings and certificate on disk
	CertificateCurrent bool
	CertificateExpires time.Time
	LimitsGroup        bool // the control group exists
	LimitsMissing      bool // it does not, and this host could have one
	OOMKills           int64
}

// Serving says whether a client has logged in to the process that runs now.
func (o Observation) Serving() bool {
	return o.Running && o.Applied.Probed && o.Applied.Process == o.Process
}

// StepName names a step; names are stable because tests kill the service before
// and after each of them.
type StepName string

// The steps, in the order in which a new instance takes them.
const (
	StepMakeHome         StepName = "make-home"
	StepCopyTemplate     StepName = "copy-template"
	StepRestoreSnapshot  StepName = "restore-snapshot" // in its place, for an instance with an origin
	StepIssueCertificate StepName = "issue-certificate"
	StepWriteSettings    StepName = "write-settings"
	StepSetLimits        StepName = "set-limits"
	StepNoteCrash        StepName = "note-crash"
	StepEndSurvivors     StepName = "end-survivors"
	StepStart            StepName = "start"
	StepWaitReady        StepName = kurabe.StepWaitReady
	StepEnsureMaster     StepName = "ensure-master"
	StepSetPassword      StepName = "set-password"
	StepReload           StepName = "reload"
	StepProbe            StepName = "probe"
	StepStop             StepName = "stop"
	StepKill             StepName = "kill"
	StepRemoveLimits     StepName = "remove-limits"
	StepRemoveHome       StepName = "remove-home"
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
}

// StartError is why a server did not come up, in the engine's own words.
type StartError struct {
	Kind    kurabe.FailureKind
	Message string
}

// Error implements error.
func (e *StartError) Error() string { return e.Message }
