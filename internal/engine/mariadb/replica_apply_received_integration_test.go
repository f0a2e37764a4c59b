//go:build integration

package mariadb

import (
	"fmt"
	"testing"

	"kurabe"
	"kurabe/internal/engine"
	"kurabe/internal/engine/enginetest"
	"kurabe/internal/engine/mariadb/guard"
	"kurabe/internal/engine/mariadb/replica"
	"kurabe/internal/engine/mariadb/sqltext"
)

// manyApplied take more than a moment to be met one by one.
const manyApplied = 600

// What was answered for was received, not applied: it is applied before anybody writes, also
// by a server that has died in between, or that somebody had apply it who died.
func TestGroupPromotesWhatWasReceived(t *testing.T) {
	enginetest.OnceIsEnough(t)
	crash := func(t *testing.T, follower *enginetest.Bed) { follower.Crash(t) }
	for name, c := range map[string]struct {
		stops   bool // then it notes how far it is
		happens func(t *testing.T, follower *enginetest.Bed)
	}{
		"at once":                    {true, func(*testing.T, *enginetest.Bed) {}},
		"after a death":              {true, crash},
		"after a death in full run":  {false, crash},
		"begun by somebody who died": {true, readFromTheBeginning},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPair(t)
			p.waitForFollower(t)
			p.writer.MustQuery(t, fmt.Sprintf("BEGIN NOT ATOMIC FOR n IN 1000..%d DO INSERT INTO t VALUES (n, 'applied'); END FOR; END", 999+manyApplied))
			awaitRow(t, p.follower, 999+manyApplied)
			if c.stops {
				inside(t, p.follower, "STOP SLAVE SQL_THREAD")
			}
			for n := range 20 {
				p.writer.MustQuery(t, fmt.Sprintf("INSERT INTO t VALUES (%d, 'answered')", 30+n))
			}
			p.writer.Crash(t)
			c.happens(t, p.follower)
			p.promote(t)
			want := fmt.Sprint(20 + manyApplied)
			if got := p.follower.MustQuery(t, "SELECT COUNT(*) FROM t WHERE id >= 30"); got != want {
				t.Errorf("%s of %s rows that were acknowledged", got, want)
			}
		})
	}
}

// A follower that is started as a writer whose commits wait from the beginning applies what it
// has received without an answer, which nobody could give, and then they wait.
func TestGroupPromotesThoughCommitsWait(t *testing.T) {
	enginetest.OnceIsEnough(t)
	p := newPair(t)
	p.waitForFollower(t)
	inside(t, p.follower, "STOP SLAVE SQL_THREAD")
	p.writer.MustQuery(t, "INSERT INTO t VALUES (40, 'answered')")
	p.writer.Crash(t)
	p.follower.Crash(t)
	w := &p.follower.Want
	w.Generation++
	w.Address, w.ListensAt = w.Listens(), ""
	id := p.writer.Want.Instance
	w.Role = &kurabe.Role{Epoch: 2, Duty: kurabe.DutyWrite, StartSeq: 1, RequireStandby: true, WaitFor: []kurabe.InstanceID{id}, Followers: []kurabe.InstanceID{id}}
	p.follower.SatisfyUntil(t, string(engine.StepWaits))
	rows := looking(t, p.follower, "SELECT (SELECT COUNT(*) FROM "+p.follower.Want.DatabaseName+".t WHERE id = 40), @@GLOBAL."+replica.WaitingSetting)
	if rows[0][0] != "1" || rows[0][1] != "1" {
		t.Errorf("%s rows of 1, commits wait: %s", rows[0][0], rows[0][1])
	}
}

// readFromTheBeginning has the server read on from a place that is too early, which it
// refuses to do, and leaves it like that.
func readFromTheBeginning(t *testing.T, follower *enginetest.Bed) {
	file := inside(t, follower, "STOP SLAVE", "SHOW SLAVE STATUS")[0][7]
	inside(t, follower, fmt.Sprintf("CHANGE MASTER TO MASTER_USE_GTID=no, RELAY_LOG_FILE=%s, RELAY_LOG_POS=4", sqltext.Literal(file)),
		"SET GLOBAL slave_parallel_threads = 0", "START SLAVE SQL_THREAD")
	err := guard.With(t.Context(), follower.Instance(), func(a *guard.Session) error { return replica.AwaitRead(t.Context(), a) })
	if err == nil {
		t.Error("it has applied again what it had")
	}
}
