package harness

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"

	"kurabe/internal/volume"
)

// stageEnv says how far the program has come on its way.
const stageEnv = "KURABE_TEST_NAMESPACE"

const (
	stageFirst  = "first"  // the first process of its namespaces
	stageInside = "inside" // the program itself, in them
	stageBelow  = "below"  // the program itself, in no namespaces but below one that buries
)

// Isolation is the environment of a program that somebody else isolates already.
const Isolation = stageEnv + "=" + stageBelow

// scratchEnv names the folder of temporary files, to the first process of the namespaces.
const scratchEnv = "KURABE_TEST_SCRATCH"

// Contained is Isolated with a folder of its own for temporary files, which goes with it.
// It is for tests; a benchmark measures the disk that it was given.
func Contained(run func() int) int {
	if os.Getenv(stageEnv) != "" {
		return Isolated(run)
	}
	scratch, err := newScratch()
	if err != nil {
		fmt.Fprintln(os.Stderr, "harness: make a folder:", err)
		return 1
	}
	defer func() {
		if err := volume.RemoveTree(filepath.Dir(scratch), scratch); err != nil {
			fmt.Fprintln(os.Stderr, "harness: remove what is left:", err)
		}
	}()
	return Isolated(run)
}

// Isolated runs the rest of a program and returns its status. Its end, however it comes, is
// the end of every process that it started: a program that panics, as a test does that has
// run out of time, cleans up nothing itself. As root it runs in namespaces of its own,
// where also loopback addresses are free, machines in miniature can be made, and mounts
// concern nobody else.
func Isolated(run func() int) int {
	switch stage := os.Getenv(stageEnv); {
	case stage == stageFirst:
		return firstProcess()
	case stage != "":
		return run()
	}
	if os.Getuid() == 0 {
		if code, ok := inNamespaces(); ok {
			return code
		}
	}
	return overseen()
}

// newScratch is where temporary files go from here on, those of engine accounts as well.
func newScratch() (string, error) {
	dir, err := os.MkdirTemp("", "kt-") // short: the path of a unix socket holds 107 bytes
	if err != nil {
		return "", err
	}
	if err := os.Chmod(dir, 0o1777); err != nil {
		return "", err
	}
	return dir, errors.Join(os.Setenv("TMPDIR", dir), os.Setenv(scratchEnv, dir))
}

// inNamespaces runs this binary again in namespaces, and says if that was possible.
func inNamespaces() (code int, ok bool) {
	runtime.LockOSThread() // the child is to die with this thread
	cmd := exec.Command("/proc/self/exe", os.Args[1:]...)
	cmd.Args[0] = os.Args[0]
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.Env = append(os.Environ(), stageEnv+"="+stageFirst)
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: unix.CLONE_NEWPID | unix.CLONE_NEWNS | unix.CLONE_NEWNET, Pdeathsig: syscall.SIGKILL,
	}
	if err := cmd.Start(); err != nil {
		fmt.Fprintln(os.Stderr, "harness: no namespaces here, running without:", err)
		return 0, false
	}
	passOn(cmd.Process.Pid)
	if err := cmd.Wait(); err != nil && cmd.ProcessState == nil {
		fmt.Fprintln(os.Stderr, "harness:", err)
		return 1, true
	}
	return exitCode(cmd.ProcessState.Sys().(syscall.WaitStatus)), true
}

// passOn gives another process the signals that are meant for all.
func passOn(pid int) {
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGQUIT)
	go func() {
		for s := range signals {
			syscall.Kill(pid, s.(syscall.Signal))
		}
	}()
}

func exitCode(s syscall.WaitStatus) int {
	if s.Signaled() {
		return 128 + int(s.Signal())
	}
	return s.ExitStatus()
}

// firstProcess is the init of the namespaces: it mounts /proc and brings up the
// loopback device. Its own end ends everything else.
func firstProcess() int {
	if err := furnish(); err != nil {
		fmt.Fprintln(os.Stderr, "harness: furnish the namespaces:", err)
		return 1
	}
	if scratch := os.Getenv(scratchEnv); scratch != "" {
		if err := journaled(scratch); err != nil {
			fmt.Fprintln(os.Stderr, "harness: tests are slower here:", err)
		}
	}
	return above(stageInside)
}

// overseen does without namespaces: whoever loses its parent becomes a child of this process,
// which ends it at last.
func overseen() int {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		fmt.Fprintln(os.Stderr, "harness: bury orphans:", err)
		return 1
	}
	code := above(stageBelow)
	for {
		// Their own children are ours as soon as they are gone.
		for _, pid := range children() {
			syscall.Kill(pid, syscall.SIGKILL)
		}
		if _, err := syscall.Wait4(-1, nil, 0, nil); err != nil && err != syscall.EINTR {
			return code // there is none any more
		}
	}
}

// above runs the program and buries, until it ends, whoever lost its parent.
func above(stage string) int {
	os.Setenv(stageEnv, stage)
	pid, err := syscall.ForkExec("/proc/self/exe", os.Args, &syscall.ProcAttr{Env: os.Environ(), Files: []uintptr{0, 1, 2}})
	if err != nil {
		fmt.Fprintln(os.Stderr, "harness: run the program:", err)
		return 1
	}
	passOn(pid)
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

// children are the processes whose parent this one is.
func children() []int {
	var list []int
	files, _ := filepath.Glob("/proc/[0-9]*") // the pattern is well formed
	for _, file := range files {
		pid, err := strconv.Atoi(filepath.Base(file))
		if parent, ok := parentOf(pid); err == nil && ok && parent == os.Getpid() {
			list = append(list, pid)
		}
	}
	return list
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
