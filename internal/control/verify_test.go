package control

import (
	"testing"
	"time"

	"kurabe"
	"kurabe/internal/store"
)

// addSnapshotOf stores an available snapshot of an instance.
func addSnapshotOf(t *testing.T, c *Control, name string, kind kurabe.SnapshotKind, at time.Time) kurabe.SnapshotSpec {
	t.Helper()
	spec := kurabe.SnapshotSpec{
		ID: kurabe.NewSnapshotID(), Name: name, Revision: 1, Kind: kind, CreatedAt: at, OriginalAt: at,
		Source: kurabe.SnapshotSource{Instance: "db-ORDERS", Name: "orders", Engine: kurabe.Postgres}, Tags: []kurabe.Tag{{Key: "team", Value: "blue"}},
	}
	mustCommit(t, c, store.NewChange().CreateSnapshot(spec))
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
	mustCommit(t, c, store.NewChange().PutSnapshotStatus(kurabe.SnapshotStatus{
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
	addInstance(t, c, newTestSpec("orders"))
	_, err := c.Verify(t.Context(), "orders")
	wantCode(t, err, kurabe.CodeSnapshotNotFound, "orders")
	_, err = c.Verify(t.Context(), "nope")
	wantCode(t, err, kurabe.CodeSnapshotNotFound, "nope")
	addSnapshotOf(t, c, "by-hand", kurabe.SnapshotManual, testNow)
	c.mustVerify(t, "orders", "by-hand", 1)
	addSnapshotOf(t, c, "rds:orders-1", kurabe.SnapshotAutomated, testNow.Add(-2*time.Hour))
	addSnapshotOf(t, c, "rds:orders-2", kurabe.SnapshotAutomated, testNow.Add(-time.Hour))
	c.mustVerify(t, "orders", "rds:orders-2", 1)
	c.mustVerify(t, "rds:orders-1", "rds:orders-1", 1)
	c.mustVerify(t, c.ARN("snapshot", "by-hand"), "by-hand", 1) // not done yet: the same one
	setVerified(t, c, "by-hand", kurabe.SnapshotAvailable, &kurabe.Verification{Seq: 1, OK: true, At: testNow})
	c.mustVerify(t, "by-hand", "by-hand", 2)
	s, _ := c.View.SnapshotByName("by-hand")
	mustCommit(t, c, store.NewChange().PutSnapshotAssignment(kurabe.SnapshotAssignment{Host: "h1", Snapshot: s.ID, Verify: 5}, 0))
	c.mustVerify(t, "by-hand", "by-hand", 5) // the schedule's
	setVerified(t, c, "by-hand", kurabe.SnapshotFailed, nil)
	_, err = c.Verify(t.Context(), "by-hand")
	wantCode(t, err, kurabe.CodeInvalidSnapshotState, "failed")
	if v, err := c.Verification("rds:orders-2", 1); err != nil || v.State != kurabe.SnapshotAvailable || v.Newest != nil || v.Seq != 1 {
		t.Errorf("%+v, %v", v, err)
	}
}

func TestTagOfAVerification(t *testing.T) {
	c := newTestWorld(t)
	addInstance(t, c, newTestSpec("orders"))
	spec := addSnapshotOf(t, c, "rds:orders-1", kurabe.SnapshotAutomated, testNow)
	arn := c.ARN("snapshot", "rds:orders-1")
	backups := AutomatedBackup{Source: spec.Source, Tags: []kurabe.Tag{{Key: kurabe.VerifiedTag, Value: "1999-01-01T00:00:00Z"}}}
	value := func(tags []kurabe.Tag) string {
		found := ""
		for _, tag := range tags {
			if tag.Key == kurabe.VerifiedTag {
				found += tag.Value
			}
		}
		return found
	}
	want := func(wanted string) {
		t.Helper()
		tags, err := c.Tags(arn)
		if err != nil || tags[0].Key != "team" || value(tags) != wanted || value(c.BackupTags(backups)) != wanted {
			t.Errorf("%v, %v, %v; want %q", tags, err, c.BackupTags(backups), wanted)
		}
	}
	want("")
	setVerified(t, c, "rds:orders-1", kurabe.SnapshotAvailable, &kurabe.Verification{Seq: 1, OK: true, At: testNow})
	want("2026-11-21T12:00:00Z")
	setVerified(t, c, "rds:orders-1", kurabe.SnapshotAvailable, &kurabe.Verification{Seq: 2, At: testNow})
	want("")
	for _, key := range []string{kurabe.VerifiedTag, "Kurabe:mine"} {
		wantCode(t, c.AddTags(t.Context(), arn, []kurabe.Tag{{Key: key}}), kurabe.CodeInvalidParameterValue, "reserved")
		wantCode(t, c.RemoveTags(t.Context(), arn, []string{key}), kurabe.CodeInvalidParameterValue, "reserved")
	}
	if err := c.AddTags(t.Context(), arn, []kurabe.Tag{{Key: "more"}}); err != nil {
		t.Error(err)
	}
}
