package control

import (
	"context"

	"kurabe"
	"kurabe/internal/store"
)

// switching says whether an instance and a replica of it are changing roles, of either.
func (c *Control) switching(i Instance) bool {
	if yields(i.Spec, i.Status, i.Group) != "" {
		return true
	}
	source, ok := c.View.Instance(i.source)
	if !ok || source.Status == nil {
		return false
	}
	return yields(source.Spec, *source.Status, source.Group) == i.Spec.ID
}

// yields is the replica whose place an instance is to take or is taking, "" of none.
func yields(s *kurabe.InstanceSpec, status kurabe.InstanceStatus, g *kurabe.Group) kurabe.InstanceID {
	switch {
	case s.Switchover != nil && s.Switchover.Seq > status.SwitchSeq:
		return s.Switchover.To
	case g != nil:
		return g.SwitchoverTo
	}
	return ""
}

// SwitchoverReplica stores the wish that a read replica and its source change roles. The wish
// is the source's: who writes is its record's to say. The replica is given what only a source
// has: the master password, and the days for which automated backups are kept.
func (c *Control) SwitchoverReplica(ctx context.Context, name string) (Instance, error) {
	return c.change(ctx, name, func(i Instance, s *kurabe.InstanceSpec, change *store.Change) error {
		if err := c.checkHeir(i); err != nil {
			return err
		}
		source, ok := c.View.Instance(i.source)
		if !ok {
			return kurabe.Errorf(kurabe.CodeInvalidInstanceState, "The source of DB instance %s is there no more; it is about to be promoted.", i.Name)
		}
		from := c.read(source)
		if err := c.checkYields(from, i); err != nil {
			return err
		}
		yielding := *source.Spec
		yielding.Switchover = &kurabe.Switchover{Seq: 1, To: i.Spec.ID}
		if before := source.Spec.Switchover; before != nil {
			yielding.Switchover.Seq += before.Seq
		}
		yielding.Action = kurabe.StateModifying
		yielding.Revision++
		change.PutInstance(yielding, source.SpecMod)
		s.Password = source.Spec.Password.From(source.ID)
		keep(s, from.Settings().RetentionDays)
		s.Action = kurabe.StateModifying
		return nil
	})
}

// keep sets for how long automated backups are kept, now and after what waits for the window.
func keep(s *kurabe.InstanceSpec, days int) {
	s.Now.RetentionDays = days
	if s.Next != nil {
		next := *s.Next
		next.RetentionDays = days
		s.Next = &next
	}
}

// checkHeir says why an instance cannot take the place of its source.
func (c *Control) checkHeir(i Instance) error {
	refuse := func(format string, args ...any) error {
		return kurabe.Errorf(kurabe.CodeInvalidInstanceState, format, args...)
	}
	switch {
	case !i.IsReplica():
		return refuse("DB instance %s is not a read replica: name the read replica that is to take the place of its source.", i.Name)
	case c.switching(i):
		return refuse("DB instance %s is being switched over already.", i.Name)
	case i.promoting():
		return refuse("DB instance %s is being promoted, and has no source to take the place of.", i.Name)
	case i.State != kurabe.StateAvailable || i.Status.AvailableAt.IsZero():
		return refuse("DB instance %s is %s, and only an available read replica can be switched over.", i.Name, i.State)
	case i.Status.Replication != kurabe.ReplicationRunning:
		return refuse("DB instance %s does not follow its source (%s). Switch over once its StatusInfos say replicating, or promote it: then it lacks what it has not received.", i.Name, i.Status.ReplicationReason)
	}
	return nil
}

// checkYields says why an instance cannot yield to a replica of it.
func (c *Control) checkYields(from, to Instance) error {
	refuse := func(format string, args ...any) error {
		return kurabe.Errorf(kurabe.CodeInvalidInstanceState, format, args...)
	}
	switch {
	case from.IsReplica():
		return refuse("The source of %s, DB instance %s, is a read replica itself, and takes no writes that it could hand over. Switch over %s first, or promote %s.", to.Name, from.Name, from.Name, to.Name)
	case c.switching(from):
		return refuse("The source of %s, DB instance %s, is being switched over already.", to.Name, from.Name)
	case from.MultiAZ() || from.WantsMultiAZ() || from.Status.Converting:
		return refuse("The source of %s, DB instance %s, is Multi-AZ, and a read replica has one server here. Set MultiAZ of %s to false first; set it for %s after the switchover.", to.Name, from.Name, from.Name, to.Name)
	case from.behindEndpoint():
		return refuse("The source of %s, DB instance %s, has had a failover or was moved to another host: its server listens behind its endpoint, where a read replica cannot be. Promote %s instead, and make a read replica of it.", to.Name, from.Name, to.Name)
	case from.State != kurabe.StateAvailable:
		return refuse("The source of %s, DB instance %s, is %s, and only an available one can be switched over.", to.Name, from.Name, from.State)
	case len(to.Replicas)+len(from.Replicas) > maxReplicas:
		return refuse("After the switchover DB instance %s would have %d read replicas, and its log is sent to %d at most. Delete or promote some first.", to.Name, len(to.Replicas)+len(from.Replicas), maxReplicas)
	}
	return nil
}

// behindEndpoint says whether the server that writes does not hold the endpoint itself.
func (i Instance) behindEndpoint() bool {
	if i.Group == nil {
		return false
	}
	m, _ := i.Group.Member(i.Group.Primary)
	return m.ID != i.Spec.ID || m.ListensAt != ""
}
