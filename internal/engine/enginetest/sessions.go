package enginetest

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"kurabe"
	"kurabe/internal/engine"
)

// The known load: so many sessions wait for a row that another one holds while it sleeps, and
// one computes.
const waitingSessions = 4

// loadSQL is how each engine makes the known load, and what it calls the waits.
type loadSQL struct {
	table, hold, wait, compute string
	locks                      []string
}

var loads = map[kurabe.EngineName]loadSQL{
	kurabe.Postgres: {
		table:   "CREATE TABLE held AS SELECT 1 AS a, 1 AS b",
		hold:    "WITH u AS (UPDATE held SET b = b + 1 WHERE a = 1 RETURNING a) SELECT pg_sleep(600) FROM u",
		wait:    "UPDATE held SET b = b + 2 WHERE a = 1",
		compute: "DO 'DECLARE n bigint := 0; BEGIN LOOP n := n + 1; END LOOP; END'",
		// The first waits for the transaction that holds the row, the others for the row.
		locks: []string{"transactionid", "tuple"},
	},
	kurabe.MariaDB: {
		table:   "CREATE TABLE held (a INT PRIMARY KEY, b INT) ENGINE=InnoDB SELECT 1 AS a, 1 AS b",
		hold:    "UPDATE held SET b = b + SLEEP(600) WHERE a = 1",
		wait:    "UPDATE held SET b = b + 2 WHERE a = 1",
		compute: "SELECT BENCHMARK(1000000000000, 1 + 1)",
		locks:   []string{"InnoDB row lock"},
	},
}

// sessions tells what sessions wait for, whom they wait for, and who computes: of a known load
// all of it, in each sample.
func sessions(t *testing.T, b *Bed) {
	s, err := b.Lifecycle.OpenSampler(t.Context(), b.Want)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	known := loads[b.Engine]
	if _, err := b.Query(t.Context(), b.Login(), known.table); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	defer func() { cancel(); running.Wait() }()
	start := func(statement string) { running.Go(func() { _, _ = b.Query(ctx, b.Login(), statement) }) }
	start(known.hold)
	holder := awaitSessions(t, s, func(list []kurabe.ActiveSession) bool { return len(list) == 1 && list[0].Statement == known.hold })[0]
	for range waitingSessions {
		start(known.wait)
	}
	start(known.compute)
	waits := func(a kurabe.ActiveSession) bool { return a.WaitType == kurabe.WaitLock }
	awaitSessions(t, s, func(list []kurabe.ActiveSession) bool {
		return len(list) == waitingSessions+2 && count(list, waits) == waitingSessions
	})
	const looks = 40
	computing := 0
	for range looks {
		list, err := s.Sessions(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		computing += count(list, func(a kurabe.ActiveSession) bool { return a.Statement == known.compute && a.Wait == kurabe.WaitCPU })
		if len(list) != waitingSessions+2 || count(list, waits) != waitingSessions {
			t.Fatalf("%d sessions wait for a row: %+v", waitingSessions, list)
		}
		for _, a := range list {
			if a.Statement != known.wait {
				continue
			}
			chain := a.Blocker == holder.ID || slices.ContainsFunc(list, func(o kurabe.ActiveSession) bool { return o.ID == a.Blocker && o.Statement == known.wait })
			if !chain || !slices.Contains(known.locks, a.Wait) || a.BlockerUser != a.User || a.BlockerStatement == "" {
				t.Fatalf("session %d holds the row: %+v", holder.ID, a)
			}
		}
	}
	// 5 %: the bar of the truth of load.
	if computing < looks*95/100 {
		t.Errorf("the session that computes did so in %d of %d samples", computing, looks)
	}
	if values, err := s.Sample(t.Context()); err != nil || values[0].Value != waitingSessions+2 {
		t.Errorf("samples of %d sessions: %+v, %v", waitingSessions+2, values, err)
	}
	awaitSessions(t, s, func(list []kurabe.ActiveSession) bool {
		return count(list, func(a kurabe.ActiveSession) bool { return a.ID == holder.ID && a.Seconds >= 1 && a.Seconds < 600 }) == 1
	})
	if holder.User == "" || holder.Host == "" || holder.Kind == "" {
		t.Errorf("of the holder is not known who it is: %+v", holder)
	}
}

func count(list []kurabe.ActiveSession, is func(kurabe.ActiveSession) bool) (n int) {
	for _, a := range list {
		if is(a) {
			n++
		}
	}
	return n
}

// awaitSessions lists the active sessions until they are what is expected.
func awaitSessions(t *testing.T, s engine.Sampler, expected func([]kurabe.ActiveSession) bool) []kurabe.ActiveSession {
	t.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		list, err := s.Sessions(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if expected(list) {
			return list
		}
		if time.Now().After(end) {
			t.Fatalf("the load is another: %+v", list)
		}
	}
}
