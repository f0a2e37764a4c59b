package agent

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"kurabe"
	"kurabe/internal/agent/unit"
	"kurabe/internal/engine"
	"kurabe/internal/logkey"
)

// The watch of the disk. diskLook is how often its free space is read (a call of a
// microsecond). An instance is walked when the free space has moved by half of what
// it may still take before its next mark, but by walkMove at least: the nearer, the
// oftener, and a primary at full speed is seen within diskLook. walkShare bounds the
// cost: after a walk of t the next one begins walkShare*t later at the earliest, so
// all walks together take less than a twentieth of one core.
const (
	diskLook  = time.Second
	walkMove  = 16 << 20
	walkShare = 20
)

// An instance grows, as far as a full disk is concerned, from growthMin bytes a
// second on, measured no longer ago than growthAge.
const (
	growthMin = 256 << 10
	growthAge = time.Minute
)

// diskEnd is what is left at the end of a disk: two segments of PostgreSQL's log. Where an eighth
// of the reserve is less, it is that.
const diskEnd = 32 << 20

// diskWatch is what the watch of the disk remembers. Only its goroutine uses it.
type diskWatch struct {
	agent   *Agent
	free    int64 // at the last look, negative before the first
	fall    int64 // by how much it fell in the last look
	restTil time.Time
	full    bool // instances are kept from running
	ends    bool // next to nothing can be written
	since   time.Time
	told    string // the newest trouble with the reserve that was logged
}

// watchDisk keeps every instance below its cap, and all of them off the end of
// their disk, by waking the workers whose instance has news.
func (a *Agent) watchDisk(ctx context.Context) {
	if a.Free == nil {
		return
	}
	d := &diskWatch{agent: a, free: -1}
	for d.look(); unit.Wait(ctx, diskLook); d.look() {
	}
}

// watched is one instance in a look.
type watched struct {
	*worker
	a kurabe.Assignment
}

func (a *Agent) watched() []watched {
	var list []watched
	for _, w := range a.workers.List() {
		if assignment, known := w.Assignment(); known && assignment.Limits.StorageBytes > 0 {
			list = append(list, watched{w, assignment})
		}
	}
	return list
}

func (d *diskWatch) look() {
	list := d.agent.watched()
	if len(list) == 0 {
		return
	}
	free := d.agent.Free()
	if free < 0 {
		return // each worker measures at each look then
	}
	moved := int64(0)
	if d.free >= 0 {
		moved, d.fall = max(free-d.free, d.free-free), max(0, d.free-free)
	}
	d.free = free
	reserve := d.agent.reserve()
	if reserve != nil {
		d.keepReserve(reserve)
	}
	for _, w := range list {
		w.usage.mu.Lock()
		w.usage.stir += moved
		w.usage.mu.Unlock()
	}
	d.walk(list)
	d.chooseStopped(list)
	d.noteFullDisk(list)
}

// reserve is that of the instances' disk, nil when no engine here knows one.
func (a *Agent) reserve() engine.Reserve {
	for _, e := range a.Engines {
		if reserve, err := e.Reserve(); err == nil {
			return reserve
		}
	}
	return nil
}

// keepReserve judges the disk. When one reserve's worth of free space is left beside
// the reserve (more while it falls fast, at most two), it is full: growing instances
// are to stop. At a quarter the reserve is given up, so that they can. With two free
// and the reserve made again, which takes three, it is full no more.
func (d *diskWatch) keepReserve(r engine.Reserve) {
	size, held := r.Bytes(), r.Held()
	log := func(what string, err error) {
		if text := fmt.Sprint(what, err); text != d.told {
			d.told = text
			d.agent.Log.Warn(what, "free_bytes", d.free, logkey.Error, err)
		}
	}
	switch {
	case held && d.free < size/4:
		log("disk full: the reserve of disk space was released", r.Free())
		held = false
	case !held && d.free >= 3*size:
		err := r.Make()
		if held = err == nil; held {
			d.free -= size // ours is no movement of an instance
		} else {
			log("could not reserve disk space", err)
			held = true // the best that there is
		}
	}
	room := d.free
	if !held {
		room -= size // it comes first
	}
	switch {
	case !d.full && room < size+min(2*d.fall, size):
		d.full, d.since = true, d.agent.Now()
	case d.full && room >= 2*size:
		d.full = false
	}
	end := min(size/8, diskEnd)
	d.ends = !held && (d.free < end || d.ends && d.free < 2*end)
}

// noteFullDisk tells the workers whether the disk can be written at all. A server that cannot
// write does not grow, so chooseStopped keeps nobody from running for its sake.
func (d *diskWatch) noteFullDisk(list []watched) {
	for _, w := range list {
		w.usage.mu.Lock()
		news := w.usage.ends != d.ends
		w.usage.ends = d.ends
		w.usage.mu.Unlock()
		if news {
			w.Wake()
		}
	}
}

func (u *usage) diskEnds() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.ends
}

// walk measures the instances that may be near a mark, the most urgent first.
func (d *diskWatch) walk(list []watched) {
	type due struct {
		watched
		urgency float64
	}
	var walks []due
	for _, w := range list {
		if w.a.Goal != kurabe.GoalRunning {
			continue
		}
		w.usage.mu.Lock()
		bytes, stir, measured := w.usage.bytes, w.usage.stir, !w.usage.at.IsZero()
		w.usage.mu.Unlock()
		need := max(walkMove, markAhead(bytes, w.a.Limits.StorageBytes)/2)
		if d.full {
			need = growthMin // who grows must be known now
		}
		if measured && stir >= need {
			walks = append(walks, due{w, float64(stir) / float64(need)})
		}
	}
	slices.SortFunc(walks, func(a, b due) int { return cmp.Compare(b.urgency, a.urgency) })
	for _, w := range walks {
		began := d.agent.Now()
		if began.Before(d.restTil) {
			return
		}
		used, err := d.agent.Usage(w.ID)
		now := d.agent.Now()
		d.restTil = now.Add(walkShare * now.Sub(began))
		if err != nil {
			continue // the worker's own look says so
		}
		before := w.usage.measured(used, now, d.free)
		if crosses(before, used, w.a.Limits.StorageBytes) || max(used-before, before-used) >= usageNews {
			w.Wake()
		}
	}
}

// chooseStopped chooses the instances that must not run while the disk is full: all that are
// stopped, and of the running ones, one after the other, those over their cap first, then the
// fastest growing. With next to no space left all that grow stop at once. The servers of one
// instance stop together, since each writes what the others write.
func (d *diskWatch) chooseStopped(list []watched) {
	urgent, leaving := false, false
	if r := d.agent.reserve(); r != nil {
		urgent = d.free < r.Bytes()/2
	}
	picked := map[kurabe.InstanceID]bool{}
	for _, w := range list {
		w.usage.mu.Lock()
		picked[w.ID.Owner()] = picked[w.ID.Owner()] || w.usage.room != ""
		w.usage.mu.Unlock()
	}
	var grow []watched
	for _, w := range list {
		switch running := w.a.Goal == kurabe.GoalRunning; {
		case !d.full || !running:
			d.setMayRun(w, d.full)
		case picked[w.ID.Owner()]:
			leaving = true
			d.setMayRun(w, true)
		case w.grows(d.agent.Now()):
			grow = append(grow, w)
		default:
			d.setMayRun(w, false)
		}
	}
	slices.SortFunc(grow, func(a, b watched) int { return cmp.Compare(b.weight(), a.weight()) })
	for _, w := range grow {
		d.setMayRun(w, urgent || !leaving && w.ID.Owner() == grow[0].ID.Owner())
	}
}

// setMayRun notes whether an instance may run, and wakes its worker when that is new.
func (d *diskWatch) setMayRun(w watched, full bool) {
	room := ""
	if full {
		room = "The disk of host " + string(d.agent.Host) + " is nearly full"
	}
	w.usage.mu.Lock()
	news := w.usage.room != room
	w.usage.room, w.usage.watched = room, true
	if news {
		w.usage.roomAt = d.since
	}
	w.usage.mu.Unlock()
	if news {
		w.Wake()
	}
}

// grows says whether the instance takes space, or more than is its own.
func (w watched) grows(now time.Time) bool {
	u := &w.usage
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.bytes >= w.a.Limits.StorageBytes || u.rate >= growthMin && now.Sub(u.at) < growthAge
}

// overCap outweighs every rate.
const overCap = 1e15

// weight orders instances: the heaviest leaves a full disk first.
func (w watched) weight() float64 {
	u := &w.usage
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.bytes >= w.a.Limits.StorageBytes {
		return overCap + u.rate
	}
	return u.rate
}

// roomBeforeWatch judges the disk for a worker that observes before the watch has: a stopped
// instance stays stopped on a full disk.
func (a *Agent) roomBeforeWatch(assignment kurabe.Assignment, free int64) string {
	if a.Free == nil || free < 0 || assignment.Goal != kurabe.GoalStopped {
		return ""
	}
	if r := a.reserve(); r == nil || free >= 2*r.Bytes() {
		return ""
	}
	return "The disk of host " + string(a.Host) + " is nearly full"
}
