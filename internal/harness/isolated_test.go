package harness

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

// leaveEnv has this test binary leave a process and a folder behind, and panic.
const leaveEnv = "KURABE_TEST_LEAVE"

func TestMain(m *testing.M) {
	if os.Getenv(leaveEnv) != "" {
		os.Exit(Contained(leave))
	}
	os.Exit(m.Run())
}

func leave() int {
	dir, err := os.MkdirTemp("", "left-")
	if err != nil {
		panic(err)
	}
	// Not its child any more, and of a session of its own, as a server is.
	out, err := exec.Command("sh", "-c", "setsid sleep 600 >/dev/null 2>&1 & echo $!").Output()
	if err != nil {
		panic(err)
	}
	fmt.Printf("left %s %s\n", dir, strings.TrimSpace(string(out)))
	panic("as a test does that has run out of time")
}

// A program that dies of a panic leaves no process and no folder, with root and without.
func TestIsolatedLeavesNothing(t *testing.T) {
	users := map[string]*syscall.Credential{"as who runs the tests": nil}
	if Root() {
		users["without root"] = &syscall.Credential{Uid: 65534, Gid: 65534}
	}
	for name, user := range users {
		t.Run(name, func(t *testing.T) {
			mark := fmt.Sprintf("KURABE_TEST_MARK=%d-%d", os.Getpid(), time.Now().UnixNano())
			cmd := exec.Command("/proc/self/exe")
			cmd.Dir = "/"
			cmd.Env = append(os.Environ(), leaveEnv+"=1", stageEnv+"=", scratchEnv+"=", "TMPDIR=/tmp", mark)
			cmd.SysProcAttr = &syscall.SysProcAttr{Credential: user}
			out, err := cmd.CombinedOutput()
			var ended *exec.ExitError
			if !errors.As(err, &ended) || ended.ExitCode() != 2 {
				t.Fatalf("%v\n%s", err, out)
			}
			var dir, pid string
			if _, err := fmt.Sscanf(string(out), "left %s %s", &dir, &pid); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("the folder %s: %v", dir, err)
			}
			if left := marked(mark); len(left) > 0 {
				t.Errorf("processes %q are left", left)
			}
		})
	}
}

// marked are the processes that have a line of environment.
func marked(mark string) []string {
	var left []string
	entries, _ := os.ReadDir("/proc") // none, no process
	for _, e := range entries {
		env, _ := os.ReadFile("/proc/" + e.Name() + "/environ") // no process, or gone
		if strings.Contains(string(env), mark) {
			left = append(left, e.Name())
		}
	}
	return left
}
