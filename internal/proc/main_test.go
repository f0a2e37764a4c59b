package proc

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"testing"
	"time"
)

// TestMain lets the test binary play the shim, and a service that gets killed.
func TestMain(m *testing.M) {
	if IsShim() {
		ShimMain()
	}
	if raw := os.Getenv("PROC_TEST_PARENT"); raw != "" {
		parentMain(raw)
	}
	if path := os.Getenv("PROC_TEST_BUSY"); path != "" {
		busyMain(path)
	}
	if pid := os.Getenv("PROC_TEST_FREEZER"); pid != "" {
		freezerMain(pid)
	}
	os.Exit(m.Run())
}

// parentMain starts what it is told, says so and waits to be killed.
func parentMain(raw string) {
	var spec Spec
	if err := json.Unmarshal([]byte(raw), &spec); err != nil {
		panic(err)
	}
	p, err := Start(context.Background(), spec)
	fmt.Println(p.PID, err)
	select {}
}

// bed is the folder of one pretended instance. Everything in it is killed when the
// test ends.
type bed struct {
	dir, data string
}

func newBed(t *testing.T) bed {
	t.Helper()
	dir := t.TempDir()
	b := bed{dir, filepath.Join(dir, "data")}
	if err := os.Mkdir(b.data, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := KillSurvivors(context.Background(), b.data); err != nil && !gone(err) {
			t.Errorf("clean up: %v", err)
		}
	})
	return b
}

func (b bed) spec(argv ...string) Spec {
	return Spec{
		Name: "test", Argv: argv, Dir: b.data,
		Env:          []string{"PATH=/usr/bin:/bin"},
		StdoutStderr: filepath.Join(b.dir, "log"),
		LockFile:     filepath.Join(b.dir, "lock"),
		RecordFile:   filepath.Join(b.dir, "record"),
		Tags:         map[string]string{"nonce": "n1"},
	}
}

func (b bed) start(t *testing.T, argv ...string) Process {
	t.Helper()
	p, err := Start(deadline(t), b.spec(argv...))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func (b bed) log(t *testing.T) string {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(b.dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
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

func wait(t *testing.T, p Process) {
	t.Helper()
	if err := p.Wait(deadline(t)); err != nil {
		t.Fatal(err)
	}
}

// other is a user without rights, for tests as root.
func other(t *testing.T) *Credential {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
	u, err := user.Lookup("nobody")
	if err != nil {
		t.Skip(err)
	}
	uid, _ := strconv.Atoi(u.Uid)
	gid, _ := strconv.Atoi(u.Gid)
	return &Credential{UID: uid, GID: gid}
}

// killedParent runs Start in a process of its own and kills that with SIGKILL.
func killedParent(t *testing.T, spec Spec) {
	t.Helper()
	raw, err := json.Marshal(spec)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), "PROC_TEST_PARENT="+string(raw))
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var pid int
	var message string
	if _, err := fmt.Fscan(out, &pid, &message); err != nil || message != "<nil>" {
		t.Errorf("parent could not start: %d %s %v", pid, message, err)
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
}
