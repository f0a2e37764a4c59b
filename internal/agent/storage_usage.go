package agent

import (
	"sync"
	"time"

	"kurabe"
)

// What an instance occupies is measured by a walk over its files, which is most
// of an idle service's work. While the free space of the disk has hardly moved,
// no instance can have grown, and the last figure holds.
const (
	usageMove = 64 << 20
	usageAge  = 10 * time.Minute
	usagePace = 20 * time.Second // less than a look, far more than a walk
)

// Percentages of the cap at which users are told something: a report of one is
// never held back as too small a change.
var usageMarks = []int64{90, 100}

// usage is what is known of the space that one instance occupies. Its worker and
// the watch of the disk share it.
type usage struct {
	mu    sync.Mutex // guards all below
	bytes int64
	at    time.Time // when bytes was measured, zero: never
	free  int64     // of the disk at that moment
	// stir is how many bytes the free space has moved since, up and down: what one
	// instance takes while another gives it back counts.
	stir int64
	rate float64 // bytes a second between the two newest measures
	room string  // why the instance must not run, as the watch of the disk has it
	// roomAt is since when. watched says that the watch has looked at all.
	roomAt  time.Time
	watched bool
	ends    bool // so does the disk
}

// measure learns what the instance occupies, and whether there is room for it.
func (w *worker) measure(a kurabe.Assignment) {
	u := &w.usage
	now, free := w.agent.Now(), int64(0)
	if w.agent.Free != nil {
		free = w.agent.Free()
	}
	switch {
	case w.agent.Free != nil && free >= 0 && !u.stale(now, free):
	case a.Role == nil:
		w.walk(a, free)
	default:
		w.walkAside(a, free)
	}
	u.mu.Lock()
	if crosses(w.used, u.bytes, a.Limits.StorageBytes) {
		w.Unsent = true
	}
	w.used = u.bytes
	if !u.watched {
		u.room, u.roomAt = w.agent.roomBeforeWatch(a, free), now
	}
	u.mu.Unlock()
	w.noteLackOfRoom()
}

// walk looks through the files, and says whether the figure is news. The watch of the disk
// must not wait for that, so nothing is held meanwhile.
func (w *worker) walk(a kurabe.Assignment, free int64) (news bool) {
	used, err := w.agent.Usage(a.Instance)
	if err != nil {
		return false
	}
	before := w.usage.measured(used, w.agent.Now(), free)
	return usageIsNews(before, used, a.Limits.StorageBytes)
}

// usageIsNews says whether a figure of what is occupied is to be told.
func usageIsNews(before, used, limit int64) bool {
	return (before == 0) != (used == 0) || crosses(before, used, limit) || max(used-before, before-used) >= usageNews
}

// walkAside is walk for a server of a group, which must obey and be told of also while its
// files are slow. The figure counts at the next look.
func (w *worker) walkAside(a kurabe.Assignment, free int64) {
	if !w.walking.CompareAndSwap(false, true) {
		return
	}
	w.agent.host.Wait.Go(func() {
		news := w.walk(a, free)
		w.walking.Store(false)
		if news {
			w.Wake()
		}
	})
}

// noteLackOfRoom makes a failure of a known lack of disk space.
func (w *worker) noteLackOfRoom() {
	u := &w.usage
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.room != "" {
		w.Failure = &kurabe.Failure{Kind: kurabe.FailureStorage, Step: kurabe.StepKeepRoom, Message: u.room, Attempts: 1, At: u.roomAt.UTC()}
	}
}

// stale says whether the figure may be wrong.
func (u *usage) stale(now time.Time, free int64) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	age := now.Sub(u.at)
	if age >= usageAge {
		return true
	}
	// What the watch has just measured is not measured again: it woke us for it.
	return max(u.stir, free-u.free, u.free-free) >= usageMove && (!u.watched || age >= usagePace)
}

// measured takes a figure over and returns the one before.
func (u *usage) measured(used int64, now time.Time, free int64) (before int64) {
	u.mu.Lock()
	defer u.mu.Unlock()
	before, u.rate = u.bytes, 0
	if past := now.Sub(u.at).Seconds(); !u.at.IsZero() && past > 0 {
		u.rate = float64(used-u.bytes) / past
	}
	u.bytes, u.at, u.free, u.stir = used, now, free, 0
	return before
}

// crosses says whether a mark of the cap lies between two figures.
func crosses(before, after, limit int64) bool {
	for _, percent := range usageMarks {
		if mark := limit / 100 * percent; limit > 0 && (before < mark) != (after < mark) {
			return true
		}
	}
	return false
}

// markAhead is how many bytes lie between what is occupied and the next mark.
func markAhead(used, limit int64) int64 {
	for _, percent := range usageMarks {
		if mark := limit / 100 * percent; used < mark {
			return mark - used
		}
	}
	return 0
}
