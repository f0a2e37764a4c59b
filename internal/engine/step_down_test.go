package engine

import (
	"context"
	"errors"
	"testing"

	"kurabe"
)

// ender is a stub that knows where a log ends, and whose stop can be made easier.
type ender struct {
	*stub
	end   int64
	err   error
	eased []bool // and whether clients were let in, for each time
}

func (e *ender) EaseStop(context.Context, Instance) error {
	e.eased = append(e.eased, e.atReload.Process == "")
	return errors.New("which must not hold up anything")
}

func (e *ender) LogEnd(context.Context, Instance) (int64, error) { return e.end, e.err }

// One that yields to a read replica has not done so before it is known where its log ends.
func TestYieldToAReplica(t *testing.T) {
	p := newPlace(t, kurabe.Role{Duty: kurabe.DutyWrite})
	e := &ender{stub: p.stub, end: 4711, err: errors.New("unreadable")}
	p.l.c.Driver = e
	p.obeying(0)
	p.a.Role.Duty, p.a.Role.HandsOverToReplica = kurabe.DutyStepDown, true
	if err := p.do(StepStepDown); err == nil || p.applied().SteppedDown || p.running() {
		t.Fatalf("%v, %+v", err, p.applied())
	}
	if len(e.eased) != 1 || !e.eased[0] {
		t.Errorf("its stop was made easier %v", e.eased)
	}
	e.err = nil
	p.must(StepStepDown)
	if n := p.applied(); !n.SteppedDown || len(e.eased) != 1 || n.EndedAt != 4711 {
		t.Errorf("%+v", n)
	}
	p.a.Role.Duty, p.a.Role.HandsOverToReplica = kurabe.DutyWrite, false
	p.must(StepStart)
	if n := p.applied(); n.SteppedDown || n.EndedAt != 0 {
		t.Errorf("after a start: %+v", n)
	}
	p = newPlace(t, kurabe.Role{Duty: kurabe.DutyWrite})
	p.obeying(0)
	p.a.Role.Duty, p.a.Role.HandsOverToReplica = kurabe.DutyStepDown, true
	if err := p.do(StepStepDown); err == nil || p.applied().SteppedDown {
		t.Errorf("an engine that cannot tell: %v, %+v", err, p.applied())
	}
}

// What a stop would have to write is written before anybody is turned away, and is none of the
// conditions of a stop.
func TestYieldIsMadeEasier(t *testing.T) {
	p := newPlace(t, kurabe.Role{Duty: kurabe.DutyWrite})
	e := &ender{stub: p.stub, err: errors.New("of no interest")}
	p.l.c.Driver = e
	p.obeying(0)
	p.a.Role.Duty = kurabe.DutyStepDown
	p.must(StepStepDown)
	if n := p.applied(); !n.SteppedDown || len(e.eased) != 1 || !e.eased[0] {
		t.Errorf("its stop was made easier %v, %+v", e.eased, n)
	}
}
