package plan

import (
	"fmt"

	"kurabe"
)

// Percentages of AllocatedStorage. Source: the RDS user guide, events 0089
// (more than 90 % used) and 0007 (full).
const (
	storageLow   = 90
	storageFull  = 100
	storageCalm  = 85 // below this the low-storage alarm is over
	storageAgain = 95 // below this a full instance runs again
)

// planStorage watches the storage cap: an instance at its cap is stopped
// cleanly before it can harm its neighbours, and growth alone brings it back.
func (d *draft) planStorage() {
	r := d.w.Report
	if r == nil || r.UsedBytes == 0 || !d.had {
		return
	}
	limit := d.w.Spec.Wanted(d.status.AppliedNext).Limits().StorageBytes
	percent := int(r.UsedBytes * 100 / limit)
	used := fmt.Sprintf("%s of %s", kurabe.FormatBytes(r.UsedBytes), kurabe.FormatBytes(limit))
	switch {
	case percent >= storageFull && d.status.StorageAlarm < storageFull:
		d.status.StorageAlarm = storageFull
		d.event("RDS-EVENT-0007", "Allocated storage has been exhausted ("+used+"). Allocate more storage to bring the DB instance back", "low storage")
		d.event("RDS-EVENT-0221", "The DB instance is shut down because its storage is full", "availability")
	case percent >= storageLow && d.status.StorageAlarm == 0:
		d.status.StorageAlarm = storageLow
		d.event("RDS-EVENT-0089", "Free storage capacity is low: "+used+" are used", "low storage")
	case percent < storageCalm && d.status.StorageAlarm == storageLow:
		d.status.StorageAlarm = 0
	case percent < storageAgain && d.status.StorageAlarm == storageFull:
		d.status.StorageAlarm = storageLow
		if d.next.Goal == kurabe.GoalRunning {
			d.status.Action = kurabe.StateStarting
		}
	}
	if d.status.StorageAlarm == storageFull && d.next.Goal == kurabe.GoalRunning {
		d.because("its storage is full: " + used)
		d.next.Goal = kurabe.GoalStopped
	}
}
