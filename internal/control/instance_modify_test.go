package control

import (
	"kurabe/internal/control/scope/scopetest"
	"testing"

	"kurabe"
)

// A rename that waits holds both names; taking it back frees the new one, once.
func TestRenameThatWaits(t *testing.T) {
	c := newTestWorld(t)
	scopetest.AddInstance(t, c.Scope, scopetest.Spec("orders"))
	rename := func(name string) Instance {
		t.Helper()
		i, err := c.ModifyInstance(t.Context(), "orders", InstanceChange{NewName: &name})
		scopetest.WantCode(t, err, "", "")
		return i
	}
	if i := rename("Sales"); i.PendingName != "sales" || i.Name != "orders" {
		t.Errorf("%q, pending %q", i.Name, i.PendingName)
	}
	if owner, taken := c.View.NameOwner("sales"); !taken || owner != kurabe.InstanceID("db-ORDERS") {
		t.Errorf("%q owns the new name", owner)
	}
	if i := rename("trade"); i.PendingName != "trade" {
		t.Errorf("pending %q", i.PendingName)
	}
	if i := rename("orders"); i.PendingName != "" || i.Spec.Next != nil {
		t.Errorf("pending %q", i.PendingName)
	}
	for _, free := range []string{"sales", "trade"} {
		if owner, taken := c.View.NameOwner(free); taken {
			t.Errorf("%s still belongs to %s", free, owner)
		}
	}
}

// Storage autoscaling is turned off with 0 or with the storage that there is.
func TestMaxStorage(t *testing.T) {
	c := newTestWorld(t)
	scopetest.AddInstance(t, c.Scope, scopetest.Spec("orders"))
	for _, step := range []struct {
		max, have int
		code      kurabe.Code
	}{
		{max: 40, have: 40}, {max: 20, have: 0}, {max: 30, have: 30}, {max: 0, have: 0}, {max: 22, have: 22},
		{max: 21, have: 22, code: kurabe.CodeInvalidParameterCombo}, {max: 19, have: 22, code: kurabe.CodeInvalidParameterCombo},
	} {
		_, err := c.ModifyInstance(t.Context(), "orders", InstanceChange{MaxStorageGiB: &step.max})
		scopetest.WantCode(t, err, step.code, "Max storage size must be greater than storage size")
		if i, err := c.Instance("orders"); err != nil || i.Spec.MaxStorageGiB != step.have {
			t.Errorf("after %d: %d, %v", step.max, i.Spec.MaxStorageGiB, err)
		}
	}
	// The bound is held against the storage that is asked for at the same time.
	more := 50
	i, err := c.ModifyInstance(t.Context(), "orders", InstanceChange{StorageGiB: &more, MaxStorageGiB: &more})
	if scopetest.WantCode(t, err, "", ""); i.Spec.MaxStorageGiB != 0 {
		t.Errorf("%d", i.Spec.MaxStorageGiB)
	}
}
