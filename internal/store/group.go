package store

import (
	"fmt"

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
