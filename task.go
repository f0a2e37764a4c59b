package kurabe

import "time"

// KindLogCheck reads all of the stored log of an instance and compares its checksums.
const KindLogCheck Kind = "log-check"

// Task has a host do something for an instance once more: its generation counts the times.
// Nothing of it outlasts its order. Only the planner writes it.
type Task struct {
	Kind       Kind       `json:"kind"`
	Host       HostID     `json:"host"`
	Instance   InstanceID `json:"instance"`
	Generation Generation `json:"generation"`
}

// TaskReport is what came of it. Only the host's agent writes it.
type TaskReport struct {
	Task
	Done    bool      `json:"done"`
	At      time.Time `json:"at,omitzero"` // when it was done
	Failure *Failure  `json:"failure,omitempty"`
	TaskResult
}

// TaskResult is what a host has found, a sentence each.
type TaskResult struct {
	Summary  string        `json:"summary,omitempty"`
	Problems []TaskProblem `json:"problems,omitempty"`
}

// TaskProblemsMax bounds the problems of a result.
const TaskProblemsMax = 20

// TaskProblem is one, since From.
type TaskProblem struct {
	From time.Time `json:"from,omitzero"`
	Text string    `json:"text"`
}

// TaskStatus is the newest time that a task was done of which was told.
type TaskStatus struct {
	Announced Generation `json:"told,omitempty"`
	At        time.Time  `json:"at"`
	TaskResult
}

// Envelope implements Word.
func (d Task) Envelope() Envelope {
	return Envelope{Ref{d.Kind, string(d.Instance)}, d.Host, d.Generation, true}
}

// Unsaved is that of a server's report.
func (r TaskReport) Unsaved(g Generation, why *Failure) TaskReport {
	r.Generation, r.Failure, r.Done = g, why, false
	return r
}
