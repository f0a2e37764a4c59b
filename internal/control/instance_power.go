package control

import (
	"context"
	"slices"

	"kurabe"
	"kurabe/internal/store"
)

// RebootInstance stores the wish for a restart of the server.
func (c *Control) RebootInstance(ctx context.Context, name string) (Instance, error) {
	return c.change(ctx, name, func(i Instance, s *kurabe.InstanceSpec, _ *store.Change) error {
		switch i.State {
		case kurabe.StateAvailable, kurabe.StateIncompatibleParameters, kurabe.StateIncompatibleNetwork:
		default:
			return kurabe.Errorf(kurabe.CodeInvalidInstanceState, kurabe.WordsBusyToReboot+" %s is %s, and only an available one can be rebooted.", i.kind(), i.Name, i.State)
		}
		s.RebootSeq++
		s.Action = kurabe.StateRebooting
		return nil
	})
}

// StopInstance stores the wish that the server does not run, and for a snapshot of
// that name before, unless it is "".
func (c *Control) StopInstance(ctx context.Context, name, snapshot string) (Instance, error) {
	return c.change(ctx, name, func(i Instance, s *kurabe.InstanceSpec, change *store.Change) error {
		if i.State != kurabe.StateAvailable {
			return kurabe.Errorf(kurabe.CodeInvalidInstanceState, kurabe.WordsNotAvailableToStop+" It is %s.", i.kind(), i.Name, i.State)
		}
		if err := checkStop(i); err != nil {
			return err
		}
		s.Power = kurabe.Power{Seq: s.Power.Seq + 1, Stopped: true, At: c.Now().UTC()}
		s.Action = kurabe.StateStopping
		if snapshot == "" {
			return nil
		}
		_, err := c.snapshotBefore(change, "DBSnapshotIdentifier", snapshot, i)
		return err
	})
}

// StartInstance stores the wish that a stopped server runs again.
func (c *Control) StartInstance(ctx context.Context, name string) (Instance, error) {
	return c.change(ctx, name, func(i Instance, s *kurabe.InstanceSpec, _ *store.Change) error {
		if i.State != kurabe.StateStopped {
			return kurabe.Errorf(kurabe.CodeInvalidInstanceState, "%s %s is not in stopped state: it is %s.", i.kind(), i.Name, i.State)
		}
		s.Power = kurabe.Power{Seq: s.Power.Seq + 1, At: c.Now().UTC()}
		s.Action = kurabe.StateStarting
		return nil
	})
}

// DeleteInstance stores the wish that nothing of the instance is left but a
// snapshot of the name given, unless that is "". Its read replicas are promoted,
// as on RDS; of a replica no snapshot is taken.
func (c *Control) DeleteInstance(ctx context.Context, name, finalSnapshot string, keepBackups bool) (Instance, error) {
	return c.change(ctx, name, func(i Instance, s *kurabe.InstanceSpec, change *store.Change) error {
		if err := deletable(i); err != nil {
			return err
		}
		if c.switching(i) {
			return kurabe.Errorf(kurabe.CodeInvalidInstanceState, "%s %s is being switched over. Delete it when that is done or called off, within two minutes.", i.kind(), i.Name)
		}
		s.Deleting = &kurabe.Deletion{At: c.Now().UTC(), KeepBackups: keepBackups}
		s.Action = kurabe.StateDeleting
		if keepBackups {
			c.keepName(i, change)
		}
		c.promoteReplicas(i.Spec.ID, change)
		c.ForgetTarget(change, targetOf(i))
		if finalSnapshot == "" {
			return nil
		}
		if i.IsReplica() {
			return kurabe.Errorf(kurabe.CodeInvalidParameterCombo, kurabe.WordsReplicaSnapshot+": its data is that of %s. Specify SkipFinalSnapshot.", i.Source)
		}
		if !slices.Contains(snapshotable, i.State) && i.State != kurabe.StateFailed {
			return kurabe.Errorf(kurabe.CodeInvalidInstanceState, "%s %s is %s: no final snapshot can be taken of it. SkipFinalSnapshot=true deletes without one.", i.kind(), i.Name, i.State)
		}
		var err error
		s.Deleting.FinalSnapshot, err = c.snapshotBefore(change, "FinalDBSnapshotIdentifier", finalSnapshot, i)
		return err
	})
}

// keepName notes the name that an instance has last with its newest automated snapshot: the
// instance is gone when somebody looks for its backups.
func (c *Control) keepName(i Instance, change *store.Change) {
	list := c.automated(i.Spec.ID)
	if len(list) == 0 {
		return
	}
	newest := list[len(list)-1]
	if newest.Spec.Source.Name == i.Name {
		return
	}
	spec := *newest.Spec
	spec.GoneAs = i.Name
	spec.Revision++
	change.PutSnapshot(spec, newest.SpecMod)
}

// Deletable says why an instance cannot be deleted whatever else is asked for.
func (c *Control) Deletable(name string) error {
	i, err := c.find(name)
	if err != nil {
		return err
	}
	return deletable(c.read(i))
}

func deletable(i Instance) error {
	protected := "DB Instance" // RDS's words, which Terraform looks for
	if i.Spec.Cluster {
		protected = "Cluster"
	}
	switch {
	// A final snapshot that failed keeps the instance until this is asked again.
	case i.Spec.Deleting != nil && i.State != kurabe.StateFailed:
		return kurabe.Errorf(kurabe.CodeInvalidInstanceState, "%s %s is already being deleted.", i.kind(), i.Name)
	case i.Spec.DeletionProtection:
		return kurabe.Errorf(kurabe.CodeInvalidParameterCombo, kurabe.WordsProtected, protected)
	}
	return nil
}

// snapshotBefore adds a snapshot of an instance to the change that stops or
// deletes it.
func (c *Control) snapshotBefore(change *store.Change, parameter, name string, i Instance) (kurabe.SnapshotID, error) {
	folded, err := foldSnapshotName(parameter, name)
	if err != nil {
		return "", err
	}
	spec := c.newSnapshot(folded, i, nil)
	return spec.ID, c.addSnapshot(change, spec)
}

// kind begins what is said of it.
func (i Instance) kind() string {
	if i.Spec.Cluster {
		return "Cluster"
	}
	return "Instance"
}
