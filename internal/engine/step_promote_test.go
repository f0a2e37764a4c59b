package engine

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"kurabe"
	"kurabe/internal/proc"
)

// A promotion whose end was not seen leaves nothing out.
func TestPromoteNotes(t *testing.T) {
	p := newPlace(t, kurabe.Role{Duty: kurabe.DutyWrite})
	p.note(func(n *Applied) { n.PasswordSeq, n.Ready, n.Probed = 4, true, true })
	p.unpromotable = errors.New("no answer in time")
	if err := p.do(StepPromote); !errors.Is(err, p.unpromotable) || p.promoted != 1 {
		t.Fatal(err)
	}
	if n := p.applied(); n.PasswordSeq != 0 || n.Ready || n.Probed {
		t.Errorf("%+v", n)
	}
}

// A follower that does not answer is ended, so that it can be promoted when it was started
// again. One that only is not there yet, or refuses, is promoted, or says why not.
func TestPromoteEndsWhatHangs(t *testing.T) {
	p := newPlace(t, kurabe.Role{Duty: kurabe.DutyWrite})
	p.must(StepStart)
	server, _, err := proc.Find(p.home().RecordFile())
	if err != nil {
		t.Fatal(err)
	}
	for _, p.unseen = range []error{fmt.Errorf("starting: %w", ErrNotReady), errors.New("refused")} {
		p.must(StepPromote)
	}
	p.unseen = fmt.Errorf("open watch: %w", context.DeadlineExceeded)
	if err := p.do(StepPromote); err == nil || p.promoted != 2 || server.Alive() || exists(p.home().RecordFile()) {
		t.Errorf("%v, promoted %d times, alive %v", err, p.promoted, server.Alive())
	}
	if n := p.applied(); n.Crashes != 0 || !n.MayStart(*p.a.Role) {
		t.Errorf("%+v", n)
	}
}
