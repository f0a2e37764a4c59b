package snapshot

import (
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"kurabe/internal/engine/fake"
)

// What a host has can tell what it occupies.

const mib = 1 << 20

func TestOccupiedNews(t *testing.T) {
	for _, c := range []struct {
		told, now int64 // MiB
		want      bool
	}{
		{0, 64, false}, {0, 65, true}, {100, 36, false}, {100, 35, true},
		{10000, 10400, false}, {10000, 10510, true}, {10000, 9600, false}, {10000, 9400, true},
	} {
		if got := spaceNews(c.told*mib, c.now*mib); got != c.want {
			t.Errorf("%d MiB after %d MiB is news: %v", c.now, c.told, got)
		}
	}
}

// takenBed is a host with a snapshot that occupies fake.SnapshotBytes.
func takenBed(t *testing.T, test func(*snapshotBed)) {
	t.Helper()
	inSnapshotBubble(t, func(b *snapshotBed) {
		b.order(takeOf("snap-1", "db-1", 1))
		b.pass(2 * time.Minute)
		b.wantDone("snap-1", 1)
		test(b)
	})
}

func (b *snapshotBed) wantOccupied(bytes int64, reports int) {
	b.Helper()
	r := b.last("snap-1")
	if r.Facts.OccupiedBytes != bytes || !r.Done || r.Failure != nil || r.Facts.Percent != 100 {
		b.Errorf("reported %+v, want %d bytes", r, bytes)
	}
	if n := len(b.heard()); n != reports {
		b.Errorf("%d reports, want %d", n, reports)
	}
}

func TestGrownSnapshotIsToldOnce(t *testing.T) {
	takenBed(t, func(b *snapshotBed) {
		said := len(b.heard())
		b.folder.Gain("snap-1", 64*mib)
		b.pass(time.Hour)
		b.wantOccupied(fake.SnapshotBytes, said)
		b.folder.Gain("snap-1", mib)
		b.pass(spaceAge + spaceTick)
		b.wantOccupied(fake.SnapshotBytes+65*mib, said+1)
		b.pass(24 * time.Hour)
		b.wantOccupied(fake.SnapshotBytes+65*mib, said+1)
		b.folder.Gain("snap-1", -130*mib) // it shares them with what was restored from it
		b.pass(spaceAge + spaceTick)
		b.wantOccupied(fake.SnapshotBytes-65*mib, said+2)
	})
}

func TestOccupiedOutlivesARestart(t *testing.T) {
	takenBed(t, func(b *snapshotBed) {
		b.folder.Gain("snap-1", 500*mib)
		b.pass(spaceAge + spaceTick)
		b.stop()
		said := len(b.heard())
		b.start()
		b.pass(time.Hour)
		b.wantOccupied(fake.SnapshotBytes+500*mib, said+1) // a new service speaks once
		b.order(takeOf("snap-1", "db-1", 2))
		b.pass(time.Hour)
		b.wantOccupied(fake.SnapshotBytes+500*mib, said+2)
		if n := b.folder.Taken("snap-1"); n != 1 {
			b.Errorf("taken %d times", n)
		}
	})
}

// TestOccupiedFollowsTheDisk: while the disk stands still, nobody looks but now and
// then; when it moves, soon and not all the time.
func TestOccupiedFollowsTheDisk(t *testing.T) {
	var free atomic.Int64
	free.Store(100 << 30)
	takenBed(t, func(b *snapshotBed) {
		b.stop()
		b.free = free.Load
		b.start()
		b.pass(time.Minute)
		before := b.folder.OccupiedLooks()
		b.pass(time.Hour)
		if n := b.folder.OccupiedLooks() - before; n < 5 || n > 7 {
			b.Errorf("%d looks in an hour in which nothing happened", n)
		}
		before = b.folder.OccupiedLooks()
		for range 720 { // an hour
			free.Add(-spaceMove)
			b.pass(spaceTick)
		}
		if n := b.folder.OccupiedLooks() - before; n < 110 || n > 121 {
			b.Errorf("%d looks in an hour of writing", n)
		}
		b.folder.Gain("snap-1", 200*mib)
		free.Add(-200 * mib)
		b.pass(spacePace + 2*spaceTick)
		if got := b.last("snap-1").Facts.OccupiedBytes; got != fake.SnapshotBytes+200*mib {
			b.Errorf("told %d bytes soon after it grew", got)
		}
		b.pass(spaceAge + spaceTick)
		free.Add(-200 * mib)
		b.pass(spacePace + spaceTick) // what was dirtied is written back only now
		b.folder.Gain("snap-1", 200*mib)
		b.pass(spaceSettle + spaceTick)
		if got := b.last("snap-1").Facts.OccupiedBytes; got != fake.SnapshotBytes+400*mib {
			b.Errorf("told %d bytes when all was written back", got)
		}
	})
}

// TestOccupiedOfTheRepository: one that is only there occupies nothing here, whatever
// was told of its folder.
func TestOccupiedOfTheRepository(t *testing.T) {
	withArchive(t, func(b *snapshotBed, s *archivedSnapshots) {
		b.order(takeOf("snap-1", "db-1", 1))
		b.pass(2 * time.Hour)
		b.folder.Gain("snap-1", 500*mib)
		b.pass(spaceAge + spaceTick)
		if got := b.last("snap-1").Facts.OccupiedBytes; got != fake.SnapshotBytes+500*mib {
			b.Errorf("told %d bytes", got)
		}
		b.folder.Lose("snap-1")
		b.pass(24 * time.Hour)
		if r := b.last("snap-1"); r.Facts.OccupiedBytes != 0 || !r.Facts.Archived || !r.Done {
			b.Errorf("without a folder: %+v", r)
		}
	})
}

// TestOccupiedIsNearTheTruth writes and removes at random, with restarts in between:
// what is told is never far from what is, and each report is news.
func TestOccupiedIsNearTheTruth(t *testing.T) {
	for seed := range uint64(5) {
		takenBed(t, func(b *snapshotBed) {
			r := rand.New(rand.NewPCG(seed, 1))
			truth := int64(fake.SnapshotBytes)
			for range 100 {
				by := max((r.Int64N(1024)-400)*mib, 4096-truth)
				truth += by
				b.folder.Gain("snap-1", by)
				if r.IntN(8) == 0 {
					b.stop()
					b.start()
				}
				b.pass(spaceAge + spaceTick)
				if told := b.last("snap-1").Facts.OccupiedBytes; spaceNews(told, truth) {
					b.Fatalf("seed %d: told %d bytes, and it is %d", seed, told, truth)
				}
			}
			heard := b.heard()
			for n := 1; n < len(heard); n++ {
				if a, c := heard[n-1], heard[n]; a.Done && c.Done && a.Facts != c.Facts && !spaceNews(a.Facts.OccupiedBytes, c.Facts.OccupiedBytes) {
					b.Errorf("seed %d: %d bytes told after %d", seed, c.Facts.OccupiedBytes, a.Facts.OccupiedBytes)
				}
			}
		})
	}
}
