package postgres

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"kurabe"
	"kurabe/internal/engine"
	"kurabe/internal/engine/postgres/parameter"
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

// Times of the stream from a writer to its follower. A server that hangs must be known as
// such within seconds: the follower tells how far it is each second, and either side gives
// the other up after three of silence. A follower that has lost its writer tries again
// twice a second; the server's own five would be five without a standby after each restart.
const (
	streamTimeout  = "3s"
	statusInterval = "1s"
	retryInterval  = "500ms"
)

// groupSettings are what a server has for its group, beyond what every server has. None of
// them needs a restart of one that ran without a group, or is in none any more: a static one
// must not come and go, whatever it says (plumbing has those). What a user may set is not
// among those of a writer; a follower is seen by nobody, but for a read replica.
func groupSettings(i engine.Instance) []line {
	if i.Role == nil {
		return nil
	}
	lines := []line{
		// After the crash of a session a restart would show commits that still wait for
		// their followers. The server ends instead, and whoever ordered it decides.
		{"restart_after_crash", "off"},
		{"ssl_ca_file", filepath.Join(i.Seen().TLSDir(), authorityFile)},
		{"synchronous_standby_names", waitNames(i.Role.WaitFor)},
	}
	if holds(i) {
		// The log that is there is applied whatever queries it ends: it is waited for.
		return append(lines, line{"primary_conninfo", ""}, line{"wal_retrieve_retry_interval", retryInterval},
			line{"max_standby_streaming_delay", "0"}, line{"max_standby_archive_delay", "0"})
	}
	if !follows(i) || i.Role.Source == nil {
		return lines
	}
	lines = append(lines,
		line{"primary_conninfo", followInfo(i)},
		line{"primary_slot_name", ownName(i)},
		line{"wal_receiver_timeout", streamTimeout},
		line{"wal_receiver_status_interval", statusInterval},
		line{"wal_retrieve_retry_interval", retryInterval},
	)
	if reads(i) {
		return lines // how long a query may hold the log up is for its users to say
	}
	return append(lines,
		// The log is applied at once, whatever the service asks meanwhile: what is not
		// applied keeps clients waiting when the follower takes over.
		line{"max_standby_streaming_delay", "0"},
		line{"max_standby_archive_delay", "0"},
	)
}

// membersMap is the map of pg_ident.conf that names those who may follow.
const membersMap = "members"

// memberRules let the followers of a writer in, as the service's role, by a certificate
// that bears their id: to follow, to be cloned (both are replication) and to be rewound (a
// session of the service's database).
func memberRules(i engine.Instance) []string {
	if i.Role == nil || len(i.Role.Followers) == 0 && !reads(i) {
		return nil
	}
	return []string{
		"hostssl replication " + adminRole + " all cert map=" + membersMap,
		"hostssl " + adminDatabase + " " + adminRole + " all cert map=" + membersMap,
	}
}

// renderIdent names who may be the service's role: the service's account at the socket, and
// over TLS the followers, by the common name of their certificates.
func (d *Driver) renderIdent(i engine.Instance) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# map, account, role\nkurabe %s %s\n", quoteAccess(d.serviceUser), adminRole)
	if i.Role == nil {
		return b.String()
	}
	known := i.Role.Followers
	if reads(i) {
		known = append(slices.Clone(known), i.Instance) // see probeRead
	}
	for _, id := range known {
		fmt.Fprintf(&b, "%s %s %s\n", membersMap, quoteAccess(string(id)), adminRole)
	}
	return b.String()
}

// clientRules are for everybody else.
func clientRules(i engine.Instance) []string {
	switch {
	case keepsOut(i):
		return []string{"host all all all reject"}
	case on(i.Settings[parameter.ForceSSL]):
		return []string{"hostnossl all all all reject", "host all all all scram-sha-256"}
	}
	return []string{"host all all all scram-sha-256"}
}
