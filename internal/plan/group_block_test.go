package plan_test

import (
	"maps"
	"slices"

	"kurabe"
)

var policies = []string{kurabe.StandbyLostDegrade, kurabe.StandbyLostBlock}

// policy has the user say what becomes of commits when no standby answers.
func (f *groupFleet) policy(what string) {
	group := kurabe.ParameterGroup{}
	if f.w.Parameters != nil {
		group = *f.w.Parameters
	}
	group.Values = maps.Clone(group.Values)
	if group.Values == nil {
		group.Values = map[string]kurabe.ParameterValue{}
	}
	group.Values[kurabe.ParameterStandbyLost] = kurabe.ParameterValue{Value: what, Method: kurabe.ApplyImmediate}
	f.w.Parameters = &group
}

func (f *groupFleet) blocks() bool {
	return f.w.Parameters != nil && f.w.Parameters.Values[kurabe.ParameterStandbyLost].Value == kurabe.StandbyLostBlock
}

// checkTwo demands of a write that is acknowledged where commits go on alone no more that two
// servers have it.
func (f *groupFleet) checkTwo(t tester, s *server, write int) {
	if f.w.Group == nil || !f.w.Group.Blocks {
		return
	}
	f.seen["acks of two"]++
	have := 0
	for _, o := range f.servers {
		if slices.Contains(o.log, write) {
			have++
		}
	}
	if have < 2 {
		t.Fatalf("%s acknowledges write %d, which %d servers have: %+v", s.id, write, have, f.w.Group)
	}
}

// reboot is what a user has to do where a copy cannot be made while commits wait.
func (f *groupFleet) reboot(t tester) {
	for range 3 { // where an old word of the writer has it copied once more
		if !f.blocks() || f.w.Spec.Engine.CopiesWhileCommitsWait() || f.w.Group == nil || len(f.w.Group.Sync) > 0 {
			return
		}
		f.seen["reboots"]++
		f.wish(t, func(s *kurabe.InstanceSpec) { s.RebootSeq++ })
	}
}
