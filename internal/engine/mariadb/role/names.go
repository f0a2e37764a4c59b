package role

import (
	"fmt"
	"hash/fnv"
	"regexp"
	"strconv"
	"strings"

	"kurabe"
)

// A member of a group comes to the server that it follows as the first, by its
// certificate. The second is how a writer looks at its followers, with a password that
// stays on its host. Neither has a right that the master user has not, as for every
// account of ours. kurabe_guard knows both beginnings.
const (
	MemberPrefix = "rdsmember_"
	LookPrefix   = "rdslook_"
)

// MemberForm is that of both; the end is of the instance, so that no name of a user's is
// taken for one.
var MemberForm = regexp.MustCompile(`^(?:` + MemberPrefix + `|` + LookPrefix + `)[1-9][0-9]*_[0-9a-f]{8}$`)

func MemberName(id kurabe.InstanceID) string { return MemberPrefix + nameOf(id) }

func LookName(id kurabe.InstanceID) string { return LookPrefix + nameOf(id) }

func nameOf(id kurabe.InstanceID) string {
	sum := fnv.New32a()
	fmt.Fprint(sum, id.Owner())
	return fmt.Sprintf("%d_%08x", id.Number(), sum.Sum32())
}

// MemberOf is the member of an instance that an account's name is of.
func MemberOf(owner kurabe.InstanceID, name string) (kurabe.InstanceID, bool) {
	number, _, _ := strings.Cut(strings.TrimPrefix(name, MemberPrefix), "_")
	n, err := strconv.Atoi(number)
	if err != nil || n < 1 {
		return "", false
	}
	id := owner.Member(n)
	return id, MemberName(id) == name
}

// ServerID is a number of the instance's own, as replication needs it.
func ServerID(id kurabe.InstanceID) string {
	sum := fnv.New32a()
	fmt.Fprint(sum, id)
	return strconv.FormatUint(uint64(max(sum.Sum32(), 1)), 10)
}
