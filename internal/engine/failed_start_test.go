package engine

import (
	"context"
	"errors"
	"testing"
	"time"

	"kurabe"
	"kurabe/internal/proc"
)

// dying is a stub whose server says why it ends.
type dying struct{ *stub }

func (dying) StartFailure(string) (kurabe.FailureKind, string) {
	return kurabe.FailureParameters, "no memory"
}

func (dying) ErrorLog(i Instance, _ []string) string { return i.Home.StartLog() }

// ends waits until the server has ended by itself.
func (p *place) ends() {
	p.t.Helper()
	server, alive, err := proc.Find(p.home().RecordFile())
	ctx, cancel := context.WithTimeout(p.t.Context(), 20*time.Second)
	defer cancel()
	if alive && err == nil {
		err = server.Wait(ctx)
	}
	if err != nil {
		p.t.Fatal(err)
	}
}

// A server that has ended before anybody looked has failed to start, and says why, each time.
func TestStillborn(t *testing.T) {
	for _, role := range []*kurabe.Role{nil, {Duty: kurabe.DutyWrite}} {
		p := newPlace(t, kurabe.Role{})
		p.a.Role, p.l.c.Driver, p.argv = role, dying{p.stub}, []string{"/bin/false"}
		for n := range 3 {
			p.must(StepStart)
			p.ends()
			o, err := p.l.Observe(t.Context(), p.a)
			if err != nil || !o.Stillborn {
				t.Fatalf("start %d: %+v, %v", n, o, err)
			}
			var failed *StartError
			if err := p.do(o.endedStep()); !errors.As(err, &failed) || failed.Message != "no memory" {
				t.Errorf("start %d: %v", n, err)
			}
			if o, err = p.l.Observe(t.Context(), p.a); err != nil || o.Stillborn || o.Record {
				t.Errorf("start %d, afterwards: %+v, %v", n, o, err)
			}
		}
		p.must(StepStart)
		p.note(func(a *Applied) { a.Ready = true })
		p.ends()
		if o, err := p.l.Observe(t.Context(), p.a); err != nil || o.Stillborn || o.endedStep() != StepNoteCrash {
			t.Errorf("one that was ready: %+v, %v", o, err)
		}
	}
}
