//go:build integration

package mariadb

import (
	"strconv"
	"testing"

	"kurabe/internal/engine/enginetest"
	"kurabe/internal/engine/mariadb/binlog"
	"kurabe/internal/engine/mariadb/guard"
	"kurabe/internal/engine/mariadb/role"
	"kurabe/internal/engine/mariadb/sqltext"
)

const notAllowed = 1227

// followerSession is the number of the session by which a writer sends its follower the log.
func (p pair) followerSession(t *testing.T) string {
	t.Helper()
	name := role.MemberName(p.follower.Want.Instance)
	found := ""
	for _, row := range inside(t, p.writer, "SHOW PROCESSLIST") {
		if row[1] == name && row[4] == guard.DumpCommand {
			found = row[0]
		}
	}
	return found
}

// Whoever has the right to replicate, and a member's account too, can neither end a member's
// session, nor have it looked for elsewhere, nor answer for it.
func TestGroupMembersAreKnown(t *testing.T) {
	enginetest.OnceIsEnough(t)
	p := newPair(t)
	p.waitForFollower(t)
	member := role.MemberName(p.follower.Want.Instance)
	n, err := strconv.ParseUint(role.ServerID(p.follower.Want.Instance), 10, 32)
	if err != nil {
		t.Fatal(err)
	}
	id := uint32(n)
	const password = "Taken-over-1"
	takeOver := []string{
		"ALTER USER " + sqltext.Account(member) + " IDENTIFIED BY '" + password + "' REQUIRE NONE",
		"CREATE OR REPLACE USER " + sqltext.Account(role.MemberPrefix+"evil") + " IDENTIFIED BY '" + password + "'",
		"GRANT REPLICATION SLAVE, BINLOG MONITOR ON *.* TO " + sqltext.Account(role.MemberPrefix+"evil"),
	}
	users := map[string]string{p.writer.Want.MasterUsername: p.writer.Password.Reveal(), member: password, role.MemberPrefix + "evil": password}
	hostile := func(t *testing.T) {
		t.Helper()
		for _, s := range takeOver {
			p.writer.MustQuery(t, s)
		}
		before := p.followerSession(t)
		if before == "" {
			t.Fatal("the follower receives nothing")
		}
		for user, password := range users {
			if answer := rawSession(t, p.writer, user, password).register(id, "127.0.0.9", 9); !refused(answer, notAllowed) {
				t.Errorf("%s comes as the follower: %q", user, answer)
			}
			if answer := rawSession(t, p.writer, user, password).dump(id, binlog.FileName(1), uint32(len(binlog.Magic))); !refused(answer, notAllowed) {
				t.Errorf("%s asks for the log as the follower: %q", user, answer)
			}
		}
		if after := p.followerSession(t); after != before {
			t.Errorf("the follower's session was %s, and is %s", before, after)
		}
	}
	hostile(t)
	// Another id is anybody's.
	defer foreignReplica(t, p.writer).Close()
	if got := p.followerSession(t); got == "" {
		t.Error("the follower's session has ended")
	}
	if err := replicator(p.writer).Followers(t.Context(), p.writer.Instance()); err != nil { // gives the follower its account back
		t.Fatal(err)
	}
	p.writer.MustQuery(t, "FLUSH SSL")
	p.writer.MustQuery(t, "INSERT INTO t VALUES (2, 'answered')")
	inside(t, p.follower, "STOP SLAVE IO_THREAD", "START SLAVE IO_THREAD") // its session is of the new TLS
	p.awaitFollowing(t)
	hostile(t)
	// Nobody answers in its place.
	p.stopReceiving(t)
	alone := insert(t, p.writer, "INSERT INTO t VALUES (500, 'alone')")
	alone.waits(t, "without a follower")
	end := inside(t, p.writer, "SHOW MASTER STATUS")[0]
	at, err := strconv.ParseUint(end[1], 10, 32)
	if err != nil {
		t.Fatal(err)
	}
	for user, password := range users {
		rawSession(t, p.writer, user, password).dump(id, end[0], uint32(at))
	}
	alone.waits(t, "with others that say they have it")
	p.write(t, nil)
	if err := alone.end(t); err != nil {
		t.Error(err)
	}
}
