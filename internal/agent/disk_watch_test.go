package agent

import (
	"context"
	"log/slog"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"kurabe"
	"kurabe/internal/engine"
	"kurabe/internal/engine/fake"
)

// disk is a disk in the hands of a test, with a reserve and instances that write.
type disk struct {
	mu      sync.Mutex // guards the rest
	free    int64
	held    bool
	used    map[kurabe.InstanceID]int64
	rates   map[kurabe.InstanceID]int64 // bytes a second
	since   time.Time
	walks   int
	walking time.Duration // what a walk takes
}

const reserveSize = 1 << 30

func newDisk(free int64) *disk {
	return &disk{free: free, used: map[kurabe.InstanceID]int64{}, rates: map[kurabe.InstanceID]int64{}, since: time.Now()}
}

// write lets the instances write until now. The caller holds mu.
func (d *disk) write() {
	seconds := time.Since(d.since).Seconds()
	d.since = time.Now()
	for id, rate := range d.rates {
		wrote := int64(seconds * float64(rate))
		d.used[id] += wrote
		d.free -= wrote
	}
}

func (d *disk) of(id kurabe.InstanceID) int64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.used[id]
}

func (d *disk) Free() int64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.write()
	return d.free
}

func (d *disk) Usage(id kurabe.InstanceID) (int64, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.write()
	d.walks++
	if d.walking > 0 {
		d.mu.Unlock()
		time.Sleep(d.walking) // virtual
		d.mu.Lock()
	}
	return d.used[id], nil
}

func (d *disk) set(id kurabe.InstanceID, used, rate int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.write()
	d.used[id], d.rates[id] = used, rate
}

func (d *disk) give(bytes int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.write()
	d.free += bytes
}

// diskReserve is the disk's reserve.
type diskReserve struct{ *disk }

func (r diskReserve) Bytes() int64 { return reserveSize }

func (r diskReserve) Held() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.held
}

func (r diskReserve) Make() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.held {
		r.held, r.free = true, r.free-reserveSize
	}
	return nil
}

// reserveFree is Free of the reserve; the disk's own Free is in its way.
type reserveFree struct{ diskReserve }

func (r reserveFree) Free() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.held {
		r.held, r.free = false, r.free+reserveSize
	}
	return nil
}

// diskEngine is an engine that knows the reserve.
type diskEngine struct {
	*fake.Engine
	disk *disk
}

func (e diskEngine) Reserve() (engine.Reserve, error) { return reserveFree{diskReserve{e.disk}}, nil }

// startOn starts the agent of the bed over a disk.
func (b *bed) startOn(d *disk) {
	b.Helper()
	b.agent = New(Config{
		Host: "h", Link: b.link, Engines: map[kurabe.EngineName]engine.Engine{kurabe.Postgres: diskEngine{b.engine, d}},
		Homes: filepath.Join(b.dir, "instances"), Usage: d.Usage, Free: d.Free, Log: slog.New(slog.DiscardHandler), Now: time.Now, Look: testLook,
	})
	ctx, cancel := context.WithCancel(context.Background())
	b.cancel, b.done = cancel, make(chan error, 1)
	go func() { b.done <- b.agent.Run(ctx) }()
	synctest.Wait()
}

// capped is an assignment of an instance with a cap.
func capped(id kurabe.InstanceID, generation kurabe.Generation, goal kurabe.Goal) kurabe.Assignment {
	a := wanted(generation)
	a.Instance, a.Goal, a.Limits.StorageBytes = id, goal, 20<<30
	return a
}

// lastOf is the newest report of an instance.
func (b *bed) lastOf(id kurabe.InstanceID) kurabe.InstanceReport {
	var last kurabe.InstanceReport
	for _, r := range b.heard() {
		if r.Instance == id {
			last = r
		}
	}
	return last
}

// pass lets virtual time pass.
func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// A primary at full speed is reported at its cap within a second's writing, after few
// walks; far below it nobody is walked.
func TestFastWriterIsSeenAtItsCap(t *testing.T) {
	inBubble(t, func(b *bed) {
		const rate = 500 << 20
		d := newDisk(200 << 30)
		b.startOn(d)
		d.set("db-1", 1<<30, 0)
		b.send(capped("db-1", 1, kurabe.GoalRunning))
		pass(5 * time.Minute)
		if d.walks != 1 {
			b.Errorf("%d walks while nothing happens", d.walks)
		}
		d.set("db-1", 1<<30, rate)
		for _, percent := range []int64{90, 100} {
			mark := int64(20<<30) / 100 * percent
			for b.last().UsedBytes < mark {
				if used := d.of("db-1"); used > mark+2*rate {
					b.Fatalf("at %d %%: nothing was said of %d bytes", percent, used)
				}
				pass(100 * time.Millisecond)
			}
			if over := b.last().UsedBytes - mark; over > rate {
				b.Errorf("seen %d bytes beyond %d %%", over, percent)
			}
		}
		if d.walks > 15 {
			b.Errorf("%d walks over 40 s", d.walks)
		}
	})
}

// A mark is told although hardly anything was written since the last report.
func TestMarksAreTold(t *testing.T) {
	for _, c := range []struct {
		before, after, limit int64
		want                 bool
	}{
		{89, 90, 100, true}, {90, 89, 100, true}, {99, 100, 100, true}, {90, 99, 100, false}, {100, 200, 100, false}, {0, 50, 100, false}, {0, 50, 0, false},
	} {
		if got := crosses(c.before, c.after, c.limit); got != c.want {
			t.Errorf("%d to %d of %d: %v", c.before, c.after, c.limit, got)
		}
	}
	inBubble(t, func(b *bed) {
		d := newDisk(200 << 30)
		b.startOn(d)
		d.set("db-1", 20<<30-walkMove/2, 0)
		b.send(capped("db-1", 1, kurabe.GoalRunning))
		d.set("db-1", 20<<30-walkMove/2, walkMove)
		pass(3 * time.Second)
		d.set("db-1", 20<<30+usageNews/4, 0)
		d.give(-2 * walkMove)
		pass(3 * time.Second)
		if used := b.last().UsedBytes; used < 20<<30 {
			b.Errorf("reported are %d bytes", used)
		}
	})
}

// Walks are bounded, however long they take and however many instances are due.
func TestWalksAreBounded(t *testing.T) {
	inBubble(t, func(b *bed) {
		d := newDisk(2000 << 30)
		b.startOn(d)
		for _, id := range []kurabe.InstanceID{"db-1", "db-2", "db-3", "db-4"} {
			d.set(id, 19<<30, 100<<10)
			b.send(capped(id, 1, kurabe.GoalRunning))
		}
		d.walking = 2 * time.Second
		walks := d.walks
		d.set("other", 0, 100<<20) // somebody else's file
		pass(10 * time.Minute)
		spent := time.Duration(d.walks-walks) * d.walking
		if spent < 10*time.Second || spent > 10*time.Minute/walkShare+d.walking {
			b.Errorf("%v of walks in 10 minutes", spent)
		}
	})
}

// On a full disk instances leave in order, one after the other, and only those that
// grow; the reserve is given up when next to nothing is left; all come back.
func TestFullDisk(t *testing.T) {
	inBubble(t, func(b *bed) {
		d := newDisk(12 << 30)
		b.startOn(d)
		ids := []kurabe.InstanceID{"db-fast", "db-idle", "db-over", "db-slow"}
		for _, id := range ids {
			b.send(capped(id, 1, kurabe.GoalRunning))
		}
		pass(2 * time.Second)
		if !d.held {
			b.Fatal("there is no reserve on a roomy disk")
		}
		d.set("db-over", 21<<30, 1<<20)
		d.set("db-fast", 1<<30, 20<<20)
		d.set("db-slow", 1<<30, 5<<20)
		d.give(1200<<20 - d.Free())
		var order []kurabe.InstanceID
		out := map[kurabe.InstanceID]bool{}
		for range 1000 {
			for _, id := range ids {
				if r := b.lastOf(id); r.OutOfRoom() != "" && !out[id] {
					out[id] = true
					order = append(order, id)
					pass(2 * time.Second) // the planner takes its time, and nobody else goes meanwhile
					d.set(id, d.of(id), 0)
					b.send(capped(id, 2, kurabe.GoalStopped))
				}
			}
			pass(100 * time.Millisecond)
		}
		if len(order) != 3 || order[0] != "db-over" || order[1] != "db-fast" || order[2] != "db-slow" {
			b.Fatalf("left in the order %v", order)
		}
		if !d.held {
			b.Error("the reserve was given up although the growth stopped in time")
		}
		if r := b.lastOf("db-fast"); !r.Done || r.Running || r.OutOfRoom() == "" {
			b.Errorf("stopped and reported %+v", r)
		}
		d.give(100<<20 - d.Free())
		pass(2 * time.Second)
		if d.held {
			b.Error("the reserve is kept on a full disk")
		}
		// A new life of the agent knows that there is no room before anything starts.
		if err := b.stop(); err == nil {
			b.Error("the agent ended by itself")
		}
		before := len(b.heard())
		b.startOn(d)
		for _, r := range b.heard()[before:] {
			if r.Instance != "db-idle" && r.Done && r.OutOfRoom() == "" {
				b.Errorf("a new agent reported %+v", r)
			}
		}
		d.give(1536 << 20) // not enough for a reserve and some room
		pass(time.Minute)
		if r := b.lastOf("db-fast"); d.held || r.OutOfRoom() == "" {
			b.Errorf("reserve %v, reported %+v", d.held, r)
		}
		d.give(10 << 30)
		pass(time.Minute)
		for _, id := range ids {
			if r := b.lastOf(id); !d.held || r.OutOfRoom() != "" {
				b.Errorf("with room again: reserve %v, reported %+v", d.held, r)
			}
		}
	})
}

// At the end of a disk, where nobody grows because nobody can, the host says so of every
// instance, and has none of them stop.
func TestDiskEnds(t *testing.T) {
	inBubble(t, func(b *bed) {
		d := newDisk(12 << 30)
		d.set("db-1", 1<<29, 0)
		b.startOn(d)
		b.send(capped("db-1", 1, kurabe.GoalRunning))
		for _, c := range []struct {
			free int64
			ends bool
		}{{600 << 20, false}, {diskEnd + 1, false}, {diskEnd - 1, true}, {diskEnd + 1, true}, {2 * diskEnd, false}, {0, true}, {12 << 30, false}} {
			for range 2 { // what is given up of the reserve is taken, too
				d.give(c.free - d.Free())
				pass(2 * time.Second)
			}
			if r := b.lastOf("db-1"); r.DiskExhausted != c.ends || r.OutOfRoom() != "" || !r.Running {
				b.Errorf("%d bytes are free: %+v", c.free, r)
			}
		}
	})
}

// With next to nothing left, all that grow leave at once.
func TestFullDiskInHaste(t *testing.T) {
	inBubble(t, func(b *bed) {
		d := newDisk(12 << 30)
		b.startOn(d)
		for _, id := range []kurabe.InstanceID{"db-1", "db-2", "db-3"} {
			b.send(capped(id, 1, kurabe.GoalRunning))
		}
		d.set("db-1", 1<<30, 100<<20)
		d.set("db-2", 1<<30, 90<<20)
		d.give(600<<20 - d.Free())
		pass(5 * time.Second)
		for id, want := range map[kurabe.InstanceID]bool{"db-1": true, "db-2": true, "db-3": false} {
			if r := b.lastOf(id); (r.OutOfRoom() != "") != want {
				b.Errorf("%s: %+v", id, r)
			}
		}
	})
}
