package plan_test

import (
	"maps"
	"slices"

	"pgregory.net/rapid"

	"kurabe"
	"kurabe/internal/plan"
)

// attempts are a server's starts that came to nothing, under one assignment.
type attempts struct {
	generation kurabe.Generation
	tries      int
	kind       kurabe.FailureKind
}

// impossible is a value that no server starts with.
const impossible = "999999999"

// unfit says why no server starts with a content, "" when one does.
func (f *groupFleet) unfit(a kurabe.Assignment) kurabe.FailureKind {
	small, _ := kurabe.FindClass("db.t3.small")
	switch {
	case a.Settings["shared_buffers"] == impossible:
		return kurabe.FailureParameters
	case f.tooLarge && a.Limits.MemoryBytes == small.MemoryBytes:
		return kurabe.FailureOther
	}
	return ""
}

// starts says whether a server comes up with what it was told. The order for a start is used
// up in either case.
func (f *groupFleet) starts(s *server, a kurabe.Assignment, seq int64) bool {
	kind := f.unfit(a)
	if kind == "" {
		return true
	}
	if s.failed.generation != a.Generation {
		s.failed.tries = 0
	}
	s.started = max(s.started, seq)
	s.failed = attempts{a.Generation, s.failed.tries + 1, kind}
	s.binlog.refused = false // this is why now
	return false
}

// tried is what is reported of starts that came to nothing.
func (s *server) tried() *kurabe.Failure {
	if s.running || s.failed.tries == 0 || s.failed.generation != s.have.Generation {
		return nil
	}
	return &kurabe.Failure{Kind: s.failed.kind, Step: kurabe.StepWaitReady, Message: "it cannot start so", Attempts: s.failed.tries}
}

// buffers has the user set a static parameter, "" the default.
func (f *groupFleet) buffers(value string) {
	group := kurabe.ParameterGroup{}
	if f.w.Parameters != nil {
		group = *f.w.Parameters
	}
	group.Values = maps.Clone(group.Values)
	delete(group.Values, "shared_buffers")
	if value != "" {
		if group.Values == nil {
			group.Values = map[string]kurabe.ParameterValue{}
		}
		group.Values["shared_buffers"] = kurabe.ParameterValue{Value: value, Method: kurabe.ApplyPendingReboot}
	}
	f.w.Parameters = &group
}

// drawUnfit has something be possible or not.
func (f *groupFleet) drawUnfit(t *rapid.T) {
	if f.tooLarge = rapid.Bool().Draw(t, "class"); !f.tooLarge {
		f.buffers(rapid.SampledFrom([]string{impossible, "", "4096"}).Draw(t, "buffers"))
	}
}

// askImpossible has the user ask for what cannot be, which is found out with all that happens
// to be.
func (f *groupFleet) askImpossible(t *rapid.T) {
	f.buffers(impossible)
	f.read()
	f.decide(t)
	f.ask(func(s *kurabe.InstanceSpec) {
		if s.FailoverSeq++; rapid.Bool().Draw(t, "in place") {
			s.RebootSeq++
		}
	})
	f.calm(t)
}

// fit makes everything possible again.
func (f *groupFleet) fit() {
	f.tooLarge = false
	f.buffers("")
}

// noteRefusals remembers with which boots a server that is heard has refused to start, as the
// world of a decision has it, unless another one was seen to run with it.
func (f *groupFleet) noteRefusals(w *plan.World) {
	for id, r := range w.Reports {
		a := w.Members[id]
		if a == nil || w.Group == nil || !w.Lost[r.Host].IsZero() || a.Role == nil {
			continue
		}
		if m, _ := w.Group.Member(id); m.Leaving || r.Generation != a.Generation {
			continue
		}
		if r.Failure != nil && !r.Running && r.Failure.Attempts >= 3 && r.Failure.Message == "it cannot start so" {
			f.seen["refusals"]++
			f.refused[a.Boot] = true
		}
	}
	for _, r := range w.Reports {
		if r.Running && r.Role != nil {
			delete(f.refused, r.Boot)
		}
	}
	maps.DeleteFunc(f.refused, func(boot int64, _ bool) bool { // what nobody has any more may be counted again
		return boot != w.Assignment.Boot && !slices.ContainsFunc(slices.Collect(maps.Values(w.Members)), func(a *kurabe.Assignment) bool { return a.Boot == boot })
	})
}

// checkRestart demands of a server that runs that it is not restarted with what another one has
// been seen refusing, unless the user asked for its own restart, for an instance of one zone, or for its stop.
func (f *groupFleet) checkRestart(t tester, w *plan.World, a kurabe.Assignment) {
	old, s := w.Members[a.Instance], f.servers[a.Instance]
	if old == nil || s == nil || !s.running || a.Goal != kurabe.GoalRunning || old.Goal != kurabe.GoalRunning || a.Boot == old.Boot || !f.refused[a.Boot] {
		return
	}
	if asked := w.Spec.RebootSeq > w.Status.RebootSeq || !w.Spec.Now.MultiAZ || w.Spec.Power.Stopped; !asked {
		t.Fatalf("%s runs with boot %d and is to restart with %d, with which a server could not start: %+v, %+v", a.Instance, old.Boot, a.Boot, w.Group, w.Status)
	}
}
