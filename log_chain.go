package kurabe

import (
	"cmp"
	"slices"
	"strconv"
	"time"
)

// LogPosition is a place in the log of an instance: one of the engine's files (a
// WAL segment, a binary log) and the bytes in it that lie before the place.
type LogPosition struct {
	// Server is the one whose files they are, "" where an instance has but one: each
	// numbers its own. It is no part of the order.
	Server InstanceID `json:"server,omitempty"`
	File   string     `json:"file"`
	Offset int64      `json:"offset"`
}

// Compare orders the positions of the log of one server. The engines number their files; a
// longer name is a higher number.
func (p LogPosition) Compare(o LogPosition) int {
	return cmp.Or(cmp.Compare(len(p.File), len(o.File)), cmp.Compare(p.File, o.File), cmp.Compare(p.Offset, o.Offset))
}

// String is "000000010000000000000003:8192".
func (p LogPosition) String() string { return p.File + ":" + strconv.FormatInt(p.Offset, 10) }

// LogMark ties a moment to a position: what was acknowledged before At lies before
// Position, and what lies before Position was written before Until.
type LogMark struct {
	At       time.Time   `json:"at"`
	Until    time.Time   `json:"until"`
	Position LogPosition `json:"position"`
	// State finds the position in the log of another server that has all of this one's, in
	// the engine's words; "" where the position itself does.
	State string `json:"state,omitempty"`
}

// LogRun is a stretch of an instance's log that a host keeps without a gap, of one
// server. To restore to a moment, one run must hold everything from a snapshot's position
// to the moment, or that run and those that go on from it.
type LogRun struct {
	// Host tells of it, "" in its own report. Only what is on the host of a snapshot brings
	// that to a moment: each server numbers its files for itself, by the clock of its host.
	Host HostID `json:"host,omitempty"`
	// Began is when the run was begun; it never changes, while First moves on when
	// what nothing needs is removed.
	Began time.Time `json:"began"`
	// First is the first mark, or the beginning of the oldest file that is left; Last is
	// the newest mark whose bytes are durable. A snapshot taken before First.At, or at a
	// position before it, is of no use to the run: after a clock that went back only the
	// position tells.
	First LogMark `json:"first"`
	Last  LogMark `json:"last"`
	// Ended says why nothing follows, "" while the run goes on. Damaged: because a part of the
	// stored log is lost.
	Ended   string `json:"ended,omitempty"`
	Damaged bool   `json:"damaged,omitempty"`
	// Continues is when the run began from which this one goes on, since another server
	// writes the instance: it holds all that was written after After, a place in that
	// run. What that run has behind After is not a part of the history any more, as
	// nobody was told of it. Both are zero of a run that continues none.
	Continues time.Time   `json:"continues,omitzero"`
	After     LogPosition `json:"after,omitzero"`
	// Elsewhere: that run is one of another host's, with which this one shares a repository.
	Elsewhere bool `json:"elsewhere,omitempty"`
	// Pushed is the newest mark of which all is in the repository: what another host can read.
	Pushed LogMark `json:"pushed,omitzero"`
}

// WrittenElsewhere is why a run has ended whose instance a server on another host writes.
const WrittenElsewhere = "a server on another host writes it"

// InstanceLog is what a host keeps of the log of one instance, which may be gone.
type InstanceLog struct {
	Instance InstanceID `json:"instance"`
	Runs     []LogRun   `json:"runs"` // oldest first
	// Failure says why the log does not grow, "" while it does.
	Failure     string `json:"failure,omitempty"`
	StoredBytes int64  `json:"storedBytes"` // in repository and spool
	SpoolBytes  int64  `json:"spoolBytes"`  // of these, not yet in the repository
}

// Last is the newest mark, zero without one.
func (l InstanceLog) Last() LogMark {
	if len(l.Runs) == 0 {
		return LogMark{}
	}
	return l.Runs[len(l.Runs)-1].Last
}

// ToldBy is the log with the host that has told of it noted in its runs.
func (l InstanceLog) ToldBy(host HostID) InstanceLog {
	l.Runs = slices.Clone(l.Runs)
	for n := range l.Runs {
		l.Runs[n].Host = host
	}
	return l
}

// on says whether a run is on a host. Where none is noted there is only one.
func (r LogRun) on(host HostID) bool { return r.Host == "" || host == "" || r.Host == host }

// JoinLogs is the log of an instance as several hosts have parts of it; false of none. A run
// that two of them name is told by the one that has more of it, and follows it.
func JoinLogs(all []InstanceLog) (InstanceLog, bool) {
	if len(all) == 0 {
		return InstanceLog{}, false
	}
	newest := slices.MaxFunc(all, func(a, b InstanceLog) int { return a.Last().At.Compare(b.Last().At) })
	if len(all) == 1 {
		return newest, true
	}
	var runs []LogRun
	newest.StoredBytes, newest.SpoolBytes = 0, 0
	for _, l := range all {
		runs = append(runs, l.Runs...)
		newest.StoredBytes += l.StoredBytes
		newest.SpoolBytes += l.SpoolBytes
	}
	slices.SortStableFunc(runs, func(a, b LogRun) int {
		return cmp.Or(a.Began.Compare(b.Began), b.Last.At.Compare(a.Last.At), compareBool(a.Ended != "", b.Ended != ""), cmp.Compare(a.Host, b.Host))
	})
	newest.Runs = slices.CompactFunc(runs, func(a, b LogRun) bool {
		return a.Began.Equal(b.Began) && a.First.Position.File == b.First.Position.File
	})
	return newest, true
}

// of says whether a run is the log of the server that a position is of. Where none is noted
// there is only one.
func (r LogRun) of(p LogPosition) bool {
	return p.Server == "" || r.First.Position.Server == "" || p.Server == r.First.Position.Server
}

// spans says whether a run has a place of its server's log.
func (r LogRun) spans(p LogPosition) bool {
	return r.of(p) && p.Compare(r.First.Position) >= 0 && p.Compare(r.Last.Position) <= 0
}

// holds says whether a snapshot was taken while the run was kept, of what it has.
func (r LogRun) holds(s SnapshotFacts) bool {
	return !s.TakenAt.Before(r.First.At) && !s.TakenAt.After(r.Last.At) && r.spans(s.Position)
}

// Chain numbers the runs that bring a snapshot to later moments: the one that holds its
// position, and those that go on from there, each from the one before it. Empty when none
// holds it.
func (l InstanceLog) Chain(takenAt time.Time, position LogPosition) []int {
	for n := len(l.Runs) - 1; n >= 0; n-- {
		if l.Runs[n].holds(SnapshotFacts{TakenAt: takenAt, Position: position}) {
			return l.chainFrom(n, position)
		}
	}
	return nil
}

// chainFrom is the chain of a snapshot that a run holds. Of one that was taken behind the
// place from which another server went on, nothing can be said after that run.
func (l InstanceLog) chainFrom(n int, position LogPosition) []int {
	chain := []int{n}
	for {
		m := l.next(n)
		if m < 0 || slices.Contains(chain, m) || len(chain) == 1 && position.Compare(l.Runs[m].After) > 0 {
			return chain
		}
		chain, n = append(chain, m), m
	}
}

// next is the run that goes on from another one, -1 for none. One of the same host has all that
// another host's has that goes on from there too.
func (l InstanceLog) next(n int) int {
	r, found := l.Runs[n], -1
	for m, o := range l.Runs {
		if o.Continues.IsZero() || !o.Continues.Equal(r.Began) || o.Elsewhere != (o.Host != r.Host) || !r.spans(o.After) {
			continue
		}
		if found < 0 || !o.Elsewhere {
			found = m
		}
	}
	return found
}

// Continued says whether another run goes on from one, so that its end is no gap.
func (l InstanceLog) Continued(n int) bool { return l.next(n) >= 0 }

// Root is the run at which the stretch without a gap begins that a run is a part of.
func (l InstanceLog) Root(n int) int {
	for range l.Runs {
		before := slices.IndexFunc(l.Runs, func(r LogRun) bool { return r.Began.Equal(l.Runs[n].Continues) })
		if before < 0 || l.next(before) != n {
			return n
		}
		n = before
	}
	return n
}

// Reaches says up to which mark a snapshot can be brought by the log. false when no run
// holds its position.
func (l InstanceLog) Reaches(takenAt time.Time, position LogPosition) (LogMark, bool) {
	chain := l.Chain(takenAt, position)
	if len(chain) == 0 {
		return LogMark{}, false
	}
	return l.Runs[chain[len(chain)-1]].Last, true
}

// reachesOn is Reaches on the host of a snapshot, which reads of other hosts' runs what is in
// the repository. end is the number of the run that the mark is of.
func (l InstanceLog) reachesOn(f SnapshotFacts) (mark LogMark, end int, ok bool) {
	for n := len(l.Runs) - 1; n >= 0; n-- {
		if !l.Runs[n].on(f.Host) || !l.Runs[n].holds(f) {
			continue
		}
		for _, k := range l.chainFrom(n, f.Position) {
			r := l.Runs[k]
			if r.on(f.Host) {
				mark, end = r.Last, k
				continue
			}
			if r.Pushed.At.After(mark.At) {
				mark, end = r.Pushed, k
			}
			if next := l.next(k); next < 0 || l.Runs[next].After.Compare(r.Pushed.Position) > 0 {
				break
			}
		}
		return mark, end, true
	}
	return mark, -1, false
}

// Window is what snapshots and log reach together. The latest moment is that of the newest
// run that a snapshot is brought to, and there of the newest snapshot: after a clock that went
// back an older one's may be later. An older snapshot may be brought to a newer run, which goes
// on from its own, and not from that of the newer one on another host.
func (l InstanceLog) Window(snapshots []SnapshotFacts) (earliest, latest time.Time) {
	last, newest := -1, SnapshotFacts{}
	for _, f := range snapshots {
		from, to, ok := l.Moments(f)
		if !ok {
			continue
		}
		if earliest.IsZero() || from.Before(earliest) {
			earliest = from
		}
		_, end, _ := l.reachesOn(f)
		if end > last || end == last && l.CompareTaken(f, newest) > 0 {
			latest, newest, last = to, f, end
		}
	}
	return earliest, latest
}

// LogReport is what a host keeps of the logs of all its instances. Only its agent
// writes it, every few seconds as a whole: it wakes nobody.
type LogReport struct {
	Host HostID        `json:"host"`
	At   time.Time     `json:"at"`
	Logs []InstanceLog `json:"logs"`
}

// RestorePoint is a moment to which the log of an instance brings a snapshot of it.
type RestorePoint struct {
	Instance InstanceID `json:"instance"` // whose log it is
	Name     string     `json:"name"`     // of that instance at the time
	At       time.Time  `json:"at"`
}

// Moments is the range of moments to which the log brings a snapshot with these facts,
// in the milliseconds that the API has; false when there is none.
func (l InstanceLog) Moments(f SnapshotFacts) (from, to time.Time, ok bool) {
	mark, _, ok := l.reachesOn(f)
	if !ok || f.UsableAt.IsZero() {
		return from, to, false
	}
	from = f.UsableAt.Truncate(time.Millisecond)
	if from.Before(f.UsableAt) {
		from = from.Add(time.Millisecond)
	}
	to = mark.At.Truncate(time.Millisecond)
	return from.UTC(), to.UTC(), !to.Before(from)
}

// LogFile is one engine log of an instance, under its RDS name
// ("error/postgresql.log.2026-11-21-03").
type LogFile struct {
	Name        string
	SizeBytes   int64
	LastWritten time.Time
}

// LogPortion is a piece of a log file. Marker continues after it; More says that
// there is more at this moment.
type LogPortion struct {
	Data   string
	Marker string
	More   bool
}
