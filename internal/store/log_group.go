package store

import (
	"strings"

	"kurabe"
)

// logGroupSegment is a group's name as one segment of a key: names have slashes and no colons.
func logGroupSegment(name string) string { return strings.ReplaceAll(name, "/", ":") }

// PutLogGroup writes a log group that was read at mod, 0 for a new one.
func (c *Change) PutLogGroup(g kurabe.LogGroup, mod int64) *Change {
	segment := logGroupSegment(g.Name)
	return c.Require(logGroupKey(segment), mod).put(logGroupKey(segment), g, segment)
}

// DeleteLogGroup removes the record of a log group that was read at mod.
func (c *Change) DeleteLogGroup(name string, mod int64) *Change {
	key := logGroupKey(logGroupSegment(name))
	return c.Require(key, mod).Delete(key)
}

// LogGroup returns the record of a name, also of a group that is gone.
func (v *View) LogGroup(name string) (Record[kurabe.LogGroup], bool) {
	v.mu.RLock()
	defer v.mu.RUnlock()
	r, ok := v.state.logGroups[logGroupSegment(name)]
	return r, ok
}

// LogGroups returns all records of log groups by name, also of groups that are gone.
func (v *View) LogGroups() []Record[kurabe.LogGroup] {
	v.mu.RLock()
	defer v.mu.RUnlock()
	return sortedByName(v.state.logGroups)
}
