package proc

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"
)

// A start that is given up leaves nothing, or is complete.
func TestStartGivenUp(t *testing.T) {
	for i := range 12 {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			b := newBed(t)
			spec := b.spec("/bin/sleep", "60")
			ctx, cancel := context.WithTimeout(context.Background(), time.Duration(i)*time.Millisecond)
			defer cancel()
			p, err := Start(ctx, spec)
			_, found, findErr := Find(spec.RecordFile)
			held, _ := LockHeld(spec.LockFile)
			if findErr != nil || found != (err == nil) || held != found || p.Alive() != found {
				t.Errorf("start %v, found %v %v, lock %v", err, found, findErr, held)
			}
		})
	}
}

// If the service dies in the middle of a start, the outcome is one of two: nothing,
// or a process that is found. Never an unrecorded one that holds the lock.
func TestKilledDuringStart(t *testing.T) {
	outcomes := map[bool]int{}
	for i := range 20 {
		b := newBed(t)
		spec := b.spec("/bin/sleep", "60")
		spec.Name = b.dir
		raw, err := json.Marshal(spec)
		if err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command("/proc/self/exe")
		cmd.Env = append(os.Environ(), "PROC_TEST_PARENT="+string(raw))
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		time.AfterFunc(time.Duration(i)*time.Millisecond, func() { _ = cmd.Process.Kill() })
		_ = cmd.Wait()
		// The shim may still be on its way, and then gives up.
		var found, held bool
		eventually(t, "lock and record agree", func() bool {
			var err error
			if _, found, err = Find(spec.RecordFile); err != nil {
				t.Fatal(err)
			}
			held, err = LockHeld(spec.LockFile)
			return err == nil && held == found && !shimLeft(t, spec)
		})
		outcomes[found]++
	}
	t.Logf("started %d, not started %d", outcomes[true], outcomes[false])
}

// shimLeft says if a shim of that start has not become anything yet. Its name in
// the argument list is the folder, so that tests do not see each other's.
func shimLeft(t *testing.T, spec Spec) bool {
	t.Helper()
	all, err := pids()
	if err != nil {
		t.Fatal(err)
	}
	for _, pid := range all {
		line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		if string(line) == "kurabe\x00shim\x00"+spec.Name+"\x00" {
			return true
		}
	}
	return false
}
