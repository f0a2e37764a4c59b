package control

import (
	"slices"
	"strings"

	"kurabe"
)

// shownTags are the keys of the tags by which the service tells what it knows of a
// snapshot. They are not stored, and do not count among the tags that it may have.
var shownTags = []string{kurabe.VerifiedTag, kurabe.DamagedTag, kurabe.MethodTag, kurabe.OccupiedTag}

// checkOwnTags refuses tags that only the service may set or remove.
func checkOwnTags(keys ...string) error {
	for _, key := range keys {
		if reservedTag(key) {
			return kurabe.Errorf(kurabe.CodeInvalidParameterValue, "Tag keys beginning with %q are reserved: %q", kurabe.ReservedTagPrefix, key)
		}
	}
	return nil
}

func reservedTag(key string) bool {
	return strings.HasPrefix(strings.ToLower(key), kurabe.ReservedTagPrefix)
}

// checkSnapshotTags checks the tags that a new snapshot is given. Marks of our own
// commands (kurabe:clone) are among them; what the service itself shows is not.
func checkSnapshotTags(tags []kurabe.Tag) error {
	for _, t := range tags {
		if slices.Contains(shownTags, t.Key) {
			return checkOwnTags(t.Key)
		}
	}
	return kurabe.CheckTags(tags)
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
