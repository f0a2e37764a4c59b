package snapshot

import (
	"context"
	"log/slog"
	"maps"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"kurabe"
	"kurabe/internal/agent/unit"
	"kurabe/internal/engine"
	"kurabe/internal/engine/fake"
	"kurabe/internal/hostlink"
	folder "kurabe/internal/snapshot"
)

// What a host has is what the agent needs.
var _ Folders = (*engine.Snapshots)(nil)

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
	keeps  Folders      // in place of folder
	set    *Set
	mu     sync.Mutex                              // guards here
	here   map[kurabe.InstanceID]kurabe.Assignment // of servers
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
		b := &snapshotBed{T: t, dir: dir, folder: fake.NewSnapshots(), link: &snapshotLink{updates: make(chan hostlink.Update, 16)}, here: map[kurabe.InstanceID]kurabe.Assignment{}}
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
	host := &unit.Host{ID: "h", Link: b.link, Log: slog.New(slog.DiscardHandler), Now: time.Now, Look: time.Hour}
	var folders Folders = b.folder
	if b.keeps != nil {
		folders = b.keeps
	}
	b.set = New(Config{Host: host, Dir: filepath.Join(b.dir, "snapshot-assignments"), Folders: folders, Members: b.members, Free: b.free,
		DropLog: func(context.Context, kurabe.InstanceID) {}})
	load, err := b.set.Load()
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	b.cancel, b.done = cancel, make(chan error, 1)
	set := b.set
	go func() {
		load(ctx)
		host.Wait.Go(func() { set.WatchSpace(ctx) })
		for u := range b.link.Assignments(ctx, "h") {
			for _, w := range u.Orders {
				if a, ok := w.(kurabe.Assignment); ok {
					b.mu.Lock()
					b.here[a.Instance] = a
					b.mu.Unlock()
					set.SourceChanged(a)
				}
			}
			b.mu.Lock()
			maps.DeleteFunc(b.here, func(_ kurabe.InstanceID, a kurabe.Assignment) bool {
				return u.Full && a.Goal == kurabe.GoalAbsent && !slices.ContainsFunc(u.Orders, func(w kurabe.Word) bool { return w.Envelope().ID == string(a.Instance) })
			})
			b.mu.Unlock()
			set.Obey(ctx, u)
		}
		host.Wait.Wait()
		b.done <- ctx.Err()
	}()
	synctest.Wait()
}

// members are the servers of an instance here.
func (b *snapshotBed) members(owner kurabe.InstanceID) (list []kurabe.Assignment) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for id, a := range b.here {
		if id.Owner() == owner {
			list = append(list, a)
		}
	}
	slices.SortFunc(list, func(a, b kurabe.Assignment) int { return a.Instance.Number() - b.Instance.Number() })
	return list
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
	if state != folder.Complete || !r.Done || r.Absent || r.Generation != generation || r.Failure != nil || r.Facts.Percent != 100 || r.Facts.SizeBytes != fake.SnapshotBytes {
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

const second = kurabe.InstanceID("db-1~2")

func ids(list ...kurabe.InstanceID) []kurabe.InstanceID { return list }

// with is an assignment of another goal.
func with(a kurabe.Assignment, goal kurabe.Goal) kurabe.Assignment {
	a.Goal = goal
	return a
}

// member is an assignment of a server of instance db-1, which listens at 127.66.9.NUMBER
// unless it is the first. The first two follow each other.
func member(number int, duty kurabe.Duty, epoch kurabe.Epoch) kurabe.Assignment {
	a := sourceInstance("db-1", 1)
	a.Instance = a.Instance.Member(number)
	a.Role = &kurabe.Role{Epoch: epoch, Duty: duty}
	if number > 1 {
		a.ListensAt = netip.AddrFrom4([4]byte{127, 66, 9, byte(number)}).String()
	}
	if duty == kurabe.DutyFollow {
		a.Role.Source = &kurabe.Source{ID: a.Instance.Member(3 - min(number, 2)), Address: a.Address, Port: a.Port}
	}
	return a
}

// elsewhere has a server listen at an address of its own.
func elsewhere(a kurabe.Assignment) kurabe.Assignment {
	a.ListensAt = netip.AddrFrom4([4]byte{127, 66, 9, byte(a.Instance.Number())}).String()
	return a
}

// follows is an assignment of the second server to follow the first.
func follows(generation kurabe.Generation) kurabe.Assignment {
	a := member(2, kurabe.DutyFollow, 1)
	a.Generation = generation
	return a
}

// of changes the generation and the role of an assignment.
func of(a kurabe.Assignment, generation kurabe.Generation, role kurabe.Role) kurabe.Assignment {
	a.Generation, a.Role = generation, &role
	return a
}

func words[A kurabe.Word](list []A) (out []kurabe.Word) {
	for _, a := range list {
		out = append(out, a)
	}
	return out
}
