package control

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"kurabe"
	"kurabe/internal/control/placement"
	"kurabe/internal/store"
)

// MultiAZ says whether it is one of two zones. It becomes one when a standby has every
// commit, and stays one when the standby is lost: whether there is one now is told by
// HasStandby.
func (i Instance) MultiAZ() bool { return i.Status.Applied.MultiAZ != i.Status.Converting }

// HasStandby says whether a standby in another zone has every commit.
func (i Instance) HasStandby() bool { return i.Status.SecondZone != "" }

// WantsMultiAZ says whether it is to be one of two zones once the newest request is done.
func (i Instance) WantsMultiAZ() bool {
	if i.Pending != nil {
		return i.Pending.MultiAZ
	}
	return i.Settings().MultiAZ
}

// checkConversion says whether an instance can be given its standby, or lose it, now.
func (c *Control) checkConversion(i Instance, wanted kurabe.InstanceSettings) error {
	if err := c.CheckMultiAZ(wanted, i.Spec.Cluster); err != nil {
		return err
	}
	if _, why := c.Standby(i.Spec.Engine, i.Status, wanted, nil); wanted.MultiAZ && why != "" {
		return kurabe.Errorf(kurabe.CodeInvalidParameterCombo, "MultiAZ cannot be honoured: %s", why)
	}
	switch {
	case i.State == kurabe.StateStopped:
		return kurabe.Errorf(kurabe.CodeInvalidInstanceState, "You can't modify MultiAZ of a stopped DB instance. Start the DB instance, and then modify it.")
	case wanted.MultiAZ && i.State != kurabe.StateAvailable: // a standby is made of a server that runs
		return kurabe.Errorf(kurabe.CodeInvalidInstanceState, kurabe.WordsNotAvailable+" %s is %s, and only an available one can be converted to Multi-AZ.", i.Name, i.State)
	}
	return nil
}

// FailoverInstance stores the wish that the standby takes the place of the server that
// clients speak with.
func (c *Control) FailoverInstance(ctx context.Context, name string) (Instance, error) {
	return c.change(ctx, name, func(i Instance, s *kurabe.InstanceSpec, _ *store.Change) error {
		switch {
		case !s.Wanted(i.Status.AppliedNext).MultiAZ:
			return kurabe.Errorf(kurabe.CodeInvalidParameterCombo, kurabe.WordsNoFailover)
		case i.State != kurabe.StateAvailable:
			return kurabe.Errorf(kurabe.CodeInvalidInstanceState, kurabe.WordsBusyToReboot+" %s is %s, and only an available one can be rebooted with a failover.", i.kind(), i.Name, i.State)
		case !i.Status.BlockedAt.IsZero():
			return kurabe.Errorf(kurabe.CodeInvalidInstanceState, "Cannot force failover of %s: %s", i.Name, whyBlocked(i))
		case !i.HasStandby():
			return kurabe.Errorf(kurabe.CodeInvalidInstanceState, "Cannot force failover of %s: %s. It can be asked for once DescribeDBInstances shows a SecondaryAvailabilityZone.", i.Name, whyNoStandby(i.Group))
		}
		s.FailoverSeq++
		s.FailoverTo = ""
		s.Action = kurabe.StateRebooting
		return nil
	})
}

// FailoverCluster stores the wish that a reader takes the place of the writer of a cluster:
// target, or, when that is "", whichever is best.
func (c *Control) FailoverCluster(ctx context.Context, name, target string) (Instance, error) {
	return c.change(ctx, name, func(i Instance, s *kurabe.InstanceSpec, _ *store.Change) error {
		if i.State != kurabe.StateAvailable {
			return kurabe.Errorf(kurabe.CodeInvalidInstanceState, "DB cluster %s is %s, and only an available one can fail over.", i.Name, i.State)
		}
		if !i.Status.BlockedAt.IsZero() {
			return kurabe.Errorf(kurabe.CodeInvalidInstanceState, "DB cluster %s cannot fail over: %s", i.Name, whyBlocked(i))
		}
		able := slices.DeleteFunc(slices.Clone(i.Status.Servers), func(m kurabe.ServerStatus) bool { return m.Writer || !m.InSyncSet })
		if len(able) == 0 {
			return kurabe.Errorf(kurabe.CodeInvalidInstanceState, "DB cluster %s cannot fail over: no reader has every commit at the moment.", i.Name)
		}
		s.FailoverTo = ""
		if target != "" {
			to, err := failoverTarget(i, strings.TrimPrefix(strings.ToLower(target), c.ARN("db", "")))
			if err != nil {
				return err
			}
			s.FailoverTo = to
		}
		s.FailoverSeq++
		s.Action = kurabe.StateFailingOver
		return nil
	})
}

// failoverTarget is the server that a failover names, if it may take over.
func failoverTarget(i Instance, name string) (kurabe.InstanceID, error) {
	at := slices.IndexFunc(i.Status.Servers, func(m kurabe.ServerStatus) bool { return kurabe.ServerName(i.Name, m.ID) == name })
	if at < 0 {
		return "", kurabe.Errorf(kurabe.CodeInvalidInstanceState, "DB instance %s is not a server of DB cluster %s.", name, i.Name)
	}
	switch m := i.Status.Servers[at]; {
	case m.Writer:
		return "", kurabe.Errorf(kurabe.CodeInvalidInstanceState, "DB instance %s is the writer of DB cluster %s already.", name, i.Name)
	case !m.InSyncSet:
		return "", kurabe.Errorf(kurabe.CodeInvalidInstanceState, "DB instance %s cannot take over: it does not have every commit of DB cluster %s at the moment (it is %s).", name, i.Name, m.State)
	default:
		return m.ID, nil
	}
}

// whyBlocked says why nobody can take over in order while commits wait.
func whyBlocked(i Instance) string {
	return fmt.Sprintf("commits have waited for another server since %s, as none answers that has every commit. Bring one back, or have commits go on alone: set %s to %s.",
		i.Status.BlockedAt.UTC().Format(time.RFC3339), kurabe.ParameterStandbyLost, kurabe.StandbyLostDegrade)
}

// whyNoStandby says why nobody could take over without a loss.
func whyNoStandby(g *kurabe.Group) string {
	switch {
	case g == nil || len(g.Members) < placement.MultiAZZones:
		return "it has no standby yet"
	case !g.UnprotectedSince.IsZero():
		return "its standby does not have what was committed since " + g.UnprotectedSince.UTC().Format(time.RFC3339)
	}
	return "its standby does not have every commit yet"
}
