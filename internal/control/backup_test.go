package control

import (
	"testing"

	"kurabe"
	"kurabe/internal/control/scope/scopetest"
	"kurabe/internal/store"
)

// Retained backups are found under the last name of the instance, which its snapshots may not know.
func TestRetainedUnderTheLastName(t *testing.T) {
	c := newTestWorld(t)
	spec := scopetest.Spec("renamed")
	spec.ID, spec.Now.RetentionDays = "db-ORDERS", 7
	scopetest.AddInstance(t, c.Scope, spec)
	addSnapshotOf(t, c, "rds:orders-1", kurabe.SnapshotAutomated, scopetest.Now) // when it was called orders
	if _, err := c.DeleteInstance(t.Context(), "renamed", "", true); err != nil {
		t.Fatal(err)
	}
	i, _ := c.View.Instance("db-ORDERS")
	scopetest.Commit(t, c.Scope, store.NewChange().DeleteInstance(i))
	for name, want := range map[string]int{"renamed": 1, "orders": 0} {
		if list, _ := c.AutomatedBackups(BackupFilter{Instances: []string{name}}, "", 10); len(list) != want {
			t.Errorf("%s has %d", name, len(list))
		}
	}
}
