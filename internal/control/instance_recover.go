package control

import (
	"context"

	"kurabe"
	"kurabe/internal/control/placement"
	"kurabe/internal/store"
)

// RecoverInstance stores an operator's word that a server may write although it lacks what
// was acknowledged. epoch is the one in which the loss was looked at: of another situation
// nothing is accepted. It is refused while nothing need be lost, with
// InvalidDBInstanceState and the reason.
func (c *Control) RecoverInstance(ctx context.Context, name string, epoch kurabe.Epoch, to kurabe.InstanceID) (Instance, error) {
	return c.change(ctx, name, func(i Instance, s *kurabe.InstanceSpec, _ *store.Change) error {
		stored, ok := c.View.Instance(s.ID)
		if !ok {
			return kurabe.Errorf(kurabe.CodeInstanceNotFound, kurabe.WordsInstanceNotFound, name)
		}
		if why := notRecoverable(stored, epoch, to); why != "" {
			return kurabe.Errorf(kurabe.CodeInvalidInstanceState, "%s is not recovered with a loss: %s.", i.Name, why)
		}
		next := kurabe.Recovery{Seq: 1, Epoch: epoch, To: to}
		if s.Recovery != nil {
			next.Seq = s.Recovery.Seq + 1
		}
		s.Recovery = &next
		return nil
	})
}

// notRecoverable says why nothing is to be lost on purpose, "" when there is no other way
// that Kurabe knows of. The planner looks again.
func notRecoverable(i *store.Instance, epoch kurabe.Epoch, to kurabe.InstanceID) string {
	g := i.Group
	if g == nil || len(g.Members) < placement.MultiAZZones {
		return "it has one server"
	}
	writer, _ := i.ReportOf(g.Primary)
	other, _ := i.ReportOf(to)
	_, known := g.Member(to)
	switch {
	case epoch != g.Epoch:
		return "the situation is another one by now: look again"
	case len(g.SyncSet) > 0:
		return "a standby has every commit, and takes over by itself when the writer ends"
	case writer.Running && writer.Role != nil && writer.Role.Writing && !writer.Role.Unresponsive:
		return "the server that has every commit writes"
	case writer.Running && writer.Role != nil && writer.Role.IsPrimary && !writer.Role.Unresponsive:
		return "the server that has every commit runs, and keeps clients out until another one has it, too; set " + kurabe.ParameterStandbyLost + " to " + kurabe.StandbyLostDegrade + " to let them in"
	case !known || to == g.Primary:
		return string(to) + " is no standby of it"
	case !other.Running || other.Role == nil || other.Role.Unresponsive:
		return string(to) + " does not run, or does not answer"
	}
	return ""
}
