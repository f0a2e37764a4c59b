package control

import (
	"context"
	"slices"
	"strings"
	"time"

	"kurabe"
	"kurabe/internal/store"
)

// multiAZZones is how many zones a Multi-AZ instance is in, with a server in each.
const multiAZZones = 2

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

// servers is how many servers settings ask for.
func servers(s kurabe.InstanceSettings) int64 {
	if s.MultiAZ {
		return multiAZZones
	}
	return 1
}

// memoryOf is the memory that so many servers of a class reserve, 0 for a class that is
// not known.
func memoryOf(class string, count int64) int64 {
	c, _ := kurabe.FindClass(class)
	return c.MemoryBytes * count
}

// checkMultiAZ says whether any host can have a standby of an instance, if its settings
// ask for one. Whether memory is free for it at the moment is another question.
func (c *Control) checkMultiAZ(s kurabe.InstanceSettings) error {
	if !s.MultiAZ {
		return nil
	}
	class, ok := kurabe.FindClass(s.Class)
	able := slices.DeleteFunc(c.View.Hosts(), func(h kurabe.HostReport) bool { return !ok || class.Unfit(h) != "" })
	if !pairs(able) {
		return kurabe.Errorf(kurabe.CodeInvalidParameterCombo, "MultiAZ cannot be honoured: no host that can hold %s has a second zone, or reaches another host in one; the service was started with the zones %s", s.Class, strings.Join(c.Zones, ", "))
	}
	return nil
}

// pairs says whether a pair can be on some of these hosts.
func pairs(hosts []kurabe.HostReport) bool {
	return slices.ContainsFunc(hosts, func(h kurabe.HostReport) bool { return slices.ContainsFunc(hosts, h.Pairs) })
}

// checkConversion says whether an instance can be given its standby, or lose it, now.
func (c *Control) checkConversion(i Instance, wanted kurabe.InstanceSettings) error {
	if err := c.checkMultiAZ(wanted); err != nil {
		return err
	}
	if _, why := c.standbyOf(i, wanted, nil); wanted.MultiAZ && why != "" {
		return kurabe.Errorf(kurabe.CodeInvalidParameterCombo, "MultiAZ cannot be honoured: %s", why)
	}
	switch {
	case i.State == kurabe.StateStopped:
		return kurabe.Errorf(kurabe.CodeInvalidInstanceState, "You can't modify MultiAZ of a stopped DB instance. Start the DB instance, and then modify it.")
	case wanted.MultiAZ && i.State != kurabe.StateAvailable: // a standby is made of a server that runs
		return kurabe.Errorf(kurabe.CodeInvalidInstanceState, "Database instance is not in available state: %s is %s, and only an available one can be converted to Multi-AZ.", i.Name, i.State)
	}
	return nil
}

// FailoverInstance stores the wish that the standby takes the place of the server that
// clients speak with.
func (c *Control) FailoverInstance(ctx context.Context, name string) (Instance, error) {
	return c.change(ctx, name, func(i Instance, s *kurabe.InstanceSpec, _ *store.Change) error {
		switch {
		case !s.Wanted(i.Status.AppliedNext).MultiAZ:
			return kurabe.Errorf(kurabe.CodeInvalidParameterCombo, "Cannot force failover since the instance is not configured for multi-AZ.")
		case i.State != kurabe.StateAvailable:
			return kurabe.Errorf(kurabe.CodeInvalidInstanceState, "Invalid DB Instance State: %s is %s, and only an available one can be rebooted with a failover.", i.Name, i.State)
		case !i.HasStandby():
			return kurabe.Errorf(kurabe.CodeInvalidInstanceState, "Cannot force failover of %s: %s. It can be asked for once DescribeDBInstances shows a SecondaryAvailabilityZone.", i.Name, whyNoStandby(i.Group))
		}
		s.FailoverSeq++
		s.Action = kurabe.StateRebooting
		return nil
	})
}

// whyNoStandby says why nobody could take over without a loss.
func whyNoStandby(g *kurabe.Group) string {
	switch {
	case g == nil || len(g.Members) < multiAZZones:
		return "it has no standby yet"
	case !g.Since.IsZero():
		return "its standby does not have what was committed since " + g.Since.UTC().Format(time.RFC3339)
	}
	return "its standby does not have every commit yet"
}
