package load

import (
	"errors"
	"io"
	"net"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// inLoop runs work in tasks of one loop, to their end.
func inLoop(t testing.TB, work ...func(t *task)) {
	t.Helper()
	l, err := newLoop()
	if err != nil {
		t.Fatal(err)
	}
	defer l.close()
	tasks := make([]*task, len(work))
	for n := range work {
		tasks[n] = &task{loop: l}
	}
	if err := l.run(tasks, func(n int) { work[n](tasks[n]) }); err != nil {
		t.Fatal(err)
	}
}

// TestLoopSleepers: who is due goes on in the order in which they are due, and not before.
func TestLoopSleepers(t *testing.T) {
	var order []int
	var never atomic.Bool
	sleeper := func(name int, d time.Duration) func(*task) {
		return func(task *task) {
			for range 3 {
				start := time.Now()
				if task.sleep(d, &never); time.Since(start) < d {
					t.Errorf("%d woke after %s", name, time.Since(start))
				}
			}
			order = append(order, name)
		}
	}
	inLoop(t, sleeper(3, 30*time.Millisecond), sleeper(1, 2*time.Millisecond), sleeper(2, 9*time.Millisecond), sleeper(0, 0))
	if !slices.Equal(order, []int{0, 1, 2, 3}) {
		t.Error(order)
	}
}

// TestTaskOutside: what waits elsewhere keeps nobody else.
func TestTaskOutside(t *testing.T) {
	said := make(chan struct{})
	after := false
	inLoop(t,
		func(task *task) {
			task.outside(func() { <-said })
			after = true
		},
		func(*task) { close(said) },
	)
	if !after {
		t.Error("it did not go on")
	}
	var nobody *task
	did := false
	if nobody.outside(func() { did = true }); !did {
		t.Error("without a task it was not done")
	}
}

// TestLoopThatCannotWait: its tasks end, and do not wait for ever.
func TestLoopThatCannotWait(t *testing.T) {
	l, err := newLoop()
	if err != nil {
		t.Fatal(err)
	}
	var never atomic.Bool
	one := &task{loop: l}
	if err := unix.Close(l.bell); err != nil {
		t.Fatal(err)
	}
	if err := l.run([]*task{one}, func(int) { one.sleep(time.Hour, &never) }); !errors.Is(err, unix.EBADF) {
		t.Error(err)
	}
	if !one.lost {
		t.Error("it does not know")
	}
}

// taskPair is a connection that tasks can enter, and its other end.
func taskPair(t *testing.T) (here *taskConn, there net.Conn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if here, err = dialTask((&net.Dialer{}).DialContext)(t.Context(), "tcp", l.Addr().String()); err != nil {
		t.Fatal(err)
	}
	if there, err = l.Accept(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { here.Close(); there.Close() })
	return here, there
}

// TestTaskConnCarriesBytes: more than the kernel keeps, both ways at once by two tasks would
// be a misuse, so one writes and then reads what was kept for it; outside, inside, outside.
func TestTaskConnCarriesBytes(t *testing.T) {
	here, there := taskPair(t)
	const many = 8 << 20
	talk := func() {
		kept := make(chan []byte)
		go func() {
			all := make([]byte, many)
			_, _ = io.ReadFull(there, all) // what is missing shows below
			kept <- all
		}()
		sent := make([]byte, many)
		for n := range sent {
			sent[n] = byte(n * 7 >> 3)
		}
		if _, err := here.Write(sent); err != nil {
			t.Error(err)
		}
		go func() { _, _ = there.Write(<-kept) }()
		got := make([]byte, many)
		if _, err := io.ReadFull(here, got); err != nil || !slices.Equal(got, sent) {
			t.Errorf("not the same bytes; %v", err)
		}
	}
	talk()
	inLoop(t, func(task *task) {
		if err := here.enter(task); err != nil {
			t.Error(err)
			return
		}
		talk()
		here.leave()
	})
	here.leave() // once more does nothing
	talk()
	if here.LocalAddr().String() != there.RemoteAddr().String() || here.RemoteAddr().String() != there.LocalAddr().String() {
		t.Error(here.LocalAddr(), here.RemoteAddr())
	}
}

// TestTaskConnToItsEnd: all that the other side sent before it closed is read, then the
// end, also when both were told in one piece.
func TestTaskConnToItsEnd(t *testing.T) {
	here, there := taskPair(t)
	if _, err := there.Write([]byte("last words")); err != nil {
		t.Fatal(err)
	}
	if err := there.Close(); err != nil {
		t.Fatal(err)
	}
	inLoop(t, func(task *task) {
		if err := here.enter(task); err != nil {
			t.Error(err)
			return
		}
		if got, err := io.ReadAll(here); string(got) != "last words" || err != nil {
			t.Errorf("%q, %v", got, err)
		}
	})
}

// TestTaskConnClosed: a task that waits in a connection that somebody closes is told, and
// others of the loop go on meanwhile.
func TestTaskConnClosed(t *testing.T) {
	here, _ := taskPair(t)
	var never atomic.Bool
	reading := make(chan struct{})
	inLoop(t,
		func(task *task) {
			if err := here.enter(task); err != nil {
				t.Error(err)
			}
			if err := here.SetDeadline(time.Now().Add(time.Hour)); err == nil {
				t.Error("it has a deadline")
			}
			if err := here.SetDeadline(time.Time{}); err != nil {
				t.Error(err)
			}
			close(reading)
			if _, err := here.Read(make([]byte, 1)); !errors.Is(err, net.ErrClosed) {
				t.Error(err)
			}
			if _, err := here.Write([]byte("x")); !errors.Is(err, net.ErrClosed) {
				t.Error(err)
			}
		},
		func(task *task) {
			task.outside(func() { <-reading })
			task.sleep(time.Millisecond, &never)
			task.outside(func() {
				if err := here.Close(); err != nil {
					t.Error(err)
				}
			})
		},
	)
	if err := here.Close(); !errors.Is(err, net.ErrClosed) {
		t.Error(err)
	}
	if err := here.SetDeadline(time.Time{}); !errors.Is(err, net.ErrClosed) {
		t.Error(err)
	}
	if err := here.enter(&task{}); !errors.Is(err, net.ErrClosed) {
		t.Error(err)
	}
}
