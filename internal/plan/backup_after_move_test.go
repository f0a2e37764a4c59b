package plan_test

import (
	"testing"
	"time"

	"kurabe"
)

// TestLogOnAnotherHost: that a server on another host writes is a gap of the log, told once,
// and what that host has to say of earlier is not.
func TestLogOnAnotherHost(t *testing.T) {
	s := keptSim(t)
	s.logSince(s.w.Now, "")
	s.backUp(s.step(), kurabe.SnapshotAvailable)
	s.step()
	count := func(id string) (n int) {
		for _, e := range s.events {
			if e.ID == id {
				n++
			}
		}
		return n
	}
	move := func(host kurabe.HostID, since time.Time, ended string, want int) {
		t.Helper()
		s.w.Now = s.w.Now.Add(time.Minute)
		r := *s.w.Report
		r.Host, r.LogBegan, r.LogSince, r.LogEnded = host, since, since, ended
		s.w.Report = &r
		s.step()
		if gaps, again := count("KURABE-EVENT-0004"), count("KURABE-EVENT-0005"); gaps != want || again != want {
			t.Fatalf("%d gaps and %d ends of them are told, not %d: %v", gaps, again, want, s.w.Report)
		}
	}
	here := s.w.Report.Host
	at := s.w.Now
	move("h9", time.Time{}, "", 0)
	move("h9", at.Add(time.Hour), "", 1)
	move("h9", at.Add(time.Hour), "", 1)
	move(here, time.Time{}, "the other one wrote", 1)
	move(here, at.Add(time.Minute), "the other one wrote", 2) // its clock is behind
	move(here, at.Add(time.Minute), "the other one wrote", 2)
}

// TestBackupAfterAFailover: one that a failover overtook is made again at once, any other
// after a while.
func TestBackupAfterAFailover(t *testing.T) {
	for _, moved := range []bool{false, true} {
		s := keptSim(t)
		s.logSince(s.w.Now, "")
		s.backUp(s.step(), kurabe.SnapshotFailed)
		s.w.Backups[0].Moved = moved
		s.w.Now = s.w.Now.Add(time.Second)
		if again := s.step().Snapshot != nil; again != moved {
			t.Errorf("overtaken %v, made again %v", moved, again)
		}
	}
}

// TestJoinedLog: a run that goes on from the one before it is no gap: nothing is told, and no
// snapshot is taken for it where the same host has both. Another host takes one at once, as it
// has none from which its own moments can be restored.
func TestJoinedLog(t *testing.T) {
	for _, elsewhere := range []bool{false, true} {
		s := keptSim(t)
		at := func(server kurabe.InstanceID, file string) kurabe.LogPosition {
			return kurabe.LogPosition{Server: server, File: file, Offset: 500}
		}
		s.logSince(s.w.Now, "")
		s.w.Report.LogFrom = at("db", "000009")
		one := kurabe.LogRun{Began: s.w.Report.LogBegan, First: kurabe.LogMark{At: s.w.Now, Position: at("db", "000009")}}
		s.backUp(s.step(), kurabe.SnapshotAvailable)
		s.w.Backups[0].Position, s.w.Backups[0].Host = at("db", "000009"), s.w.Report.Host
		s.step()
		s.w.Now = s.w.Now.Add(time.Minute)
		one.Last, one.Ended = kurabe.LogMark{At: s.w.Now, Position: kurabe.LogPosition{Server: "db", File: "000009", Offset: 900}}, "joined"
		r := *s.w.Report
		r.LogBegan, r.LogSince, r.LogFrom = s.w.Now, s.w.Now, at("db~2", "000003")
		r.LogContinues = &kurabe.LogContinues{Began: one.Began, After: one.Last.Position, Elsewhere: elsewhere}
		if elsewhere {
			r.Host = "h9"
		} else {
			r.LogContinues.Before = []kurabe.LogRun{one}
		}
		s.w.Report = &r
		s.w.Now = s.w.Now.Add(time.Second)
		if taken := s.step().Snapshot != nil; taken != elsewhere {
			t.Errorf("on another host %v: a snapshot is taken %v", elsewhere, taken)
		}
		for _, e := range s.events {
			if e.ID == "KURABE-EVENT-0004" || e.ID == "KURABE-EVENT-0005" {
				t.Errorf("on another host %v: %+v", elsewhere, e)
			}
		}
	}
}

// TestLogOfSeveralHosts: where several hosts have snapshots each keeps its log for the oldest.
func TestLogOfSeveralHosts(t *testing.T) {
	s := keptSim(t)
	s.logSince(s.w.Now, "")
	oldest := s.w.Now
	s.backUp(s.step(), kurabe.SnapshotAvailable)
	s.w.Backups[0].Host = "h1"
	s.step()
	if since := s.w.Assignment.LogSince; !since.IsZero() {
		t.Errorf("one host has all, and is told %v", since)
	}
	second := s.w.Backups[0]
	second.Name, second.Host, second.TakenAt = "later", "h9", oldest.Add(time.Hour)
	s.w.Backups = append(s.w.Backups, second)
	s.step()
	if since := s.w.Assignment.LogSince; !since.Equal(oldest) {
		t.Errorf("told %v, not %v", since, oldest)
	}
}
