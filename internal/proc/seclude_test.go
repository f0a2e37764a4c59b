package proc

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// stranger is an account that the system's files do not know.
var stranger = Credential{UID: 654_001, GID: 654_001, Name: "kurabe-654001"}

func asRoot(t *testing.T) {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("needs root")
	}
	if err := Secludes(); err != nil {
		t.Skip(err)
	}
}

// shared is a folder that any account can reach.
func shared(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "kurabe-seclude-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

// given is one that the stranger owns, below a folder that nobody else may enter.
func given(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(shared(t), "given")
	if err := errors.Join(os.Mkdir(dir, 0o700), os.Chown(dir, stranger.UID, stranger.GID)); err != nil {
		t.Fatal(err)
	}
	return dir
}

func script(t *testing.T, tool Tool, text string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	tool.Name, tool.Argv, tool.Env = "script", []string{"/bin/sh", "-c", text}, []string{"PATH=/usr/bin:/bin"}
	out, err := Run(ctx, tool)
	return strings.TrimSpace(string(out)), err
}

// TestSecludedSeesItsCopyAlone: no file of the host, no process, no network, and an entry
// of its own in /etc/passwd.
func TestSecludedSeesItsCopyAlone(t *testing.T) {
	asRoot(t)
	dir := given(t)
	witness := filepath.Join(shared(t), "witness")
	if err := os.WriteFile(witness, []byte("secret"), 0o644); err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	tool := Tool{Dir: dir, User: &stranger, Seclude: &Seclusion{Give: []string{dir}}}
	for what, text := range map[string]string{
		"a file of the host":      "cat " + witness,
		"another process":         fmt.Sprintf("ls -d /proc/%d", os.Getpid()),
		"signal another process":  fmt.Sprintf("kill -0 %d", os.Getpid()),
		"the host's network":      fmt.Sprintf("bash -c 'echo > /dev/tcp/127.0.0.1/%d'", listener.Addr().(*net.TCPAddr).Port),
		"the host's settings":     "ls /sys/kernel",
		"a program of the system": "touch /usr/bin/kurabe-test",
	} {
		if out, err := script(t, tool, text); err == nil {
			t.Errorf("%s: a secluded process reached it: %s", what, out)
		}
	}
	for text, want := range map[string]string{
		"whoami": stranger.Name, "id -G": fmt.Sprint(stranger.GID), "echo made > made && cat made": "made", "echo $$": "1",
		"grep NoNewPrivs /proc/self/status | tr -dc 0-9": "1", "grep CapBnd /proc/self/status | tr -dc 1-9": "", "ulimit -Hc": "0",
	} {
		if out, err := script(t, tool, text); err != nil || out != want {
			t.Errorf("%s: %q, want %q: %v", text, out, want, err)
		}
	}
	if out, err := os.ReadFile(filepath.Join(dir, "made")); err != nil || string(out) != "made\n" {
		t.Errorf("what it made in its folder: %q, %v", out, err)
	}
}

// TestNothingOutlivesTheSecluded: neither a daemon of a tool that ended nor that of a
// server that was killed.
func TestNothingOutlivesTheSecluded(t *testing.T) {
	asRoot(t)
	const daemon = "setsid sh -c 'trap \"\" HUP TERM; cd /; sleep 300' >/dev/null 2>&1 & "
	dir := given(t)
	work := shared(t)
	gone := func() {
		t.Helper()
		eventually(t, "all to be gone", func() bool {
			left, err := Owned(stranger.UID)
			return err == nil && len(left) == 0
		})
	}
	if _, err := script(t, Tool{Dir: dir, User: &stranger, Seclude: &Seclusion{Give: []string{dir}}}, daemon+"sleep 0.1"); err != nil {
		t.Fatal(err)
	}
	gone()
	p, err := Start(t.Context(), Spec{
		Name: "server", Argv: []string{"/bin/sh", "-c", daemon + "touch ready; sleep 300"}, Env: []string{"PATH=/usr/bin:/bin"},
		Dir: dir, User: &stranger, Seclude: &Seclusion{Give: []string{dir}},
		LockFile: filepath.Join(work, "lock"), RecordFile: filepath.Join(work, "record"),
	})
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "the daemon", func() bool { _, err := os.Stat(filepath.Join(dir, "ready")); return err == nil })
	found, alive, err := Find(filepath.Join(work, "record"))
	if err != nil || !alive || found.PID != p.PID {
		t.Fatalf("found pid %d, alive %v, want %d: %v", found.PID, alive, p.PID, err)
	}
	if inside, err := Survivors(dir); err != nil || !slices.Contains(inside, p.PID) {
		t.Errorf("what works in the folder: %v, want %d: %v", inside, p.PID, err)
	}
	if err := errors.Join(p.Signal(9), p.Wait(t.Context())); err != nil {
		t.Fatal(err)
	}
	gone()
}

// TestKillOwned: it ends what has left session, group and folder, and nobody else's.
func TestKillOwned(t *testing.T) {
	asRoot(t)
	dir := given(t)
	const daemon = "setsid sh -c 'cd /; sleep 300' >/dev/null 2>&1 & "
	if _, err := script(t, Tool{Dir: dir, User: &stranger}, daemon+"sleep 0.1"); err != nil {
		t.Fatal(err)
	}
	if left, err := Owned(stranger.UID); err != nil || len(left) == 0 {
		t.Fatalf("the daemon is gone already: %v, %v", left, err)
	}
	if err := KillOwned(t.Context(), stranger.UID); err != nil {
		t.Fatal(err)
	}
	if left, err := Owned(stranger.UID); err != nil || len(left) != 0 {
		t.Errorf("left: %v, %v", left, err)
	}
	for _, uid := range []int{0, -1} {
		if err := KillOwned(t.Context(), uid); err == nil {
			t.Errorf("it kills as uid %d", uid)
		}
	}
}

// TestToolHasAName: without seclusion, too, and nobody else sees the entry.
func TestToolHasAName(t *testing.T) {
	asRoot(t)
	out, err := script(t, Tool{Dir: given(t), User: &stranger}, "whoami; getent passwd root | cut -d: -f3")
	if err != nil || out != stranger.Name+"\n0" {
		t.Errorf("it is %q: %v", out, err)
	}
	if text, err := os.ReadFile("/etc/passwd"); err != nil || strings.Contains(string(text), stranger.Name) {
		t.Errorf("the host's file names it: %v", err)
	}
}

// TestNobodyIsNotRoot: to the kernel -1 is "as before".
func TestNobodyIsNotRoot(t *testing.T) {
	asRoot(t)
	if out, err := script(t, Tool{Dir: "/", User: &Credential{UID: -1, GID: -1}}, "id -u"); err == nil {
		t.Errorf("it ran as %s", out)
	}
}
