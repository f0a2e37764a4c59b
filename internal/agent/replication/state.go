package replication

import (
	"slices"
	"time"

	"kurabe"
	"kurabe/internal/engine"
)

// How a server of a group is looked at, and what is made of it. LookLimit is how long one
// look waits. One in no group, whose place nobody takes, is only told of: AloneEvery and
// aloneLimit cost the idle service next to nothing, and are 16 s before that. A follower
// tells how far it is once a second, so SilentMost is half a second more; StuckAfter is two
// looks that nobody answered, and the pause between them.
const (
	LookEvery  = 250 * time.Millisecond
	LookLimit  = time.Second
	AloneEvery = 4 * time.Second
	aloneLimit = 4 * time.Second
	SilentMost = 1500 * time.Millisecond
	StuckAfter = 2 * (LookEvery + LookLimit)
	// nearBytes are what a follower may lack when commits begin to wait for it: they take
	// as long as it takes to send that, a fraction of a second.
	nearBytes = 16 << 20
)

// State is what looks at one process have shown. It knows no clock: whoever looks brings
// the time.
type State struct {
	Alone   bool                       // it is in no group: what has not answered yet is stuck, too
	view    *engine.RoleView           // the newest answer, nil before the first
	seenAt  time.Time                  // of view
	writing time.Time                  // since when it was seen to write, zero: not yet
	met     map[kurabe.InstanceID]bool // followers that were connected once
	near    map[kurabe.InstanceID]bool
	lost    map[kurabe.InstanceID]bool // followers that can catch up no more
	// mark is the end of what was written when commits had begun to wait for marked.
	marked []kurabe.InstanceID
	mark   int64
	// followed is when it was last seen to follow.
	followed time.Time
	// fresh is when a follower last had nothing left to apply, by its own word.
	fresh time.Time
	// received are ends of a follower's log that it has not applied, and when they were first
	// seen, oldest first; at most receivedMost.
	received []arrival
	// behind: some of that has been there for behindAfter, and not all is newer than a look.
	behind bool
	// endedBy is the end of what was written when endedCount commits had ended their wait early;
	// EndedElsewhere is how many of them another server has.
	endedCount, endedBy int64
	EndedElsewhere      int64
	// mute is for how long nothing has answered, at triedAt.
	mute    time.Duration
	triedAt time.Time
	since   time.Time // of mute: the newest answer, or the first look
}

// Pace is the pause between two looks, and how long one may wait.
func (s *State) Pace() (every, limit time.Duration) {
	if s.Alone {
		return AloneEvery, aloneLimit
	}
	return LookEvery, LookLimit
}

// stuckAfter is two looks that nobody answered, and the pause between them.
func (s *State) stuckAfter() time.Duration {
	every, limit := s.Pace()
	return 2 * (every + limit)
}

// arrival is a place in the log of a follower, and when it was there.
type arrival struct {
	end int64
	at  time.Time
}

// receivedMost is enough to know to a second how old what is not applied is.
const receivedMost = int(kurabe.ReaderLagMost/LookEvery) + 2

// behindAfter is how old what a follower has not applied is when it counts as behind. Half of
// that and it does no more: a report at each look would be a flood.
const behindAfter = 2 * LookEvery

// age keeps account of what a follower has not applied yet.
func (s *State) age(now time.Time, v engine.RoleView) {
	if v.Following {
		s.followed = now
	}
	s.received = slices.DeleteFunc(s.received, func(a arrival) bool { return v.Writing || a.end <= v.Applied })
	if n := len(s.received); !v.Writing && v.Position > v.Applied && n < receivedMost && (n == 0 || s.received[n-1].end < v.Position) {
		s.received = append(s.received, arrival{v.Position, now})
	}
	least := behindAfter
	if s.behind {
		least /= 2
	}
	s.behind = len(s.received) > 0 && now.Sub(s.received[0].at) >= least
}

// late says whether what a follower shows is older than ReaderLagMost, for all that is known.
func (s *State) late() bool {
	if s.view.Writing {
		return false
	}
	return s.seenAt.Sub(s.followed) >= kurabe.ReaderLagMost || len(s.received) > 0 && s.seenAt.Sub(s.received[0].at) >= kurabe.ReaderLagMost
}

// Mute is since when the server does not answer any more, zero where that is not so, and
// whether it does. Neither is known at first.
func (s *State) Mute() (since time.Time, answers bool) {
	if s.Stuck() {
		return s.since.UTC(), false
	}
	return time.Time{}, s.view != nil
}

// Unmark forgets what followers lacked when commits began to wait for them.
func (s *State) Unmark() { s.marked, s.mark = nil, 0 }

// InForce is what a process was made to do by now, nil as far as that is under way.
type InForce struct {
	// WaitsFor are those whom it waits for: while that is not done, some sessions may not wait
	// for them yet although the server names them, and what they write has no mark.
	WaitsFor []kurabe.InstanceID
	// Slots are those for whom it holds its log back.
	Slots []kurabe.InstanceID
}

// Answered takes an answer in; done is what was done before it was asked for.
func (s *State) Answered(now time.Time, v engine.RoleView, done InForce) {
	waits := done.WaitsFor
	s.view, s.seenAt = &v, now
	s.age(now, v)
	s.freshen(now, v)
	s.mute, s.triedAt = 0, now
	if v.Writing && s.writing.IsZero() {
		s.writing = now
	}
	if s.met == nil {
		s.met = map[kurabe.InstanceID]bool{}
	}
	near, lost := map[kurabe.InstanceID]bool{}, map[kurabe.InstanceID]bool{}
	for _, id := range done.Slots {
		lost[id] = v.Slots != nil && !slices.Contains(v.Slots, id)
	}
	for id, f := range v.Followers {
		lost[id] = lost[id] || f.Lost
		s.met[id] = s.met[id] || f.Streaming
		lacks := v.Inserted - f.Flushed
		// Twice as much before it is near no more: a report at each look would be a flood.
		near[id] = f.Streaming && (lacks <= nearBytes || s.near[id] && lacks <= 2*nearBytes)
	}
	s.near, s.lost = near, lost
	switch {
	case len(waits) == 0 || !v.Writing || !SameMembers(waits, v.WaitsFor):
		s.Unmark()
	case !SameMembers(waits, s.marked):
		s.marked, s.mark = slices.Sorted(slices.Values(waits)), v.Inserted
	}
}

// Refused takes in that a look failed at once. Who says no is alive.
func (s *State) Refused(now time.Time) { s.mute, s.triedAt = 0, now }

// Unanswered takes in that a look had no answer. Only so much counts as one look takes:
// when the whole machine stood still, it was not the server that did not answer.
func (s *State) Unanswered(now time.Time) {
	if s.triedAt.IsZero() {
		s.triedAt = now
	}
	if s.mute == 0 {
		s.since = s.triedAt
	}
	s.mute += min(now.Sub(s.triedAt), s.stuckAfter()/2)
	s.triedAt = now
}

// Limit is how long the next look may wait, so that a server which hangs is known to be
// stuck when it is.
func (s *State) Limit(now time.Time) time.Duration {
	every, limit := s.Pace()
	if s.view == nil || s.Stuck() {
		return limit
	}
	rest := s.stuckAfter() - s.mute - min(now.Sub(s.triedAt), every+limit)
	return max(min(rest, limit), every)
}

// Stuck says whether a server that has answered does so no more. One that never did is
// starting.
func (s *State) Stuck() bool { return (s.view != nil || s.Alone) && s.mute >= s.stuckAfter() }

// Current is the newest answer, nil when it is too old to go by.
func (s *State) Current(now time.Time) *engine.RoleView {
	if s.view == nil || now.Sub(s.seenAt) >= StuckAfter {
		return nil
	}
	return s.view
}

// Report is what is told. What a writer has said of itself stays true while it says
// nothing, since it cannot become anything else; a follower that says nothing may not
// follow any more.
func (s *State) Report(now time.Time, followers []kurabe.InstanceID) kurabe.RoleReport {
	if s.view == nil {
		return kurabe.RoleReport{}
	}
	v := s.view
	r := kurabe.RoleReport{IsPrimary: v.Writing, Writing: v.Writing, Following: v.Following && s.Current(now) != nil, Unresponsive: s.Stuck(), ReadsStale: s.late(), ApplyLags: s.behind, Position: v.Position}
	if !v.Writing {
		return r
	}
	r.WaitsFor = slices.Sorted(slices.Values(v.WaitsFor))
	for _, id := range slices.Sorted(slices.Values(followers)) {
		if s.silent(id) {
			r.SilentFollowers = append(r.SilentFollowers, id)
		}
		if s.near[id] {
			r.NearlyCaughtUp = append(r.NearlyCaughtUp, id)
		}
		if s.lost[id] {
			r.NeedRebuild = append(r.NeedRebuild, id)
		}
	}
	for _, id := range s.marked {
		if f, there := v.Followers[id]; there && f.Flushed >= s.mark {
			r.CaughtUp = append(r.CaughtUp, id)
			if f.Replayed >= s.mark {
				r.Replayed = append(r.Replayed, id)
			}
		}
	}
	return r
}

// FollowedAt is the newest moment at which one of these is known to have followed, 0 without
// one. None of them takes over before all of them follow no more.
func (s *State) FollowedAt(any []kurabe.InstanceID) int64 {
	if s.view == nil || !s.view.Writing {
		return 0
	}
	var last int64
	for _, id := range any {
		last = max(last, s.view.Followers[id].FollowedAt)
	}
	return last
}

// silent says whether a follower was not heard of, at the newest answer. One that has
// never been connected to this writer gets the time to do so: a writer that has just
// begun has none that is.
func (s *State) silent(id kurabe.InstanceID) bool {
	f, there := s.view.Followers[id]
	if there && f.Streaming {
		return f.HeardAgo >= SilentMost
	}
	return s.met[id] || s.seenAt.Sub(s.writing) >= SilentMost
}

func (s *State) Hanging(ids []kurabe.InstanceID) (hang []kurabe.InstanceID) {
	for _, id := range ids {
		if f, there := s.view.Followers[id]; there && f.Streaming { // who is named was looked at
			hang = append(hang, id)
		}
	}
	return hang
}

// SameMembers says whether two lists name the same, in whatever order.
func SameMembers(a, b []kurabe.InstanceID) bool {
	return slices.Equal(slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b)))
}

// Ended keeps account of whether another server has what had ended its wait early, count in all,
// when the server was asked. What a writer had written by then contains them.
func (s *State) Ended(count int64, v engine.RoleView) {
	if !v.Writing { // what it had alone was given up, and is counted as that
		s.EndedElsewhere = count
		return
	}
	if count > s.endedCount {
		s.endedCount, s.endedBy = count, v.Inserted
	}
	for _, id := range v.WaitsFor {
		if f, there := v.Followers[id]; there && f.Flushed >= s.endedBy {
			s.EndedElsewhere = s.endedCount
		}
	}
}
