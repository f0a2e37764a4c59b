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

func watcher(t *testing.T, fd int) int {
	t.Helper()
	epoll, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(epoll) })
	if err := unix.EpollCtl(epoll, unix.EPOLL_CTL_ADD, fd, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(fd)}); err != nil {
		t.Fatal(err)
	}
	return epoll
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
	timer, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_CLOEXEC|unix.TFD_NONBLOCK)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(timer)
	epoll := watcher(t, timer)
	var events [4]unix.EpollEvent
	const pause = 3 * time.Millisecond
	start := time.Now()
	if err := SetTimer(timer, pause); err != nil {
		t.Fatal(err)
	}
	for n := 0; n == 0; { // a signal may come first
		if n, err = Wait(epoll, events[:]); err != nil {
			t.Fatal(err)
		}
		if time.Since(start) > 10*time.Second {
			t.Fatal("the timer does not ring")
		}
	}
	if took := time.Since(start); took < pause || int(events[0].Fd) != timer {
		t.Errorf("%v after %s", events[0], took)
	}
	if _, err := Wait(-1, events[:]); !errors.Is(err, unix.EBADF) {
		t.Error(err)
	}
	if err := SetTimer(-1, pause); !errors.Is(err, unix.EBADF) {
		t.Error(err)
	}
}

// TestWaitLetsTheRuntimeStop: a thread that waits does not hold up a collection of garbage,
// for which all have to stop.
func TestWaitLetsTheRuntimeStop(t *testing.T) {
	ends := pair(t)
	epoll := watcher(t, ends[0])
	waiting := make(chan struct{})
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		var events [1]unix.EpollEvent
		close(waiting)
		for {
			if n, err := Wait(epoll, events[:]); n > 0 || err != nil {
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
