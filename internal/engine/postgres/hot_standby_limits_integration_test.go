//go:build integration

package postgres

import (
	"fmt"
	"maps"
	"strconv"
	"testing"

	"github.com/jackc/pgx/v5"

	"kurabe"
	"kurabe/internal/engine/enginetest"
)

// setLimit gives a member another max_connections, to be in force from its next start on.
func (g *group) setLimit(t *testing.T, n, connections int) {
	t.Helper()
	g.m[n].Settings = maps.Clone(g.m[n].Settings)
	if g.m[n].Settings == nil {
		g.m[n].Settings = map[string]string{}
	}
	g.m[n].Settings["max_connections"] = strconv.Itoa(connections)
	g.settings(t, n)
}

// limit is the max_connections of a running server.
func (g *group) limit(t *testing.T, n int) (connections int) {
	t.Helper()
	err := g.d.withAdmin(t.Context(), g.m[n], func(conn *pgx.Conn) error {
		return conn.QueryRow(t.Context(), "SELECT pg_catalog.current_setting('max_connections')::integer").Scan(&connections)
	})
	if err != nil {
		t.Fatal(err)
	}
	return connections
}

// The defaults that are counted with are the server's own.
func TestFloorDefaults(t *testing.T) {
	b := running(t)
	for name, want := range floors {
		if got := b.MustQuery(t, "SELECT boot_val FROM pg_settings WHERE name = '"+name+"'"); got != fmt.Sprint(want) {
			t.Errorf("%s is %s, and %d is counted with", name, got, want)
		}
	}
}

// A follower that is told to have less comes up before it has replayed that its writer has
// less, also when it was killed and replays settings of long before; and has less when it
// has replayed that.
func TestGroupFloors(t *testing.T) {
	enginetest.OnceIsEnough(t)
	g := newGroup(t)
	g.end(t, 1, g.d.StopSignal())
	// The writer has had much, and little since; the follower has replayed neither.
	const high, low, lower = 150, 60, 40
	for _, limit := range []int{high, low} {
		g.end(t, 0, g.d.StopSignal())
		g.setLimit(t, 0, limit)
		g.start(t, 0)
	}
	g.bed.MustQuery(t, "INSERT INTO ledger VALUES (1)")
	g.setLimit(t, 1, high)
	g.start(t, 1)
	g.has(t, 1, 1)

	// It has replayed both, and no restartpoint is after the first one: what it is killed
	// with is what it starts with.
	g.setLimit(t, 1, low)
	g.end(t, 1, g.d.KillSignal())
	g.start(t, 1)
	g.bed.MustQuery(t, "INSERT INTO ledger VALUES (2)")
	g.has(t, 1, 1, 2)
	if got := g.limit(t, 1); got != high {
		t.Errorf("after it was killed it has %d", got)
	}
	g.end(t, 1, g.d.StopSignal())
	g.start(t, 1)
	g.bed.MustQuery(t, "INSERT INTO ledger VALUES (3)")
	g.has(t, 1, 1, 2, 3)
	if got := g.limit(t, 1); got != low {
		t.Errorf("after it was stopped it has %d", got)
	}

	// Its writer has less now, and it has not heard of it.
	g.end(t, 1, g.d.StopSignal())
	g.end(t, 0, g.d.StopSignal())
	g.setLimit(t, 0, lower)
	g.start(t, 0)
	g.setLimit(t, 1, lower)
	g.start(t, 1)
	g.bed.MustQuery(t, "INSERT INTO ledger VALUES (4)")
	g.has(t, 1, 1, 2, 3, 4)
	if got := g.limit(t, 1); got != low {
		t.Errorf("it has %d, of which it has replayed no lower yet", got)
	}
	g.end(t, 1, g.d.StopSignal())
	g.start(t, 1)
	g.follows(t, 1)
	if got := g.limit(t, 1); got != lower {
		t.Errorf("in the end it has %d", got)
	}
}

// A follower that runs with more than it is to have takes that along when it takes over in
// order. The former writer, of which nothing has to be rewound, has heard nothing of it: it
// applies nothing any more when it does, says so, and goes on after a restart.
func TestGroupFloorsHandOver(t *testing.T) {
	enginetest.OnceIsEnough(t)
	g := newGroup(t)
	const high, low = 150, 60
	g.end(t, 1, g.d.StopSignal())
	g.end(t, 0, g.d.StopSignal())
	for n := range g.m {
		g.setLimit(t, n, high)
		g.start(t, n)
	}
	g.follows(t, 1)
	g.end(t, 0, g.d.StopSignal())
	g.setLimit(t, 0, low)
	g.start(t, 0)
	g.bed.MustQuery(t, "INSERT INTO ledger VALUES (1)")
	g.has(t, 1, 1)
	g.setLimit(t, 1, low)
	if got := g.limit(t, 1); got != high {
		t.Fatalf("it has %d", got)
	}

	g.end(t, 0, g.d.StopSignal())
	g.m[1].Role = &kurabe.Role{Epoch: 2, Duty: kurabe.DutyWrite, Followers: []kurabe.InstanceID{g.m[0].Instance}}
	if err := g.d.Promote(t.Context(), g.m[1]); err != nil {
		t.Fatal(err)
	}
	g.settings(t, 1)
	if err := g.d.Followers(t.Context(), g.m[1]); err != nil {
		t.Fatal(err)
	}
	if _, err := g.client(t.Context(), 1, "INSERT INTO ledger VALUES (2)"); err != nil {
		t.Fatal(err)
	}
	g.follow(t, 0, 1)
	if err := g.d.Rejoin(t.Context(), g.m[0], g.caFile(0)); err != nil {
		t.Fatal(err)
	}
	g.start(t, 0)
	until(t, "follower that applies nothing", func() bool {
		v := g.look(t, 0)
		return v.Paused && !v.Following
	})
	g.end(t, 0, g.d.StopSignal())
	g.start(t, 0)
	if got := g.limit(t, 0); got != high {
		t.Errorf("it has %d, and its writer %d", got, high)
	}
	g.follows(t, 0)
	g.has(t, 0, 1, 2)
	if g.look(t, 0).Paused {
		t.Error("it follows, and applies nothing")
	}
}
