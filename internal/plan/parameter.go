package plan

import (
	"maps"
	"slices"

	"kurabe"
	"kurabe/internal/event"
)

// Vars are what formulas may name, for an instance with these settings.
func Vars(s kurabe.InstanceSettings, hostCPUs int) kurabe.FormulaVars {
	v := kurabe.FormulaVars{StorageBytes: int64(s.StorageGiB) * kurabe.GiB, Port: s.Port, CPUs: hostCPUs}
	if c, ok := kurabe.FindClass(s.Class); ok {
		v.MemoryBytes = c.MemoryBytes
		if c.CPUs > 0 {
			v.CPUs = c.CPUs
		}
	}
	return v
}

// planParameters decides which parameter values are in force now: all of them
// with a start of the server, else the dynamic ones that the user wants at once.
func (d *draft) planParameters(wanted kurabe.InstanceSettings, booting bool) {
	s := d.w.Spec
	cpus := 1
	for _, h := range d.w.Hosts {
		if h.Host == d.next.Host {
			cpus = h.CPUs
		}
	}
	target := d.w.Catalog.Resolve(d.w.Parameters, Vars(wanted, cpus))
	retry := d.mayStartWithOthers() && !maps.Equal(target, d.next.Settings)
	if retry {
		d.because("the parameters changed: the server is started with the new ones")
		d.next.Boot++
	}
	if d.had && d.status.ParameterGroup != s.ParameterGroup {
		d.begin(kurabe.ChangeOfGroup, event.NewGroup.With(s.ParameterGroup))
	}
	if booting || retry || d.next.Goal == kurabe.GoalStopped && !d.stoppedForDisk {
		d.next.Settings = target
		d.status.GroupSeq, d.status.ParameterGroup = s.ParameterGroupSeq, s.ParameterGroup
		d.setPending(nil, false)
		return
	}
	otherGroup := s.ParameterGroupSeq != d.status.GroupSeq
	d.status.ParameterGroup = s.ParameterGroup
	var pending []string
	changed := false
	for _, name := range differing(target, d.next.Settings) {
		p, _ := d.w.Catalog.Find(name)
		if otherGroup || p.Apply == kurabe.ApplyStatic || d.waits(name) {
			pending = append(pending, name)
			continue
		}
		changed = true
		if value, ok := target[name]; ok {
			d.next.Settings[name] = value
		} else {
			delete(d.next.Settings, name)
		}
	}
	if otherGroup && len(pending) == 0 {
		// The groups differ in nothing that matters here: no reboot is owed.
		d.status.GroupSeq = s.ParameterGroupSeq
	}
	if changed {
		d.because("dynamic parameters changed")
	}
	d.setPending(pending, changed)
}

// waits says whether the user wants a dynamic parameter only at the next boot.
func (d *draft) waits(name string) bool {
	g := d.w.Parameters
	return g != nil && (g.Values[name].Method == kurabe.ApplyPendingReboot || g.Later[name])
}

func (d *draft) setPending(pending []string, changed bool) {
	d.status.PendingParameters = pending
	switch {
	case len(pending) > 0:
		d.status.ParameterApply = "pending-reboot"
	case changed:
		d.status.ParameterApply = "applying"
	case d.status.ParameterApply == "pending-reboot":
		d.status.ParameterApply = "in-sync"
	}
}

// differing lists the names whose values differ between two sets, sorted.
func differing(a, b map[string]string) []string {
	var names []string
	for name, value := range a {
		if other, ok := b[name]; !ok || other != value {
			names = append(names, name)
		}
	}
	for name := range b {
		if _, ok := a[name]; !ok {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}
