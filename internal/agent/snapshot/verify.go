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
)

// stepVerifySnapshot restores a snapshot beside everything else and looks for damage.
const stepVerifySnapshot = "verify-snapshot"

const (
	// verifyRetry is the pause after a verification that something hindered.
	verifyRetry = 10 * time.Minute
	// verifyStep is by how many percent of the copying a report differs from the last.
	verifyStep = 10
)

// verified has a whole snapshot verified when that is wanted, after everything else:
// it takes as long as a copy and nothing waits for it. What cannot be verified is
// tried again later. It returns when to look again, pause if nothing hinders.
func (u *worker) verified(ctx context.Context, a kurabe.SnapshotAssignment, pause time.Duration) time.Duration {
	if a.Verify <= u.verifiedSeq() || u.Failure != nil || u.whole() == nil || ctx.Err() != nil {
		return pause
	}
	if rest := u.verifyAt.Sub(u.set.Host.Now()); rest > 0 && u.verifyGen == a.Generation {
		return min(pause, rest)
	}
	if sealed, err := u.set.Folders.Sealed(u.ID); err != nil || !sealed {
		return pause // what it would be compared with is not there yet
	}
	u.tellVerifying(ctx, a, "waiting for its turn")
	err := u.step(ctx, a, stepVerifySnapshot)
	u.verifying = ""
	switch {
	case errors.Is(err, unit.ErrCut):
		return 0
	case ctx.Err() != nil:
		return pause
	case err != nil:
		u.Log.Warn("snapshot not verified", logkey.Error, err)
		u.verifyAt, u.verifyGen = u.set.Host.Now().Add(verifyRetry), a.Generation
		u.tellVerifying(ctx, a, fmt.Sprintf("interrupted, retrying: %v", err))
		return min(u.RetryReport(pause), verifyRetry)
	}
	u.tellVerifying(ctx, a, "")
	return u.RetryReport(pause)
}

// tellVerifying reports a whole snapshot with how far its verification is.
func (u *worker) tellVerifying(ctx context.Context, a kurabe.SnapshotAssignment, how string) {
	u.verifying = how
	if len(u.verifying) > kurabe.VerifyProblemCharsMax {
		u.verifying = u.verifying[:kurabe.VerifyProblemCharsMax]
	}
	u.report(ctx, kurabe.SnapshotReport{Generation: a.Generation, Done: true, Facts: *u.whole()})
}

// verifyGoesOn reports how far the copying of a verification is.
func (u *worker) verifyGoesOn(ctx context.Context, a kurabe.SnapshotAssignment, p *progress) {
	p.mu.Lock()
	done, total := p.done, p.total
	p.mu.Unlock()
	switch {
	case total == 0:
	case done < total:
		u.tellVerifying(ctx, a, fmt.Sprintf("%d %% copied", done*100/total/verifyStep*verifyStep))
	default:
		u.tellVerifying(ctx, a, "recovering and checking the copy")
	}
}

// verify is the deed: the log is replayed too as far as this host has it, and the
// result is on disk before anybody hears of it.
func (u *worker) verify(ctx context.Context, a kurabe.SnapshotAssignment, progress func(done, total int64)) error {
	r := engine.VerifyRequest{Snapshot: u.ID, Progress: progress, Until: u.logEnd(a)}
	if of, known := u.set.writer(a.Source.Instance); known {
		r.Settings = of.Settings
	}
	v, err := u.set.Folders.Verify(ctx, r)
	if err != nil {
		return err
	}
	v.Seq = a.Verify
	return u.keep(nil, &v)
}

// logEnd is the newest moment to which the log brings a snapshot, zero when it does
// not reach past the snapshot itself.
func (u *worker) logEnd(a kurabe.SnapshotAssignment) time.Time {
	facts := u.whole()
	if u.set.Logs == nil || facts.Position.File == "" {
		return time.Time{}
	}
	log, ok := u.set.Logs.Log(a.Source.Instance)
	if !ok {
		return time.Time{}
	}
	mark, ok := log.Reaches(facts.TakenAt, facts.Position)
	if !ok || !mark.At.After(facts.UsableAt) {
		return time.Time{}
	}
	return mark.At
}

// verifiedSeq is the number of the newest verification that was done, 0 for none.
func (u *worker) verifiedSeq() int64 {
	if v := u.result(); v != nil {
		return v.Seq
	}
	return 0
}

// sweepVerified removes what verifications left when the service was killed; those of
// this service wait until it is done.
func (s *Set) sweepVerified(ctx context.Context) {
	if s.Folders == nil {
		return
	}
	leave, err := s.Host.Lines.Enter(ctx, stepVerifySnapshot)
	if err != nil {
		return
	}
	s.Host.Wait.Go(func() {
		defer leave()
		if err := s.Folders.SweepVerified(ctx); err != nil && ctx.Err() == nil {
			s.Host.Log.Warn("leftovers not removed", logkey.Error, err)
		}
	})
}
