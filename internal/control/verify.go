package control

import (
	"context"

	"kurabe"
	"kurabe/internal/store"
)

// Verified is what is known of the verification of a snapshot.
type Verified struct {
	Snapshot string `json:"snapshot"` // its name
	// Seq is the number of the verification that was asked for; it is done when
	// Newest has that number or a higher one.
	Seq       int64                `json:"seq"`
	State     kurabe.SnapshotState `json:"state"`
	Verifying string               `json:"verifying,omitempty"`
	Newest    *kurabe.Verification `json:"newest,omitempty"`
}

// Verify stores the wish to have a snapshot verified: the one of that name or ARN, or
// the newest automated one of the instance of that name, or its newest manual one. A
// verification that was asked for and is not done answers this wish too.
func (c *Control) Verify(ctx context.Context, name string) (Verified, error) {
	s, err := c.toVerify(name)
	if err != nil {
		return Verified{}, err
	}
	var seq int64
	err = c.Update(ctx, func() (*store.Change, error) {
		now, ok := c.View.Snapshot(s.ID)
		if !ok {
			return nil, kurabe.Errorf(kurabe.CodeSnapshotNotFound, kurabe.WordsSnapshotNotFound, name)
		}
		if have := readSnapshot(now); have.State != kurabe.SnapshotAvailable {
			return nil, kurabe.Errorf(kurabe.CodeInvalidSnapshotState, "Cannot verify the snapshot %s because it is not available: it is %s.", now.Spec.Name, have.State)
		}
		var pending bool
		if seq, pending = verifySeq(now); pending {
			return nil, nil
		}
		seq++
		spec := *now.Spec
		spec.Revision++
		spec.VerifySeq = seq
		return store.NewChange().PutSnapshot(spec, now.SpecMod), nil
	})
	if err != nil {
		return Verified{}, err
	}
	return c.Verification(s.Spec.Name, seq)
}

// verifySeq is the highest number that was given to a verification of a snapshot, by a
// wish or by the schedule, and whether that is not done yet.
func verifySeq(s *store.Snapshot) (seq int64, pending bool) {
	seq = s.Spec.VerifySeq
	for _, a := range s.Assignments {
		seq = max(seq, a.Value.Verify)
	}
	var done int64
	if s.Status != nil && s.Status.Verified != nil {
		done = s.Status.Verified.Seq
	}
	return max(seq, done), seq > done
}

// Verification tells how far a verification is; seq is what Verify said.
func (c *Control) Verification(name string, seq int64) (Verified, error) {
	s, err := c.Snapshot(name)
	if err != nil {
		return Verified{}, err
	}
	return Verified{Snapshot: s.Spec.Name, Seq: seq, State: s.State, Verifying: s.Status.Verifying, Newest: s.Status.Verified}, nil
}

// toVerify finds the snapshot that a name means.
func (c *Control) toVerify(name string) (*store.Snapshot, error) {
	i, err := c.find(name)
	if err != nil {
		return c.findSnapshot(name)
	}
	if list := c.automated(i.ID); len(list) > 0 {
		return list[len(list)-1], nil
	}
	var newest *store.Snapshot
	for _, s := range c.View.SnapshotsOf(i.ID) {
		if s.Spec != nil && readSnapshot(s).State == kurabe.SnapshotAvailable && (newest == nil || s.Spec.CreatedAt.After(newest.Spec.CreatedAt)) {
			newest = s
		}
	}
	if newest == nil {
		return nil, kurabe.Errorf(kurabe.CodeSnapshotNotFound, "DB instance %s has no snapshot that is available.", name)
	}
	return newest, nil
}

// damageFound is the newest verification if it found damage, else nil.
func damageFound(status *kurabe.SnapshotStatus) *kurabe.Verification {
	if status == nil || status.Verified == nil || status.Verified.OK {
		return nil
	}
	return status.Verified
}
