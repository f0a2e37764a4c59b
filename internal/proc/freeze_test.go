package proc

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

var freezeLimits = FreezeLimits{Stop: 5 * time.Second, Hold: 10 * time.Second}

// Of busyMain: how many threads count, and how many goroutines make threads that do.
const (
	busyCounters = 8
	busyMakers   = 4
)

// busyMain is a process with many threads, which makes new ones all the time. Each
// counts in its own place of a shared file, where whoever looks sees it move.
func busyMain(path string) {
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		panic(err)
	}
	shared, err := unix.Mmap(int(file.Fd()), 0, os.Getpagesize(), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		panic(err)
	}
	for n := range busyCounters {
		go func() {
			runtime.LockOSThread()
			for {
				// Its own byte, and a rest for the others of this machine.
				shared[n]++
				time.Sleep(50 * time.Microsecond)
			}
		}()
	}
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGUSR1)
	for n := range busyMakers {
		go func() {
			for {
				done := make(chan struct{})
				go func() {
					runtime.LockOSThread() // the thread ends with the goroutine
					shared[busyCounters+n]++
					close(done)
				}()
				<-done
			}
		}()
	}
	for range signals {
		shared[busyCounters+busyMakers]++
	}
}

// busy is a running busyMain.
type busy struct {
	Process
	shared []byte
}

func startBusy(t *testing.T) busy {
	t.Helper()
	b := newBed(t)
	path := filepath.Join(b.dir, "counters")
	if err := os.WriteFile(path, make([]byte, os.Getpagesize()), 0o600); err != nil {
		t.Fatal(err)
	}
	spec := b.spec("/proc/self/exe")
	spec.Argv[0], _ = os.Executable()
	spec.Env = []string{"PROC_TEST_BUSY=" + path}
	p, err := Start(deadline(t), spec)
	if err != nil {
		t.Fatal(err)
	}
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { file.Close() })
	shared, err := unix.Mmap(int(file.Fd()), 0, os.Getpagesize(), unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Munmap(shared) })
	bb := busy{p, shared}
	bb.moves(t)
	return bb
}

func (b busy) counters() string { return string(b.shared[:busyCounters+busyMakers]) }

// moves waits until every thread has counted on.
func (b busy) moves(t *testing.T) {
	t.Helper()
	before := b.counters()
	eventually(t, "every thread counts", func() bool {
		now := b.counters()
		for n := range now {
			if now[n] == before[n] {
				return false
			}
		}
		return true
	})
}

// standTime is how long stands looks.
const standTime = 5 * time.Millisecond

// stands looks for a while at a process that must not move.
func (b busy) stands(ctx context.Context) error {
	before := b.counters()
	for end := time.Now().Add(standTime); time.Now().Before(end) && ctx.Err() == nil; {
		if now := b.counters(); now != before {
			return fmt.Errorf("counters went from %x to %x", before, now)
		}
	}
	return ctx.Err()
}

func TestWhileFrozen(t *testing.T) {
	b := startBusy(t)
	for range 100 {
		frozen, err := b.WhileFrozen(t.Context(), freezeLimits, b.stands)
		if err != nil {
			t.Fatal(err)
		}
		if frozen.Hold < standTime || frozen.Stop > frozen.Hold {
			t.Errorf("%+v", frozen)
		}
		b.moves(t)
	}
	refused := errors.New("refused")
	if _, err := b.WhileFrozen(t.Context(), freezeLimits, func(context.Context) error { return refused }); !errors.Is(err, refused) || errors.Is(err, ErrNotFrozen) {
		t.Errorf("the error of the work: %v", err)
	}
	b.moves(t)
	if threads, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", b.PID)); err != nil || len(threads) < busyCounters {
		t.Errorf("%d threads, %v", len(threads), err)
	}
}

// The limits hold, and a caller that gives up is heard.
func TestWhileFrozenIsBounded(t *testing.T) {
	b := startBusy(t)
	begin := time.Now()
	var told error
	limits := FreezeLimits{Stop: time.Second, Hold: 100 * time.Millisecond}
	_, err := b.WhileFrozen(t.Context(), limits, func(ctx context.Context) error {
		<-ctx.Done()
		// It was let go before the work ended.
		b.moves(t)
		told = ctx.Err()
		return ctx.Err()
	})
	if !errors.Is(err, ErrNotFrozen) || !errors.Is(told, context.Canceled) {
		t.Errorf("%v, the work was told %v", err, told)
	}
	if took := time.Since(begin); took > 5*time.Second {
		t.Errorf("it took %v", took)
	}
	ctx, cancel := context.WithCancel(t.Context())
	_, err = b.WhileFrozen(ctx, freezeLimits, func(ctx context.Context) error { cancel(); <-ctx.Done(); return nil })
	if !errors.Is(err, context.Canceled) {
		t.Errorf("given up by the caller: %v", err)
	}
	limits.Stop = 0
	if _, err := b.WhileFrozen(t.Context(), limits, func(context.Context) error { return nil }); !errors.Is(err, ErrNotFrozen) {
		t.Errorf("without time to stop: %v", err)
	}
	b.moves(t)
}

// A signal that arrives meanwhile is not lost, nor one that arrives at the same time: a
// thread may then stop because of it.
func TestFrozenKeepsSignals(t *testing.T) {
	b := startBusy(t)
	for n := range 200 {
		sent := make(chan error, 1)
		go func() { sent <- b.Signal(syscall.SIGUSR1) }()
		_, err := b.WhileFrozen(t.Context(), freezeLimits, func(context.Context) error {
			if n%2 == 0 {
				return nil
			}
			return <-sent
		})
		if n%2 == 0 {
			err = errors.Join(err, <-sent)
		}
		if err != nil {
			t.Fatal(err)
		}
		eventually(t, "the signal is handled", func() bool { return b.shared[busyCounters+busyMakers] == byte(n+1) })
	}
}

// It is killed while frozen: the work does not count, and the process is buried.
func TestKilledWhileFrozen(t *testing.T) {
	b := startBusy(t)
	_, err := b.WhileFrozen(t.Context(), freezeLimits, func(context.Context) error { return b.Signal(syscall.SIGKILL) })
	if !errors.Is(err, ErrNotFrozen) || !errors.Is(err, os.ErrProcessDone) {
		t.Errorf("%v", err)
	}
	wait(t, b.Process)
	if exit, known := b.Exit(); !known || exit.Signal != syscall.SIGKILL {
		t.Errorf("%v, %v", exit, known)
	}
	if _, err := b.WhileFrozen(t.Context(), freezeLimits, func(context.Context) error { return nil }); !errors.Is(err, os.ErrProcessDone) {
		t.Errorf("a process that is gone: %v", err)
	}
}

// It comes to its end while it is frozen again and again.
func TestFreezeWhileItEnds(t *testing.T) {
	for n := range 20 {
		b := startBusy(t)
		var ended atomic.Bool
		done := make(chan struct{})
		go func() {
			defer close(done)
			for !ended.Load() {
				_, err := b.WhileFrozen(context.Background(), freezeLimits, func(context.Context) error { return nil })
				if err != nil && !errors.Is(err, ErrNotFrozen) {
					t.Error(err)
				}
			}
		}()
		time.Sleep(time.Duration(n) * time.Millisecond)
		if err := b.Signal(syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		killed := time.Now()
		wait(t, b.Process)
		if took := time.Since(killed); took > freezeLimits.Stop/2 {
			t.Errorf("it was dead for %v before anybody was told", took)
		}
		ended.Store(true)
		<-done
	}
}

// Whoever freezes is killed, and the process goes on: the kernel sees to it.
func TestFreezerIsKilled(t *testing.T) {
	b := startBusy(t)
	for range 5 {
		cmd := exec.Command("/proc/self/exe")
		cmd.Env = append(os.Environ(), "PROC_TEST_FREEZER="+strconv.Itoa(b.PID))
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		line, err := bufio.NewReader(out).ReadString('\n')
		if err == nil && line == "frozen\n" {
			err = b.stands(t.Context())
		}
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if line != "frozen\n" || err != nil {
			t.Fatalf("the freezer says %q, %v", line, err)
		}
		b.moves(t)
	}
}

// freezerMain freezes a process and waits to be killed.
func freezerMain(pid string) {
	n, err := strconv.Atoi(pid)
	if err != nil {
		panic(err)
	}
	h, err := openHandle(n)
	if err != nil {
		panic(err)
	}
	limits := FreezeLimits{Stop: time.Minute, Hold: time.Hour}
	_, err = Process{PID: n, handle: h}.WhileFrozen(context.Background(), limits, func(ctx context.Context) error {
		fmt.Println("frozen")
		<-ctx.Done()
		return nil
	})
	panic(err)
}

// A debugger is there, or we may not: the process runs on, and the error says why.
func TestNotOursToFreeze(t *testing.T) {
	strace, err := exec.LookPath("strace")
	if err != nil {
		t.Skip(err)
	}
	t.Run("every thread", func(t *testing.T) { notOursToFreeze(t, strace, "-f") })
	// That one is a child of ours, which is not to be taken for traced by us.
	t.Run("the first thread", func(t *testing.T) { notOursToFreeze(t, strace, "-q") })
}

func notOursToFreeze(t *testing.T, strace, which string) {
	b := startBusy(t)
	cmd := exec.Command(strace, which, "-p", strconv.Itoa(b.PID), "-e", "trace=none", "-o", "/dev/null")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "strace has it", func() bool { return strings.Contains(whyNotTraced(b.PID, b.PID), strconv.Itoa(cmd.Process.Pid)) })
	_, err := b.WhileFrozen(t.Context(), freezeLimits, b.stands)
	if !errors.Is(err, ErrNotFrozen) || !errors.Is(err, os.ErrPermission) || !strings.Contains(err.Error(), "traces it") {
		t.Errorf("%v", err)
	}
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	b.moves(t)
	if _, err := b.WhileFrozen(t.Context(), freezeLimits, b.stands); err != nil {
		t.Errorf("when it is gone: %v", err)
	}
	b.moves(t)
}
