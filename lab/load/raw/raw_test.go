package raw

import (
	"errors"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func pair(t *testing.T) [2]int {
	t.Helper()
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(pair[0]); unix.Close(pair[1]) })
	return pair
}

func TestTransfer(t *testing.T) {
	ends := pair(t)
	got := make([]byte, 10)
	if _, err := Receive(ends[0], got); !errors.Is(err, unix.EAGAIN) {
		t.Error(err)
	}
	if n, err := Send(ends[1], []byte("word")); n != 4 || err != nil {
		t.Error(n, err)
	}
	if n, err := Receive(ends[0], got); string(got[:n]) != "word" || err != nil {
		t.Errorf("%q, %v", got[:n], err)
	}
	sent := 0
	for {
		n, err := Send(ends[1], make([]byte, 1<<16))
		if errors.Is(err, unix.EAGAIN) {
			break
		}
		if sent += n; err != nil || sent > 1<<30 {
			t.Fatal(sent, err)
		}
	}
	if err := unix.Shutdown(ends[0], unix.SHUT_RDWR); err != nil {
		t.Fatal(err)
	}
	if _, err := Send(ends[1], got); !errors.Is(err, unix.EPIPE) {
		t.Error(err) // and no signal has ended the test
	}
}

func TestWait(t *testing.T) {
	ends := pair(t)
	polls := []unix.PollFd{{Fd: int32(ends[0]), Events: unix.POLLIN}, {Fd: int32(ends[1]), Events: unix.POLLIN}}
	const limit = 3 * time.Millisecond
	for took := time.Duration(0); took < limit; { // a signal may come first
		start := time.Now()
		if n, err := Wait(polls, limit); n != 0 || err != nil {
			t.Fatal(n, err)
		}
		if took = max(took, time.Since(start)); took > 10*time.Second {
			t.Fatal("it does not end")
		}
	}
	if _, err := Send(ends[0], []byte("x")); err != nil {
		t.Fatal(err)
	}
	if n, err := Wait(polls, time.Hour); n != 1 || err != nil || polls[0].Revents != 0 || polls[1].Revents != unix.POLLIN {
		t.Error(n, err, polls)
	}
	if n, err := Wait(polls, 0); n != 1 || err != nil {
		t.Error(n, err)
	}
	if _, err := Wait(polls, -1); !errors.Is(err, unix.EINVAL) {
		t.Error(err)
	}
}

// TestWaitHasAnEnd: nobody waits longer than a collection of garbage may take.
func TestWaitHasAnEnd(t *testing.T) {
	ends := pair(t)
	if n, err := Wait([]unix.PollFd{{Fd: int32(ends[0]), Events: unix.POLLIN}}, 24*time.Hour); n != 0 || err != nil {
		t.Error(n, err)
	}
}

// TestWaitLetsTheRuntimeStop: a thread that waits does not hold up a collection of garbage,
// for which all have to stop.
func TestWaitLetsTheRuntimeStop(t *testing.T) {
	ends := pair(t)
	waiting := make(chan struct{})
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		polls := []unix.PollFd{{Fd: int32(ends[0]), Events: unix.POLLIN}}
		close(waiting)
		for {
			if n, err := Wait(polls, time.Hour); n > 0 || err != nil {
				return
			}
		}
	}()
	<-waiting
	for range 20 {
		runtime.GC() // it would not come back if the thread could not be had
	}
	if _, err := Send(ends[1], []byte("x")); err != nil {
		t.Fatal(err)
	}
	<-ended
}
