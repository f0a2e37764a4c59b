package harness

import (
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"kurabe/internal/proc"
)

// Freeze stops the program itself, and nothing else; Thaw has it go on.
func (s *Service) Freeze(t testing.TB) {
	t.Helper()
	if err := syscall.Kill(s.PID(), syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Kill(s.PID(), syscall.SIGCONT) })
}

// Thaw ends Freeze.
func (s *Service) Thaw(t testing.TB) {
	t.Helper()
	if err := syscall.Kill(s.PID(), syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
}

// Wardens are the processes that end the servers of this host with their leases.
func (s *Service) Wardens() []int {
	var list []int
	for _, id := range s.Homes() {
		p, alive, err := proc.Find(filepath.Join(s.Data, "instances", id, "warden", "warden.json"))
		if err == nil && alive {
			list = append(list, p.PID)
		}
	}
	return list
}

// EndWardens kills them, as a loss of power does.
func (s *Service) EndWardens(t testing.TB) {
	t.Helper()
	for _, pid := range s.Wardens() {
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
	}
}

// FreezeAll stops everything of a host that has to do with an instance: its agent, wardens and
// servers. thaw has all of it go on, the servers first: what they do before anybody ends them
// is the worst case.
func (s *Service) FreezeAll(t testing.TB, id string) (thaw func()) {
	t.Helper()
	s.Freeze(t)
	wardens, members := s.Wardens(), s.Members(id)
	for _, pid := range wardens {
		if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
	}
	for _, m := range members {
		if err := m.Freeze(); err != nil {
			t.Fatal(err)
		}
	}
	return func() {
		for _, m := range members {
			_ = m.Thaw()
		}
		for _, pid := range wardens {
			_ = syscall.Kill(pid, syscall.SIGCONT)
		}
		s.Thaw(t)
	}
}

// Alive says whether there is such a process.
func Alive(pid int) bool { return syscall.Kill(pid, 0) == nil }

// WaitEnded waits until there is no such process any more, and says how long it took.
func WaitEnded(t testing.TB, within time.Duration, what string, pid int) time.Duration {
	t.Helper()
	return Wait(t, within, what, func() string {
		if Alive(pid) {
			return "it lives"
		}
		return ""
	})
}
