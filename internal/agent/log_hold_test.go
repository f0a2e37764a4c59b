package agent

import (
	"slices"
	"testing"
	"time"

	"kurabe"
)

func (b *bed) heldBy() []heldLog {
	b.group.mu.Lock()
	defer b.group.mu.Unlock()
	return slices.Clone(b.group.held)
}

// A standby is told what of the log is kept, a round late, so that the rest is there when it
// takes over; the primary is not, nor one that is to hold nothing, which is told that once.
func TestStandbyHoldsTheLog(t *testing.T) {
	inGroup(t, func(b *bed) {
		at := func(n int64) kurabe.LogPosition { return kurabe.LogPosition{File: "000001", Offset: n} }
		logs := &memberLogs{runs: []kurabe.LogRun{{Last: kurabe.LogMark{Position: at(100)}}}}
		b.logs = logs
		b.start()
		b.send(logged(wanted(1)))
		b.send(logged(primary(2, 0)), logged(follows(1)))
		pass(holdEvery / 2)
		logs.mu.Lock()
		logs.runs[0].Last.Position = at(200)
		logs.mu.Unlock()
		pass(2 * holdEvery)
		want := []heldLog{{second, at(100)}, {second, at(200)}}
		if got := b.heldBy(); !slices.Equal(got, want) {
			t.Errorf("held %v, not %v", got, want)
		}
		b.send(follows(2))
		pass(2 * holdEvery)
		if got := b.heldBy(); len(got) != len(want) || !slices.Equal(b.group.dropped, []kurabe.InstanceID{second}) || logs.asked > 0 {
			t.Errorf("it is to hold nothing, and was told %v; dropped by %v, asked for others %d times", got, b.group.dropped, logs.asked)
		}
	})
}

// Where another host's server writes, it is what that host has brought into the repository.
func TestStandbyHoldsTheLogOfAnotherHost(t *testing.T) {
	inGroup(t, func(b *bed) {
		logs := &memberLogs{runs: []kurabe.LogRun{{Last: kurabe.LogMark{Position: kurabe.LogPosition{File: "000009"}}}}}
		b.logs = logs
		b.start()
		a := logged(follows(1))
		a.Host = "host-1"
		a.Role.Source.Host = "host-2"
		b.send(logged(wanted(1)))
		b.send(logged(primary(2, 0)), a)
		pass(elsewhereEvery + holdEvery)
		if got := b.heldBy(); len(got) > 0 || logs.asked == 0 || logs.asked > 3 {
			t.Errorf("nothing is there, and it holds %v; asked %d times", got, logs.asked)
		}
		logs.mu.Lock()
		logs.elsewhere = kurabe.LogPosition{File: "000003", Offset: 7}
		logs.mu.Unlock()
		pass(elsewhereEvery + holdEvery)
		if got := b.heldBy(); len(got) == 0 || got[0] != (heldLog{second, logs.elsewhere}) {
			t.Errorf("it holds %v", got)
		}
	})
}

// TestShapeOfJoinedRuns: of runs that go on from each other the plan hears as of one, without
// an end that would be a gap.
func TestShapeOfJoinedRuns(t *testing.T) {
	at := func(n int) time.Time { return time.Unix(int64(n), 0).UTC() }
	mark := func(n int, server kurabe.InstanceID, file string) kurabe.LogMark {
		return kurabe.LogMark{At: at(n), Position: kurabe.LogPosition{Server: server, File: file, Offset: int64(n)}}
	}
	one := kurabe.LogRun{Began: at(1), First: mark(1, "db", "5"), Last: mark(10, "db", "5"), Ended: "it was joined"}
	two := kurabe.LogRun{Began: at(10), First: mark(11, "db~2", "3"), Last: mark(20, "db~2", "3"), Continues: at(1), After: mark(10, "db", "5").Position}
	old := kurabe.LogRun{Began: at(0), First: mark(0, "db", "4"), Last: mark(0, "db", "4"), Ended: "a real gap", Damaged: true}
	got := shapeOf(kurabe.InstanceLog{Runs: []kurabe.LogRun{old, one, two}})
	if c := got.continues; got.ended != "a real gap" || !got.damaged || !got.began.Equal(at(10)) || c == nil || !c.Began.Equal(at(1)) || len(c.Before) != 1 || c.After != two.After {
		t.Errorf("%+v, %+v", got, got.continues)
	}
	two.After.Offset = 11
	if got = shapeOf(kurabe.InstanceLog{Runs: []kurabe.LogRun{old, one, two}}); got.ended != one.Ended || got.damaged || got.continues != nil {
		t.Errorf("it goes on from a place that is not there: %+v", got)
	}
	two.Elsewhere = true
	if got = shapeOf(kurabe.InstanceLog{Runs: []kurabe.LogRun{two}}); got.continues == nil || !got.continues.Elsewhere || len(got.continues.Before) != 0 {
		t.Errorf("it goes on from another host's: %+v", got)
	}
}
