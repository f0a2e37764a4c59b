package postgres

import (
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"kurabe"
	"kurabe/internal/engine"
	"kurabe/internal/volume"
)

// A member of a group is known to the server that it follows by these names: its session
// that follows and its slot by the first, the session that clones it by the last. They
// must not be one: a session of the first name counts when a commit waits. A read replica
// has the second in the place of the first, and never counts.
const (
	memberPrefix  = "kurabe_member_"
	replicaPrefix = "kurabe_replica_"
	clonePrefix   = "kurabe_clone_"
)

// standbyFile in the data folder makes a server that starts a follower. The server itself
// removes it when it is promoted.
const standbyFile = "standby.signal"

// memberName is that of a follower in a server of the instance owner.
func memberName(owner, id kurabe.InstanceID) string {
	if id.Owner() == owner {
		return memberPrefix + strconv.Itoa(id.Number())
	}
	return replicaPrefix + strings.ToLower(strings.ReplaceAll(string(id.Owner()), "-", "_"))
}

// ownName is that of a follower in its source.
func ownName(i engine.Instance) string {
	owner := i.Instance.Owner()
	if i.Role != nil && i.Role.Source != nil {
		owner = i.Role.Source.ID.Owner()
	}
	return memberName(owner, i.Instance)
}

func cloneName(id kurabe.InstanceID) string { return clonePrefix + strconv.Itoa(id.Number()) }

// followerForm is that of the names of both kinds.
var followerForm = regexp.MustCompile(`^(?:` + memberPrefix + `[1-9][0-9]*|` + replicaPrefix + `[a-z0-9_]+)$`)

var memberForm = regexp.MustCompile(`^` + memberPrefix + `([1-9][0-9]*)$`)

// memberOf is the member of an instance that has a name, false when none can have it.
func memberOf(owner kurabe.InstanceID, name string) (kurabe.InstanceID, bool) {
	m := memberForm.FindStringSubmatch(name)
	if m == nil {
		return "", false
	}
	number, err := strconv.Atoi(m[1])
	return owner.Member(number), err == nil
}

// waitNames is the setting by which every commit waits for one of these members, whichever
// is first, "" for none. Their order has no meaning, so it is that of the numbers.
func waitNames(ids []kurabe.InstanceID) string {
	if len(ids) == 0 {
		return ""
	}
	sorted := slices.SortedFunc(slices.Values(ids), func(a, b kurabe.InstanceID) int { return a.Number() - b.Number() })
	names := make([]string, len(sorted))
	for n, id := range sorted {
		names[n] = quoteName(memberName(id.Owner(), id))
	}
	method := "ANY 1 ("
	if len(names) == 1 {
		method = "FIRST 1 (" // says the same, and its follower shows as sync
	}
	return method + strings.Join(names, ", ") + ")"
}

var quotedMember = regexp.MustCompile(`"(` + memberPrefix + `[1-9][0-9]*)"`)

// waitedFor is the reverse of waitNames.
func waitedFor(owner kurabe.InstanceID, setting string) []kurabe.InstanceID {
	var ids []kurabe.InstanceID
	for _, m := range quotedMember.FindAllStringSubmatch(setting, -1) {
		if id, ok := memberOf(owner, m[1]); ok {
			ids = append(ids, id)
		}
	}
	return ids
}

// follows says whether a server is to follow another one.
func follows(i engine.Instance) bool {
	return i.Role != nil && (i.Role.Duty == kurabe.DutyFollow || holds(i))
}

// holds says whether a follower is to follow nobody.
func holds(i engine.Instance) bool { return i.Role != nil && i.Role.Duty == kurabe.DutyDetached }

// keepsOut says whether a server of a group lets no client in: a follower shows an older
// state than its writer, which only a read replica is there for, one that yields or rests is
// about to end, and one that is held may show what others lack.
func keepsOut(i engine.Instance) bool {
	return i.Role != nil && (i.ClientsKeptOut || i.Role.Duty != kurabe.DutyWrite) && !reads(i)
}

// IsFollower implements engine.Replicator.
func (d *Driver) IsFollower(h engine.Home) bool {
	_, err := volume.Lstat(filepath.Join(h.DataDir(), standbyFile))
	return err == nil
}
