package harness

import (
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"kurabe/internal/proc"
	"kurabe/internal/warden"
)

// stageEnv says how far the program has come on its way into namespaces.
const stageEnv = "KURABE_TEST_NAMESPACE"

// Main runs the tests of a package, isolated.
func Main(m *testing.M) {
	if proc.IsShim() {
		proc.ShimMain()
	}
	if warden.IsWarden() {
		warden.Main()
	}
	EtcdMain()
	os.Exit(Isolated(func() int {
		code := m.Run()
		endAll()
		return code
	}))
}

// Isolated runs the rest of a program and returns its status. As root it first goes into
// namespaces of its own, where its end is the end of every process that it started, loopback
// addresses are free, machines in miniature can be made, and mounts concern nobody else.
func Isolated(run func() int) int {
	switch {
	case os.Getenv(stageEnv) == "first":
		return firstProcess()
	case os.Getuid() == 0 && os.Getenv(stageEnv) == "":
		if code, ok := isolated(); ok {
			return code
		}
	}
	return run()
}

// isolated runs this binary again in namespaces, and says if that was possible.
func isolated() (code int, ok bool) {
	runtime.LockOSThread() // the child is to die with this thread
	cmd := exec.Command("/proc/self/exe", os.Args[1:]...)
	cmd.Args[0] = os.Args[0]
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.Env = append(os.Environ(), stageEnv+"=first")
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: unix.CLONE_NEWPID | unix.CLONE_NEWNS | unix.CLONE_NEWNET, Pdeathsig: syscall.SIGKILL,
	}
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGQUIT)
	if err := cmd.Start(); err != nil {
		fmt.Fprintln(os.Stderr, "harness: no namespaces here, running without:", err)
		signal.Stop(signals)
		return 0, false
	}
	go func() {
		for s := range signals {
			cmd.Process.Signal(s)
		}
	}()
	if err := cmd.Wait(); err != nil && cmd.ProcessState == nil {
		fmt.Fprintln(os.Stderr, "harness:", err)
		return 1, true
	}
	return exitCode(cmd.ProcessState.Sys().(syscall.WaitStatus)), true
}

func exitCode(s syscall.WaitStatus) int {
	if s.Signaled() {
		return 128 + int(s.Signal())
	}
	return s.ExitStatus()
}

// firstProcess is the init of the namespaces: it mounts /proc, brings up the
// loopback device, runs the program and buries whoever lost its parent. Its own end
// ends everything else.
func firstProcess() int {
	if err := furnish(); err != nil {
		fmt.Fprintln(os.Stderr, "harness: furnish the namespaces:", err)
		return 1
	}
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGQUIT)
	os.Setenv(stageEnv, "inside")
	pid, err := syscall.ForkExec("/proc/self/exe", os.Args, &syscall.ProcAttr{Env: os.Environ(), Files: []uintptr{0, 1, 2}})
	if err != nil {
		fmt.Fprintln(os.Stderr, "harness: run the program:", err)
		return 1
	}
	go func() {
		for s := range signals {
			syscall.Kill(pid, s.(syscall.Signal))
		}
	}()
	for {
		var status syscall.WaitStatus
		got, err := syscall.Wait4(-1, &status, 0, nil)
		if err == nil && got == pid {
			return exitCode(status)
		}
		if err != nil && err != syscall.EINTR {
			fmt.Fprintln(os.Stderr, "harness: wait:", err)
			return 1
		}
	}
}

func furnish() error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("separate mounts: %w", err)
	}
	if err := unix.Mount("proc", "/proc", "proc", 0, ""); err != nil {
		return fmt.Errorf("mount /proc: %w", err)
	}
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	lo, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	lo.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	return unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, lo)
}

// Root says if the tests run as root.
func Root() bool { return os.Getuid() == 0 }

var (
	endingMu sync.Mutex // guards ending
	ending   []func()
)

// atEnd has a function called once all tests have run, last one first.
func atEnd(f func()) {
	endingMu.Lock()
	defer endingMu.Unlock()
	ending = append(ending, f)
}

func endAll() {
	for {
		endingMu.Lock()
		if len(ending) == 0 {
			endingMu.Unlock()
			return
		}
		last := ending[len(ending)-1]
		ending = ending[:len(ending)-1]
		endingMu.Unlock()
		last()
	}
}
