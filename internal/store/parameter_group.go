package store

import "kurabe"

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
