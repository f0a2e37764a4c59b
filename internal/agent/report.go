package agent

import (
	"context"
	"reflect"

	"kurabe"
	"kurabe/internal/agent/unit"
	"kurabe/internal/engine"
)

// report tells the planner what is seen, when it differs from what it was told.
func (w *worker) report(ctx context.Context, a kurabe.Assignment, o engine.Observation, step string, done bool) {
	r := kurabe.InstanceReport{
		Host: w.agent.Host, Instance: w.ID, Generation: a.Generation, Done: done, Step: step, Failure: w.Failure,
		Running: o.Running, Serving: o.Serving(), PID: o.PID, Boot: o.Boot, StartedAt: o.StartedAt.UTC(), EngineVersion: o.Version,
		Filtered: a.Filter != nil && w.filter(a) == nil,
		Absent:   done && a.Goal == kurabe.GoalAbsent,
		Crashes:  o.Applied.Crashes, LastCrash: o.Applied.LastCrash, OOMKills: o.OOMKills,
		UsedBytes: w.used, DiskExhausted: w.usage.diskEnds(), CertificateExpiresAt: o.CertificateExpires,
	}
	if w.role != nil && w.role.process == o.Process {
		r.UnresponsiveSince, r.Responsive = w.role.answering()
	}
	if w.agent.Lost != nil {
		r.Lost = w.agent.Lost(w.ID)
	}
	r.Role = w.roleReport(a, o)
	if w.agent.Logs != nil && a.Log && a.Writes() {
		l, _ := w.agent.Logs.Log(w.ID.Owner())
		shape := shapeOf(l)
		r.LogBegan, r.LogSince, r.LogFrom, r.LogEnded = shape.began, shape.since, shape.from, shape.ended
		r.LogDamaged, r.LogContinues = shape.damaged, shape.continues
	}
	w.Tell(ctx, r)
	w.Looked()
}

// usageNews is how much the occupied space must change to be worth a report.
const usageNews = 16 << 20

// SameNews says whether two reports tell the same. Steps in between are not
// news: a creation would write a dozen records. What a server waits for for who knows how
// long is.
func (w *worker) SameNews(a, b kurabe.InstanceReport) bool {
	if diff := a.UsedBytes - b.UsedBytes; diff < usageNews && diff > -usageNews && (a.UsedBytes == 0) == (b.UsedBytes == 0) {
		b.UsedBytes = a.UsedBytes
	}
	b.Failure = unit.AsBefore(a.Failure, b.Failure)
	if !isAwaited(b.Step) {
		a.Step, b.Step = "", ""
	}
	a.Role, b.Role = withoutPosition(a.Role), withoutPosition(b.Role)
	return reflect.DeepEqual(a, b)
}

// withoutPosition is what of a role can be news: the position moves with each write, and
// only that it is known is news.
func withoutPosition(r *kurabe.RoleReport) *kurabe.RoleReport {
	if r == nil {
		return nil
	}
	c := *r
	c.Position = min(c.Position, 1)
	return &c
}

// roleReport is what is told of a server of a group, nil of one without.
func (w *worker) roleReport(a kurabe.Assignment, o engine.Observation) *kurabe.RoleReport {
	if a.Role == nil {
		return nil
	}
	var r kurabe.RoleReport
	if w.role != nil && !w.role.alone && o.Running && w.role.process == o.Process {
		r = w.role.report(a.Role.Followers)
		if a.Role.Duty == kurabe.DutyStepDown {
			r.SilentFollowers = w.role.hanging(r.SilentFollowers)
		}
		r.HasSourceEnd = w.role.reached(*a.Role)
	}
	r.Writing = r.Writing && !o.Applied.ClientsKeptOut
	r.Leased = a.Role.Leased && w.leased(a)
	r.Epoch, r.StartedSeq, r.SteppedDown, r.RebuiltSeq = o.Applied.RoleEpoch, o.Applied.Started, o.Applied.SteppedDown, o.Applied.Rebuilt
	r.Discarded = o.Applied.GivenUp
	if r.Detached = isDetached(a, o); r.Detached {
		r.Position = o.Applied.HeldAt
	}
	if o.Running && r.Position > 0 {
		w.position.Store(r.Position)
	}
	if !o.Running { // what it had, whoever has to decide without it is to know
		r.Position = w.position.Load()
	}
	if r.SteppedDown && !o.Running && o.Applied.EndedAt > 0 {
		r.Position = o.Applied.EndedAt
	}
	return &r
}

// isDetached says whether a follower has detached as ordered.
func isDetached(a kurabe.Assignment, o engine.Observation) bool {
	return a.Role.Duty == kurabe.DutyDetached && engine.Done(a, o)
}

// servesClients says whether clients of the instance may be led to the server.
func (w *worker) servesClients(a kurabe.Assignment, o engine.Observation) bool {
	if r := w.roleReport(a, o); r != nil {
		// One that was just promoted turns clients away until it has read the rules of a primary.
		return a.Writes() && r.Writing && r.Epoch == a.Role.Epoch
	}
	return o.Running && o.Applied.Ready && o.Applied.Process == o.Process
}
