package plan

import (
	"fmt"
	"slices"
	"time"

	"kurabe"
	"kurabe/internal/event"
)

// Percentages of AllocatedStorage. Source: the RDS user guide, events 0089
// (more than 90 % used) and 0007 (full).
const (
	storageLow  = 90
	storageFull = 100
	// storageCritical is where users are told that the end is near.
	storageCritical = 95
	storageCalm     = 85 // below this the low-storage alarm is over
	storageAgain    = 95 // below this a full instance runs again
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
	case percent >= storageCritical && d.status.StorageAlarm == storageLow:
		d.status.StorageAlarm = storageCritical
		d.tell(event.StorageCritical.With(d.w.Spec.EffectiveName(d.status.AppliedNext), max(100-percent, 0),
			kurabe.FormatBytes(limit), kurabe.FormatBytes(max(limit-r.UsedBytes, 0)), kurabe.FormatBytes(1)))
	case percent < storageAgain && h.FullGiB > 0,
		percent < storageFull && h.FullGiB > 0 && wanted.StorageGiB > h.FullGiB: // growth is enough, however little
		h.FullGiB = 0
	case percent < storageCalm && d.status.StorageAlarm < storageFull:
		d.status.StorageAlarm = 0
	}
}

// watchDisk obeys the host when its disk has no room for the instance to run.
func (d *draft) watchDisk(r *kurabe.InstanceReport) {
	h, room := &d.status.Storage, r.OutOfRoom()
	// A host that is obeying an order has yet to look: a primary that leaves does so until then.
	leaves := r.LacksRoom() != "" || !r.Done && !h.HandOverBy.IsZero()
	switch {
	case leaves && !h.DiskFull && d.next.Goal == kurabe.GoalRunning && d.mayLeaveFullDisk():
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

// The rule of storage autoscaling. Source: the RDS user guide, "Managing capacity
// automatically with Amazon RDS storage autoscaling" (USER_PIOPS.Autoscaling): at
// most 10 percent are free, for at least five minutes, and at least six hours have
// passed since the last storage modification; the step is the greatest of 10 GiB, 10
// percent and the growth predicted for 7 hours from the past hour.
const (
	scaleLowFor    = 5 * time.Minute
	scaleCalmFor   = 6 * time.Hour
	scaleStepGiB   = 10
	scaleHours     = 7
	scaleWarnOfMax = 80 // percent of the maximum from which event 0225 says so
	sampleEvery    = 10 * time.Minute
	sampleBytesMin = 16 << 20 // less is not worth a write of the status
	growthLookback = time.Hour
)

// planScaling lets the storage grow by itself, up to MaxAllocatedStorage.
func (d *draft) planScaling(r *kurabe.InstanceReport) {
	h := &d.status.Storage
	if h.Scaling && r.Done && r.Generation == d.w.Assignment.Generation {
		h.Scaling = false
		d.tell(event.AutoscalingDone)
	}
	if d.w.Spec.MaxStorageGiB == 0 {
		h.Samples, h.LowSince, h.Blocked = nil, time.Time{}, ""
		return
	}
	d.sample(r.UsedBytes)
	if _, limit := d.storage(); r.UsedBytes*10 < limit*9 {
		h.LowSince, h.Blocked = time.Time{}, ""
		return
	}
	if h.LowSince.IsZero() {
		h.LowSince = d.w.Now
	}
	if at := h.LowSince.Add(scaleLowFor); d.w.Now.Before(at) {
		d.lookAgain(at)
		return
	}
	// Something else is being done, or the user stopped it: AWS's event 0219 calls
	// these states invalid and tries again later.
	if d.status.Action != "" || d.next.Goal != kurabe.GoalRunning {
		return
	}
	d.scale(r.UsedBytes)
}

// scale chooses the next size, or says why there is none.
func (d *draft) scale(usedBytes int64) {
	h := &d.status.Storage
	wanted, _ := d.storage()
	maxGiB := d.w.Spec.MaxStorageGiB
	diskGiB := d.diskGiB()
	if wanted.StorageGiB >= maxGiB {
		d.blocked(event.AutoscalingStuck.With(fmt.Sprintf("the maximum storage threshold of %d GiB is reached.", maxGiB)))
		return
	}
	if at := h.ChangedAt.Add(scaleCalmFor); !h.ChangedAt.IsZero() && d.w.Now.Before(at) {
		d.lookAgain(at)
		d.blocked(event.AutoscalingWaits.And(", until " + at.UTC().Format(time.RFC3339) + ". No actions are necessary. Autoscaling will retry after the cooling-off period."))
		return
	}
	if diskGiB > 0 && wanted.StorageGiB >= diskGiB {
		d.blocked(event.AutoscalingStuck.With(fmt.Sprintf("the disk of the host has only %d GiB.", diskGiB)))
		return
	}
	wish := wanted.StorageGiB + d.scaleStep(wanted.StorageGiB, usedBytes)
	next := min(wish, maxGiB)
	if diskGiB > 0 {
		next = min(next, diskGiB)
	}
	d.because(fmt.Sprintf("storage autoscaling: %d GiB to %d GiB", wanted.StorageGiB, next))
	d.tell(event.AutoscalingBegun)
	if wish >= maxGiB {
		d.tell(event.AutoscalingEnds)
	}
	if next*100 >= maxGiB*scaleWarnOfMax {
		d.tell(event.AutoscalingNearsEnd.With(next, maxGiB))
	}
	h.ScaledGiB, h.Scaling, h.ChangedAt = next, true, d.w.Now
	h.LowSince, h.Blocked = time.Time{}, ""
	d.scaleSpec()
	// Taken over here, so that it is not announced as the user's change as well.
	d.status.Applied = d.status.Applied.WithStorage(next)
	d.acting(false, kurabe.StateModifying, "more storage")
}

// blocked says once for each time that storage is low why it does not grow.
func (d *draft) blocked(kind event.Kind) {
	d.because(kind.Text)
	if d.status.Storage.Blocked != kind.ID {
		d.status.Storage.Blocked = kind.ID
		d.tell(kind)
	}
}

// scaleStep is by how many GiB to grow.
func (d *draft) scaleStep(gib int, usedBytes int64) int {
	predicted := scaleHours * d.grownLastHour(usedBytes)
	return max(scaleStepGiB, (gib+9)/10, int((predicted+kurabe.GiB-1)/kurabe.GiB))
}

// grownLastHour is by how many bytes the instance grew in the past hour, or since
// it is sampled. A shorter time is not taken for an hour: one quick load of data
// would allocate what nobody can take back.
func (d *draft) grownLastHour(usedBytes int64) int64 {
	samples := d.status.Storage.Samples
	if len(samples) == 0 {
		return 0
	}
	from := samples[0]
	for _, s := range samples {
		if !s.At.After(d.w.Now.Add(-growthLookback)) {
			from = s
		}
	}
	return max(0, usedBytes-from.UsedBytes)
}

// sample remembers what is occupied, seldom: each sample is a write of the status.
func (d *draft) sample(usedBytes int64) {
	h, now := &d.status.Storage, d.w.Now
	if n := len(h.Samples); n > 0 {
		last := h.Samples[n-1]
		if diff := usedBytes - last.UsedBytes; now.Sub(last.At) < sampleEvery || diff < sampleBytesMin && diff > -sampleBytesMin {
			return
		}
	}
	samples := slices.Clone(h.Samples)
	for len(samples) > 1 && !samples[1].At.After(now.Add(-growthLookback)) {
		samples = samples[1:]
	}
	h.Samples = append(samples, kurabe.StorageSample{At: now, UsedBytes: usedBytes})
}

// diskGiB is the size of the host's disk, 0 when it is not known.
func (d *draft) diskGiB() int {
	for _, h := range d.w.Hosts {
		if h.Host == d.next.Host {
			return int(h.StorageBytes / kurabe.GiB)
		}
	}
	return 0
}
