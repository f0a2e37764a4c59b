package daemon

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"kurabe/internal/proc"
)

const patience = time.Minute

// TestMain lets the test binary play the shim, a service that gets killed, and a daemon.
func TestMain(m *testing.M) {
	if proc.IsShim() {
		proc.ShimMain()
	}
	if len(os.Args) == 2 && os.Args[1] == "be-a-daemon" {
		fmt.Println("ready")
		select {}
	}
	if raw := os.Getenv("DAEMON_TEST_SERVICE"); raw != "" {
		var d Daemon
		if err := json.Unmarshal([]byte(raw), &d); err != nil {
			panic(err)
		}
		p, err := d.Start(context.Background(), spec())
		fmt.Println(p.PID, err)
		select {}
	}
	os.Exit(m.Run())
}

// spec is of a program that is no engine.
func spec() proc.Spec {
	self, err := os.Executable()
	if err != nil {
		panic(err)
	}
	return proc.Spec{Name: "no engine", Argv: []string{self, "be-a-daemon"}, Env: []string{}, Tags: map[string]string{"version": "1"}}
}

func newDaemon(t *testing.T) Daemon {
	t.Helper()
	dir := t.TempDir()
	d := Daemon{Work: filepath.Join(dir, "work"), Lock: filepath.Join(dir, "lock"), Record: filepath.Join(dir, "process.json"), Log: filepath.Join(dir, "log")}
	if err := os.Mkdir(d.Work, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Kill(context.Background(), syscall.SIGKILL, patience, nil); err != nil {
			t.Error(err)
		}
	})
	return d
}

func awaitReady(t *testing.T, d Daemon, p proc.Process) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	err := Await(ctx, p, func() (bool, error) {
		text, err := os.ReadFile(d.Log)
		return strings.Contains(string(text), "ready"), err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// A process that is no engine lives on when its service is killed, and the next service
// adopts it: it finds it, is refused a second one, and stops it.
func TestAdopt(t *testing.T) {
	d := newDaemon(t)
	raw, err := json.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	service := exec.Command("/proc/self/exe")
	service.Env = append(os.Environ(), "DAEMON_TEST_SERVICE="+string(raw))
	said, err := service.StdoutPipe()
	if err == nil {
		err = service.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	var pid int
	_, scanErr := fmt.Fscan(said, &pid)
	if err := service.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = service.Wait() // It was killed.
	p, alive, err := d.Find()
	if scanErr != nil || err != nil || !alive || p.PID != pid || p.Tags["version"] != "1" {
		t.Fatalf("started %d (%v), found %d, alive %v, tags %v, %v", pid, scanErr, p.PID, alive, p.Tags, err)
	}
	awaitReady(t, d, p)
	if _, err := d.Start(t.Context(), spec()); !errors.Is(err, proc.ErrLockHeld) {
		t.Errorf("a second one: %v", err)
	}
	stopped, asked, err := d.Stop(t.Context(), syscall.SIGTERM)
	if err != nil || !asked || stopped.PID != pid || p.Alive() {
		t.Errorf("stopped %d, asked %v, alive %v, %v", stopped.PID, asked, p.Alive(), err)
	}
	if err := d.Forget(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(d.Record); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the record after the end: %v", err)
	}
	if err := d.Forget(); err != nil {
		t.Errorf("forget it again: %v", err)
	}
}

// A record has these fields, in the bytes that earlier versions wrote and read.
func TestRecordOfAnEarlierVersion(t *testing.T) {
	d := newDaemon(t)
	p, err := d.Start(t.Context(), spec())
	if err != nil {
		t.Fatal(err)
	}
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		t.Fatal(err)
	}
	earlier := fmt.Sprintf(`{"pid":%d,"start_time":%d,"boot_id":%q,"argv0":%q,"tags":{"version":"1"}}`,
		p.PID, p.StartTime, strings.TrimSpace(string(boot)), spec().Argv[0])
	now, err := os.ReadFile(d.Record)
	if err != nil || strings.TrimSpace(string(now)) != earlier {
		t.Fatalf("the record is\n%s\nand was\n%s\n%v", now, earlier, err)
	}
	if err := os.WriteFile(d.Record, []byte(earlier), 0o600); err != nil {
		t.Fatal(err)
	}
	if found, alive, err := d.Find(); err != nil || !alive || found.PID != p.PID {
		t.Errorf("of the earlier record: %d, alive %v, %v", found.PID, alive, err)
	}
}

// Whoever waits for a process that ends is told so; one without its signal is killed.
func TestEnd(t *testing.T) {
	d := newDaemon(t)
	p, err := d.Start(t.Context(), spec())
	if err != nil {
		t.Fatal(err)
	}
	awaitReady(t, d, p)
	// SIGURG is ignored by default: only the kill after the grace ends it.
	if err := d.Kill(t.Context(), syscall.SIGURG, time.Millisecond, nil); err != nil {
		t.Fatal(err)
	}
	if err := Await(t.Context(), p, func() (bool, error) { return false, nil }); !errors.Is(err, ErrEnded) {
		t.Errorf("waiting for the ended: %v", err)
	}
	d.Quiet(t.Context())
	if held, err := proc.LockHeld(d.Lock); held || err != nil {
		t.Errorf("lock held %v, %v", held, err)
	}
}
