package result

import (
	"time"

	"kurabe/lab/study"
)

// Format names this version of the file.
const Format = "kurabe-lab/1"

// Kinds of records, the field "t" of a line.
const (
	KindStudy    = "study"
	KindEnv      = "env"
	KindSettings = "settings"
	KindTrial    = "trial"
	KindEvent    = "event"
	KindEnd      = "end"
)

// Study is the first line of a file: what is asked, before anything is measured.
type Study struct {
	Format     string      `json:"format"`
	ID         string      `json:"id"` // of the run: lower case, safe in names and tags
	Created    time.Time   `json:"created"`
	Definition study.Study `json:"definition"`
	Seed       uint64      `json:"seed"`
	Engine     string      `json:"engine"` // study.Postgres, ...
	Target     string      `json:"target"` // "kurabe", "url", "rds", "private"; never an address or a secret
	Command    []string    `json:"command"`
	// Unsupported are variants and workloads that the target cannot have, by name, with
	// the reason.
	Unsupported map[string]string `json:"unsupported,omitempty"`
}

// Env is the machine and the programs.
type Env struct {
	Host   map[string]string `json:"host"`   // cpu, cores, memory_bytes, kernel, governor, file_system, virtualization
	Engine map[string]string `json:"engine"` // name, version, version_full
	Lab    map[string]string `json:"lab"`    // version, binary_sha256, go
}

// Settings are the engine's settings under a variant, as the server told them.
type Settings struct {
	Variant string            `json:"variant"`
	Values  map[string]string `json:"values"`
}

// Status of a trial.
const (
	StatusOK        = "ok"
	StatusUnsettled = "unsettled" // the warm-up found no end, or it was disturbed again; counts
	StatusRepeated  = "repeated"  // the machine was disturbed; does not count
	StatusFailed    = "failed"    // does not count
)

// Phases of a trial. Measure is that of a study without changes; one with changes has
// the last three instead.
const (
	PhaseReset   = "reset"
	PhaseWarm    = "warm"
	PhaseMeasure = "measure"
	PhaseIdle    = "idle"
	PhaseDuring  = "during"
	PhaseAfter   = "after"
)

// Trial is one cell of one block, with all that was seen of it.
type Trial struct {
	Block    int       `json:"block"` // from 1
	Position int       `json:"position"`
	Variant  string    `json:"variant"`
	Workload string    `json:"workload"`
	Seed     uint64    `json:"seed"`
	Start    time.Time `json:"start"`
	Status   string    `json:"status"`
	Reason   string    `json:"reason,omitempty"` // of a status that is not ok
	Phases   []Phase   `json:"phases"`
	// Canary is the time of a fixed piece of work before and after the trial, by kind
	// (cpu, fsync), milliseconds.
	Canary map[string][2]float64 `json:"canary,omitempty"`
	// Change is how long the change took, milliseconds; 0 without one.
	ChangeMs float64 `json:"change_ms,omitempty"`
}

// Phase is a stretch of a trial.
type Phase struct {
	Name    string  `json:"name"`
	StartMs float64 `json:"start_ms"` // after the trial's start
	Ms      float64 `json:"ms"`
	Load    *Load   `json:"load,omitempty"` // of phases that are measured
	// Probes are totals of the phase by name (probe.Names), as cpu_s, context_switches,
	// wal_bytes, fsyncs, lock_waits.
	Probes map[string]float64 `json:"probes,omitempty"`
	// Waits are samples of active sessions by wait event.
	Waits map[string]int `json:"waits,omitempty"`
}

// Load is what clients saw.
type Load struct {
	Transactions int64 `json:"transactions"` // that were answered without an error
	// Offered and Skipped count arrivals of open load: a skipped one was due when no
	// client was free within the bound, and was not sent.
	Offered int64            `json:"offered,omitempty"`
	Skipped int64            `json:"skipped,omitempty"`
	Errors  map[string]int64 `json:"errors,omitempty"` // by code
	Seconds float64          `json:"seconds"`
	// Response counts from the scheduled start, Service from the sending; of closed load
	// both are the same and Response is absent. HDR histograms of microseconds, encoded
	// by EncodeHistogram.
	Response   string            `json:"response,omitempty"`
	Service    string            `json:"service,omitempty"`
	Statements map[string]string `json:"statements,omitempty"` // service, by statement, in their order: "01 BEGIN"
	// Summary has what a generator printed that gives no histogram, milliseconds: avg,
	// p50, p95, p99, max, min, and "statement 01 BEGIN".
	Summary map[string]float64 `json:"summary,omitempty"`
	// Bins are answered transactions per 100 ms, BinsMax the slowest of each, ms.
	Bins    []int64   `json:"bins,omitempty"`
	BinsMax []float64 `json:"bins_max,omitempty"`
	// Generator is what the generator itself took: cpu_s, lag_p99_ms (how late it sent).
	Generator map[string]float64 `json:"generator,omitempty"`
	Prog      string             `json:"prog,omitempty"` // its name and version
}

// Event is something that happened during a trial.
type Event struct {
	Block    int     `json:"block"`
	Variant  string  `json:"variant"`
	Workload string  `json:"workload"`
	AtMs     float64 `json:"at_ms"` // after the trial's start
	Kind     string  `json:"kind"`
	Text     string  `json:"text,omitempty"`
	// Position is the trial's, as a cell of a block may have been tried twice; 0 in files
	// from before it was written.
	Position int `json:"position,omitempty"`
}

// Kinds of events. Those that last have a begin and an end, as their Text.
const (
	EventChangeBegin = "change_begin" // the statements
	EventChangeEnd   = "change_end"
	EventStep        = "ddl_step"  // a change's next statement, or what a tool says that it does
	EventLockWait    = "lock_wait" // of the change, lasts
	EventCheckpoint  = "checkpoint"
	EventAutovacuum  = "autovacuum"
)

// Of says whether an event is of a trial.
func (e *Event) Of(t *Trial) bool {
	return e.Block == t.Block && e.Variant == t.Variant && e.Workload == t.Workload && (e.Position == 0 || e.Position == t.Position)
}

// End is the last line of a run that came to its end; a resumed one goes on after it.
type End struct {
	At     time.Time `json:"at"`
	Reason string    `json:"reason"` // precise, blocks, interrupted
}
