package logstream

import (
	"context"
	"errors"
	"flag"
	"kurabe/internal/blob/blobtest"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"kurabe"
)

// powerLoss starts again on what a loss of power may leave: of each spool file what
// was synced, perhaps some of what was written later, perhaps wrong; and files whose
// removal was not durable yet.
func (b *bed) powerLoss(rt *rapid.T, dir string) {
	old := b.cfg.Spool
	b.stopRun()
	claimed := b.log()
	next := map[string][]byte{}
	err := filepath.WalkDir(old, func(path string, e os.DirEntry, err error) error {
		if err != nil || e.IsDir() || strings.HasSuffix(path, spoolSuffix) {
			return err
		}
		text, err := os.ReadFile(path)
		if err == nil {
			_, err = put(old, dir, path, text)
		}
		return err
	})
	if err != nil {
		rt.Fatal(err)
	}
	image := map[string][]byte{}
	b.image.Range(func(key, value any) bool { image[key.(string)] = value.([]byte); return true })
	for _, path := range slices.Sorted(maps.Keys(image)) { // a seed draws for the same files again
		synced := image[path]
		now, err := os.ReadFile(path)
		if err != nil && !rapid.Bool().Draw(rt, "removal lost") {
			continue
		}
		kept := append([]byte{}, synced...)
		if len(now) >= len(kept) {
			upTo := rapid.IntRange(0, len(now)).Draw(rt, "written")
			copy(kept, now[:min(upTo, len(kept))])
			if upTo > len(kept) {
				kept = append(kept, now[len(kept):upTo]...)
			}
		}
		to, err := put(old, dir, path, kept)
		if err != nil {
			rt.Fatal(err)
		}
		next[to] = kept
	}
	b.stopFollow() // what it does at its end goes to the old disk
	b.image.Clear()
	for path, text := range next {
		b.image.Store(path, text)
	}
	b.cfg.Spool = dir
	b.start()
	for _, r := range claimed.Runs {
		if !slices.ContainsFunc(b.log().Runs, func(now kurabe.LogRun) bool {
			return now.Began.Equal(r.Began) && now.First.Position.Compare(r.First.Position) <= 0 && !now.Last.At.Before(r.Last.At)
		}) {
			rt.Fatalf("claimed %+v, and after a loss of power %+v", r, b.log())
		}
	}
}

func put(old, dir, path string, text []byte) (string, error) {
	rel, err := filepath.Rel(old, path)
	if err != nil {
		return "", err
	}
	path = filepath.Join(dir, rel)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return "", err
	}
	return path, os.WriteFile(path, text, 0o600)
}

type snap struct {
	at   time.Time
	from kurabe.LogPosition
}

// history is a random life of a server, its host and its repository.
type history struct {
	*bed
	rt    *rapid.T
	dir   string
	snaps []snap
	keep  time.Time
	disks int
	away  atomic.Int32 // puts that will fail
}

func (h *history) step() {
	rt, s := h.rt, h.server
	switch rapid.SampledFrom([]string{"write", "write", "write", "rotate", "wait", "wait", "idle", "power", "restart", "away", "lost", "clock", "session", "trim"}).Draw(rt, "step") {
	case "write":
		s.write(rapid.Int64Range(1, 3000).Draw(rt, "bytes"))
	case "rotate":
		s.rotate()
	case "wait":
		time.Sleep(time.Duration(rapid.IntRange(1, 4000).Draw(rt, "ms")) * time.Millisecond)
	case "idle":
		time.Sleep(90 * time.Second)
	case "power":
		h.disks++
		h.powerLoss(rt, filepath.Join(h.dir, "disk", string(rune('a'+h.disks))))
	case "restart":
		h.stop()
		h.start()
	case "away":
		h.away.Store(int32(rapid.IntRange(1, 6).Draw(rt, "puts")))
	case "lost":
		s.set(func() { s.oldest = rapid.IntRange(s.oldest, len(s.ends)-1).Draw(rt, "oldest") })
	case "clock":
		back := rapid.SampledFrom([]time.Duration{time.Millisecond, 900 * time.Millisecond, 5 * time.Second, time.Hour, -time.Minute}).Draw(rt, "back")
		s.set(func() { s.clock -= back; s.epoch++ })
	case "session":
		s.set(func() { s.failing = rapid.IntRange(1, 5).Draw(rt, "calls") })
	case "trim":
		if n := len(h.snaps); n > 0 && h.server.epoch == 0 {
			h.keep = h.snaps[rapid.IntRange(0, n-1).Draw(rt, "keep")].at
			if err := h.store.Trim(context.Background(), db, h.keep); err != nil {
				rt.Fatal(err)
			}
		}
	}
	at, from := s.snapshot()
	h.snaps = append(h.snaps, snap{at, from})
}

// check asks for a moment of each snapshot: what is claimed comes, nothing else does.
func (h *history) check() {
	for _, x := range h.snaps {
		mark, ok := h.log().Reaches(x.at, x.from)
		if !ok {
			h.refuse(x.at, x.from, x.at)
			continue
		}
		at := x.at.Add(time.Duration(rapid.Int64Range(0, int64(mark.At.Sub(x.at))).Draw(h.rt, "moment")))
		h.want(x.at, x.from, at)
		h.refuse(x.at, x.from, h.farther(x))
	}
}

// farther is a moment that no mark can have reached.
func (h *history) farther(x snap) time.Time { return x.at.Add(100 * 24 * time.Hour) }

// historiesMax keeps the package's tests quick; -rapid.checks with another number than 100 asks for that many.
const historiesMax = 12

func TestHistories(t *testing.T) {
	if f := flag.Lookup("rapid.checks"); f.Value.String() == f.DefValue {
		if err := f.Value.Set(strconv.Itoa(historiesMax)); err != nil {
			t.Fatal(err)
		}
	}
	rapid.Check(t, func(rt *rapid.T) {
		var failure any // rapid wants it in the goroutine that it began
		synctest.Test(t, func(*testing.T) {
			defer func() { failure = recover() }()
			h := newHistory(rt)
			defer h.stopAll()
			h.live()
		})
		if failure != nil {
			panic(failure)
		}
	})
}

func newHistory(rt *rapid.T) *history {
	h := &history{rt: rt, dir: quickDir(rt)}
	repo := blobtest.NewMemory()
	repo.Faults = func(op, _ string) blobtest.Fault {
		if op != "put" || h.away.Add(-1) < 0 {
			return blobtest.Fault{}
		}
		if h.away.Load()%3 == 1 {
			return blobtest.Fault{LoseWord: true, Delay: 1500 * time.Millisecond}
		}
		return blobtest.Fault{Err: errors.New("away")}
	}
	h.bed = newBed(rt, filepath.Join(h.dir, "disk", "0"), repo)
	h.server.record = rapid.SampledFrom([]int64{1, 7, 5000}).Draw(rt, "record")
	return h
}

func (h *history) live() {
	h.start()
	for range rapid.IntRange(5, 20).Draw(h.rt, "steps") {
		h.step()
	}
	h.check()
	h.server.set(func() { h.server.failing = 0 })
	h.away.Store(0)
	time.Sleep(90 * time.Second)
	if l := h.log(); l.Failure != "" || h.server.epoch == 0 && h.server.now().Sub(l.Last().At) > time.Second {
		h.rt.Fatalf("it does not get well: %+v", l)
	}
	h.check()
}
