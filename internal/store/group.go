package store

import (
	"fmt"
	"slices"

	"kurabe"
)

// PutGroup writes the record of who may write an instance, read at mod, 0 for the first
// one.
func (c *Change) PutGroup(g kurabe.Group, mod int64) *Change {
	if err := checkGroup(g); err != nil {
		return c.fail(fmt.Errorf("store: group of %s: %w", g.Instance, err))
	}
	return c.RequireGroup(g.Instance, mod).put(groupKey(g.Instance), g, string(g.Instance))
}

// RequireGroup demands that the record of who may write is the one read at mod, 0 that
// there is none.
func (c *Change) RequireGroup(id kurabe.InstanceID, mod int64) *Change {
	return c.Require(groupKey(id), mod)
}

// DeleteGroup removes the record of an instance that has one server again, read at mod.
func (c *Change) DeleteGroup(id kurabe.InstanceID, mod int64) *Change {
	return c.RequireGroup(id, mod).Delete(groupKey(id))
}

// checkGroup says why a record must not be believed: what it says decides who may write,
// so one that contradicts itself is as unreadable as one that does not decode.
func checkGroup(g kurabe.Group) error {
	if g.Instance == "" || g.Instance != g.Instance.Owner() {
		return fmt.Errorf("invalid instance id %q", g.Instance)
	}
	seen := map[kurabe.InstanceID]bool{}
	for _, m := range g.Members {
		if n := m.ID.Number(); m.ID.Owner() != g.Instance || n == 0 || n > g.LastNumber || seen[m.ID] {
			return fmt.Errorf("member %q is foreign, listed twice, or beyond the last number %d", m.ID, g.LastNumber)
		}
		seen[m.ID] = true
	}
	if !seen[g.Primary] {
		return fmt.Errorf("the primary %q is no member", g.Primary)
	}
	if g.SwitchoverTo != "" && (g.SwitchoverTo.Owner() == g.Instance || len(g.Members) != 1) {
		return fmt.Errorf("%q is to take its place, but it has %d servers", g.SwitchoverTo, len(g.Members))
	}
	for _, id := range g.SyncSet {
		if !seen[id] || id == g.Primary {
			return fmt.Errorf("%q in the sync set is no member, or is the primary", id)
		}
	}
	return nil
}

// CreateSubnetGroup writes a new group; it conflicts when the name is taken.
func (c *Change) CreateSubnetGroup(g kurabe.SubnetGroup) *Change { return c.PutSubnetGroup(g, 0) }

// PutSubnetGroup writes a group that was read at mod.
func (c *Change) PutSubnetGroup(g kurabe.SubnetGroup, mod int64) *Change {
	return c.RequireSubnetGroup(g.Name, mod).put(subnetGroupKey(g.Name), g, g.Name)
}

// RequireSubnetGroup demands that the group is the one read at mod.
func (c *Change) RequireSubnetGroup(name string, mod int64) *Change {
	return c.Require(subnetGroupKey(name), mod)
}

// DeleteSubnetGroup removes a group that was read at mod. That no instance uses
// it is the caller's to check, with RequireInstancesUnwritten.
func (c *Change) DeleteSubnetGroup(name string, mod int64) *Change {
	return c.RequireSubnetGroup(name, mod).Delete(subnetGroupKey(name))
}

// RequireSubnetGroupsUnwritten demands that no group was written after revision:
// a count of all groups still holds at commit.
func (c *Change) RequireSubnetGroupsUnwritten(revision int64) *Change {
	return c.RequireUnwritten(subnetGroups, revision)
}

// CreateParameterGroup writes a new group; it conflicts when the name is taken.
func (c *Change) CreateParameterGroup(g kurabe.ParameterGroup) *Change {
	return c.PutParameterGroup(g, 0)
}

// PutParameterGroup writes a group that was read at mod.
func (c *Change) PutParameterGroup(g kurabe.ParameterGroup, mod int64) *Change {
	return c.RequireParameterGroup(g.Key(), mod).put(parameterGroupKey(g.Key()), g, g.Key())
}

// RequireParameterGroup demands that the group with that key (kurabe.NameKey) is the one read at mod.
func (c *Change) RequireParameterGroup(key string, mod int64) *Change {
	return c.Require(parameterGroupKey(key), mod)
}

// DeleteParameterGroup removes a group that was read at mod. That no instance
// uses it is the caller's to check, with RequireInstancesUnwritten.
func (c *Change) DeleteParameterGroup(key string, mod int64) *Change {
	return c.RequireParameterGroup(key, mod).Delete(parameterGroupKey(key))
}

// RequireParameterGroupsUnwritten demands that no group was written after
// revision: a count of all groups still holds at commit.
func (c *Change) RequireParameterGroupsUnwritten(revision int64) *Change {
	return c.RequireUnwritten(parameterGroups, revision)
}

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
