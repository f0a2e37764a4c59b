package control

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"kurabe"
	"kurabe/internal/control/scope/scopetest"
	"kurabe/internal/store"
)

// addSnapshotOf stores an available snapshot of an instance.
func addSnapshotOf(t *testing.T, c *Control, name string, kind kurabe.SnapshotKind, at time.Time) kurabe.SnapshotSpec {
	t.Helper()
	spec := kurabe.SnapshotSpec{
		ID: kurabe.NewSnapshotID(), Name: name, Revision: 1, Kind: kind, CreatedAt: at, OriginalAt: at,
		Source: kurabe.SnapshotSource{Instance: "db-ORDERS", Name: "orders", Engine: kurabe.Postgres}, Tags: []kurabe.Tag{{Key: "team", Value: "blue"}},
	}
	scopetest.Commit(t, c.Scope, store.NewChange().CreateSnapshot(spec))
	setVerified(t, c, name, kurabe.SnapshotAvailable, nil)
	return spec
}

// setVerified writes the status of a snapshot, as the planner would.
func setVerified(t *testing.T, c *Control, name string, state kurabe.SnapshotState, v *kurabe.Verification) {
	t.Helper()
	s, ok := c.View.SnapshotByName(name)
	if !ok {
		t.Fatal(name)
	}
	scopetest.Commit(t, c.Scope, store.NewChange().PutSnapshotStatus(kurabe.SnapshotStatus{
		ID: s.ID, SpecRevision: 1, State: state, Verified: v, Facts: kurabe.SnapshotFacts{TakenAt: s.Spec.CreatedAt},
	}, s.StatusMod))
}

func (c *Control) mustVerify(t *testing.T, name, snapshot string, seq int64) {
	t.Helper()
	if v, err := c.Verify(t.Context(), name); err != nil || v.Snapshot != snapshot || v.Seq != seq {
		t.Errorf("%s: %+v, %v; want %d of %s", name, v, err, seq, snapshot)
	}
}

func TestVerifyChooses(t *testing.T) {
	c := newTestWorld(t)
	scopetest.AddInstance(t, c.Scope, scopetest.Spec("orders"))
	_, err := c.Verify(t.Context(), "orders")
	scopetest.WantCode(t, err, kurabe.CodeSnapshotNotFound, "orders")
	_, err = c.Verify(t.Context(), "nope")
	scopetest.WantCode(t, err, kurabe.CodeSnapshotNotFound, "nope")
	addSnapshotOf(t, c, "by-hand", kurabe.SnapshotManual, scopetest.Now)
	c.mustVerify(t, "orders", "by-hand", 1)
	addSnapshotOf(t, c, "rds:orders-1", kurabe.SnapshotAutomated, scopetest.Now.Add(-2*time.Hour))
	addSnapshotOf(t, c, "rds:orders-2", kurabe.SnapshotAutomated, scopetest.Now.Add(-time.Hour))
	c.mustVerify(t, "orders", "rds:orders-2", 1)
	c.mustVerify(t, "rds:orders-1", "rds:orders-1", 1)
	c.mustVerify(t, c.ARN("snapshot", "by-hand"), "by-hand", 1) // not done yet: the same one
	setVerified(t, c, "by-hand", kurabe.SnapshotAvailable, &kurabe.Verification{Seq: 1, OK: true, At: scopetest.Now})
	c.mustVerify(t, "by-hand", "by-hand", 2)
	s, _ := c.View.SnapshotByName("by-hand")
	scopetest.Commit(t, c.Scope, store.NewChange().PutAssignment(kurabe.SnapshotAssignment{Host: "h1", Snapshot: s.ID, Verify: 5}, 0))
	c.mustVerify(t, "by-hand", "by-hand", 5) // the schedule's
	setVerified(t, c, "by-hand", kurabe.SnapshotFailed, nil)
	_, err = c.Verify(t.Context(), "by-hand")
	scopetest.WantCode(t, err, kurabe.CodeInvalidSnapshotState, "failed")
	if v, err := c.Verification("rds:orders-2", 1); err != nil || v.State != kurabe.SnapshotAvailable || v.Newest != nil || v.Seq != 1 {
		t.Errorf("%+v, %v", v, err)
	}
}

// The tags of a snapshot are the user's: what a verification finds is in none of them.
func TestAVerificationIsNoTag(t *testing.T) {
	c := newTestWorld(t)
	scopetest.AddInstance(t, c.Scope, scopetest.Spec("orders"))
	addSnapshotOf(t, c, "rds:orders-1", kurabe.SnapshotAutomated, scopetest.Now)
	arn := c.ARN("snapshot", "rds:orders-1")
	had, err := c.Tags(arn)
	if err != nil || len(had) != 1 {
		t.Fatal(had, err)
	}
	for n, v := range []*kurabe.Verification{{Seq: 1, OK: true, At: scopetest.Now}, {Seq: 2, At: scopetest.Now, Problems: []string{"x"}}} {
		setVerified(t, c, "rds:orders-1", kurabe.SnapshotAvailable, v)
		if got, err := c.Tags(arn); err != nil || !cmp.Equal(got, had) {
			t.Errorf("verification %d: %v, %v", n, got, err)
		}
	}
	scopetest.WantCode(t, c.AddTags(t.Context(), arn, tags("Kurabe:mine")), kurabe.CodeInvalidParameterValue, "reserved")
	if err := c.AddTags(t.Context(), arn, tags("more")); err != nil {
		t.Error(err)
	}
}

// A tool that declares the tags of a resource removes every other one.
func TestEveryTagCanBeRemoved(t *testing.T) {
	c := newTestWorld(t)
	scopetest.AddInstance(t, c.Scope, scopetest.Spec("orders"))
	mustSnapshot(t, c, "by-hand", "orders", tags("team", "kurabe:clone", "kurabe:method")...)
	arn := c.ARN("snapshot", "by-hand")
	have, err := c.Tags(arn)
	if err != nil || len(have) != 3 {
		t.Fatal(have, err)
	}
	for _, tag := range have {
		if err := c.RemoveTags(t.Context(), arn, []string{tag.Key}); err != nil {
			t.Error(err)
		}
	}
	if left, err := c.Tags(arn); err != nil || len(left) != 0 {
		t.Error(left, err)
	}
}
