package plan

import (
	"cmp"
	"slices"

	"kurabe"
	"kurabe/internal/event"
)

// planContent fills the assignment with what the spec wants, and raises Boot
// when the server must restart for it.
func (d *draft) planContent() {
	s, n := d.w.Spec, &d.next
	wanted := s.Wanted(d.status.AppliedNext)
	wanted.EngineVersion = d.version(wanted.EngineVersion)
	first := !d.had
	if name := s.EffectiveName(d.status.AppliedNext); name != n.Name {
		if s.Cluster && !first {
			d.tell(event.ClusterRenamed.With(n.Name, name))
		}
		n.Name = name
	}
	n.Engine, n.MasterUsername, n.DatabaseName, n.Locale = s.Engine, s.MasterUsername, s.DatabaseName, s.Locale
	if !first && n.MonitoringSeconds != s.Monitoring.IntervalSeconds {
		d.tell(event.NewMonitoring.With(s.Monitoring.IntervalSeconds))
	}
	n.LoadKept, n.MonitoringSeconds, n.LogTypes, n.Cluster = s.LoadKept, s.Monitoring.IntervalSeconds, s.LogTypes, s.Cluster
	d.status.LogTypes = s.LogTypes
	defer func() { n.Filter = d.filterFor(n.Host, n.Port) }()
	defer d.nameEndpoints(n) // what follows decides the rest of it
	if first {
		n.Instance, n.Origin = s.ID, s.Origin
		n.Boot = 1
		d.status.RebootSeq, d.status.GroupSeq = s.RebootSeq, s.ParameterGroupSeq
		d.status.ParameterApply = "in-sync"
	}
	if p := d.password(); n.Password.Seq != p.Seq {
		n.Password = p
		d.acting(first || d.follows(), kurabe.StateResettingCredentials, "a new master password")
	} else if n.Password != p && !d.follows() {
		n.Password = p // the same one: who asked for it is told otherwise
	}
	if s.RebootSeq > d.status.RebootSeq {
		d.status.RebootSeq = s.RebootSeq
		d.restartsAtOnce = true
		n.Boot++
		d.acting(first, kurabe.StateRebooting, "the user asked for a reboot")
	}
	if d.failsOverWithParameters() {
		n.Boot++
		d.because("what waits for a reboot goes to the standby before it takes over")
	}
	d.planSettingsChange(wanted, first)
	n.Limits = wanted.Limits()
	d.planLog(wanted, first)
	n.LogSince = d.history().NeededSince()
	d.planParameters(wanted, first || n.Boot != d.baseBoot)
}

// failsOverWithParameters says whether a failover that the user asks for has parameters take
// effect that wait for a reboot, as on RDS. Once they are in an assignment none waits.
func (d *draft) failsOverWithParameters() bool {
	return d.w.Spec.FailoverSeq > d.status.FailoverSeq && len(d.status.PendingParameters) > 0 && d.status.FailedRollout.Boot == 0 && d.group != nil && len(d.group.SyncSet) > 0
}

// planSettingsChange compares what is applied with what is wanted.
func (d *draft) planSettingsChange(wanted kurabe.InstanceSettings, first bool) {
	have, n := d.status.Applied, &d.next
	n.Version, n.Port = wanted.EngineVersion, wanted.Port
	d.status.Applied = wanted
	if first || have == wanted {
		return
	}
	running := n.Goal == kurabe.GoalRunning
	restart := func(action kurabe.State, why string) {
		n.Boot++
		if running {
			d.acting(false, action, why)
		}
	}
	if have.EngineVersion != wanted.EngineVersion {
		d.changeVersion(have.EngineVersion, wanted.EngineVersion, restart)
	}
	if have.Class != wanted.Class {
		d.begin(kurabe.ChangeOfClass, event.NewClass)
		restart(kurabe.StateModifying, "class "+have.Class+" to "+wanted.Class)
	}
	if have.Port != wanted.Port {
		d.begin(kurabe.ChangeOfPort)
		restart(kurabe.StateModifying, "another port")
	}
	if have.MultiAZ != wanted.MultiAZ && running {
		d.acting(false, kurabe.StateModifying, "another number of zones")
	}
	switch {
	case have.KeepsLog() && !wanted.KeepsLog():
		d.tell(event.BackupsOff)
	case !have.KeepsLog() && wanted.KeepsLog():
		d.tell(event.BackupsOn)
	}
	if have.StorageGiB != wanted.StorageGiB || have.StorageType != wanted.StorageType || have.IOPS != wanted.IOPS || have.ThroughputMiB != wanted.ThroughputMiB {
		d.begin(kurabe.ChangeOfStorage, event.NewStorage)
		d.acting(!running, kurabe.StateModifying, "other storage")
	}
}

// begin notes a change whose end is told by tellChanged, and tells of its begin.
func (d *draft) begin(change kurabe.Change, kinds ...event.Kind) {
	for _, kind := range kinds {
		d.tell(kind)
	}
	if !slices.Contains(d.status.Changing, change) {
		d.status.Changing = append(slices.Clone(d.status.Changing), change)
	}
}

// changed are the events of the ends of changes.
var changed = map[kurabe.Change]event.Kind{
	kurabe.ChangeOfClass: event.ClassChanged, kurabe.ChangeOfStorage: event.StorageChanged, kurabe.ChangeOfGroup: event.GroupChanged,
	kurabe.ChangeOfPort: event.PortChanged,
}

// tellChanged ends what was begun. Another parameter group is in force when nothing of it waits for
// a reboot.
func (d *draft) tellChanged() {
	var later []kurabe.Change
	for _, c := range d.status.Changing {
		if c == kurabe.ChangeOfGroup && len(d.status.PendingParameters) > 0 {
			later = append(later, c)
			continue
		}
		d.tell(changed[c])
	}
	d.status.Changing = later
}

// acting notes what the coming generation is for. The state that users see is
// the strongest of what is going on: a creation stays a creation.
func (d *draft) acting(silent bool, action kurabe.State, why string) {
	d.because(why)
	if silent {
		return
	}
	weak := []kurabe.State{"", kurabe.StateResettingCredentials, kurabe.StateRebooting, kurabe.StateModifying, kurabe.StateUpgrading}
	if slices.Index(weak, action) > slices.Index(weak, d.status.Action) && slices.Contains(weak, d.status.Action) {
		d.status.Action = action
	}
}

// nameEndpoints fills in by which names clients reach a server, for its certificate, and
// which servers they can reach one by one.
func (d *draft) nameEndpoints(a *kurabe.Assignment) {
	a.Names, a.Topology = nil, nil
	domain, cluster := d.w.Domain, d.w.Spec.Cluster
	switch {
	case !domain.Named():
	case cluster:
		a.Names = []string{domain.Cluster(a.Name), domain.ClusterReader(a.Name), domain.Instance(kurabe.ServerName(a.Name, a.Instance))}
	default:
		a.Names = []string{domain.Instance(a.Name)}
	}
	if !a.Engine.ShowsTopology() {
		return
	}
	if !cluster {
		at := a.Address
		if domain.Named() {
			at = domain.Instance(a.Name)
		}
		a.Topology = []kurabe.TopologyServer{{ID: string(a.Instance.Owner()), Endpoint: at}}
		return
	}
	if d.group == nil {
		return
	}
	for _, m := range d.group.Members {
		if m.Leaving {
			continue
		}
		at := cmp.Or(m.ListensAt, a.Address)
		if domain.Named() {
			at = domain.Instance(kurabe.ServerName(a.Name, m.ID))
		}
		a.Topology = append(a.Topology, kurabe.TopologyServer{ID: kurabe.ServerResourceID(m.ID), Endpoint: at})
	}
}
