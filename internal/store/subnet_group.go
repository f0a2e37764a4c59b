package store

import "kurabe"

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
