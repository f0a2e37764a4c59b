package engine

import (
	"errors"
	"testing"
	"time"

	"kurabe"
)

// dying is a stub whose server says why it ends.
type dying struct{ *stub }

func (dying) StartFailure(string) (kurabe.FailureKind, string) {
	return kurabe.FailureParameters, "no memory"
}

func (dying) ErrorLog(i Instance, _ []string) string { return i.Home.StartLog() }

// A server that has ended before anybody looked has failed to start, and says why, each time.
func TestStillborn(t *testing.T) {
	for _, role := range []*kurabe.Role{nil, {Duty: kurabe.DutyWrite}} {
		p := newPlace(t, kurabe.Role{})
		p.a.Role, p.l.c.Driver, p.argv = role, dying{p.stub}, []string{"/bin/false"}
		for n := range 3 {
			p.must(StepStart)
			for deadline := time.Now().Add(20 * time.Second); p.running(); time.Sleep(time.Millisecond) {
				if time.Now().After(deadline) {
					t.Fatal("it lives")
				}
			}
			o, err := p.l.Observe(t.Context(), p.a)
			if err != nil || !o.Stillborn {
				t.Fatalf("start %d: %+v, %v", n, o, err)
			}
			var failed *StartError
			if err := p.do(o.burial()); !errors.As(err, &failed) || failed.Message != "no memory" {
				t.Errorf("start %d: %v", n, err)
			}
			if o, err = p.l.Observe(t.Context(), p.a); err != nil || o.Stillborn || o.Record {
				t.Errorf("start %d, afterwards: %+v, %v", n, o, err)
			}
		}
		p.must(StepStart)
		p.note(func(a *Applied) { a.Ready = true })
		for deadline := time.Now().Add(20 * time.Second); p.running() && time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		}
		if o, err := p.l.Observe(t.Context(), p.a); err != nil || o.Stillborn || o.burial() != StepNoteCrash {
			t.Errorf("one that was ready: %+v, %v", o, err)
		}
	}
}
