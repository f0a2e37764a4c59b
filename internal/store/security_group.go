package store

import (
	"slices"

	"kurabe"
)

// PutSecurityGroup writes a group that was read at mod, 0 for a new one.
func (c *Change) PutSecurityGroup(g kurabe.SecurityGroup, mod int64) *Change {
	return c.RequireSecurityGroup(g.ID, mod).put(securityGroupKey(g.ID), g, g.ID)
}

// RequireSecurityGroup demands that the group is the one read at mod.
func (c *Change) RequireSecurityGroup(id string, mod int64) *Change {
	return c.Require(securityGroupKey(id), mod)
}

// DeleteSecurityGroup removes a group that was read at mod. That nothing is a member of it is the
// caller's to check, with RequireInstancesUnwritten.
func (c *Change) DeleteSecurityGroup(id string, mod int64) *Change {
	return c.RequireSecurityGroup(id, mod).Delete(securityGroupKey(id))
}

// RequireSecurityGroupsUnwritten demands that no group was written after revision: names are
// unique, and groups are counted.
func (c *Change) RequireSecurityGroupsUnwritten(revision int64) *Change {
	return c.RequireUnwritten(securityGroups, revision)
}

// SecurityGroup returns a stored group. The default one is stored once it was changed.
func (v *View) SecurityGroup(id string) (Record[kurabe.SecurityGroup], bool) {
	v.mu.RLock()
	defer v.mu.RUnlock()
	r, ok := v.state.securityGroups[id]
	return r, ok
}

// SecurityGroups returns every stored group, by id.
func (v *View) SecurityGroups() []Record[kurabe.SecurityGroup] {
	v.mu.RLock()
	defer v.mu.RUnlock()
	return sortedByName(v.state.securityGroups)
}

// membersOf lists the instances that have a security group.
func (s *state) membersOf(group string) []kurabe.InstanceID {
	var out []kurabe.InstanceID
	for id, i := range s.instances.all {
		if i.Spec != nil && slices.Contains(kurabe.GroupsOf(i.Spec.SecurityGroups), group) {
			out = append(out, id)
		}
	}
	return out
}
