package enginetest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"kurabe/internal/agent/watch"
	"kurabe/internal/engine"
)

// asker is one purpose of a watch, and what became of its questions.
type asker struct {
	opened, open, most, answers atomic.Int64
	failures                    atomic.Int64 // since the newest answer
	alive                       atomic.Bool  // a failure was none for want of time
}

type counted struct {
	engine.Watcher
	of *asker
}

func (c counted) Close() { c.Watcher.Close(); c.of.open.Add(-1) }

func (a *asker) purpose(b *Bed, every time.Duration) watch.Purpose[counted] {
	return watch.Purpose[counted]{Every: every, Limit: func() time.Duration { return 2 * time.Second },
		Open: func(ctx context.Context) (counted, error) {
			a.opened.Add(1)
			w, err := b.Lifecycle.OpenWatch(ctx, b.Want)
			if err == nil {
				a.most.Store(max(a.most.Load(), a.open.Add(1)))
			}
			return counted{w, a}, err
		},
		Ask: func(ctx context.Context, c counted) error {
			_, err := c.Look(ctx)
			if err == nil {
				a.failures.Store(0)
				a.answers.Add(1)
			}
			return err
		},
		Failed: func(err error) {
			a.alive.Store(!errors.Is(err, watch.ErrUnanswered))
			a.failures.Add(1)
		}}
}

// RunHang has a look and two samplers ask a server that stands still: each loses its own
// answers and no session is added, neither where the kernel says that the process is stopped
// nor where only the look finds out. All go on when it does.
func RunHang(t *testing.T, s Setup) {
	b := Serving(t, s)
	o, err := b.Lifecycle.Observe(t.Context(), b.Want)
	if err != nil {
		t.Fatal(err)
	}
	t.Run("stopped", func(t *testing.T) {
		hang(t, b, watch.Process{PID: o.PID, Name: o.Process}, 0)
	})
	t.Run("does not answer", func(t *testing.T) { hang(t, b, watch.Process{}, 1) })
}

// hang stops the server and has it go on. adds is by how many sessions the look may add for
// each of its questions meanwhile.
func hang(t *testing.T, b *Bed, of watch.Process, adds int64) {
	ctx, cancel := context.WithCancel(t.Context())
	var wait sync.WaitGroup
	defer wait.Wait()
	defer cancel()
	var look, metrics, load asker
	all := []*asker{&look, &metrics, &load}
	of.Wait = &wait
	watch.Subscribe(ctx, of, look.purpose(b, time.Second/4))
	of.Hangs = func() bool { return look.failures.Load() >= 2 }
	watch.Subscribe(ctx, of, metrics.purpose(b, time.Second))
	watch.Subscribe(ctx, of, load.purpose(b, time.Second))
	await := func(what string, ok func(*asker) bool) {
		t.Helper()
		deadline := time.Now().Add(passTime)
		for _, a := range all {
			for !ok(a) {
				if time.Now().After(deadline) {
					t.Fatalf("%s: not within %s: %d answers, %d failures since", what, passTime, a.answers.Load(), a.failures.Load())
				}
				time.Sleep(10 * time.Millisecond)
			}
		}
	}
	await("answers", func(a *asker) bool { return a.answers.Load() >= 2 })
	signal := stopper(t, b.Process(t).PID)
	signal(syscall.SIGSTOP)
	defer signal(syscall.SIGCONT)
	// Whoever was asking has lost that answer, and the look has found out.
	await("no answers", func(a *asker) bool { return look.failures.Load() >= 2 && a.failures.Load() >= 2 })
	var before []int64
	for _, a := range all {
		before = append(before, a.opened.Load())
	}
	await("still none", func(a *asker) bool { return a.failures.Load() >= 5 })
	for n, a := range all {
		more := a.opened.Load() - before[n]
		if a != &look && more > 0 || more > adds*a.failures.Load() || a.most.Load() > 1 || a.alive.Load() {
			t.Errorf("asker %d: %d sessions more in a server that hangs, %d at a time; refused: %v", n, more, a.most.Load(), a.alive.Load())
		}
	}
	signal(syscall.SIGCONT)
	await("answers again", func(a *asker) bool { return a.failures.Load() == 0 })
}

// stopper signals a server and its children, which go on when only it is stopped.
func stopper(t *testing.T, pid int) func(syscall.Signal) {
	return func(what syscall.Signal) {
		for _, of := range append([]int{pid}, children(t, pid)...) {
			if err := syscall.Kill(of, what); err != nil && !errors.Is(err, syscall.ESRCH) {
				t.Error(err)
			}
		}
	}
}

func children(t *testing.T, pid int) (list []int) {
	lists, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	if err != nil {
		t.Error(err)
	}
	for _, name := range lists {
		raw, err := os.ReadFile(name)
		if err != nil {
			t.Error(err)
		}
		for of := range strings.FieldsSeq(string(raw)) {
			child, err := strconv.Atoi(of)
			if err != nil {
				t.Error(err)
			}
			list = append(list, child)
		}
	}
	return list
}
