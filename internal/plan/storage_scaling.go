package plan

import (
	"fmt"
	"slices"
	"time"

	"kurabe"
	"kurabe/internal/event"
)

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
