package snapshot

import (
	"context"
	"slices"
	"time"

	"kurabe"
	"kurabe/internal/agent/unit"
	"kurabe/internal/logkey"
)

// A snapshot that shares its blocks comes to own them as its source is written to, so
// the free space of the disk moves by as much. Each is looked at again when that has
// moved by spaceMove since, but not within spacePace. XFS takes the space when a
// page is dirtied and parts the blocks when it is written back, half a minute later:
// after a look for such a move, or one that found another figure, comes one more after
// spaceSettle. And each is looked at every spaceAge in any case: a source that is
// removed leaves its blocks to the snapshot without any free space moving. The looks
// follow one another and each is slow by itself.
const (
	spaceTick   = 5 * time.Second
	spacePace   = 30 * time.Second
	spaceSettle = time.Minute
	spaceAge    = 10 * time.Minute
	spaceMove   = 64 << 20
	// spacePercent of the figure told last is no news either.
	spacePercent = 5
)

// spaceNews says whether a figure differs from the one told last by so much that it
// is told.
func spaceNews(told, now int64) bool {
	return max(now-told, told-now) > max(spaceMove, told/100*spacePercent)
}

// spaceLook is what is remembered of the newest look at one snapshot.
type spaceLook struct {
	at    time.Time
	bytes int64 // what it occupied
	again bool  // there may be more to see soon
	stir  int64 // bytes that the free space has moved since, up and down
}

// due says whether it is time for the next look.
func (l spaceLook) due(now time.Time) bool {
	age := now.Sub(l.at)
	return age >= spaceAge || l.again && age >= spaceSettle || l.stir >= spaceMove && age >= spacePace
}

// spaceWatch looks at what snapshots occupy. Only its goroutine uses it.
type spaceWatch struct {
	set   *Set
	free  int64 // at the last tick, negative while it cannot be told
	looks map[kurabe.SnapshotID]spaceLook
}

// WatchSpace has the figures of all snapshots follow the disk until ctx ends.
func (s *Set) WatchSpace(ctx context.Context) {
	if s.Folders == nil {
		return
	}
	w := &spaceWatch{set: s, free: -1, looks: map[kurabe.SnapshotID]spaceLook{}}
	for more := true; more; more = unit.Wait(ctx, spaceTick) {
		for _, u := range w.due() {
			w.look(ctx, u)
		}
	}
}

// due lists the snapshots to look at, those first that were not looked at the longest.
func (w *spaceWatch) due() []*worker {
	now, moved := w.set.Host.Now(), w.moved()
	looks := map[kurabe.SnapshotID]spaceLook{}
	var list []*worker
	for _, u := range w.set.List() {
		if a, known := u.Assignment(); !known || a.Goal == kurabe.SnapshotAbsent || u.whole() == nil {
			continue
		}
		l := w.looks[u.ID]
		l.stir += moved
		looks[u.ID] = l
		if l.due(now) {
			list = append(list, u)
		}
	}
	w.looks = looks
	slices.SortFunc(list, func(a, b *worker) int { return looks[a.ID].at.Compare(looks[b.ID].at) })
	return list
}

// moved is by how many bytes the free space moved since the last tick; where nobody
// can tell, it may have.
func (w *spaceWatch) moved() int64 {
	before := w.free
	w.free = -1
	if w.set.Free != nil {
		w.free = w.set.Free()
	}
	switch {
	case w.free < 0:
		return spaceMove
	case before < 0:
		return 0
	}
	return max(w.free-before, before-w.free)
}

func (w *spaceWatch) look(ctx context.Context, u *worker) {
	if ctx.Err() != nil {
		return
	}
	before := w.looks[u.ID]
	l := spaceLook{at: w.set.Host.Now(), bytes: before.bytes}
	bytes, err := w.set.Folders.Occupied(ctx, u.ID)
	if err == nil {
		l.bytes, l.again = bytes, before.stir >= spaceMove || bytes != before.bytes
	}
	w.looks[u.ID] = l
	if err != nil {
		u.Log.Debug("could not measure the snapshot's disk space", logkey.Error, err)
		return
	}
	u.occupies(bytes)
}

// occupies takes note of a look, and wakes the unit with news.
func (u *worker) occupies(bytes int64) {
	u.state.Lock()
	news := bytes > 0 && u.facts != nil && spaceNews(u.facts.OccupiedBytes, bytes)
	if news {
		u.own = bytes
	}
	u.state.Unlock()
	if news {
		u.Wake()
	}
}

// occupied is what is told of the space that a complete snapshot occupies, given what
// its record says, which is of the time when it was taken; 0 is that of one in the
// repository only. What was told last is on disk and stands until a look has news.
func (u *worker) occupied(recorded int64) int64 {
	u.state.Lock()
	defer u.state.Unlock()
	if recorded == 0 {
		return 0
	}
	told := recorded
	if u.facts != nil && u.facts.OccupiedBytes > 0 {
		told = u.facts.OccupiedBytes
	}
	if u.own > 0 && spaceNews(told, u.own) {
		told = u.own
	}
	return told
}
