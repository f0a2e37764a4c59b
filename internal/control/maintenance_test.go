package control

import (
	"strings"
	"testing"
	"time"

	"kurabe"
	"kurabe/internal/control/scope/scopetest"
	"kurabe/internal/store"
)

// addWaiting stores an instance with a change that waits for the window.
func addWaiting(t *testing.T, c *Control, name string, edit func(*kurabe.InstanceSettings), nextName string) kurabe.InstanceSpec {
	t.Helper()
	spec := scopetest.Spec(name)
	next := spec.Now
	edit(&next)
	if next != spec.Now {
		spec.Next = &next
	}
	spec.NextName, spec.NextSeq = nextName, 1
	scopetest.AddInstance(t, c.Scope, spec)
	if nextName != "" {
		scopetest.Commit(t, c.Scope, store.NewChange().TakeName(nextName, spec.ID))
	}
	return spec
}

func TestPendingMaintenance(t *testing.T) {
	c := newTestWorld(t)
	scopetest.AddInstance(t, c.Scope, scopetest.Spec("calm"))
	addWaiting(t, c, "class", func(s *kurabe.InstanceSettings) { s.Class = "db.local.small" }, "")
	addWaiting(t, c, "version", func(s *kurabe.InstanceSettings) { s.EngineVersion, s.StorageGiB = "15.18", 30 }, "")
	addWaiting(t, c, "ca", func(s *kurabe.InstanceSettings) { s.CACertificate = "kurabe-ca-2" }, "")
	addWaiting(t, c, "name", func(*kurabe.InstanceSettings) {}, "other")
	list, err := c.PendingMaintenance("", nil, nil)
	if err != nil || len(list) != 4 {
		t.Fatalf("%+v, %v", list, err)
	}
	for n, want := range []struct{ name, action, text string }{
		{"ca", ActionCertificate, "certificate authority kurabe-ca to kurabe-ca-2"},
		{"class", ActionUpdate, "class db.local.micro to db.local.small"},
		{"name", ActionUpdate, "name name to other"},
		{"version", ActionUpgrade, "engine version 15.9 to 15.18, storage in GiB 20 to 30"},
	} {
		m := list[n]
		if m.Instance != want.name || m.Action != want.action || !strings.Contains(m.Description, want.text) || m.OptIn != OptInNext {
			t.Errorf("%+v, want %v", m, want)
		}
		if opens := time.Date(2026, 11, 22, 5, 0, 0, 0, time.UTC); !m.At.Equal(opens) {
			t.Errorf("applied at %v, want %v", m.At, opens)
		}
	}
	if list, err := c.PendingMaintenance(c.ARN("db", "calm"), nil, nil); err != nil || list != nil {
		t.Errorf("calm: %v, %v", list, err)
	}
	if list, _ := c.PendingMaintenance("", []string{"class", c.ARN("db", "ca")}, nil); len(list) != 2 {
		t.Errorf("filtered: %v", list)
	}
	_, err = c.PendingMaintenance(c.ARN("db", "nope"), nil, nil)
	scopetest.WantCode(t, err, kurabe.CodeResourceNotFound, "nope")
	_, err = c.PendingMaintenance(c.ARN("pg", "default.postgres15"), nil, nil)
	scopetest.WantCode(t, err, kurabe.CodeResourceNotFound, "")
}

func TestApplyMaintenance(t *testing.T) {
	c := newTestWorld(t)
	spec := addWaiting(t, c, "orders", func(s *kurabe.InstanceSettings) { s.Class = "db.local.small" }, "sales")
	arn := c.ARN("db", "orders")
	for _, tc := range []struct {
		arn, action, optIn string
		code               kurabe.Code
	}{
		{arn, ActionUpdate, "later", kurabe.CodeInvalidParameterValue},
		{arn, ActionUpgrade, OptInImmediate, kurabe.CodeResourceNotFound},
		{c.ARN("db", "nope"), ActionUpdate, OptInImmediate, kurabe.CodeResourceNotFound},
		{arn, ActionUpdate, OptInNext, ""},
		{arn, ActionUpdate, OptInUndo, ""},
	} {
		_, err := c.ApplyMaintenance(t.Context(), tc.arn, tc.action, tc.optIn)
		scopetest.WantCode(t, err, tc.code, "")
	}
	if i, _ := c.View.Instance(spec.ID); i.Spec.Revision != 1 {
		t.Fatal("only an immediate opt-in writes")
	}
	m, err := c.ApplyMaintenance(t.Context(), arn, ActionUpdate, OptInImmediate)
	if err != nil || m.OptIn != OptInImmediate || m.ARN != c.ARN("db", "sales") {
		t.Fatalf("%+v, %v", m, err)
	}
	i, _ := c.View.Instance(spec.ID)
	s := i.Spec
	if s.Now.Class != "db.local.small" || s.Next != nil || s.NextName != "" || s.Name != "sales" || s.Revision != 2 || s.Action != kurabe.StateRenaming {
		t.Errorf("%+v", s)
	}
	if len(i.Names) != 1 || i.Names["sales"] == 0 {
		t.Errorf("names %v: the old one is free again", i.Names)
	}
	if list, _ := c.PendingMaintenance("", nil, nil); list != nil {
		t.Errorf("%v", list)
	}
}
