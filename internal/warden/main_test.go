package warden

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"kurabe/internal/proc"
)

// TestMain lets the test binary play the shim, the warden, and an agent that gets killed.
func TestMain(m *testing.M) {
	if proc.IsShim() {
		proc.ShimMain()
	}
	if IsWarden() {
		Main()
	}
	if raw := os.Getenv("WARDEN_TEST_AGENT"); raw != "" {
		agentMain(raw)
	}
	os.Exit(m.Run())
}

// agentMain starts a warden, gives it a lease, says so and waits to be killed.
func agentMain(raw string) {
	var o order
	if err := json.Unmarshal([]byte(raw), &o); err != nil {
		panic(err)
	}
	w, err := Ensure(context.Background(), o.Config)
	if err == nil {
		err = w.Extend(context.Background(), Now()+o.Until, Target{})
	}
	if err != nil {
		fmt.Println("failed:", err)
	} else {
		fmt.Println("pid", w.process.PID)
	}
	select {}
}

// bed is the folder of one pretended instance.
type bed struct {
	dir    string
	config Config
}

func newBed(t *testing.T) bed {
	t.Helper()
	dir := t.TempDir()
	b := bed{dir, Config{
		Dir: filepath.Join(dir, "run"), DataDir: filepath.Join(dir, "data"),
		RecordFile: filepath.Join(dir, "run", "engine.json"), LockFile: filepath.Join(dir, "run", "engine.lock"),
	}}
	for _, d := range []string{b.config.Dir, b.config.DataDir} {
		if err := os.Mkdir(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() {
		if p, found, _ := proc.Find(b.config.file(recordName)); found {
			_ = p.Signal(syscall.SIGKILL)
			_ = p.Wait(deadline(t))
		}
		if err := proc.KillSurvivors(context.Background(), b.config.DataDir); err != nil {
			t.Errorf("clean up: %v", err)
		}
	})
	return b
}

// server is a tree that obeys no polite signal: a parent, a child that works elsewhere, one
// in a session of its own, and one that is stopped.
const serverScript = `trap '' TERM HUP INT
sh -c 'trap "" TERM; cd /; echo elsewhere $$ >&2; while :; do sleep 1000; done' &
setsid sh -c 'trap "" TERM; while :; do sleep 1000; done' &
sh -c 'echo stopped $$ >&2; kill -STOP $$' &
while :; do sleep 1000; done`

// start runs the server and returns its processes.
func (b bed) start(t *testing.T) (proc.Process, []int) {
	t.Helper()
	p, err := proc.Start(deadline(t), b.spec(serverScript))
	if err != nil {
		t.Fatal(err)
	}
	const all = 8 // four shells, and a sleep of each but the stopped one; and the log's two lines
	var pids []int
	eventually(t, "the server's tree", func() bool {
		pids, err = proc.Survivors(b.config.DataDir)
		log, _ := os.ReadFile(filepath.Join(b.dir, "log"))
		return err == nil && len(pids) >= 5 && strings.Count(string(log), "\n") == 2 && stopped(number(string(log), "stopped"))
	})
	log, _ := os.ReadFile(filepath.Join(b.dir, "log"))
	pids = append(pids, number(string(log), "elsewhere"))
	if len(pids) > all {
		t.Fatalf("processes %v", pids)
	}
	return p, pids
}

func (b bed) spec(script string) proc.Spec {
	return proc.Spec{
		Name: "server", Argv: []string{"/bin/sh", "-c", script}, Dir: b.config.DataDir, Env: []string{"PATH=/usr/bin:/bin"},
		StdoutStderr: filepath.Join(b.dir, "log"), LockFile: b.config.LockFile, RecordFile: b.config.RecordFile,
	}
}

// number is what follows a word at the start of a line.
func number(log, word string) int {
	for line := range strings.Lines(log) {
		if after, ok := strings.CutPrefix(line, word+" "); ok {
			n, _ := strconv.Atoi(strings.TrimSpace(after))
			return n
		}
	}
	return 0
}

// state is a process's of /proc: 0 once it is gone.
func state(pid int) byte {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	_, after, _ := strings.Cut(string(raw), ") ")
	return after[0]
}

func stopped(pid int) bool { return pid != 0 && state(pid) == 'T' }

func dead(pids []int) bool {
	for _, pid := range pids {
		if s := state(pid); s != 0 && s != 'Z' && s != 'X' {
			return false
		}
	}
	return true
}

func (b bed) ensure(t *testing.T) *Warden {
	t.Helper()
	w, err := Ensure(deadline(t), b.config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Close)
	return w
}

func extend(t *testing.T, w *Warden, by time.Duration) int64 {
	t.Helper()
	until := Now() + int64(by)
	if err := w.Extend(deadline(t), until, Target{}); err != nil {
		t.Fatal(err)
	}
	return until
}

// killed waits for the end of the tree, and says how late after the end of its lease it came.
func killed(t *testing.T, pids []int, until int64) time.Duration {
	t.Helper()
	eventually(t, "the server's end", func() bool { return dead(pids) })
	late := time.Duration(Now() - until)
	if late < 0 {
		t.Errorf("ended %v before the end of its lease", -late)
	}
	return late
}

func ended(t *testing.T, w *Warden) {
	t.Helper()
	if err := w.Wait(deadline(t)); err != nil {
		t.Fatal(err)
	}
}

func deadline(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	t.Cleanup(cancel)
	return ctx
}

// eventually waits for a condition that no event announces.
func eventually(t *testing.T, what string, cond func() bool) {
	t.Helper()
	for ctx := deadline(t); !cond(); {
		select {
		case <-ctx.Done():
			t.Fatalf("not in time: %s", what)
		case <-time.After(2 * time.Millisecond):
		}
	}
}

// until waits for a moment of Now.
func until(t *testing.T, moment int64) {
	t.Helper()
	eventually(t, "a moment", func() bool { return Now() > moment })
}

// agent runs what starts a warden as a process of its own.
func (b bed) agent(t *testing.T, lease time.Duration) *exec.Cmd {
	t.Helper()
	raw, err := json.Marshal(order{Config: b.config, Until: int64(lease)})
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), "WARDEN_TEST_AGENT="+string(raw))
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	var word, rest string
	if _, err := fmt.Fscan(out, &word, &rest); err != nil || word != "pid" {
		t.Fatalf("agent: %s %s %v", word, rest, errors.Join(err))
	}
	return cmd
}
