package logstream

import (
	"context"
	"errors"
	"fmt"
	"kurabe/internal/blob/blobtest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// TestFollow: a day of a server in virtual time.
func TestFollow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		repo := blobtest.NewMemory()
		b := newBed(t, quickDir(t), repo)
		b.server.write(100)
		b.start()
		time.Sleep(1500 * time.Millisecond)
		takenAt, from := b.server.snapshot()
		for range 30 {
			b.server.write(900)
			time.Sleep(700 * time.Millisecond)
		}
		b.server.rotate()
		b.server.write(10)
		time.Sleep(2 * time.Second)
		busy := time.Now().UTC()
		b.server.write(77)
		time.Sleep(3 * time.Second)

		l := b.log()
		if len(l.Runs) != 1 || l.Failure != "" || l.Runs[0].Ended != "" || time.Since(l.Last().At) > time.Second || l.Last().At.Nanosecond() != 0 {
			t.Fatalf("%+v", l)
		}
		if l.SpoolBytes == 0 || l.StoredBytes < l.SpoolBytes+20000 {
			t.Errorf("of 27,000 bytes %+v", l)
		}
		got := b.want(takenAt, from, busy)
		if got.After.At.Sub(busy) > time.Second || busy.Sub(got.Before.Until) > time.Second || got.Bytes <= 27000 || len(got.Files) != 2 {
			t.Errorf("%+v around %v", got, busy)
		}
		b.want(takenAt, from, l.Last().At)
		b.refuse(takenAt, from, l.Last().At.Add(1))
		b.refuse(takenAt, from, takenAt.Add(-1))
		b.refuse(takenAt.Add(-time.Hour), from, busy)

		// Idle: the mark moves, nothing else grows.
		time.Sleep(2 * time.Minute)
		quiet := time.Now().UTC()
		time.Sleep(surveyOther) // the sizes are known then
		stored := b.log().StoredBytes
		time.Sleep(time.Hour)
		if l = b.log(); time.Since(l.Last().At) > time.Second || l.StoredBytes != stored || l.SpoolBytes != 0 {
			t.Errorf("after an idle stretch: %+v, %d stored before", l, stored)
		}
		if got = b.want(takenAt, from, quiet); got.Before.Position != got.After.Position {
			t.Errorf("in an idle stretch: %+v", got)
		}
		if b.store.instances[db].spoolBytes > 100<<10 {
			t.Errorf("%d bytes of spool for an idle server", b.store.instances[db].spoolBytes)
		}
		if b.server.freed.Compare(l.Last().Position) != 0 {
			t.Errorf("released %v instead of %v", b.server.freed, l.Last().Position)
		}
		b.stop()
		b.start() // goes on where it was
		b.server.write(5)
		time.Sleep(2 * time.Second)
		if l = b.log(); len(l.Runs) != 1 || time.Since(l.Last().At) > time.Second {
			t.Errorf("after a restart: %+v", l)
		}
		b.want(takenAt, from, l.Last().At)
		b.stop()
	})
}

// TestGaps: each ends the run with its reason, and a new one begins.
func TestGaps(t *testing.T) {
	for name, c := range map[string]struct {
		do   func(*bed)
		want string
	}{
		"the server lost its log": {func(b *bed) {
			b.stop()
			b.server.write(10)
			b.server.rotate()
			b.server.set(func() { b.server.oldest = 1 })
			b.start()
		}, "the server no longer has its log from 00000000:5000 on"},
		"the clock went back": {func(b *bed) {
			b.server.set(func() { b.server.clock -= 1100 * time.Millisecond; b.server.epoch++ })
			time.Sleep(time.Second)
			b.server.set(func() { b.server.clock -= time.Hour })
		}, "the clock went back from "},
		"a piece is missing": {func(b *bed) {
			time.Sleep(2 * time.Minute)
			for info := range b.repo.List(context.Background(), "") {
				if !strings.HasSuffix(info.Name, ".marks") {
					_ = b.repo.Delete(context.Background(), info.Name)
					break
				}
			}
			time.Sleep(surveyOther)
		}, "is missing in the repository"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBed(t, quickDir(t), blobtest.NewMemory())
				b.start()
				time.Sleep(1500 * time.Millisecond)
				b.server.write(2500)
				time.Sleep(2 * time.Second)
				takenAt, from := b.server.snapshot()
				b.server.write(2500)
				time.Sleep(2 * time.Second)
				c.do(b)
				time.Sleep(3 * time.Second)
				b.server.write(10)
				time.Sleep(3 * time.Second)
				l := b.log()
				if n := len(l.Runs); n < 1 || l.Runs[n-1].Ended != "" || name != "a piece is missing" && (n < 2 || !strings.Contains(l.Runs[0].Ended, c.want)) {
					t.Fatalf("%+v", l)
				}
				if name == "a piece is missing" {
					b.refuse(takenAt, from, takenAt)
				} else {
					b.want(takenAt, from, l.Runs[0].Last.At)
				}
				takenAt, from = b.server.snapshot()
				time.Sleep(2 * time.Second)
				b.want(takenAt, from, takenAt)
				before := l.Runs
				b.stop()
				b.start() // what was is known again
				time.Sleep(2 * time.Second)
				l = b.log()
				if len(l.Runs) != len(before) || l.Runs[0].Ended != before[0].Ended {
					t.Errorf("%+v\nafter a restart\n%+v", before, l.Runs)
				}
				b.stop()
			})
		})
	}
}

// TestRepositoryAway: the spool takes the log while there is room, then the run ends;
// a new one begins when the repository is back, and nothing claimed was lost.
func TestRepositoryAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var away atomic.Bool
		repo := blobtest.NewMemory()
		repo.Faults = func(op, _ string) blobtest.Fault {
			if away.Load() && op == "put" {
				return blobtest.Fault{Err: errors.New("full")}
			}
			return blobtest.Fault{}
		}
		b := newBed(t, quickDir(t), repo)
		b.cfg.InstanceBytesMax = 64 << 10
		b.start()
		time.Sleep(2 * time.Second)
		takenAt, from := b.server.snapshot()
		away.Store(true)
		for range 12 {
			b.server.write(4000)
			time.Sleep(time.Second)
		}
		time.Sleep(2 * time.Second)
		l := b.log()
		if len(l.Runs) != 1 || !strings.Contains(l.Failure, "full") || time.Since(l.Last().At) > time.Second {
			t.Fatalf("%+v", l)
		}
		b.want(takenAt, from, l.Last().At) // out of the spool
		for range 20 {
			b.server.write(4000)
			time.Sleep(time.Second)
		}
		l = b.log()
		if len(l.Runs) != 1 || !strings.Contains(l.Runs[0].Ended, "the spool is full: the repository: ") || b.store.spoolBytes > b.cfg.InstanceBytesMax {
			t.Fatalf("%d bytes, %+v", b.store.spoolBytes, l)
		}
		if !strings.Contains(l.Failure, "waiting for room in the spool: the repository: ") {
			t.Errorf("failure %q", l.Failure)
		}
		time.Sleep(10 * time.Second)
		if b.server.freed != b.server.position() {
			t.Errorf("the server may drop up to %v only, of %v", b.server.freed, b.server.position())
		}
		b.want(takenAt, from, l.Runs[0].Last.At)
		away.Store(false)
		time.Sleep(3 * time.Minute)
		b.server.write(9)
		time.Sleep(2 * time.Second)
		l = b.log()
		if len(l.Runs) != 2 || l.Runs[1].Ended != "" || l.Failure != "" || time.Since(l.Last().At) > time.Second {
			t.Fatalf("%+v", l)
		}
		b.want(takenAt, from, l.Runs[0].Last.At)
		b.stop()
	})
}

// TestSessions: a session that breaks costs no gap; what stands still is told.
func TestSessions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBed(t, quickDir(t), blobtest.NewMemory())
		b.server.record = 700
		b.start()
		time.Sleep(2 * time.Second)
		takenAt, from := b.server.snapshot()
		for n := range 40 {
			b.server.write(int64(n))
			b.server.set(func() { b.server.failing = n % 4 })
			time.Sleep(1300 * time.Millisecond)
		}
		time.Sleep(20 * time.Second)
		if l := b.log(); len(l.Runs) != 1 || l.Failure != "" || time.Since(l.Last().At) > time.Second {
			t.Fatalf("%+v", l)
		}
		b.want(takenAt, from, b.log().Last().At)
		b.server.set(func() { b.server.failing = 1 << 30 })
		time.Sleep(silenceMax + 2*time.Second)
		if l := b.log(); !strings.Contains(l.Failure, "the server does not answer") {
			t.Errorf("failure %q", l.Failure)
		}
		b.server.set(func() { b.server.failing = 0 })
		time.Sleep(20 * time.Second)
		if l := b.log(); len(l.Runs) != 1 || l.Failure != "" {
			t.Errorf("%+v", l)
		}
		b.stop()
	})
}

// TestTrim: exactly what no snapshot of that moment or later needs.
func TestTrim(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := context.Background()
		b := newBed(t, quickDir(t), blobtest.NewMemory())
		b.start()
		time.Sleep(1500 * time.Millisecond)
		snaps := b.twoRuns()
		last := b.log().Last()
		for _, keep := range snaps {
			reached := map[int]bool{}
			for n, s := range snaps {
				_, reached[n] = b.log().Reaches(s.at, s.from)
			}
			if err := b.store.Trim(ctx, db, keep.at); err != nil {
				t.Fatal(err)
			}
			for n, s := range snaps {
				if mark, ok := b.log().Reaches(s.at, s.from); ok {
					b.want(s.at, s.from, mark.At)
				} else if !s.at.Before(keep.at) && reached[n] {
					t.Fatalf("%+v is needed from %v on; left is %+v", s, keep.at, b.log())
				} else {
					b.refuse(s.at, s.from, s.at)
				}
			}
			for _, r := range b.log().Runs {
				if r.Ended != "" && r.Last.At.Before(keep.at) {
					t.Fatalf("the run that ended before %v is there: %+v", keep.at, r)
				}
			}
			b.onlyKnown()
		}
		first := b.log().Runs[0].First
		if keep := snaps[len(snaps)-1]; keep.from.File != first.Position.File || len(b.log().Runs) != 1 {
			t.Errorf("a file before %+v is kept: %+v", keep, b.log())
		}
		b.stop()
		b.start()
		time.Sleep(3 * time.Second)
		if l := b.log(); l.Runs[0].First != first || l.Last().At.Before(last.At) {
			t.Errorf("after a restart %+v instead of %+v", l, first)
		}
		if err := b.store.Remove(ctx, db); !errors.Is(err, ErrFollowed) {
			t.Errorf("Remove while it is followed: %v", err)
		}
		b.stopFollow()
		if err := b.store.Remove(ctx, db); err != nil {
			t.Fatal(err)
		}
		if _, ok := b.store.Log(db); ok || b.store.spoolBytes != 0 {
			t.Errorf("%d bytes left", b.store.spoolBytes)
		}
		b.onlyKnown()
		b.stopRun()
	})
}

// twoRuns lives for a while, with a gap in the middle, and takes snapshots.
func (b *bed) twoRuns() (snaps []snap) {
	for n := range 24 {
		at, from := b.server.snapshot()
		snaps = append(snaps, snap{at, from})
		b.server.write(1500)
		if n%4 == 3 {
			b.server.rotate()
		}
		if n == 11 {
			time.Sleep(2 * time.Second)
			b.server.set(func() { b.server.oldest = len(b.server.ends) })
			b.server.rotate()
			b.stop()
			b.start()
		}
		time.Sleep(1700 * time.Millisecond)
	}
	time.Sleep(2 * time.Minute)
	if l := b.log(); len(l.Runs) != 2 {
		b.t.Fatalf("%+v", l)
	}
	return snaps
}

// onlyKnown says that the repository holds what the store knows and nothing else.
func (b *bed) onlyKnown() {
	b.t.Helper()
	var want, have []string
	if inst, ok := b.store.instances[db]; ok {
		for _, r := range inst.runs {
			for _, p := range r.pieces {
				if p.pushed {
					name := objectName(db, r.folder, p.span)
					want = append(want, name, name+marksSuffix)
				}
			}
		}
	}
	for info, err := range b.repo.List(context.Background(), "") {
		if err != nil {
			b.t.Fatal(err)
		}
		have = append(have, info.Name)
	}
	slices.Sort(want)
	if !slices.Equal(have, want) {
		b.t.Fatalf("objects\n%s\ninstead of\n%s", strings.Join(have, "\n"), strings.Join(want, "\n"))
	}
}

// TestTrimAtTheEndOfAFile: the first mark is at the end of a file that ends with a piece, and
// gets into the piece of the next file. Without the file that it names, no snapshot there is
// claimed.
func TestTrimAtTheEndOfAFile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBed(t, quickDir(t), blobtest.NewMemory())
		b.server.write(b.cfg.PieceBytes)
		b.start()
		defer b.stopAll()
		time.Sleep(500 * time.Millisecond)
		var x, keep snap
		x.at, x.from = b.server.snapshot()
		b.server.rotate()
		b.server.write(10)
		time.Sleep(2 * time.Second)
		b.want(x.at, x.from, b.log().Last().At)
		keep.at, keep.from = b.server.snapshot()
		time.Sleep(2 * time.Second)
		if err := b.store.Trim(context.Background(), db, keep.at); err != nil {
			t.Fatal(err)
		}
		b.refuse(x.at, x.from, x.at)
		b.want(keep.at, keep.from, b.log().Last().At)
	})
}

// TestFinishAndLearn: after Finish everything is in the repository, and a host without
// the spool gives it back.
func TestFinishAndLearn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBed(t, quickDir(t), blobtest.NewMemory())
		b.start()
		time.Sleep(1500 * time.Millisecond)
		takenAt, from := b.server.snapshot()
		for range 9 {
			b.server.write(3000)
			b.server.rotate()
			time.Sleep(2 * time.Second)
		}
		if err := b.store.Finish(context.Background(), db, db, nil); !errors.Is(err, ErrFollowed) {
			t.Errorf("Finish while it is followed: %v", err)
		}
		b.stop()
		b.server.write(123)
		if err := b.store.Finish(context.Background(), db, db, &session{b.server}); err != nil {
			t.Fatal(err)
		}
		want := b.log()
		if want.SpoolBytes != 0 || want.Last().Position.Compare(b.server.position()) != 0 {
			t.Errorf("%+v", want)
		}
		b.cfg.Spool = quickDir(t)
		store, err := New(b.cfg)
		if err != nil {
			t.Fatal(err)
		}
		if err := store.survey(context.Background(), b.repo); err != nil {
			t.Fatal(err)
		}
		b.store = store
		got := b.log()
		if len(got.Runs) != 1 || got.Runs[0].First != want.Runs[0].First || got.Last() != want.Last() || got.Runs[0].Ended == "" {
			t.Errorf("learned %+v instead of %+v", got, want)
		}
		b.want(takenAt, from, want.Last().At)
		b.want(takenAt, from, takenAt.Add(5*time.Second))
		again, err := New(b.cfg) // now from its own index
		if err != nil {
			t.Fatal(err)
		}
		b.store = again
		if l := b.log(); fmt.Sprint(l.Runs) != fmt.Sprint(got.Runs) {
			t.Errorf("from the index %+v instead of %+v", l.Runs, got.Runs)
		}
	})
}
