package plan

import (
	"fmt"
	"time"

	"kurabe"
	"kurabe/internal/event"
)

// Percentages of AllocatedStorage. Source: the RDS user guide, events 0089
// (more than 90 % used) and 0007 (full).
const (
	storageLow   = 90
	storageFull  = 100
	storageCalm  = 85 // below this the low-storage alarm is over
	storageAgain = 95 // below this a full instance runs again
)

// planStorage watches the storage: an instance at its cap, or one that its host's
// disk has no room for, is stopped cleanly before it can harm its neighbours.
// Growth, by the user or by autoscaling, or room brings it back. From here on the
// plan sees the storage that is in force, however it came to be.
func (d *draft) planStorage() {
	d.wantStorage()
	r, h := d.w.Report, &d.status.Storage
	if r == nil || !d.had {
		return
	}
	if d.status.StorageAlarm >= storageFull && h.FullGiB == 0 && !h.DiskFull {
		h.FullGiB = max(d.status.Applied.StorageGiB, 1) // written before the reason was kept
	}
	if r.UsedBytes > 0 { // 0: not measured yet, which must not start a full instance
		d.planScaling(r)
		d.watchCap(r)
	}
	d.watchDisk(r)
	d.keepStopped(r)
}

// wantStorage merges what autoscaling has reached with what the user wants: the
// larger holds. It notes when the user changed the size.
func (d *draft) wantStorage() {
	h := &d.status.Storage
	if d.w.Spec.Wanted(d.status.AppliedNext).StorageGiB >= h.ScaledGiB {
		h.ScaledGiB = 0
	}
	d.scaleSpec()
	wanted := d.w.Spec.Wanted(d.status.AppliedNext).StorageGiB
	if have := d.status.Applied.StorageGiB; have != 0 && have != wanted {
		h.ChangedAt = d.w.Now
	}
}

// scaleSpec puts the scaled size into the plan's own copy of the spec.
func (d *draft) scaleSpec() {
	gib := d.status.Storage.ScaledGiB
	if gib == 0 {
		return
	}
	spec := *d.w.Spec
	spec.Now = spec.Now.WithStorage(gib)
	if spec.Next != nil {
		next := spec.Next.WithStorage(gib)
		spec.Next = &next
	}
	d.w.Spec = &spec
}

// storage is the settings in force and their cap in bytes.
func (d *draft) storage() (kurabe.InstanceSettings, int64) {
	wanted := d.w.Spec.Wanted(d.status.AppliedNext)
	return wanted, wanted.Limits().StorageBytes
}

// watchCap compares what is occupied with the cap.
func (d *draft) watchCap(r *kurabe.InstanceReport) {
	h := &d.status.Storage
	wanted, limit := d.storage()
	percent := int(r.UsedBytes * 100 / limit)
	switch {
	case percent >= storageFull && h.FullGiB == 0:
		h.FullGiB = wanted.StorageGiB
		d.tell(event.StorageExhausted.And(" (" + used(r, limit) + ")"))
		d.tell(event.StorageFull.And(". You can increase the allocated storage to address this issue."))
	case percent >= storageLow && d.status.StorageAlarm == 0:
		d.status.StorageAlarm = storageLow
		d.tell(event.StorageLow.With(d.w.Spec.EffectiveName(d.status.AppliedNext), max(100-percent, 0),
			kurabe.FormatBytes(limit), kurabe.FormatBytes(max(limit-r.UsedBytes, 0))))
	case percent < storageAgain && h.FullGiB > 0,
		percent < storageFull && h.FullGiB > 0 && wanted.StorageGiB > h.FullGiB: // growth is enough, however little
		h.FullGiB = 0
	case percent < storageCalm && d.status.StorageAlarm == storageLow:
		d.status.StorageAlarm = 0
	}
}

// watchDisk obeys the host when its disk has no room for the instance to run.
func (d *draft) watchDisk(r *kurabe.InstanceReport) {
	h, room := &d.status.Storage, r.OutOfRoom()
	// A host that is obeying an order has yet to look: a writer that leaves does so until then.
	leaves := r.LacksRoom() != "" || !r.Done && !h.HandOverBy.IsZero()
	switch {
	case leaves && !h.DiskFull && d.next.Goal == kurabe.GoalRunning && d.leavesDisk():
		d.because("another server takes over: its host's disk is full, or nearly so")
	case room != "" && !h.DiskFull && d.next.Goal == kurabe.GoalRunning:
		h.DiskFull, h.HandOverBy = true, time.Time{}
		d.tell(event.StorageFull.And(": " + room + ". It is started again when there is room."))
	case room == "" && r.Done: // a look that came to its end would have said so
		h.DiskFull, h.HandOverBy = false, time.Time{}
	}
}

// keepStopped takes the outcome over into goal and alarm.
func (d *draft) keepStopped(r *kurabe.InstanceReport) {
	h := &d.status.Storage
	_, limit := d.storage()
	why := ""
	switch {
	case h.FullGiB > 0:
		why = "its storage is full: " + used(r, limit)
	case h.DiskFull:
		why = "the disk of its host is full"
	}
	if why != "" {
		d.status.StorageAlarm = storageFull
		if d.next.Goal == kurabe.GoalRunning {
			d.because(why)
			d.next.Goal = kurabe.GoalStopped
		}
		return
	}
	if d.status.StorageAlarm < storageFull {
		return
	}
	d.status.StorageAlarm = 0
	if r.UsedBytes*100 >= limit*storageCalm {
		d.status.StorageAlarm = storageLow
	}
	if d.next.Goal == kurabe.GoalRunning {
		d.status.Action = kurabe.StateStarting
	}
}

func used(r *kurabe.InstanceReport, limit int64) string {
	return fmt.Sprintf("%s of %s", kurabe.FormatBytes(r.UsedBytes), kurabe.FormatBytes(limit))
}
