package agent

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"kurabe"
	"kurabe/internal/logkey"
)

// snapshotUnit drives one snapshot, as a worker does an instance: only its own
// goroutine acts on the snapshot and reports of it.
type snapshotUnit struct {
	agent  *Agent
	id     kurabe.SnapshotID
	log    *slog.Logger
	signal chan struct{} // capacity 1: wake-ups melt together
	done   chan struct{} // closed by retire
	looked chan struct{} // closed when the snapshot was looked at once

	saving sync.Mutex // held while an assignment is saved; taken before mu

	mu      sync.Mutex // guards what follows
	have    kurabe.SnapshotAssignment
	known   bool
	facts   *kurabe.SnapshotFacts     // of the complete snapshot, nil while it never was
	refused *kurabe.Failure           // why a newer assignment could not be saved
	waiting kurabe.SnapshotAssignment // that assignment
	retired bool                      // done is closed
	own     int64                     // bytes that it occupied at the newest look with news, 0 before
	taking  taking                    // what it is being taken of
	// verification is the result of the newest one, nil before the first.
	verification *kurabe.Verification
	cut          context.CancelCauseFunc // ends the step under way, nil between steps

	// instead is why the newest take was not of a standby. It belongs to whoever does the step,
	// which run waits for.
	instead string

	// The rest belongs to the goroutine of run.
	began    bool // a pass has had an assignment
	failure  *kurabe.Failure
	retryAt  time.Time // a failed step is not tried again before, whatever wakes us
	retryGen kurabe.Generation
	reported kurabe.SnapshotReport
	sent     bool
	untold   untold
	sourceAt time.Time // when the instance's assignment was first missed

	verifier  Verifier          // of the verification under way
	verifying string            // how far that is, "" for none
	verifyAt  time.Time         // one that was hindered is not tried again before
	verifyGen kurabe.Generation // while this is in force
}

func newSnapshotUnit(a *Agent, id kurabe.SnapshotID) *snapshotUnit {
	return &snapshotUnit{
		agent: a, id: id, log: a.Log.With(logkey.Snapshot, id),
		signal: make(chan struct{}, 1), done: make(chan struct{}), looked: make(chan struct{}),
	}
}

func (u *snapshotUnit) assignment() (kurabe.SnapshotAssignment, bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.have, u.known
}

// newest is the highest generation that was taken: one that waits to be saved, or
// the one in force.
func (u *snapshotUnit) newest() (kurabe.SnapshotAssignment, bool) {
	if a, waits := u.unsaved(); waits {
		return a, true
	}
	return u.assignment()
}

// whole are the facts of the snapshot if it ever was complete.
func (u *snapshotUnit) whole() *kurabe.SnapshotFacts {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.facts
}

// give puts a saved order in force.
func (u *snapshotUnit) give(s savedSnapshot) {
	u.mu.Lock()
	u.have, u.known, u.refused, u.facts, u.verification = s.Assignment, true, nil, s.Facts, s.Verified
	u.mu.Unlock()
	u.cutStep(errCut)
	u.wake()
}

// doubt notes that an order was saved and cannot be read.
func (u *snapshotUnit) doubt() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.facts = &kurabe.SnapshotFacts{}
}

// accept saves an assignment and puts it in force. One that cannot be saved is not
// obeyed; it waits in the unit, which reports why and tries again.
func (u *snapshotUnit) accept(a kurabe.SnapshotAssignment) error {
	u.saving.Lock()
	defer u.saving.Unlock()
	return u.acceptLocked(a)
}

func (u *snapshotUnit) acceptLocked(a kurabe.SnapshotAssignment) error {
	s := savedSnapshot{Assignment: a, Facts: u.whole(), Verified: u.result()}
	if err := u.agent.saveSnapshot(s); err != nil {
		u.refuse(a, err)
		return err
	}
	u.give(s)
	return nil
}

// unsaved is the assignment that could not be saved, if there is one.
func (u *snapshotUnit) unsaved() (kurabe.SnapshotAssignment, bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.waiting, u.refused != nil
}

// acceptAgain tries to save what could not be saved.
func (u *snapshotUnit) acceptAgain() {
	u.saving.Lock()
	defer u.saving.Unlock()
	if a, waits := u.unsaved(); waits && u.acceptLocked(a) == nil {
		u.log.Info("assignment saved at last", logkey.Generation, a.Generation)
	}
}

func (u *snapshotUnit) refuse(a kurabe.SnapshotAssignment, err error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	attempts := 1
	if u.refused != nil {
		attempts = u.refused.Attempts + 1
	}
	u.refused = &kurabe.Failure{Kind: kurabe.FailureStorage, Step: "save-assignment", Message: err.Error(), Attempts: attempts, At: u.agent.Now().UTC()}
	u.waiting = a
}

// complete saves that the snapshot is there, before anybody hears of it.
func (u *snapshotUnit) complete(facts kurabe.SnapshotFacts) error {
	u.saving.Lock()
	defer u.saving.Unlock()
	have, _ := u.assignment()
	if err := u.agent.saveSnapshot(savedSnapshot{Assignment: have, Facts: &facts, Verified: u.result()}); err != nil {
		return err
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.facts = &facts
	return nil
}

// wake says "look again" and carries no data.
func (u *snapshotUnit) wake() {
	select {
	case u.signal <- struct{}{}:
	default:
	}
}

// cutStep ends the step under way, if there is one.
func (u *snapshotUnit) cutStep(why error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.cut != nil {
		u.cut(why)
	}
}

// retire has the unit leave; it may be asked twice.
func (u *snapshotUnit) retire() {
	u.mu.Lock()
	defer u.mu.Unlock()
	if !u.retired {
		u.retired = true
		close(u.done)
	}
}

// look notes that the snapshot was looked at. Only this goroutine calls it.
func (u *snapshotUnit) look() {
	select {
	case <-u.looked:
	default:
		close(u.looked)
	}
}

// run looks and acts until ctx ends or the snapshot is retired.
func (u *snapshotUnit) run(ctx context.Context) {
	for {
		u.acceptAgain()
		pause := u.pass(ctx)
		if u.began {
			u.look()
		}
		if _, waits := u.unsaved(); waits {
			pause = min(pause, saveRetry)
		}
		timer := time.NewTimer(pause)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-u.done:
			timer.Stop()
			u.leave(ctx)
			return
		case <-u.signal:
			timer.Stop()
		case <-timer.C:
		}
	}
}

// leave ends the unit of a snapshot whose records are gone: nothing of it stays on
// disk or in the store.
func (u *snapshotUnit) leave(ctx context.Context) {
	for {
		err := u.agent.forgetSnapshot(u.id)
		if err == nil {
			err = u.agent.Link.DropSnapshotReport(ctx, u.agent.Host, u.id)
		}
		if err == nil || ctx.Err() != nil {
			break
		}
		u.log.Warn("report not dropped", logkey.Error, err)
		timer := time.NewTimer(saveRetry)
		select {
		case <-ctx.Done():
		case <-timer.C:
		}
		timer.Stop()
	}
	s := u.agent.snapshots
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.units[u.id] == u {
		delete(s.units, u.id)
	}
}
