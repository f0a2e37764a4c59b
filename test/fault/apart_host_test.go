//go:build fault

package fault

import (
	"context"
	"syscall"
	"testing"
	"time"

	"kurabe/internal/harness"
)

// part is a kind of process on a host.
type part int

const (
	agents part = 1 << iota
	wardens
	servers
	everything = agents | wardens | servers
)

// pids are the processes of some parts of a host. Servers come first: so they go on first,
// and what they do before anybody ends them is the worst case.
func (h *apartHost) pids(of part) (list []int) {
	if of&servers != 0 {
		for _, id := range h.Homes() {
			list = append(list, h.Processes(id)...)
		}
	}
	if of&wardens != 0 {
		list = append(list, h.Wardens()...)
	}
	if of&agents != 0 && h.Running() {
		list = append(list, h.PID())
	}
	return list
}

// frozenRounds bounds the looks for processes that others have begun meanwhile.
const frozenRounds = 20

// freeze stops some parts of a host, and has all of it go on. Whoever is killed meanwhile
// minds neither.
func (h *apartHost) freeze(of part) (thaw func()) {
	seen := map[int]bool{}
	var stopped []int
	for range frozenRounds {
		fresh := false
		for _, pid := range h.pids(of) {
			if !seen[pid] && syscall.Kill(pid, syscall.SIGSTOP) == nil {
				stopped, fresh = append(stopped, pid), true
			}
			seen[pid] = true
		}
		if !fresh {
			break
		}
	}
	return func() {
		for _, pid := range stopped {
			_ = syscall.Kill(pid, syscall.SIGCONT) // it may have ended
		}
	}
}

// kill ends some parts of a host at once.
func (h *apartHost) kill(of part) {
	for _, pid := range h.pids(of) {
		_ = syscall.Kill(pid, syscall.SIGKILL) // it may have ended
	}
}

// powerOff is what a loss of power does: nobody hears how anything ends.
func (h *apartHost) powerOff(t *testing.T) {
	t.Helper()
	h.machine.Plug(t, false)
	h.kill(everything)
	if h.Running() {
		h.Kill(t)
	}
	// Who began something amid that is gone by now.
	h.kill(wardens)
	if err := h.EndDatabases(context.WithoutCancel(t.Context())); err != nil {
		t.Fatal(err)
	}
	h.machine.Forget(t)
}

// powerOn does not wait until the host has found the service.
func (h *apartHost) powerOn(t *testing.T) {
	t.Helper()
	h.machine.Plug(t, true)
	h.launch(t)
}

// launch starts the agent, unless it runs.
func (h *apartHost) launch(t *testing.T) {
	t.Helper()
	if !h.Running() {
		h.Launch(t, h.join...)
	}
}

// killAgent ends the agent alone.
func (h *apartHost) killAgent(t *testing.T) {
	t.Helper()
	if h.Running() {
		h.Kill(t)
	}
}

// lossy is a part of frames that protocols get over.
const lossy = 0.2

// cut has two machines not hear each other, or only the second not the first.
func (b *apartBed) cut(t *testing.T, first, second *harness.Machine, both bool) (mend func()) {
	t.Helper()
	b.cuts.Lose(t, first, second, 1)
	if both {
		b.cuts.Lose(t, second, first, 1)
	}
	return func() {
		b.cuts.Lose(t, first, second, 0)
		if both {
			b.cuts.Lose(t, second, first, 0)
		}
	}
}

// plug pulls a cable, and puts it back.
func plug(t *testing.T, m *harness.Machine) (mend func()) {
	t.Helper()
	m.Plug(t, false)
	return func() { m.Plug(t, true) }
}

// mute has nobody hear a machine, or hear only some of it.
func (b *apartBed) mute(t *testing.T, m *harness.Machine, part float64) (mend func()) {
	t.Helper()
	b.cuts.Mute(t, m, part)
	return func() { b.cuts.Mute(t, m, 0) }
}

// farMost is a distance at which a transaction is soon done that takes a handful of answers,
// farthest one at which a client may give it up.
const (
	farMost  = 100 * time.Millisecond
	farthest = 300 * time.Millisecond
)

// distant has a host be up to so far from everybody, with frames that come out of turn or twice.
func distant(most time.Duration, into, out bool) func(*testing.T, *apart, *apartHost) func() {
	return func(t *testing.T, p *apart, h *apartHost) func() {
		way := func(is bool) (w harness.Way) {
			if is {
				w = harness.Way{Delay: time.Duration(p.bed.random.Int64N(int64(most))), Jitter: time.Duration(p.bed.random.Int64N(int64(most / 2))), Twice: p.bed.random.Float64() / 10}
			}
			return w
		}
		in, from := way(into), way(out)
		t.Logf("        to zone %q %+v, from it %+v", h.zone, in, from)
		return far(h.machine, in, from)
	}
}
