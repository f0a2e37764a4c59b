package control

import (
	"testing"

	"kurabe"
	"kurabe/internal/store"
)

// Retained backups are found under the last name of the instance, which its snapshots may not know.
func TestRetainedUnderTheLastName(t *testing.T) {
	c := newTestWorld(t)
	spec := newTestSpec("renamed")
	spec.ID, spec.Now.RetentionDays = "db-ORDERS", 7
	addInstance(t, c, spec)
	addSnapshotOf(t, c, "rds:orders-1", kurabe.SnapshotAutomated, testNow) // when it was called orders
	if _, err := c.DeleteInstance(t.Context(), "renamed", "", true); err != nil {
		t.Fatal(err)
	}
	i, _ := c.View.Instance("db-ORDERS")
	mustCommit(t, c, store.NewChange().DeleteInstance(i))
	for name, want := range map[string]int{"renamed": 1, "orders": 0} {
		if list, _ := c.AutomatedBackups(BackupFilter{Instances: []string{name}}, "", 10); len(list) != want {
			t.Errorf("%s has %d", name, len(list))
		}
	}
}
