package agent

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"kurabe"
	"kurabe/internal/hostlink"
)

// taskLink hears what is said of tasks.
type taskLink struct {
	snapshotLink
	said []kurabe.TaskReport
	gone []kurabe.Ref
}

func (l *taskLink) PutReport(_ context.Context, w kurabe.Word) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.said = append(l.said, w.(kurabe.TaskReport))
	return nil
}

func (l *taskLink) DropReport(_ context.Context, _ kurabe.HostID, ref kurabe.Ref) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.gone = append(l.gone, ref)
	return nil
}

// startTasks starts an agent that can do one kind of task.
func startTasks(dir string, link hostlink.Link, deed Deed) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	a := New(Config{
		Host: "h", Link: link, Deeds: map[kurabe.Kind]Deed{kurabe.KindLogCheck: deed}, Homes: filepath.Join(dir, "instances"),
		Log: slog.New(slog.DiscardHandler), Now: time.Now, Look: time.Hour,
	})
	done := make(chan error, 1)
	go func() { done <- a.Run(ctx) }()
	return func() { cancel(); <-done }
}

// TestTask: a task is done as often as it is ordered, after failures too, one of a kind at a
// time, not again after a restart, and nothing is left of one that is withdrawn.
func TestTask(t *testing.T) {
	dir := memoryFolder(t)
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		did, under, failing := map[kurabe.InstanceID]int{}, 0, true
		deed := func(ctx context.Context, id kurabe.InstanceID) (kurabe.TaskResult, error) {
			mu.Lock()
			defer mu.Unlock()
			if under++; under > 1 {
				t.Error("two at a time")
			}
			mu.Unlock()
			time.Sleep(time.Minute) // virtual
			mu.Lock()
			under--
			if failing {
				failing = false
				return kurabe.TaskResult{}, errTest
			}
			did[id]++
			return kurabe.TaskResult{Problems: make([]kurabe.TaskProblem, kurabe.TaskProblemsMax+1)}, nil
		}
		link := &taskLink{snapshotLink: snapshotLink{updates: make(chan hostlink.Update, 16)}}
		order := func(id kurabe.InstanceID, g kurabe.Generation) kurabe.Word {
			return kurabe.Task{Kind: kurabe.KindLogCheck, Host: "h", Instance: id, Generation: g}
		}
		send := func(u hostlink.Update) {
			link.updates <- u
			time.Sleep(time.Hour) // virtual
			synctest.Wait()
		}
		times := func(first, second int) {
			t.Helper()
			if did["db-1"] != first || did["db-2"] != second {
				t.Fatalf("done %v; want %d and %d", did, first, second)
			}
		}
		stop := startTasks(dir, link, deed)
		send(hostlink.Update{Full: true, Orders: []kurabe.Word{order("db-1", 1), order("db-2", 1)}})
		times(1, 1)
		failed := false
		for _, r := range link.said {
			failed = failed || r.Failure != nil && r.Failure.Message == errTest.Error() && !r.Done
		}
		if last := link.said[len(link.said)-1]; !failed || !last.Done || last.At.IsZero() || len(last.Problems) != kurabe.TaskProblemsMax {
			t.Fatalf("%+v", link.said)
		}
		stop()
		stop = startTasks(dir, link, deed)
		send(hostlink.Update{Full: true, Orders: []kurabe.Word{order("db-1", 1), order("db-2", 1)}})
		times(1, 1)
		send(hostlink.Update{Orders: []kurabe.Word{order("db-2", 2)}})
		times(1, 2)
		send(hostlink.Update{Orders: []kurabe.Word{order("db-2", 1)}}) // of a planner that was deposed
		times(1, 2)
		send(hostlink.Update{Full: true, Orders: []kurabe.Word{order("db-1", 1)}})
		_, err := os.Stat(filepath.Join(dir, "tasks", string(kurabe.KindLogCheck), "db-2.json"))
		if len(link.gone) != 1 || link.gone[0].ID != "db-2" || !errors.Is(err, os.ErrNotExist) {
			t.Errorf("dropped %v; the file: %v", link.gone, err)
		}
		stop()
	})
}

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
