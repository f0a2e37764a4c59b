//go:build integration

package integration

import (
	"strings"
	"syscall"
	"testing"

	"kurabe/internal/harness"
)

// A Single-AZ server that stands still is told of once, over a restart of the service too, and
// once that it answers again. Nothing is done to it.
func TestServerThatHangsIsTold(t *testing.T) {
	s := harness.Start(t, harness.Options{})
	instances := one(t, s)
	pids := map[*harness.Instance]int{}
	for _, i := range instances {
		pids[i] = i.Server(t)
		if err := syscall.Kill(pids[i], syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		defer syscall.Kill(pids[i], syscall.SIGCONT)
	}
	for _, i := range instances {
		i.WaitEvent(t, "does not answer")
	}
	s.Kill(t)
	s.Start(t)
	for _, i := range instances {
		i.WaitStatus(t, "available")
		if err := syscall.Kill(pids[i], syscall.SIGCONT); err != nil {
			t.Fatal(err)
		}
		i.WaitEvent(t, "answers again")
		var mute, again int
		for _, e := range i.Events(t) {
			if strings.Contains(e, "does not answer") {
				mute++
			}
			if strings.Contains(e, "answers again") {
				again++
			}
		}
		if mute != 1 || again != 1 {
			t.Errorf("%s: told %d times that it does not answer, %d times that it does: %q", i.Name, mute, again, i.Events(t))
		}
		if now := i.Server(t); now != pids[i] {
			t.Errorf("%s: server %d became %d", i.Name, pids[i], now)
		}
	}
}
