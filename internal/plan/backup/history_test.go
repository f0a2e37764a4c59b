package backup_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"kurabe"
	"kurabe/internal/plan/backup"
)

// tick is what the clock showed at one moment; the moments are in their true order.
type tick struct {
	wall     time.Time
	position int64
	run      int // of the log that was followed, -1 for none
}

// past is an instance as it truly was, and its automated snapshots.
type past struct {
	t     *rapid.T
	now   time.Time
	at    int64 // position in the log
	days  int
	ticks []tick
	log   kurabe.InstanceLog
	kept  []backup.Backup
	made  int
	whole bool // all runs of the log are known, and not only the one that goes on
	odd   bool // clock or log went back
}

func place(n int64) kurabe.LogPosition {
	return kurabe.LogPosition{File: "000001", Offset: n}
}

// hours pass, busy or idle; what is needless goes whenever it may.
func (p *past) hours(n int) {
	for range n {
		p.now = p.now.Add(time.Hour)
		p.at += int64(rapid.IntRange(0, 3).Draw(p.t, "written"))
		p.tick()
		p.expire()
	}
}

func (p *past) tick() {
	run := len(p.log.Runs) - 1
	if run >= 0 && p.log.Runs[run].Ended == "" {
		p.log.Runs[run].Last = kurabe.LogMark{At: p.now, Position: place(p.at)}
	} else {
		run = -1
	}
	p.ticks = append(p.ticks, tick{p.now, p.at, run})
}

func (p *past) follow() {
	mark := kurabe.LogMark{At: p.now, Position: place(p.at)}
	p.log.Runs = append(p.log.Runs, kurabe.LogRun{Began: p.now, First: mark, Last: mark})
}

func (p *past) end() {
	if n := len(p.log.Runs) - 1; n >= 0 {
		p.log.Runs[n].Ended = "a gap"
	}
}

// snapshot takes one, whose copy takes some hours.
func (p *past) snapshot(hours int) {
	p.made++
	id := kurabe.SnapshotID(fmt.Sprintf("snap-%d", p.made))
	p.kept = append(p.kept, backup.Backup{ID: id, CreatedAt: p.now, State: kurabe.SnapshotCreating})
	taken, at := p.now, p.at
	p.hours(hours)
	for n := range p.kept {
		if b := &p.kept[n]; b.ID == id {
			b.TakenAt, b.Position, b.UsableAt, b.State = taken, place(at), p.now, kurabe.SnapshotAvailable
		}
	}
}

// pick is one that was taken, nil without any.
func (p *past) pick() *backup.Backup {
	if len(p.kept) == 0 {
		return nil
	}
	b := &p.kept[rapid.IntRange(0, len(p.kept)-1).Draw(p.t, "which")]
	if b.TakenAt.IsZero() {
		return nil
	}
	return b
}

// happen is one thing that befalls the instance. Clock and log do not both go back in
// one history: which snapshot belongs to which run is then beyond telling.
func (p *past) happen(clock bool) {
	switch what := rapid.IntRange(0, 9).Draw(p.t, "what"); what {
	case 0, 1:
		p.hours(rapid.IntRange(1, 30).Draw(p.t, "hours"))
	case 2, 3, 4:
		p.snapshot(rapid.IntRange(0, 5).Draw(p.t, "copied"))
	case 5:
		p.end()
		p.hours(rapid.IntRange(0, 20).Draw(p.t, "gap"))
		p.follow()
	case 6:
		p.days = rapid.IntRange(1, 7).Draw(p.t, "days")
	case 7:
		if b := p.pick(); b != nil {
			b.Untrusted = !b.Untrusted
		}
	case 8:
		if b := p.pick(); b != nil && b.State == kurabe.SnapshotAvailable {
			b.State = kurabe.SnapshotFailed // lost
		} else if b != nil {
			b.State = kurabe.SnapshotAvailable // and found
		}
	case 9:
		p.goWrong(clock)
	}
}

func (p *past) goWrong(clock bool) {
	p.odd = true
	switch by := rapid.IntRange(-300, 300).Draw(p.t, "jump"); {
	case clock && by > 0:
		p.now = p.now.Add(time.Duration(by) * time.Hour)
	case clock:
		p.now = p.now.Add(time.Duration(by)*time.Hour - 30*time.Minute)
		p.end()
		p.follow()
	default:
		p.now = p.now.Add(time.Minute) // the service was down meanwhile
		p.at = max(p.at-int64(by), 0)
		p.end()
		p.follow()
	}
	p.tick()
	p.expire()
}

// expire removes what its plan lets go, and checks that no moment is lost by it.
func (p *past) expire() {
	h := backup.History{Now: p.now, Log: p.log, Backups: p.kept}
	if n := len(p.log.Runs) - 1; !p.whole && n >= 0 {
		h.Log = kurabe.InstanceLog{Runs: p.log.Runs[n:]}
	}
	var left []backup.Backup
	for _, b := range p.kept {
		newer := h.Succeeded(b.ID)
		goes := !b.TakenAt.IsZero() && goes(p.t, b, p.now, backup.Retention{Days: p.days, Newer: newer})
		if !goes {
			left = append(left, b)
		}
		if !goes && !p.odd && p.needless(b) {
			p.t.Fatalf("%s is kept at %s although nothing needs it: %+v", b.ID, p.now, p.kept)
		}
	}
	if len(left) == len(p.kept) {
		return
	}
	for n := range p.ticks {
		if p.promised(n) && served(p.ticks[n], p.log, p.kept) && !served(p.ticks[n], p.log, left) {
			p.t.Fatalf("%s, promised at %s for %d days, was lost: kept %+v of %+v, log %+v", p.ticks[n].wall, p.now, p.days, left, p.kept, p.log)
		}
	}
	p.kept = left
}

// goes asks the plan of a snapshot that was taken.
func goes(t tester, b backup.Backup, now time.Time, r backup.Retention) bool {
	s := newSnapSim(t)
	facts := kurabe.SnapshotFacts{TakenAt: b.TakenAt, UsableAt: b.UsableAt, Position: b.Position, Percent: 100}
	s.w.Spec.Kind, s.w.Now, s.w.Retention = kurabe.SnapshotAutomated, now, &r
	s.w.Status = &kurabe.SnapshotStatus{ID: "snap-a", SpecRevision: 1, State: b.State, Host: "h1", Facts: facts}
	s.w.Assignment = &kurabe.SnapshotAssignment{Generation: 1, Host: "h1", Snapshot: "snap-a", Goal: kurabe.SnapshotPresent}
	result := backup.Next(s.w)
	return result.Assignment != nil && result.Assignment.Goal == kurabe.SnapshotAbsent
}

// promised says whether a moment is within the retention, and the last at which the
// clock showed its time.
func (p *past) promised(n int) bool {
	m := p.ticks[n]
	if m.run < 0 || m.wall.Before(p.now.AddDate(0, 0, -p.days)) || m.wall.After(p.now) {
		return false
	}
	for _, after := range p.ticks[n+1:] {
		if !after.wall.After(m.wall) {
			return false
		}
	}
	return true
}

// served says whether a sound snapshot and a run of the log reach a moment.
func served(m tick, log kurabe.InstanceLog, list []backup.Backup) bool {
	run := log.Runs[m.run]
	for _, b := range list {
		if b.State == kurabe.SnapshotAvailable && !b.Untrusted && !b.UsableAt.After(m.wall) && !b.TakenAt.Before(run.First.At) &&
			b.Position.Compare(run.First.Position) >= 0 && b.Position.Compare(place(m.position)) <= 0 {
			return true
		}
	}
	return false
}

// needless says so of one whose successor is older than the retention, where nothing
// ever went back.
func (p *past) needless(b backup.Backup) bool {
	for _, next := range p.kept {
		if next.State == kurabe.SnapshotAvailable && !next.Untrusted && next.TakenAt.After(b.TakenAt) && !b.TakenAt.IsZero() &&
			!next.UsableAt.After(p.now.AddDate(0, 0, -p.days)) {
			return true
		}
	}
	return false
}

// TestRandomRetention: whatever happens to clock, log and snapshots, no snapshot goes
// without which a promised moment could not be restored any more, and what nothing
// needs goes.
func TestRandomRetention(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		p := &past{t: rt, now: monday, at: 1000, days: rapid.IntRange(1, 7).Draw(rt, "days"), whole: rapid.Bool().Draw(rt, "whole")}
		clock := rapid.Bool().Draw(rt, "clock")
		p.follow()
		p.tick()
		for range rapid.IntRange(1, 30).Draw(rt, "happenings") {
			p.happen(clock)
		}
		p.end()
		p.at++
		p.follow()
		before := slices.Clone(p.kept)
		for range p.days + 2 {
			p.snapshot(1)
			p.hours(23)
		}
		for _, old := range before {
			if slices.ContainsFunc(p.kept, func(b backup.Backup) bool { return b.ID == old.ID }) {
				rt.Fatalf("%s outlives everything: %+v", old.ID, p.kept)
			}
		}
	})
}
