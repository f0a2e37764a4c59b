package role

import (
	"slices"
	"strconv"
	"strings"

	"kurabe"
	"kurabe/internal/engine"
)

// Writes, follows: what the assignment says, not what the server does by now.
func Writes(i engine.Instance) bool { return i.Role != nil && i.Role.Duty == kurabe.DutyWrite }

func Follows(i engine.Instance) bool { return i.Role != nil && i.Role.Duty == kurabe.DutyFollow }

// Holds says whether a follower is to follow nobody.
func Holds(i engine.Instance) bool { return i.Role != nil && i.Role.Duty == kurabe.DutyDetached }

// Answers says whether a server answers for commits of the one that it follows: it is of the
// same group. A read replica answers for nothing.
func Answers(i engine.Instance) bool {
	return Holds(i) || Follows(i) && (!Reads(i) || i.Role.Source != nil && i.Role.Source.ID.Owner() == i.Instance.Owner())
}

// KeepsOut says whether a server of a group lets no client in: a follower shows an older
// state than its writer, which only a read replica is there for, one that yields or rests is
// about to end, and one that is held may show what others lack.
func KeepsOut(i engine.Instance) bool {
	return i.Role != nil && (i.ClientsKeptOut || !Writes(i)) && !Reads(i)
}

// WaitsFor are those whose answer commits of the server wait for, once it has loaded that.
func WaitsFor(i engine.Instance) []kurabe.InstanceID {
	if i.Role == nil || Follows(i) || Holds(i) {
		return nil
	}
	return i.Role.WaitFor
}

// KeepsBinlog says whether the server writes a binary log: followers live on it, whether
// somebody keeps it for a restore or not. It is all of a group that takes a restart, and one
// that loses its role loses the log only in a clean stop; the planner sees to both.
func KeepsBinlog(i engine.Instance) bool { return i.Log || i.Binlog || i.Role != nil }

// WaitText says whom commits wait for, by their numbers for us, and by what the server knows
// its followers by for kurabe_guard, which lets nobody else's answer count. Their order has no
// meaning. WaitedFor reads it.
func WaitText(ids []kurabe.InstanceID) string {
	sorted := slices.SortedFunc(slices.Values(ids), func(a, b kurabe.InstanceID) int { return a.Number() - b.Number() })
	words := make([]string, len(sorted))
	for n, id := range sorted {
		words[n] = strconv.Itoa(id.Number()) + ":" + ServerID(id)
	}
	return strings.Join(words, " ")
}

func WaitedFor(owner kurabe.InstanceID, text string) []kurabe.InstanceID {
	var ids []kurabe.InstanceID
	for word := range strings.FieldsSeq(text) {
		word, _, _ := strings.Cut(word, ":") // an earlier service noted numbers alone
		if number, err := strconv.Atoi(word); err == nil && number > 0 {
			ids = append(ids, owner.Member(number))
		}
	}
	return ids
}

// Reads says whether a follower lets clients in: a read replica, or a reader of a cluster.
func Reads(i engine.Instance) bool { return (Follows(i) || Holds(i)) && i.Role.ServesReads }

// GroupFollowers are those of its own group: whoever else follows is a read replica, which
// answers for nothing.
func GroupFollowers(i engine.Instance) []kurabe.InstanceID {
	var ids []kurabe.InstanceID
	for _, id := range i.Role.Followers {
		if id.Owner() == i.Instance.Owner() {
			ids = append(ids, id)
		}
	}
	return ids
}

// FollowerOf is the follower of an instance that an account's name is of.
func FollowerOf(i engine.Instance, name string) (kurabe.InstanceID, bool) {
	if i.Role != nil {
		for _, id := range i.Role.Followers {
			if MemberName(id) == name {
				return id, true
			}
		}
	}
	return MemberOf(i.Instance.Owner(), name)
}
