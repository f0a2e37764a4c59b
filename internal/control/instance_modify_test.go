package control

import (
	"testing"

	"kurabe"
)

// A rename that waits holds both names; taking it back frees the new one, once.
func TestRenameThatWaits(t *testing.T) {
	c := newTestWorld(t)
	addInstance(t, c, newTestSpec("orders"))
	rename := func(name string) Instance {
		t.Helper()
		i, err := c.ModifyInstance(t.Context(), "orders", InstanceChange{NewName: &name})
		wantCode(t, err, "", "")
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
