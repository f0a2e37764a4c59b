package kurabe

import "time"

// Bounds of what a verification reports: the first problems say what to do, and a
// record has to stay small.
const (
	VerifyProblemsMax     = 20
	VerifyProblemCharsMax = 500
)

// Verification is what came out of restoring a snapshot beside everything else: its
// files were compared with their sums, a server recovered a copy of them, and the
// engine's own tools looked for damage in it.
type Verification struct {
	Seq int64     `json:"seq"` // of the assignment that asked for it
	At  time.Time `json:"at"`  // when it ended
	// OK says that no damage was found; Problems otherwise say which, at most
	// VerifyProblemsMax of VerifyProblemCharsMax characters.
	OK       bool     `json:"ok"`
	Problems []string `json:"problems,omitempty"`
	// Notes say what was not looked at, and why; within the same bounds.
	Notes []string `json:"notes,omitempty"`
	// Marker is the time that the service had written into the database last; zero
	// when there is none.
	Marker time.Time `json:"marker,omitzero"`
	// Until is the moment to which the log was replayed as well, zero without a log.
	Until    time.Time     `json:"until,omitzero"`
	Duration time.Duration `json:"duration"` // nanoseconds
}
