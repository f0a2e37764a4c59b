package load

import (
	"net"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"
	"time"
)

// answeredPair is a connection of packets whose answers are there before they are asked for,
// as of a server that is faster than its client.
func answeredPair(t *testing.T, answers int) *taskConn {
	t.Helper()
	l, err := net.Listen("unixpacket", filepath.Join(t.TempDir(), "socket"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	here, err := dialTask((&net.Dialer{}).DialContext)(t.Context(), "unixpacket", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	there, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { here.Close(); there.Close() })
	for range answers {
		if _, err := there.Write([]byte("answer")); err != nil {
			t.Fatal(err)
		}
	}
	return here
}

// TestAnswersThatAreThere: a client whose answers are there goes on to the end of its
// transaction, and only then another.
func TestAnswersThatAreThere(t *testing.T) {
	const statements = 7
	var order []int
	client := func(name int) func(*task) {
		conn := answeredPair(t, statements)
		return func(task *task) {
			if err := conn.enter(task); err != nil {
				t.Error(err)
				return
			}
			for range statements {
				if _, err := conn.Write([]byte("question")); err != nil {
					t.Error(err)
				}
				if _, err := conn.Read(make([]byte, 100)); err != nil {
					t.Error(err)
				}
				order = append(order, name)
			}
		}
	}
	inLoop(t, client(0), client(1))
	if !slices.IsSorted(order) || len(order) != 2*statements {
		t.Error(order)
	}
}

// TestPass: a client that never has to wait does not shut out those who can go on, nor those
// who are due.
func TestPass(t *testing.T) {
	var never atomic.Bool
	done := 0
	passing := func(task *task) {
		for begin := time.Now(); done < 2; task.pass() {
			if time.Since(begin) > time.Minute {
				t.Error("nobody else went on")
				return
			}
		}
	}
	conn := answeredPair(t, 1)
	inLoop(t, passing, passing,
		func(task *task) {
			task.sleep(time.Millisecond, &never)
			done++
		},
		func(task *task) {
			if err := conn.enter(task); err != nil {
				t.Error(err)
			}
			conn.readable = false // it waits until the kernel says so
			if _, err := conn.Read(make([]byte, 100)); err != nil {
				t.Error(err)
			}
			done++
		},
	)
	var nobody *task
	nobody.pass()
}
