package fake

import (
	"context"
	"errors"
	"fmt"
	"time"

	"kurabe"
	"kurabe/internal/engine"
)

// stepVerify is the step by which Before and After are asked.
const stepVerify = "verify-snapshot"

// Verify says what is known of a snapshot: Rotten has it find damage. It takes
// VerifyTime.
func (s *Snapshots) Verify(ctx context.Context, r engine.VerifyRequest) (kurabe.Verification, error) {
	began := time.Now()
	s.mu.Lock()
	if s.verifying++; s.verifying > 1 {
		s.wrong = append(s.wrong, "two verifications at a time")
	}
	s.scratch[r.Snapshot] = true
	f := s.folders[r.Snapshot]
	if f == nil || !f.complete || !f.sealed {
		s.wrong = append(s.wrong, fmt.Sprintf("%s is verified and is not sealed", r.Snapshot))
	}
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.verifying--
		// Whoever cuts it gives a reason; who gives none has died, and leaves the copy.
		if context.Cause(ctx) != context.Canceled {
			delete(s.scratch, r.Snapshot)
		}
	}()
	if err := ask(s.Before, stepVerify, r.Snapshot); err != nil {
		return kurabe.Verification{}, err
	}
	r.Progress(SnapshotBytes/2, SnapshotBytes)
	timer := time.NewTimer(s.VerifyTime)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return kurabe.Verification{}, ctx.Err()
	case <-timer.C:
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	v := kurabe.Verification{At: time.Now().UTC().Round(0), Problems: s.rotten[r.Snapshot], Until: r.Until, Duration: time.Since(began)}
	v.OK = len(v.Problems) == 0
	s.verified[r.Snapshot]++
	return v, nil
}

// SweepVerified removes what verifications left that were cut off.
func (s *Snapshots) SweepVerified(context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.verifying > 0 {
		s.wrong = append(s.wrong, "a sweep beside a verification")
		return errors.New("a verification is under way")
	}
	clear(s.scratch)
	return nil
}

// Rotten has verifications of a snapshot find this.
func (s *Snapshots) Rotten(id kurabe.SnapshotID, problems ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rotten[id] = problems
}

// Verified counts the verifications of a snapshot that came to an end.
func (s *Snapshots) Verified(id kurabe.SnapshotID) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.verified[id]
}

// Scratch counts the copies that cut-off verifications left.
func (s *Snapshots) Scratch() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.scratch)
}

// Archives has no repository.
func (s *Snapshots) Archives() bool { return false }

// Archived see Archives.
func (s *Snapshots) Archived(kurabe.SnapshotID) (bool, error) { return false, nil }

// Archive see Archives.
func (s *Snapshots) Archive(context.Context, kurabe.SnapshotID, func(done, total int64)) error {
	return errNone
}
