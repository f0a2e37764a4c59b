package parameter

import (
	"strings"

	"kurabe"
)

// checkDemands says why an instance has not what the parameters of a group would take, nil when
// it has. Only what blamed names is a reason to refuse: what was there before is there.
func checkDemands(cat *kurabe.Catalog, g *kurabe.ParameterGroup, s kurabe.InstanceSpec, blamed func(string) bool) *kurabe.Excess {
	all := []kurabe.InstanceSettings{s.Now}
	if s.Next != nil {
		all = append(all, *s.Next)
	}
	for _, settings := range all {
		class, ok := kurabe.FindClass(settings.Class)
		if !ok {
			continue
		}
		storage := int64(settings.StorageGiB) * kurabe.GiB
		values := cat.Resolve(g, kurabe.FormulaVars{MemoryBytes: class.MemoryBytes, CPUs: max(class.CPUs, 1), StorageBytes: storage, Port: settings.Port})
		if e := cat.Demands.Excess(values, blamed, kurabe.Sizes{MemoryBytes: class.MemoryBytes, StorageBytes: storage}); e != nil {
			return e
		}
	}
	return nil
}

// RequireDemands refuses an instance that has not what the parameters of its group would take.
func (c Groups) RequireDemands(s *kurabe.InstanceSpec, family string) error {
	stored, ok := c.View.ParameterGroup(kurabe.NameKey(s.ParameterGroup, s.Cluster))
	cat, known := c.Catalog(family)
	if !ok || !known {
		return nil // the service's own values fit every class
	}
	set := func(name string) bool { _, is := stored.Value.Values[name]; return is }
	if e := checkDemands(cat, &stored.Value, *s, set); e != nil {
		return kurabe.Errorf(kurabe.CodeInvalidParameterCombo, "The parameter group %s cannot be used for this instance. %s", s.ParameterGroup, e.Error())
	}
	return nil
}

// DemandsMoved says whether a change is about what parameters may take. Nothing else is refused
// for it: an instance that cannot start is mended one change at a time.
func DemandsMoved(before, after kurabe.InstanceSpec) bool {
	size := func(s *kurabe.InstanceSettings) kurabe.InstanceSettings {
		if s == nil {
			return kurabe.InstanceSettings{}
		}
		return kurabe.InstanceSettings{Class: s.Class, StorageGiB: s.StorageGiB, EngineVersion: s.EngineVersion}
	}
	return before.ParameterGroup != after.ParameterGroup || size(&before.Now) != size(&after.Now) || after.Next != nil && size(before.Next) != size(after.Next)
}

// checkGroupDemands says whether the instances that have a group have what the values that were
// changed would take; without any, whether the largest that there could be would.
func (c Groups) checkGroupDemands(cat *kurabe.Catalog, g *kurabe.ParameterGroup, changes []Change) error {
	set := map[string]bool{}
	for _, wish := range changes {
		if p, ok := cat.Find(strings.ToLower(wish.Name)); ok {
			set[p.Name] = true
		}
	}
	blamed := func(name string) bool { return set[name] }
	refuse := func(e *kurabe.Excess, where string) error {
		return kurabe.Errorf(kurabe.CodeInvalidParameterValue, "Invalid parameter value: %s for: %s %s: %s", e.Value, e.Parameter, where, e.Error())
	}
	users := 0
	for _, i := range c.View.Instances() {
		if i.Spec.ParameterGroup != g.Name || i.Spec.Cluster != g.Cluster || i.Spec.Engine != cat.Engine {
			continue
		}
		users++
		if e := checkDemands(cat, g, *i.Spec, blamed); e != nil {
			return refuse(e, "it does not fit "+i.Spec.Name)
		}
	}
	if users > 0 {
		return nil
	}
	var none *kurabe.Excess
	for _, w := range c.formulaWorlds(cat.Engine) {
		s := kurabe.InstanceSpec{Now: kurabe.InstanceSettings{Class: w.class, StorageGiB: largestStorageGiB, Port: w.vars.Port}}
		e := checkDemands(cat, g, s, blamed)
		if e == nil {
			return nil
		}
		if none == nil || e.Bound > none.Bound {
			none = e
		}
	}
	if none == nil {
		return nil
	}
	return refuse(none, "it does not fit any DB instance")
}

// largestStorageGiB is the most that any storage type has.
const largestStorageGiB = 65536
