package snapshot

import (
	"context"
	"errors"
	"fmt"
	"time"

	"kurabe"
	"kurabe/internal/agent/unit"
	"kurabe/internal/engine"
	"kurabe/internal/logkey"
	folder "kurabe/internal/snapshot"
)

// snapshotLooks is how many looks at instances go by between two at a snapshot that
// is complete: nothing but a mishap changes its folder, and a host may hold
// thousands.
const snapshotLooks = 10

// Patience makes the pauses between tries longer than those of an instance,
// for which people wait: with 1 to 2 s at first, the five tries that the planner
// grants take 15 s and more, in which a server comes back from a crash.
const Patience = 2

// adoptLimit is how long a repository may take that is asked for a log.
const adoptLimit = 30 * time.Second

// errSourceGone is why a step ends when its instance is to go.
var errSourceGone = errors.New("the DB instance is being deleted")

// Pass does what the snapshot needs.
func (u *worker) Pass(ctx context.Context, a kurabe.SnapshotAssignment) time.Duration {
	if rest := u.Rest(); rest > 0 {
		u.Resend(ctx)
		return u.RetryReport(rest)
	}
	pause, step := u.once(ctx, a)
	u.did = step
	return pause
}

// once does one step, and says which, or returns when to look again.
func (u *worker) once(ctx context.Context, a kurabe.SnapshotAssignment) (pause time.Duration, did string) {
	facts, state, err := u.find()
	if err != nil && (a.Goal != kurabe.SnapshotAbsent || u.set.Folders == nil) {
		return u.failed(ctx, a, stepFindSnapshot, err), ""
	}
	step := u.next(a, state)
	if err != nil {
		step = stepRemoveSnapshot // whatever it is
	}
	if err == nil && state != folder.Complete && (step == "" || step == stepFindSnapshot) {
		// It is not here. Before that is said to be a loss, or the end of it, the
		// repository must have spoken.
		if there, unknown := u.archivedElsewhere(); unknown != nil || there {
			if wait, done := u.elsewhere(ctx, a, unknown); done {
				return wait, ""
			}
			step = stepRemoveSnapshot
		}
	}
	switch {
	case step == "" && a.Goal == kurabe.SnapshotAbsent:
		return u.gone(ctx, a), ""
	case step == "":
		pause := u.settled(ctx, a, facts)
		u.Looked() // what follows may take hours, too
		u.adoptLog(ctx, a, facts)
		return u.verified(ctx, a, u.archived(ctx, a, facts, u.sealed(ctx, a, pause))), ""
	case step == u.did:
		return u.failed(ctx, a, step, fmt.Errorf("the snapshot was complete, but its folder is now %s", state)), ""
	case step == stepFindSnapshot && u.whole() == nil:
		return u.failed(ctx, a, step, errors.New("the imported snapshot is neither on this host nor in its backup repository")), ""
	case step == stepFindSnapshot:
		return u.failed(ctx, a, step, fmt.Errorf("the snapshot was complete, but its folder is now %s", state)), ""
	case step == stepTakeSnapshot:
		if rest := u.awaitSource(a); rest > 0 {
			return u.RetryReport(rest), ""
		}
	}
	u.Looked() // the step may take hours
	switch err := u.step(ctx, a, step); {
	case ctx.Err() != nil, errors.Is(err, unit.ErrCut):
		return 0, u.did
	case err != nil:
		return u.failed(ctx, a, step, err), ""
	}
	return 0, step
}

// find looks at the folder.
func (u *worker) find() (kurabe.SnapshotFacts, folder.State, error) {
	if u.set.Folders == nil {
		return kurabe.SnapshotFacts{}, "", errors.New("this host keeps no snapshots")
	}
	facts, state, err := u.set.Folders.Find(u.ID)
	if err == nil && state != folder.Absent && state != folder.Partial && state != folder.Complete {
		err = fmt.Errorf("unknown snapshot folder state %q", state)
	}
	return facts, state, err
}

// next is the step that is missing, "" for none.
func (u *worker) next(a kurabe.SnapshotAssignment, state folder.State) string {
	switch {
	case a.Goal == kurabe.SnapshotAbsent && state == folder.Absent, a.Goal != kurabe.SnapshotAbsent && state == folder.Complete:
		return ""
	case a.Goal == kurabe.SnapshotAbsent:
		return stepRemoveSnapshot
	case u.whole() != nil, a.Of == "" && a.From == "":
		return stepFindSnapshot // never made, or never again
	case a.From != "":
		return stepCopySnapshot
	}
	return stepTakeSnapshot
}

// awaitSource says how much longer to wait for the assignment of the instance.
func (u *worker) awaitSource(a kurabe.SnapshotAssignment) time.Duration {
	now := u.set.Host.Now()
	if u.sourceHere(a) {
		u.sourceAt = time.Time{}
		return 0
	}
	if u.sourceAt.IsZero() {
		u.sourceAt = now
	}
	return max(0, u.sourceAt.Add(sourceGrace).Sub(now))
}

// settled: the snapshot is there, whole.
func (u *worker) settled(ctx context.Context, a kurabe.SnapshotAssignment, facts kurabe.SnapshotFacts) time.Duration {
	facts.Percent, facts.TakenAt = 100, facts.TakenAt.UTC().Round(0) // as it is after a restart
	facts.OccupiedBytes = u.occupied(facts.OccupiedBytes)
	have := u.whole()
	// What is here does not say so; archived finds out if it is still true.
	facts.Archived = facts.Archived || have != nil && have.Archived && u.archives()
	if facts.StandbySkipped = u.instead; have != nil {
		facts.StandbySkipped = have.StandbySkipped
	}
	return u.settledAs(ctx, a, facts)
}

func (u *worker) settledAs(ctx context.Context, a kurabe.SnapshotAssignment, facts kurabe.SnapshotFacts) time.Duration {
	// Should the folder vanish later, the failure is to tell of the loss, and nobody
	// may take the snapshot anew.
	if have := u.whole(); have == nil || *have != facts {
		if err := u.keep(&facts, nil); err != nil {
			return u.failed(ctx, a, "save-assignment", err)
		}
	}
	u.Failure = nil
	u.report(ctx, kurabe.SnapshotReport{Generation: a.Generation, Done: true, Facts: facts})
	return u.RetryReport(snapshotLooks * u.set.Host.Look)
}

// sealed puts the checksums of a snapshot on record, once it is told of: a clone is
// there at once, and reading it takes as long as a copy. What cannot be sealed is
// tried again at the next look. It returns when that is, pause if nothing hinders.
func (u *worker) sealed(ctx context.Context, a kurabe.SnapshotAssignment, pause time.Duration) time.Duration {
	if u.Failure != nil {
		return pause
	}
	done, err := u.set.Folders.Sealed(u.ID)
	if err == nil && !done {
		err = u.step(ctx, a, stepSealSnapshot)
	}
	if errors.Is(err, unit.ErrCut) {
		return 0
	}
	if err != nil && ctx.Err() == nil {
		u.Log.Warn("snapshot not sealed", logkey.Error, err)
	}
	return pause
}

// gone: nothing is left of the snapshot.
func (u *worker) gone(ctx context.Context, a kurabe.SnapshotAssignment) time.Duration {
	u.Failure = nil
	if a.Kind == kurabe.SnapshotAutomated {
		// The last one takes the log with it, before its own record goes: nobody would
		// know of the log afterwards.
		u.set.DropLog(ctx, a.Source.Instance)
	}
	u.report(ctx, kurabe.SnapshotReport{Generation: a.Generation, Done: true, Absent: true})
	if err := u.set.forget(u.ID); err != nil {
		return u.failed(ctx, a, "forget-assignment", err)
	}
	return u.RetryReport(u.set.Host.Look)
}

// failed notes a failed step and returns when to try again.
func (u *worker) failed(ctx context.Context, a kurabe.SnapshotAssignment, step string, err error) time.Duration {
	kind := kurabe.FailureOther
	if errors.Is(err, engine.ErrHeld) {
		kind = kurabe.FailureLocked
	}
	attempts := u.Fails(kind, step, err.Error())
	u.Log.Warn("step failed, retrying", logkey.Step, step, logkey.Generation, a.Generation, logkey.Attempt, attempts, logkey.Error, err)
	r := kurabe.SnapshotReport{Generation: a.Generation}
	if facts := u.whole(); facts != nil {
		r.Facts = *facts
	}
	u.report(ctx, r)
	return u.RestFor(unit.Backoff(attempts + Patience))
}

// adoptLog keeps the log that goes with an automated snapshot which was imported.
func (u *worker) adoptLog(ctx context.Context, a kurabe.SnapshotAssignment, facts kurabe.SnapshotFacts) {
	imported := a.Of == "" && a.From == ""
	if u.set.Logs == nil || !imported || a.Kind != kurabe.SnapshotAutomated || facts.Position.File == "" {
		return
	}
	limited, cancel := context.WithTimeout(ctx, adoptLimit)
	defer cancel()
	if err := u.set.Logs.Adopt(limited, a.Source.Instance, facts.TakenAt, facts.Position); err != nil && ctx.Err() == nil {
		u.Log.Warn("log not adopted", logkey.Error, err)
	}
}
