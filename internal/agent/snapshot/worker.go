package snapshot

import (
	"cmp"
	"context"
	"sync"
	"time"

	"kurabe"
	"kurabe/internal/agent/unit"
	"kurabe/internal/logkey"
)

// worker drives one snapshot.
type worker struct {
	set *Set
	unit.Unit[kurabe.SnapshotID, kurabe.SnapshotAssignment, kurabe.SnapshotReport]

	state  sync.Mutex            // guards what follows; taken after saving
	facts  *kurabe.SnapshotFacts // of the complete snapshot, nil while it never was
	own    int64                 // bytes that it occupied at the newest look with news, 0 before
	taking taking                // what it is being taken of
	// verification is the result of the newest one, nil before the first.
	verification *kurabe.Verification

	// instead is why the newest take was not of a standby. It belongs to whoever does the step,
	// which run waits for.
	instead string

	// The rest belongs to the goroutine of run.
	did       string            // the step done since the newest pause
	sourceAt  time.Time         // when the instance's assignment was first missed
	verifying string            // how far the verification under way is, "" for none
	verifyAt  time.Time         // one that was hindered is not tried again before
	verifyGen kurabe.Generation // while this is in force
}

func (s *Set) newWorker(id kurabe.SnapshotID) *worker {
	u := &worker{set: s}
	u.Unit = unit.New[kurabe.SnapshotID, kurabe.SnapshotAssignment, kurabe.SnapshotReport](u, s.Host, id, id.Ref(), logkey.Snapshot)
	return u
}

// Save puts an assignment on disk, with what is known of the snapshot.
func (u *worker) Save(a kurabe.SnapshotAssignment) error {
	return u.set.save(saved{Assignment: a, Facts: u.whole(), Verified: u.result()})
}

func (u *worker) Forget() error                   { return u.set.forget(u.ID) }
func (u *worker) Obeys(kurabe.SnapshotAssignment) {}
func (u *worker) Retires()                        {}
func (u *worker) End()                            {}

// Unknown tells the user why nothing happens.
func (u *worker) Unknown(ctx context.Context, _ kurabe.SnapshotAssignment, waits bool) {
	if waits {
		u.report(ctx, kurabe.SnapshotReport{})
	}
}

// whole are the facts of the snapshot if it ever was complete.
func (u *worker) whole() *kurabe.SnapshotFacts {
	u.state.Lock()
	defer u.state.Unlock()
	return u.facts
}

// result is that of the newest verification.
func (u *worker) result() *kurabe.Verification {
	u.state.Lock()
	defer u.state.Unlock()
	return u.verification
}

// knows puts what was saved in place; nil stands for what stays.
func (u *worker) knows(facts *kurabe.SnapshotFacts, v *kurabe.Verification) {
	u.state.Lock()
	defer u.state.Unlock()
	u.facts, u.verification = cmp.Or(facts, u.facts), cmp.Or(v, u.verification)
}

// keep saves what has come to be known of the snapshot, before anybody hears of it: nil
// stands for what stays.
func (u *worker) keep(facts *kurabe.SnapshotFacts, v *kurabe.Verification) error {
	u.Saving.Lock()
	defer u.Saving.Unlock()
	have, _ := u.Assignment()
	err := u.set.save(saved{Assignment: have, Facts: cmp.Or(facts, u.whole()), Verified: cmp.Or(v, u.result())})
	if err == nil {
		u.knows(facts, v)
	}
	return err
}
