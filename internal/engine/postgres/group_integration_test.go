//go:build integration

package postgres

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"kurabe"
	"kurabe/internal/engine"
	"kurabe/internal/engine/enginetest"
)

// A clone follows, lets no client in, and both say what is so.
func TestGroupFollows(t *testing.T) {
	g := newGroup(t)
	g.bed.MustQuery(t, "INSERT INTO ledger VALUES (1)")
	g.has(t, 1, 1)
	second := g.m[1].Instance
	until(t, "follower that has all", func() bool {
		v := g.look(t, 0)
		f := v.Followers[second]
		return v.Writing && !v.Following && f.Streaming && f.Flushed >= v.Inserted && v.Position <= v.Inserted && len(v.WaitsFor) == 0
	})
	v := g.look(t, 1)
	if v.Writing || !v.Following || v.Position == 0 || len(v.Followers) > 0 {
		t.Errorf("the follower says %+v", v)
	}
	if _, err := g.client(t.Context(), 1, "SELECT 1"); err == nil || !strings.Contains(refusal(err), "28000") {
		t.Errorf("a client of the follower: %v", err)
	}
	// Looked at as the follower of somebody else, it does not follow.
	g.m[1].Role.Source.Port++
	if g.look(t, 1).Following {
		t.Error("it follows a source that it is not connected to")
	}
	g.end(t, 1, g.d.StopSignal())
	until(t, "follower that is gone", func() bool { return !g.look(t, 0).Followers[second].Streaming })
}

// Slots are made and dropped for members, and others are left alone.
func TestGroupSlots(t *testing.T) {
	enginetest.OnceIsEnough(t)
	g := newGroup(t)
	slots := func() string {
		var names string
		err := g.d.withAdmin(t.Context(), g.m[0], func(conn *pgx.Conn) error {
			return conn.QueryRow(t.Context(), "SELECT string_agg(slot_name::text, ' ' ORDER BY slot_name) FROM pg_replication_slots").Scan(&names)
		})
		if err != nil {
			t.Fatal(err)
		}
		return names
	}
	log, err := g.d.OpenLog(t.Context(), g.m[0])
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	if _, err := log.Begin(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := slots(); got != "kurabe_log kurabe_member_2" {
		t.Errorf("slots %s", got)
	}
	// The second member is none any more, while it follows.
	g.m[0].Role.Followers = []kurabe.InstanceID{g.m[0].Instance.Member(3)}
	g.settings(t, 0)
	for range 2 {
		if err := g.d.Followers(t.Context(), g.m[0]); err != nil {
			t.Fatal(err)
		}
	}
	if got := slots(); got != "kurabe_log kurabe_member_3" {
		t.Errorf("slots %s", got)
	}
}

// A commit waits for a follower that is frozen, and comes back when it thaws; the service's
// own does not wait, and nothing waits when nobody is waited for any more.
func TestGroupWaits(t *testing.T) {
	enginetest.OnceIsEnough(t)
	g := newGroup(t)
	second := g.m[1].Instance
	for range 2 {
		g.write(t, 0, second)
		if err := g.d.Waits(t.Context(), g.m[0]); err != nil {
			t.Fatal(err)
		}
	}
	if v := g.look(t, 0); !slices.Equal(v.WaitsFor, []kurabe.InstanceID{second}) {
		t.Errorf("it waits for %v", v.WaitsFor)
	}
	g.bed.MustQuery(t, "INSERT INTO ledger VALUES (1)")
	thaw := g.freeze(t, 1)
	committed := g.commit(t, 2)
	g.waiting(t, 1)
	if err := g.d.SetPassword(t.Context(), g.m[0]); err != nil {
		t.Errorf("the service's own commit: %v", err)
	}
	if err := g.d.Waits(t.Context(), g.m[0]); err != nil {
		t.Errorf("with the follower away: %v", err)
	}
	select {
	case err := <-committed:
		t.Errorf("the commit did not wait: %v", err)
	default:
	}
	g.waiting(t, 1) // what looked whether commits wait has left no session behind
	thaw()
	if err := <-committed; err != nil {
		t.Errorf("the commit that waited: %v", err)
	}
	g.has(t, 1, 1, 2)
	g.follows(t, 1)

	g.freeze(t, 1)
	committed = g.commit(t, 3)
	g.waiting(t, 1)
	g.write(t, 0)
	if err := g.d.Waits(t.Context(), g.m[0]); err != nil {
		t.Error(err)
	}
	if err := <-committed; err != nil {
		t.Errorf("the commit that waits for nobody any more: %v", err)
	}
}

// commit inserts a row as a client, beside the test.
func (g *group) commit(t *testing.T, n int) <-chan error {
	t.Helper()
	ended := make(chan error, 1)
	go func() {
		_, err := g.client(t.Context(), 0, "INSERT INTO ledger VALUES ("+strconv.Itoa(n)+")")
		ended <- err
	}()
	return ended
}

// waiting waits until so many sessions of the writer wait for a follower.
func (g *group) waiting(t *testing.T, want int) {
	t.Helper()
	until(t, "commit that waits", func() bool {
		var n int
		err := g.d.withAdmin(t.Context(), g.m[0], func(conn *pgx.Conn) error {
			return conn.QueryRow(t.Context(), "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep'").Scan(&n)
		})
		return err == nil && n == want
	})
}

// The writer dies with a row that nobody else has; the other takes over; the former writer
// is rewound and follows, without that row.
func TestGroupRejoin(t *testing.T) {
	g := newGroup(t)
	g.diverge(t)
	for range 2 {
		if err := g.d.Promote(t.Context(), g.m[1]); err != nil {
			t.Fatal(err)
		}
	}
	g.settings(t, 1)
	if err := g.d.Followers(t.Context(), g.m[1]); err != nil {
		t.Fatal(err)
	}
	if g.d.IsFollower(g.m[1].Home) || !g.look(t, 1).Writing {
		t.Error("the promoted server is a follower")
	}
	if _, err := g.client(t.Context(), 1, "INSERT INTO ledger VALUES (3)"); err != nil {
		t.Fatal(err)
	}
	g.follow(t, 0, 1)
	// The server's own upkeep may have committed something, too.
	if n, err := g.d.CommittedAlone(t.Context(), g.m[0], g.caFile(0)); n < 1 || n > 10 || err != nil {
		t.Errorf("it has committed %d transactions alone, %v", n, err)
	}
	if err := g.d.Rejoin(t.Context(), g.m[0], g.caFile(0)); err != nil {
		t.Fatal(err)
	}
	g.start(t, 0)
	g.follows(t, 0)
	g.has(t, 0, 1, 3)

	// And back, in order: nothing diverges.
	g.end(t, 1, g.d.StopSignal())
	g.write(t, 0)
	if err := g.d.Promote(t.Context(), g.m[0]); err != nil {
		t.Fatal(err)
	}
	g.settings(t, 0)
	g.follow(t, 1, 0)
	if n, err := g.d.CommittedAlone(t.Context(), g.m[1], g.caFile(1)); n != 0 || err != nil {
		t.Errorf("one that ended in order has committed %d transactions alone, %v", n, err)
	}
	if err := g.d.Rejoin(t.Context(), g.m[1], g.caFile(1)); err != nil {
		t.Fatal(err)
	}
	g.start(t, 1)
	g.follows(t, 1)
	g.has(t, 1, 1, 3)
}

// diverge leaves a dead writer with row 2, and a follower that runs without it.
func (g *group) diverge(t *testing.T) {
	t.Helper()
	g.bed.MustQuery(t, "INSERT INTO ledger VALUES (1)")
	g.has(t, 1, 1)
	g.end(t, 1, g.d.StopSignal())
	g.bed.MustQuery(t, "INSERT INTO ledger VALUES (2)")
	g.end(t, 0, g.d.KillSignal())
	g.start(t, 1)
	g.m[1].Role = &kurabe.Role{Epoch: 2, Duty: kurabe.DutyWrite, Followers: []kurabe.InstanceID{g.m[0].Instance}}
}

// One whose rewinding was cut off is not taken for whole, and is cloned.
func TestGroupRejoinCut(t *testing.T) {
	enginetest.OnceIsEnough(t)
	g := newGroup(t)
	g.diverge(t)
	if err := g.d.Promote(t.Context(), g.m[1]); err != nil {
		t.Fatal(err)
	}
	g.settings(t, 1)
	g.follow(t, 0, 1)
	ctx, cut := context.WithCancel(t.Context())
	defer cut()
	go func() {
		ticker := time.NewTicker(time.Millisecond)
		defer ticker.Stop()
		for range ticker.C {
			if _, err := os.Lstat(markPath(g.m[0].Home)); err == nil || ctx.Err() != nil {
				cut()
				return
			}
		}
	}()
	if err := g.d.Rejoin(ctx, g.m[0], g.caFile(0)); !errors.Is(err, context.Canceled) {
		t.Fatalf("cut off: %v", err)
	}
	if g.d.IsFollower(g.m[0].Home) {
		t.Error("half of a rewinding passes for a follower")
	}
	if err := g.d.Rejoin(t.Context(), g.m[0], g.caFile(0)); !errors.Is(err, engine.ErrRebuild) {
		t.Fatalf("again: %v", err)
	}
	if err := os.RemoveAll(g.m[0].Home.DataDir()); err != nil {
		t.Fatal(err)
	}
	g.clone(t, 0, 1)
	if _, err := os.Lstat(markPath(g.m[0].Home)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the mark is left: %v", err)
	}
	g.start(t, 0)
	g.follows(t, 0)
	g.has(t, 0, 1)
}

// Two that wrote the same timeline cannot be told apart by pg_rewind, which would find
// nothing to do.
func TestGroupSameTimeline(t *testing.T) {
	enginetest.OnceIsEnough(t)
	g := newGroup(t)
	g.end(t, 1, g.d.StopSignal())
	if err := os.Remove(filepath.Join(g.m[1].Home.DataDir(), standbyFile)); err != nil {
		t.Fatal(err)
	}
	if err := g.d.Rejoin(t.Context(), g.m[1], g.caFile(1)); !errors.Is(err, engine.ErrRebuild) {
		t.Errorf("got %v", err)
	}
	// A source that is away is no reason to throw data away.
	g.end(t, 0, g.d.StopSignal())
	if err := g.d.Rejoin(t.Context(), g.m[1], g.caFile(1)); err == nil || errors.Is(err, engine.ErrRebuild) {
		t.Errorf("with its source away: %v", err)
	}
}

// Only members come in as the service's role, and only where they must.
func TestGroupCertificates(t *testing.T) {
	enginetest.OnceIsEnough(t)
	g := newGroup(t)
	ours, other := string(g.m[1].Instance), string(kurabe.NewInstanceID())
	for _, c := range []struct {
		name, certificate, database string
		works                       bool
	}{
		{"a member, to follow", ours, "replication:", true},
		{"a member, to be rewound", ours, adminDatabase, true},
		{"a member, in a client's database", ours, "shop", false},
		{"the writer itself", string(g.m[0].Instance), adminDatabase, false},
		{"a member that is none any more", ours[:len(ours)-1] + "3", "replication:", false},
		{"a member of another instance", other, adminDatabase, false},
		{"another instance, by the name of this one", g.bed.Want.Name, "replication:", false},
		{"nobody", "", adminDatabase, false},
		{"nobody, to follow", "", "replication:", false},
	} {
		var keyPEM, certPEM []byte
		if c.certificate != "" {
			keyPEM, certPEM, _ = g.certificate(t, c.certificate, g.m[1].Listens())
		}
		err := g.comeIn(t.Context(), 0, keyPEM, certPEM, c.database)
		if (err == nil) != c.works || err != nil && !strings.Contains(refusal(err), "28000") {
			t.Errorf("%s: %v", c.name, err)
		}
		if err := g.comeIn(t.Context(), 1, keyPEM, certPEM, c.database); err == nil {
			t.Errorf("%s comes in to a follower", c.name)
		}
	}
}

// A user of SQL has the server connect as it likes, with keys that the server can read. It
// gets no session of the service's role.
func TestGroupKeyFromSQL(t *testing.T) {
	g := newGroup(t)
	tlsDir := g.m[1].Home.TLSDir()
	info := "host=" + g.m[0].Listens() + " port=" + portText(g.bed) + " user=rdsadmin dbname=rdsadmin sslmode=require password=x" +
		" sslcert=" + filepath.Join(tlsDir, certificateFile) + " sslkey=" + filepath.Join(tlsDir, keyFile)
	g.bed.MustQuery(t, "CREATE EXTENSION dblink")
	g.bed.MustQuery(t, "CREATE EXTENSION postgres_fdw")
	_, err := query(t.Context(), g.bed.Login(), "SELECT * FROM dblink("+quoteLiteral(info)+", 'SELECT current_user::text') AS t(who text)")
	if err == nil || !strings.Contains(refusal(err), "2F003") {
		t.Errorf("dblink: %v", err)
	}
	refused := ""
	for _, sql := range []string{
		"CREATE SERVER own FOREIGN DATA WRAPPER postgres_fdw OPTIONS (host " + quoteLiteral(g.m[0].Listens()) + ", port " +
			quoteLiteral(portText(g.bed)) + ", dbname 'rdsadmin', sslmode 'require', sslcert " + quoteLiteral(filepath.Join(tlsDir, certificateFile)) +
			", sslkey " + quoteLiteral(filepath.Join(tlsDir, keyFile)) + ")",
		"CREATE USER MAPPING FOR master SERVER own OPTIONS (user 'rdsadmin', password 'x')",
		"CREATE FOREIGN TABLE roles (rolname name) SERVER own OPTIONS (schema_name 'pg_catalog', table_name 'pg_authid')",
		"SELECT count(*) FROM roles",
	} {
		if _, err := query(t.Context(), g.bed.Login(), sql); err != nil {
			refused = refusal(err)
			break
		}
	}
	if !strings.Contains(refused, "2F003") && !strings.Contains(refused, "42501") {
		t.Errorf("postgres_fdw: %q", refused)
	}
}
