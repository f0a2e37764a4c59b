package agent

import (
	"context"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"kurabe"
	"kurabe/internal/agent/endpoint"
	"kurabe/internal/agent/endpoint/endpointtest"
	"kurabe/internal/engine"
	"kurabe/internal/engine/fake"
	"kurabe/internal/hostlink"
	"kurabe/internal/snapshot"
)

// What a host has is what the agent needs.
var _ Snapshots = (*engine.Snapshots)(nil)

// snapshotLink is a control plane in the hands of a test, as far as snapshots go.
type snapshotLink struct {
	hostlink.Link
	updates chan hostlink.Update

	mu      sync.Mutex // guards the rest
	down    error
	heard   []kurabe.SnapshotReport
	at      []time.Time
	dropped []kurabe.SnapshotID
}

func (l *snapshotLink) Assignments(ctx context.Context, _ kurabe.HostID) <-chan hostlink.Update {
	out := make(chan hostlink.Update)
	go func() {
		defer close(out)
		for {
			select {
			case u := <-l.updates:
				out <- u
			case <-ctx.Done():
				return
			}
		}
	}()
	return out
}

func (l *snapshotLink) PutReport(_ context.Context, w kurabe.Word) error {
	r, ok := w.(kurabe.SnapshotReport)
	if !ok {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.down == nil {
		l.heard, l.at = append(l.heard, r), append(l.at, time.Now())
	}
	return l.down
}

func (l *snapshotLink) DropReport(_ context.Context, _ kurabe.HostID, ref kurabe.Ref) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if ref.Kind == kurabe.KindSnapshot {
		l.dropped = append(l.dropped, kurabe.SnapshotID(ref.ID))
	}
	return nil
}

// snapshotBed is one host with fake snapshots; its time is virtual.
type snapshotBed struct {
	*testing.T
	dir    string
	folder *fake.Snapshots
	link   *snapshotLink
	free   func() int64 // of the disk, nil: nobody can tell
	agent  *Agent
	cancel context.CancelFunc
	done   chan error
}

// inSnapshotBubble runs a test on a host that has instance db-1.
func inSnapshotBubble(t *testing.T, test func(*snapshotBed)) {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "kurabe-agent-")
	if err != nil {
		dir = t.TempDir()
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	synctest.Test(t, func(t *testing.T) {
		b := &snapshotBed{T: t, dir: dir, folder: fake.NewSnapshots(), link: &snapshotLink{updates: make(chan hostlink.Update, 16)}}
		b.folder.TakeTime = 100 * time.Second
		b.start()
		defer func() {
			if b.cancel != nil {
				b.stop()
			}
			for _, w := range b.folder.Wrong() {
				t.Error(w)
			}
		}()
		b.send(hostlink.Update{Orders: []kurabe.Word{sourceInstance("db-1", 1)}})
		test(b)
	})
}

// start starts an agent, as a new process would, and lets it settle.
func (b *snapshotBed) start() {
	b.Helper()
	b.agent = New(Config{
		Host: "h", Link: b.link, Engines: map[kurabe.EngineName]engine.Engine{kurabe.Postgres: fake.New()}, Snapshots: b.folder,
		Homes: filepath.Join(b.dir, "instances"), Usage: func(kurabe.InstanceID) (int64, error) { return 0, nil },
		Endpoint: endpoint.Config{Open: func(netip.AddrPort) (endpoint.Endpoint, error) { return &endpointtest.Endpoint{}, nil }},
		Free:     b.free, Log: slog.New(slog.DiscardHandler), Now: time.Now, Look: time.Hour,
	})
	ctx, cancel := context.WithCancel(context.Background())
	b.cancel, b.done = cancel, make(chan error, 1)
	go func() { b.done <- b.agent.Run(ctx) }()
	synctest.Wait()
}

func (b *snapshotBed) stop() {
	b.cancel()
	b.cancel = nil
	<-b.done
}

func (b *snapshotBed) send(u hostlink.Update) {
	b.link.updates <- u
	synctest.Wait()
}

func (b *snapshotBed) order(list ...kurabe.SnapshotAssignment) {
	b.send(hostlink.Update{Orders: words(list)})
}

// pass lets virtual time go by.
func (b *snapshotBed) pass(d time.Duration) {
	time.Sleep(d) // virtual
	synctest.Wait()
}

func (b *snapshotBed) heard() []kurabe.SnapshotReport {
	b.link.mu.Lock()
	defer b.link.mu.Unlock()
	return append([]kurabe.SnapshotReport(nil), b.link.heard...)
}

// last is the newest report of a snapshot.
func (b *snapshotBed) last(id kurabe.SnapshotID) kurabe.SnapshotReport {
	var last kurabe.SnapshotReport
	for _, r := range b.heard() {
		if r.Snapshot == id {
			last = r
		}
	}
	return last
}

// wantDone checks that a snapshot is complete and reported so.
func (b *snapshotBed) wantDone(id kurabe.SnapshotID, generation kurabe.Generation) {
	b.Helper()
	_, state, _ := b.folder.Find(id)
	r := b.last(id)
	if state != snapshot.Complete || !r.Done || r.Absent || r.Generation != generation || r.Failure != nil || r.Facts.Percent != 100 || r.Facts.SizeBytes != fake.SnapshotBytes {
		b.Errorf("%s is %s, reported %+v; want it done at generation %d", id, state, r, generation)
	}
}

// wantFailure checks that a snapshot is reported as failed, and why.
func (b *snapshotBed) wantFailure(id kurabe.SnapshotID, step, words string) {
	b.Helper()
	r := b.last(id)
	if r.Done || r.Failure == nil || r.Failure.Step != step || !strings.Contains(r.Failure.Message, words) {
		b.Errorf("%s is reported %+v, failure %+v; want a failure of %s that says %q", id, r, r.Failure, step, words)
	}
}

func sourceInstance(id kurabe.InstanceID, generation kurabe.Generation) kurabe.Assignment {
	return kurabe.Assignment{
		Generation: generation, Host: "h", Instance: id, Name: "orders", Goal: kurabe.GoalRunning, Engine: kurabe.Postgres, Version: "15.18",
		Address: "127.66.0.1", Port: 5432, Settings: map[string]string{}, Boot: 1,
	}
}

func takeOf(id kurabe.SnapshotID, of kurabe.InstanceID, generation kurabe.Generation) kurabe.SnapshotAssignment {
	return kurabe.SnapshotAssignment{Generation: generation, Host: "h", Snapshot: id, Name: "nightly", Goal: kurabe.SnapshotPresent, Of: of}
}

func removalOf(a kurabe.SnapshotAssignment) kurabe.SnapshotAssignment {
	a.Generation++
	a.Goal = kurabe.SnapshotAbsent
	return a
}
