package kurabe

import (
	"slices"
	"time"
)

// MemberID names one server of an instance. The first has the instance's own id.
type MemberID string

// Epoch counts the writers of an instance: each has one of its own, higher than any
// before.
type Epoch int64

// Member is one server of an instance, and where it is.
type Member struct {
	ID   MemberID `json:"id"`
	Host HostID   `json:"host"`
	Zone string   `json:"zone"`
}

// Degradation is what becomes of commits when no member of Sync answers.
type Degradation string

// The policies. Degrade goes on alone and says so, as RDS does; Block lets commits wait.
const (
	Degrade Degradation = "degrade"
	Block   Degradation = "block"
)

// Group is the only truth of who may write an instance. The planner alone writes it, and
// only over what it has read.
//
// A write is acknowledged only when every member of Sync has it, or Sync is empty. So a
// member leaves Sync here first and in the database second, and joins in the database
// first and here second.
type Group struct {
	Instance InstanceID  `json:"instance"`
	Epoch    Epoch       `json:"epoch"`
	Writer   MemberID    `json:"writer"`
	Sync     []MemberID  `json:"sync"` // sorted; never the writer
	Members  []Member    `json:"members"`
	Policy   Degradation `json:"policy"`
	// Since is when Sync became empty although there are other members: what could be
	// lost with the writer is what was written since.
	Since time.Time `json:"since,omitzero"`
}

// Has says whether a member is in Sync.
func (g Group) Has(id MemberID) bool { return slices.Contains(g.Sync, id) }

// Position is how far a server's log goes, in the engine's own unit.
type Position int64

// MemberReport is what a host sees of a member.
type MemberReport struct {
	Member MemberID
	// At is when the host looked, by the planner's clock of its arrival.
	At time.Time
	// Generation is that of the newest order which the running database obeys in full.
	Generation Generation
	// Writing: it runs and takes writes. Following: it runs and is connected to the writer
	// of Epoch.
	Writing, Following bool
	// Written is how far the log goes that is durable here.
	Written Position
	// WaitsFor are those whose answer a commit waits for, as the running database has it.
	WaitsFor []MemberID
	// Heard is when the writer last had an answer of a member that follows it, and Flushed
	// how far that said it had come.
	Heard   map[MemberID]time.Time
	Flushed map[MemberID]Position
}

// Lease is who holds the right to write now; the zero value is nobody.
type Lease struct {
	Member MemberID
	Epoch  Epoch
}

// MemberOrder is what a member is to be. Its generation rises with its content.
type MemberOrder struct {
	Generation Generation
	Epoch      Epoch
	Writer     bool
	// WaitFor is whose answer commits wait for; of a writer. Follow is whom it follows.
	WaitFor []MemberID
	Follow  MemberID
}
