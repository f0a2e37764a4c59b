package control

import (
	"testing"

	"kurabe"
	"kurabe/internal/control/scope/scopetest"
	"kurabe/internal/store"
)

// Storage grows by a tenth at least, rounded up; it never shrinks below what there
// is, and it fits the disk of the host.
func TestGrowStorage(t *testing.T) {
	for _, c := range []struct {
		name       string
		have, wish int
		want       int
		code       kurabe.Code
	}{
		{"as it is", 20, 20, 20, ""},
		{"less than a tenth", 20, 21, 22, ""},
		{"a tenth", 20, 22, 22, ""},
		{"a tenth is no whole number", 25, 26, 28, ""},
		{"more", 20, 50, 50, ""},
		{"less", 20, 19, 20, kurabe.CodeInvalidParameterCombo},
		{"the disk", 20, 100, 100, ""},
		{"more than the disk", 20, 101, 20, kurabe.CodeInsufficientCapacity},
		{"more than the type has", 20, 65537, 20, kurabe.CodeInvalidParameterValue},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newTestWorld(t)
			spec := scopetest.Spec("orders")
			spec.Now.StorageGiB = c.have
			scopetest.AddInstance(t, w.Scope, spec)
			_, err := w.ModifyInstance(t.Context(), "orders", InstanceChange{StorageGiB: &c.wish, ApplyImmediately: true})
			scopetest.WantCode(t, err, c.code, "")
			if i, err := w.Instance("orders"); err != nil || i.Spec.Now.StorageGiB != c.want {
				t.Errorf("%d GiB, want %d, %v", i.Spec.Now.StorageGiB, c.want, err)
			}
		})
	}
}

// What autoscaling reached is what a modification starts from.
func TestModifyScaledStorage(t *testing.T) {
	c := newTestWorld(t)
	spec := scopetest.Spec("orders")
	spec.MaxStorageGiB = 60
	status := kurabe.InstanceStatus{ID: spec.ID, SpecRevision: spec.Revision, State: kurabe.StateAvailable, Applied: spec.Now.WithStorage(30), Host: "h1"}
	status.Storage.ScaledGiB = 30
	scopetest.Commit(t, c.Scope, store.NewChange().CreateInstance(spec).PutStatus(status, 0))
	for _, step := range []struct {
		gib  int
		code kurabe.Code
	}{{25, kurabe.CodeInvalidParameterCombo}, {30, ""}} {
		_, err := c.ModifyInstance(t.Context(), "orders", InstanceChange{StorageGiB: &step.gib})
		scopetest.WantCode(t, err, step.code, "cannot shrink")
	}
	most := 32
	_, err := c.ModifyInstance(t.Context(), "orders", InstanceChange{MaxStorageGiB: &most})
	scopetest.WantCode(t, err, kurabe.CodeInvalidParameterCombo, "Max storage size must be greater")
	class := "db.local.small"
	i, err := c.ModifyInstance(t.Context(), "orders", InstanceChange{Class: &class})
	scopetest.WantCode(t, err, "", "")
	if i.Settings().StorageGiB != 30 || i.Pending == nil || i.Pending.StorageGiB != 30 {
		t.Errorf("%+v, pending %+v", i.Settings(), i.Pending)
	}
}
