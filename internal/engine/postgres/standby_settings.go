package postgres

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"kurabe/internal/engine"
)

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
	case on(i.Settings[forceSSL]):
		return []string{"hostnossl all all all reject", "host all all all scram-sha-256"}
	}
	return []string{"host all all all scram-sha-256"}
}
