package engine

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"

	"kurabe"
	"kurabe/internal/volume"
)

// Applied is what has been done to a database, as far as the data folder cannot
// tell by itself. It is saved after each deed; a deed whose note was lost is
// done again, which is harmless.
type Applied struct {
	Master      bool  `json:"master"`      // EnsureMaster came through
	PasswordSeq int64 `json:"passwordSeq"` // newest password given
	// PasswordNoted: it is noted in the data, too, which services of before did not do.
	PasswordNoted bool `json:"passwordNoted,omitempty"`
	// Process names the server process that the rest of the note speaks of:
	// the note of an earlier process is void.
	Process string `json:"process"`
	Ready   bool   `json:"ready"`  // it has accepted statements
	Loaded  string `json:"loaded"` // fingerprint of the settings it has loaded
	Probed  bool   `json:"probed"` // a client has logged in over the endpoint and written

	// Accepted are the settings, as one sum, with which a server has come up on this data; "" of
	// one that none has, as far as is known.
	Accepted string `json:"accepted,omitempty"`

	Limits    kurabe.Limits `json:"limits"`
	LimitsSet bool          `json:"limitsSet"`
	Crashes   int64         `json:"crashes"`
	LastCrash string        `json:"lastCrash,omitempty"`

	// The rest is of a server of a group. Waits are those whose answer every commit of
	// Process waits for; WaitsStale: what it loaded since may have changed that. Followers
	// are those for whom it has been seen to.
	Waits        []kurabe.InstanceID `json:"waits,omitempty"`
	WaitsStale   bool                `json:"waitsStale,omitempty"`
	Followers    []kurabe.InstanceID `json:"followers,omitempty"`
	FollowersSet bool                `json:"followersSet,omitempty"`

	// What follows outlasts a process. RoleEpoch is that of the newest assignment whose
	// role a process has obeyed in full, Started the newest StartSeq that was used up.
	RoleEpoch kurabe.Epoch `json:"roleEpoch,omitempty"`
	Started   int64        `json:"started,omitempty"`
	// ClientsKeptOut: a primary was started although other members may lack commits that its
	// clients could see. Clients stay out until the release step.
	ClientsKeptOut bool `json:"held,omitempty"`
	// Stopped: the server was stopped cleanly. SteppedDown: it stopped to hand over. Both end
	// with the next start.
	Stopped     bool `json:"stopped,omitempty"`
	SteppedDown bool `json:"yielded,omitempty"`
	// EndedAt is where the log of one ends that has stepped down for a read replica, in the engine's
	// unit, 0 of any other.
	EndedAt int64 `json:"endedAt,omitempty"`
	// Rejoining: the data may be between two states, and is good for nothing but another
	// try. Rebuild: no try will do. Rebuilt is the newest RebuildSeq whose clone is there.
	Rejoining bool  `json:"rejoining,omitempty"`
	Rebuild   bool  `json:"rebuild,omitempty"`
	Rebuilt   int64 `json:"rebuilt,omitempty"`
	// Compared is the epoch of the role whose source a read replica was compared with.
	Compared kurabe.Epoch `json:"compared,omitempty"`
	// OldLeaseAwaited is the epoch for which the end of the lease of the former primary was
	// awaited (Role.WaitForOldLease).
	OldLeaseAwaited kurabe.Epoch `json:"outlasted,omitempty"`
	// HeldEpoch is the newest epoch in which a follower came to follow nobody, HeldAt how far
	// its log was then.
	HeldEpoch kurabe.Epoch `json:"heldEpoch,omitempty"`
	HeldAt    int64        `json:"heldAt,omitempty"`
	// GivenUp is what the data had alone when it was last made that of a follower.
	GivenUp kurabe.DiscardedCommits `json:"givenUp,omitzero"`
}

// Begin notes that a server of a group is about to be started. This is saved before the
// process exists: were it saved after, a service that dies in between would leave a server
// that lets clients in whom it must keep out, by an order that could be used again.
func (n *Applied) Begin(r kurabe.Role) {
	n.ClientsKeptOut = n.holds(r)
	n.Started = max(n.Started, r.StartSeq)
	n.Ran("", "")
}

// holds says whether a server must keep clients out when it is started. One that died may
// have had commits that nobody waited for to the end: they show after the start, and a
// client that has seen them must not lose them with the server. Where commits never go on
// alone, one that was stopped well may have had them, too, as nobody may have been there to
// get them.
func (n *Applied) holds(r kurabe.Role) bool {
	return r.Duty == kurabe.DutyWrite && len(r.WaitFor) > 0 && (n.ClientsKeptOut || !n.Stopped || r.RequireStandby)
}

// holdsPromoted says whether a follower must keep clients out when it is made a primary: until
// its commits wait.
func holdsPromoted(r kurabe.Role) bool { return r.RequireStandby && len(r.WaitFor) > 0 }

// MayStart says whether a primary that does not run may be started: while commits wait for
// others, one of them may be about to take its place, unless the start was ordered.
func (n *Applied) MayStart(r kurabe.Role) bool {
	return len(r.WaitFor) == 0 || n.Stopped || r.StartSeq > n.Started
}

// hasPassword says whether the master password is seen to.
func (n *Applied) hasPassword(p kurabe.Password) bool {
	return n.PasswordSeq >= p.Seq && n.PasswordNoted
}

// discards says whether a follower's data is to go, for a clone to take its place.
func (n *Applied) discards(r kurabe.Role) bool {
	return n.Rebuild || r.Duty == kurabe.DutyFollow && r.RebuildSeq > n.Rebuilt
}

// Ran has the note speak of another process, which has loaded these settings.
func (n *Applied) Ran(process, loaded string) {
	n.Process, n.Loaded, n.Ready, n.Probed = process, loaded, false, false
	n.Waits, n.WaitsStale, n.Followers, n.FollowersSet = nil, false, nil, false
	n.Stopped, n.SteppedDown, n.EndedAt = false, false, 0
}

// obeys notes that the process has loaded what it is told by its role. A follower has
// nothing else to do then. One that is in no group any more keeps nobody out, and what it
// was in one says nothing of the next.
func (n *Applied) obeys(r *kurabe.Role) {
	switch {
	case r == nil:
		n.ClientsKeptOut, n.RoleEpoch = false, 0
	case r.Duty == kurabe.DutyFollow:
		n.RoleEpoch = r.Epoch
	}
}

// of is the note as far as it holds for the process that runs; none does when that is "".
func (n Applied) of(process string) Applied {
	if process == "" || n.Process != process {
		n.Ran(process, "")
	}
	return n
}

// readApplied returns the note of what was done to the database; no file means
// nothing was.
func readApplied(h Home) (Applied, error) {
	var a Applied
	data, err := volume.ReadFile(h.AppliedFile())
	if errors.Is(err, fs.ErrNotExist) {
		return a, nil
	}
	if err != nil {
		return a, fmt.Errorf("read note of %s: %w", h.Dir, err)
	}
	if err := json.Unmarshal(data, &a); err != nil {
		return a, fmt.Errorf("read note %s: %w", h.AppliedFile(), err)
	}
	return a, nil
}

// note changes what is remembered as done. One worker acts on an instance at a
// time, so reading and writing need no lock.
func note(h Home, change func(*Applied)) error {
	a, err := readApplied(h)
	if err != nil {
		return err
	}
	change(&a)
	data, err := json.Marshal(a)
	if err != nil {
		return fmt.Errorf("write note of %s: %w", h.Dir, err)
	}
	return volume.AtomicWrite(h.AppliedFile(), data, 0o600)
}
