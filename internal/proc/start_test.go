package proc

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

func TestStartAndExit(t *testing.T) {
	b := newBed(t)
	p := b.start(t, "/bin/sh", "-c", `echo "in $PWD umask $(umask) files $(ulimit -n) env $(env | grep -c .)"; exit 3`)
	wait(t, p)
	if p.Alive() {
		t.Error("alive after Wait")
	}
	if exit, ok := p.Exit(); !ok || exit.Code != 3 {
		t.Errorf("exit = %v, %v", exit, ok)
	}
	if err := p.Signal(syscall.SIGTERM); !errors.Is(err, os.ErrProcessDone) {
		t.Errorf("signal to the dead: %v", err)
	}
	if log := b.log(t); !strings.Contains(log, "in "+b.data+" umask 0077") {
		t.Errorf("log = %q", log)
	}
	if _, err := os.Stat(fmt.Sprintf("/proc/%d", p.PID)); !errors.Is(err, fs.ErrNotExist) {
		t.Error("child was not reaped")
	}
}

func TestStartLeaksNothing(t *testing.T) {
	b := newBed(t)
	leak, err := os.Open("/dev/null")
	if err != nil {
		t.Fatal(err)
	}
	defer leak.Close()
	// A descriptor that somebody forgot to mark close-on-exec.
	err = onFD(leak, func(fd int) error {
		_, err := unix.FcntlInt(uintptr(fd), unix.F_SETFD, 0)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	p := b.start(t, "/bin/sleep", "60")
	entries, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", p.PID))
	if err != nil {
		t.Fatal(err)
	}
	var open []string
	for _, e := range entries {
		target, _ := os.Readlink(fmt.Sprintf("/proc/%d/fd/%s", p.PID, e.Name()))
		open = append(open, target)
	}
	if len(open) != 4 || open[3] != filepath.Join(b.dir, "lock") {
		t.Errorf("open files: %v, want standard three and the lock", open)
	}
	// Signals from 32 on belong to the C library; whether they are ignored is what
	// we were started with, and Go cannot change it.
	for _, set := range []string{"SigIgn:", "SigBlk:"} {
		if leaks := signals(t, p.PID, set) &^ (signals(t, os.Getpid(), set) &^ (1<<31 - 1)); leaks != 0 {
			t.Errorf("signal state leaks: %s %x", set, leaks)
		}
	}
	st, err := readStat(fmt.Sprint(p.PID))
	if err != nil || st.startTime != p.StartTime {
		t.Errorf("exec changed the start time: %v, %v", st, err)
	}
	if sid, err := syscall.Getpgid(p.PID); err != nil || sid != p.PID {
		t.Errorf("process group %d, want its own", sid)
	}
}

// signals reads a set of signals of a process; bit 0 is signal 1.
func signals(t *testing.T, pid int, name string) uint64 {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(status), "\n"+name)
	line, _, _ := strings.Cut(after, "\n")
	set, err := strconv.ParseUint(strings.TrimSpace(line), 16, 64)
	if err != nil {
		t.Fatalf("%s in the status of %d: %v", name, pid, err)
	}
	return set
}

func TestStartRefusesSecond(t *testing.T) {
	b := newBed(t)
	p := b.start(t, "/bin/sleep", "60")
	_, err := Start(deadline(t), b.spec("/bin/sleep", "61"))
	var held *LockHeldError
	if !errors.As(err, &held) || held.PID != p.PID || !errors.Is(err, ErrLockHeld) {
		t.Fatalf("second start: %v, want lock held by %d", err, p.PID)
	}
	if got, found, err := Find(b.spec().RecordFile); err != nil || !found || got.PID != p.PID {
		t.Errorf("the refused start spoilt the record: %v %v %v", got, found, err)
	}
	_ = p.Signal(syscall.SIGKILL)
	wait(t, p)
	b.start(t, "/bin/sleep", "62")
}

// A server that dies and leaves a child behind must not get a successor.
func TestLockOutlivesParentProcess(t *testing.T) {
	b := newBed(t)
	p := b.start(t, "/bin/sh", "-c", "sleep 60 & exit 0")
	wait(t, p)
	if held, err := LockHeld(b.spec().LockFile); err != nil || !held {
		t.Fatalf("lock held = %v, %v; the child still runs", held, err)
	}
	left, err := Survivors(b.data)
	if err != nil || len(left) != 1 {
		t.Fatalf("survivors = %v, %v", left, err)
	}
	_, err = Start(deadline(t), b.spec("/bin/true"))
	var held *LockHeldError
	if !errors.As(err, &held) || held.PID != left[0] {
		t.Errorf("start beside a survivor: %v, want lock held by %d", err, left[0])
	}
	if err := KillSurvivors(deadline(t), b.data); err != nil {
		t.Fatal(err)
	}
	if held, err := LockHeld(b.spec().LockFile); err != nil || held {
		t.Errorf("lock held = %v, %v after all were killed", held, err)
	}
	wait(t, b.start(t, "/bin/true"))
}

func TestStartErrors(t *testing.T) {
	cases := map[string]struct {
		change func(*Spec)
		step   string
		is     error
	}{
		"no such program":  {func(s *Spec) { s.Argv = []string{"/nonexistent/postgres"} }, "exec", syscall.ENOENT},
		"no data folder":   {func(s *Spec) { s.Dir = "/nonexistent" }, "enter data folder", syscall.ENOENT},
		"no lock folder":   {func(s *Spec) { s.LockFile = "/nonexistent/lock" }, "lock", syscall.ENOENT},
		"no record folder": {func(s *Spec) { s.RecordFile = "/nonexistent/record" }, "write record", syscall.ENOENT},
		"no cgroup":        {func(s *Spec) { s.Cgroups = []string{"/nonexistent/cgroup.procs"} }, "join cgroup", syscall.ENOENT},
		"log is a link": {func(s *Spec) {
			s.StdoutStderr = s.LockFile + ".link"
			_ = os.Symlink("/etc/passwd", s.StdoutStderr)
		}, "open log", syscall.ELOOP},
		"log has another name": {func(s *Spec) {
			s.StdoutStderr = s.LockFile + ".hard"
			_ = os.WriteFile(s.LockFile, nil, 0o600)
			_ = os.Link(s.LockFile, s.StdoutStderr)
		}, "open log", nil},
		"log is a pipe": {func(s *Spec) {
			s.StdoutStderr = s.LockFile + ".pipe"
			_ = syscall.Mkfifo(s.StdoutStderr, 0o600)
		}, "open log", syscall.ENXIO},
		"bind source missing": {func(s *Spec) {
			s.BindFrom, s.BindAs = "/nonexistent", s.LockFile+".bind"
		}, "bind data folder", nil},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			b := newBed(t)
			spec := b.spec("/bin/true")
			c.change(&spec)
			_, err := Start(deadline(t), spec)
			var failed *StartError
			if !errors.As(err, &failed) || failed.Step != c.step || (c.is != nil && !errors.Is(err, c.is)) {
				t.Fatalf("error = %v, want step %q and %v", err, c.step, c.is)
			}
			if _, err := os.Stat(spec.RecordFile); !errors.Is(err, fs.ErrNotExist) {
				t.Error("a record is left of a start that failed")
			}
			if _, found, err := Find(spec.RecordFile); found || err != nil {
				t.Errorf("found = %v, %v", found, err)
			}
			if held, _ := LockHeld(spec.LockFile); held {
				t.Error("lock is still held")
			}
		})
	}
}

func TestStartChecksSpec(t *testing.T) {
	b := newBed(t)
	for name, change := range map[string]func(*Spec){
		"relative program": func(s *Spec) { s.Argv = []string{"sleep"} },
		"no program":       func(s *Spec) { s.Argv = nil },
		"no folder":        func(s *Spec) { s.Dir = "" },
		"relative lock":    func(s *Spec) { s.LockFile = "lock" },
		"no record":        func(s *Spec) { s.RecordFile = "" },
	} {
		spec := b.spec("/bin/true")
		change(&spec)
		if _, err := Start(deadline(t), spec); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

// The engine gets only what its user may have, and the arguments show no order.
func TestStartAsOtherUser(t *testing.T) {
	user := other(t)
	b := newBed(t)
	open(t, b.dir)
	spec := b.spec("/bin/sh", "-c", "id; cat /proc/self/oom_score_adj; ulimit -n; grep CapEff /proc/self/status")
	spec.User, spec.OOMScoreAdj, spec.Nofile, spec.Umask = user, 321, 512, 0o027
	p, err := Start(deadline(t), spec)
	if err != nil {
		t.Fatal(err)
	}
	wait(t, p)
	want := []string{fmt.Sprintf("uid=%d", user.UID), "321", "512", "CapEff:\t0000000000000000"}
	for _, w := range want {
		if log := b.log(t); !strings.Contains(log, w) || strings.Contains(log, "groups=0") {
			t.Errorf("log = %q, want %q", log, w)
		}
	}
}

// open makes the temp folders above dir passable for other users.
func open(t *testing.T, dir string) {
	t.Helper()
	for ; dir != os.TempDir() && dir != "/"; dir = filepath.Dir(dir) {
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
}

func TestShimByHand(t *testing.T) {
	out, err := exec.Command("/proc/self/exe", "shim").CombinedOutput()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 127 {
		t.Errorf("shim by hand: %v %s", err, out)
	}
}
