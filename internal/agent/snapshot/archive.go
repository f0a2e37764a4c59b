package snapshot

import (
	"context"
	"errors"
	"time"

	"kurabe"
	"kurabe/internal/agent/unit"
	"kurabe/internal/logkey"
)

// stepArchiveSnapshot brings a sealed snapshot into the repository of backups.
const stepArchiveSnapshot = "archive-snapshot"

// archives says whether snapshots are not in their folders only.
func (u *worker) archives() bool {
	return u.set.Folders != nil && u.set.Folders.Archives()
}

// archived has a snapshot that is whole, and has its checksums, in the repository as
// well. What cannot be archived is tried again at the next look; nothing waits for
// it. It returns when that is, pause if nothing hinders.
func (u *worker) archived(ctx context.Context, a kurabe.SnapshotAssignment, facts kurabe.SnapshotFacts, pause time.Duration) time.Duration {
	if !u.archives() || u.Failure != nil || ctx.Err() != nil {
		return pause
	}
	if sealed, err := u.set.Folders.Sealed(u.ID); err != nil || !sealed {
		return pause
	}
	there, err := u.set.Folders.Archived(u.ID)
	if err != nil {
		u.Log.Debug("could not look for the snapshot's archive", logkey.Error, err)
		return min(pause, u.set.Host.Look) // the repository may be opening
	}
	if !there {
		u.note(ctx, a, facts, false)
		err = u.step(ctx, a, stepArchiveSnapshot)
		if errors.Is(err, unit.ErrCut) {
			return 0
		}
		if err != nil {
			if ctx.Err() == nil {
				u.Log.Warn("snapshot not archived", logkey.Error, err)
			}
			return min(pause, u.set.Host.Look)
		}
	}
	return min(pause, u.note(ctx, a, facts, true))
}

// note keeps and reports whether a whole snapshot is in the repository.
func (u *worker) note(ctx context.Context, a kurabe.SnapshotAssignment, facts kurabe.SnapshotFacts, archived bool) time.Duration {
	have := u.whole()
	if have != nil {
		facts = *have
	}
	facts.Archived = archived
	return u.settledAs(ctx, a, facts)
}

// archivedElsewhere asks the repository for a snapshot that is not here.
func (u *worker) archivedElsewhere() (there bool, unknown error) {
	if u.archives() {
		return u.set.Folders.Archived(u.ID)
	}
	return false, nil
}

// elsewhere is what to do for a snapshot that is not here and is, or may be, in the
// repository; done is false when it is to be removed there.
func (u *worker) elsewhere(ctx context.Context, a kurabe.SnapshotAssignment, unknown error) (wait time.Duration, done bool) {
	have := u.whole()
	switch {
	case a.Goal == kurabe.SnapshotAbsent:
		return 0, false
	case unknown == nil:
		return 0, true // Find sees it at once
	case have != nil && have.Archived:
		// It was there. That the repository is away for a while is no loss.
		return min(u.settledAs(ctx, a, *have), u.set.Host.Look), true
	}
	return u.failed(ctx, a, stepFindSnapshot, unknown), true
}
