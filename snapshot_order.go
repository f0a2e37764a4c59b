package kurabe

import (
	"cmp"
	"slices"
	"time"
)

// clockSlack is how far a time may lie ahead of a clock without saying that the clock
// went back: clocks of hosts differ, and are slewed by less.
const clockSlack = time.Minute

// AfterNow says whether a time that was noted lies ahead by so much that the clock has
// gone back since. Nothing follows from it then but that it is older than now.
func AfterNow(t, now time.Time) bool { return t.After(now.Add(clockSlack)) }

// CompareTaken is the order in which snapshots of the instance were taken, as far as
// anybody can tell. A clock that goes back and a server whose log goes back (its files
// were brought back from elsewhere) each end a run of the log, so the runs are what is
// sure; within one the position tells more than the clock.
func (l InstanceLog) CompareTaken(a, b SnapshotFacts) int {
	return cmp.Or(
		cmp.Compare(l.runOf(a), l.runOf(b)),
		compareBool(a.Position.File != "", b.Position.File != ""),
		comparePlaces(a.Position, b.Position),
		a.TakenAt.Compare(b.TakenAt),
	)
}

// comparePlaces orders what can be compared: each server numbers its own files.
func comparePlaces(a, b LogPosition) int {
	if a.Server != b.Server && a.Server != "" && b.Server != "" {
		return 0
	}
	return a.Compare(b)
}

// SurelyFollows says whether a snapshot is newer than another without a doubt, as it
// must be to let the other go. Where no run tells, position and clock have to agree, for
// either may have gone back.
func (l InstanceLog) SurelyFollows(next, s SnapshotFacts) bool {
	if a, b := l.runOf(next), l.runOf(s); a != b {
		return a > b
	}
	return l.CompareTaken(next, s) > 0 && next.TakenAt.After(s.TakenAt)
}

// Holds says whether a snapshot was taken since the run began that goes on now, or in one
// that it continues, and so is a beginning for the moments to come. What ended on another host says nothing of that:
// by the clock there it may have begun later.
func (l InstanceLog) Holds(s SnapshotFacts, now time.Time) bool {
	last := len(l.Runs) - 1
	for last >= 0 && l.Runs[last].Ended != "" && !l.Runs[last].on(s.Host) {
		last--
	}
	if last < 0 || l.Runs[last].Ended != "" || AfterNow(s.TakenAt, now) {
		return false
	}
	n := l.runOf(s)
	return n == last || n >= 0 && s.Position.File != "" && slices.Contains(l.chainFrom(n, s.Position), last)
}

// runOf is the number of the last run that had begun when a snapshot was taken, by the
// clock and by the log of its host; -1 if none had. One without a position is judged by the clock.
func (l InstanceLog) runOf(s SnapshotFacts) int {
	for n := len(l.Runs) - 1; n >= 0; n-- {
		if !l.Runs[n].on(s.Host) || !l.Runs[n].of(s.Position) {
			continue
		}
		first := l.Runs[n].First
		positioned := s.Position.File != "" && first.Position.File != ""
		if first.At.IsZero() || s.TakenAt.Before(first.At) || positioned && s.Position.Compare(first.Position) < 0 {
			continue
		}
		return n
	}
	return -1
}

// Log is what the report of an instance tells of its log: the run that goes on, and those
// that it continues.
func (r *InstanceReport) Log() InstanceLog {
	var l InstanceLog
	if r == nil || r.LogSince.IsZero() {
		return l
	}
	live := LogRun{Began: r.LogBegan, First: LogMark{At: r.LogSince, Position: r.LogFrom}}
	if c := r.LogContinues; c != nil {
		l.Runs = slices.Clone(c.Before)
		live.Continues, live.After, live.Elsewhere = c.Began, c.After, c.Elsewhere
	}
	l.Runs = append(l.Runs, live)
	return l.ToldBy(r.Host)
}

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	}
	return -1
}
