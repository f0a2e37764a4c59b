package proc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

func TestAdoptAfterKill(t *testing.T) {
	b := newBed(t)
	spec := b.spec("/bin/sh", "-c", "echo up; exec sleep 60")
	killedParent(t, spec)

	p, found, err := Find(spec.RecordFile)
	if err != nil || !found || !p.Alive() {
		t.Fatalf("find = %v, %v, %v", p, found, err)
	}
	if p.Tags["nonce"] != "n1" {
		t.Errorf("tags = %v", p.Tags)
	}
	if _, err := Start(deadline(t), spec); !errors.Is(err, ErrLockHeld) {
		t.Errorf("second start: %v", err)
	}
	short, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	if err := p.Wait(short); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("wait for a living process: %v", err)
	}
	if err := p.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	wait(t, p)
	if p.Alive() {
		t.Error("alive after Wait")
	}
	if exit, ok := p.Exit(); ok && exit.Signal != syscall.SIGTERM {
		t.Errorf("exit = %v", exit)
	}
	if _, found, err := Find(spec.RecordFile); found || err != nil {
		t.Errorf("found the dead: %v, %v", found, err)
	}
}

func TestFindOwnChild(t *testing.T) {
	b := newBed(t)
	p := b.start(t, "/bin/sleep", "60")
	again, found, err := Find(b.spec().RecordFile)
	if err != nil || !found || again.PID != p.PID {
		t.Fatal(again, found, err)
	}
	if err := again.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	wait(t, again)
	for _, each := range []Process{p, again} {
		if exit, ok := each.Exit(); !ok || exit.Signal != syscall.SIGKILL {
			t.Errorf("exit = %v, %v", exit, ok)
		}
	}
}

func TestFindRefuses(t *testing.T) {
	b := newBed(t)
	p := b.start(t, "/bin/sleep", "60")
	good, _, err := readRecord(b.spec().RecordFile)
	if err != nil {
		t.Fatal(err)
	}
	if good.PID != p.PID || good.StartTime != p.StartTime || good.Argv0 != "/bin/sleep" {
		t.Fatalf("record = %+v", good)
	}
	cases := map[string]func(*record){
		"reused pid":   func(r *record) { r.StartTime++ },
		"other boot":   func(r *record) { r.BootID = "11111111-2222-3333-4444-555555555555" },
		"free pid":     func(r *record) { r.PID = 1 << 22 },
		"pid zero":     func(r *record) { r.PID = 0 },
		"other's pid":  func(r *record) { r.PID = 1 },
		"negative pid": func(r *record) { r.PID = -1 },
	}
	for name, change := range cases {
		t.Run(name, func(t *testing.T) {
			rec := good
			change(&rec)
			raw, _ := json.Marshal(rec)
			path := filepath.Join(t.TempDir(), "record")
			if err := os.WriteFile(path, raw, 0o600); err != nil {
				t.Fatal(err)
			}
			if got, found, err := Find(path); found || err != nil {
				t.Errorf("found %v, %v, %v", got, found, err)
			}
		})
	}
	// What a cut of power leaves of a file whose content was not on the disk yet.
	for _, content := range []string{"", "\x00\x00\x00"} {
		lost := filepath.Join(t.TempDir(), "record")
		_ = os.WriteFile(lost, []byte(content), 0o600)
		if got, found, err := Find(lost); found || err != nil {
			t.Errorf("a record without content: %v, %v, %v", got, found, err)
		}
		if same, err := SameBoot(lost); same || err != nil {
			t.Errorf("a record without content is of this boot: %v, %v", same, err)
		}
	}
	torn := filepath.Join(t.TempDir(), "record")
	_ = os.WriteFile(torn, []byte(`{"pid":`), 0o600)
	if _, _, err := Find(torn); err == nil {
		t.Error("a broken record was taken for a missing one")
	}
}

// A zombie holds a pid but no files: it is gone. Here it is a child of a foreign
// parent that does not reap.
func TestZombieIsGone(t *testing.T) {
	b := newBed(t)
	parent := b.start(t, "/bin/sh", "-c", `sleep 60 & echo $!; exec sleep 61`)
	var pid int
	eventually(t, "child", func() bool {
		_, err := fmt.Sscan(b.log(t), &pid)
		return err == nil
	})
	st, err := readStat(fmt.Sprint(pid))
	if err != nil {
		t.Fatal(err)
	}
	boot, _ := bootID()
	raw, _ := json.Marshal(record{PID: pid, StartTime: st.startTime, BootID: boot})
	path := filepath.Join(b.dir, "child-record")
	if err := os.WriteFile(path, raw, 0o600); err != nil {
		t.Fatal(err)
	}
	child, found, err := Find(path)
	if err != nil || !found {
		t.Fatal(found, err)
	}
	_ = child.Signal(syscall.SIGKILL)
	wait(t, child)
	if st, err := readStat(fmt.Sprint(pid)); err != nil || !st.zombie() {
		t.Fatalf("not a zombie: %v, %v", st, err)
	}
	if _, found, err := Find(path); found || err != nil || child.Alive() {
		t.Errorf("zombie found = %v, %v", found, err)
	}
	if left, _ := Survivors(b.data); len(left) != 1 || left[0] != parent.PID {
		t.Errorf("survivors = %v, want only %d", left, parent.PID)
	}
}

// Waiting must not cost a thread each: a host has hundreds of engines.
func TestWaitCostsNoThread(t *testing.T) {
	b := newBed(t)
	p := b.start(t, "/bin/sleep", "60")
	const waiters = 300
	var all sync.WaitGroup
	errs := make(chan error, waiters)
	ctx := deadline(t)
	for range waiters {
		all.Go(func() { errs <- p.Wait(ctx) })
	}
	eventually(t, "all wait", func() bool { return countFDs(t) > waiters })
	// Opening the handles is itself a burst of system calls, for which the runtime
	// keeps some threads on a slow machine; a thread a waiter would be all of them.
	if n := threads(t); n > waiters/2 {
		t.Errorf("%d threads for %d waiters", n, waiters)
	}
	_ = p.Signal(syscall.SIGKILL)
	all.Wait()
	for range waiters {
		if err := <-errs; err != nil {
			t.Fatal(err)
		}
	}
}

func countFDs(t *testing.T) int {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}

func threads(t *testing.T) int {
	entries, err := os.ReadDir("/proc/self/task")
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}

func TestSurvivorsByInode(t *testing.T) {
	b := newBed(t)
	link, moved := filepath.Join(b.dir, "link"), filepath.Join(b.dir, "moved")
	cmd := exec.Command("/bin/sleep", "60")
	cmd.Dir = b.data
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Rename(b.data, moved), os.Symlink(moved, link)); err != nil {
		t.Fatal(err)
	}
	// A link is somebody's who wants to have others killed.
	if left, err := Survivors(link); !errors.Is(err, syscall.ELOOP) {
		t.Errorf("by a link: %v, %v", left, err)
	}
	if err := errors.Join(KillSurvivors(deadline(t), link), Resume(link)); !errors.Is(err, syscall.ELOOP) {
		t.Errorf("killed by a link: %v", err)
	}
	if err := cmd.Process.Signal(syscall.Signal(0)); err != nil {
		t.Fatal(err)
	}
	left, err := Survivors(moved)
	if err != nil || len(left) != 1 || left[0] != cmd.Process.Pid {
		t.Errorf("survivors = %v, %v", left, err)
	}
	// It is a child that somebody else reaps: KillSurvivors must leave that to them.
	if err := KillSurvivors(deadline(t), moved); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err == nil || !strings.Contains(err.Error(), "killed") {
		t.Errorf("wait = %v", err)
	}
}

func TestParseStat(t *testing.T) {
	rest := strings.Repeat(" 0", 18) + " 777 1 2"
	for name, line := range map[string]string{
		"plain":       "12 (postgres) S" + rest,
		"parentheses": "12 (a) b) (c) S" + rest,
	} {
		if st, err := parseStat([]byte(line)); err != nil || st != (stat{12, 'S', 777}) {
			t.Errorf("%s: %+v, %v", name, st, err)
		}
	}
	for _, line := range []string{"", "12", "12 (x", ") 12 (", "12 (x) S 1", "x (x) S" + rest} {
		if st, err := parseStat([]byte(line)); err == nil {
			t.Errorf("%q parsed as %+v", line, st)
		}
	}
}
