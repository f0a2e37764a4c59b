package control

import (
	"context"
	"errors"
	"testing"

	"kurabe"
	"kurabe/internal/control/scope/scopetest"
	"kurabe/internal/store"
)

// mustSnapshot takes a snapshot and has it available, as agent and planner would.
func mustSnapshot(t *testing.T, c *Control, name, instance string, tags ...kurabe.Tag) *store.Snapshot {
	t.Helper()
	if _, err := c.CreateSnapshot(t.Context(), name, instance, tags); err != nil {
		t.Fatal(err)
	}
	setVerified(t, c, name, kurabe.SnapshotAvailable, nil)
	return storedSnapshot(t, c, name)
}

func storedSnapshot(t *testing.T, c *Control, name string) *store.Snapshot {
	t.Helper()
	s, ok := c.View.SnapshotByName(name)
	if !ok {
		t.Fatal(name)
	}
	return s
}

// A verification was asked for of the source, not of what is copied from it.
func TestCopyOrdersNoVerification(t *testing.T) {
	c := newTestWorld(t)
	scopetest.AddInstance(t, c.Scope, scopetest.Spec("orders"))
	mustSnapshot(t, c, "first", "orders")
	if _, err := c.Verify(t.Context(), "first"); err != nil {
		t.Fatal(err)
	}
	if _, err := c.CopySnapshot(t.Context(), "first", "second", nil, false); err != nil {
		t.Fatal(err)
	}
	if first, second := storedSnapshot(t, c, "first").Spec, storedSnapshot(t, c, "second").Spec; first.VerifySeq != 1 || second.VerifySeq != 0 {
		t.Errorf("the source has %d, its copy %d", first.VerifySeq, second.VerifySeq)
	}
}

// interrupted is a store in which somebody else writes right before the next commit:
// after it was decided, and before it is seen.
type interrupted struct {
	store.KV
	before func()
}

func (i *interrupted) Txn(ctx context.Context, conds []store.Cond, ops []store.Op) (int64, error) {
	if before := i.before; before != nil {
		i.before = nil
		before()
	}
	return i.KV.Txn(ctx, conds, ops)
}

// expiry is what the planner commits when the retention of a snapshot is over, decided
// by what s shows: see snapshotChange in package reconcile.
func expiry(s *store.Snapshot) *store.Change {
	status := *s.Status
	status.State = kurabe.SnapshotDeleting
	return store.NewChange().RequireSnapshot(s.ID, s.SpecMod).PutSnapshotStatus(status, s.StatusMod).
		PutAssignment(kurabe.SnapshotAssignment{Host: "h1", Snapshot: s.ID, Goal: kurabe.SnapshotAbsent}, 0)
}

// Of an expiry and of a request that needs the files one loses, whichever is first.
func TestExpiryMeetsReaders(t *testing.T) {
	requests := []struct {
		name string
		do   func(*testing.T, *Control) error
	}{
		{"restore", func(t *testing.T, c *Control) error {
			_, err := c.RestoreSnapshot(t.Context(), "nightly", NewInstance{Name: "restored"})
			return err
		}},
		{"copy", func(t *testing.T, c *Control) error {
			_, err := c.CopySnapshot(t.Context(), "nightly", "kept", nil, false)
			return err
		}},
	}
	world := func(t *testing.T) (*Control, *store.Snapshot) {
		c := newTestWorld(t)
		scopetest.AddInstance(t, c.Scope, scopetest.Spec("orders"))
		return c, mustSnapshot(t, c, "nightly", "orders")
	}
	for _, r := range requests {
		t.Run("the expiry is first, then a "+r.name, func(t *testing.T) {
			c, seen := world(t)
			kv := c.KV
			c.KV = &interrupted{KV: kv, before: func() {
				if _, err := expiry(seen).Commit(t.Context(), kv); err != nil {
					t.Error(err)
				}
			}}
			scopetest.WantCode(t, r.do(t, c), kurabe.CodeInvalidSnapshotState, "deleting")
			if _, made := c.View.NameOwner("restored"); made || len(c.View.Snapshots()) != 1 {
				t.Errorf("made of files that go: %v, %v", made, c.View.Snapshots())
			}
		})
		t.Run("a "+r.name+" is first, then the expiry", func(t *testing.T) {
			c, seen := world(t)
			if err := r.do(t, c); err != nil {
				t.Fatal(err)
			}
			if _, err := expiry(seen).Commit(t.Context(), c.KV); !errors.Is(err, store.ErrConflict) {
				t.Errorf("the files go under a reader: %v", err)
			}
		})
	}
}

// The users of a restored instance are those of its data: nobody has asked for a password since.
func TestRestoreInheritsThePassword(t *testing.T) {
	c := newTestWorld(t)
	spec := scopetest.Spec("orders")
	spec.Password = kurabe.Password{Seq: 3, Verifier: "v3"}
	scopetest.AddInstance(t, c.Scope, spec)
	mustSnapshot(t, c, "by-hand", "orders")
	i, err := c.RestoreSnapshot(t.Context(), "by-hand", NewInstance{Name: "back"})
	if err != nil || i.Spec.Password != (kurabe.Password{Seq: 3, Verifier: "v3", Of: spec.ID, Inherited: true}) {
		t.Errorf("%+v, %v", i.Spec.Password, err)
	}
}
