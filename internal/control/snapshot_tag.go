package control

import (
	"slices"
	"strings"

	"kurabe"
)

// checkOwnTags refuses keys that only our own commands (clone, lab) may set.
func checkOwnTags(keys ...string) error {
	for _, key := range keys {
		if reservedTag(key) {
			return kurabe.Errorf(kurabe.CodeInvalidParameterValue, "Tag keys beginning with %q are reserved: %q", reservedTagPrefix, key)
		}
	}
	return nil
}

// reservedTagPrefix begins the marks of our own commands.
const reservedTagPrefix = "kurabe:"

func reservedTag(key string) bool {
	return strings.HasPrefix(strings.ToLower(key), reservedTagPrefix)
}

// inherited are those of a resource's tags that pass to what is made of it: a mark of
// our own commands says what the resource itself is for. Nothing is refused for the sake
// of what another one is called, so tags that no request may have are left behind.
func inherited(tags []kurabe.Tag) []kurabe.Tag {
	out := slices.DeleteFunc(slices.Clone(tags), func(t kurabe.Tag) bool { return reservedTag(t.Key) })
	if kurabe.CheckTags(out) != nil {
		return nil
	}
	return out
}

// restoredTags are those of an instance that is restored from a snapshot without any
// being given: what the source had when the snapshot was taken. Tags that the snapshot
// was given are there instead of them (RDS user guide, "Copying tags to DB instance
// snapshots"). Of a restore to a moment RDS says no such thing: it has those of the
// request only.
func restoredTags(s *kurabe.SnapshotSpec) []kurabe.Tag {
	if len(s.Tags) > 0 {
		return inherited(s.Tags)
	}
	return inherited(s.Source.Tags)
}
