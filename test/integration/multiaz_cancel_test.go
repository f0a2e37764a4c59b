//go:build integration

package integration

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"kurabe/internal/harness"
)

// cancelTries bounds how often a standby is frozen until the writer dies before commits go on
// without it: on a busy machine it can be later than that.
const cancelTries = 10

// TestCancelledWait has clients give up the wait for the standby, and the writer die with
// their rows. Each client is warned, and when the rows are gone with the writer, users are
// told how many transactions went.
func TestCancelledWait(t *testing.T) {
	onceIsEnough(t)
	b := newPairBed(t, "cancel")
	b.Query(t, "CREATE TABLE alone (n integer)")
	for try := 1; ; try++ {
		writer, standby := b.Pair(t)
		from := time.Now()
		const rows = 3
		cancelled := b.commitAlone(t, standby, rows)
		must(t, harness.KillServers(writer))
		must(t, standby.EndReceiver())
		must(t, standby.Thaw())
		b.WaitWhole(t)
		if now, _ := b.Pair(t); cancelled && now == standby {
			b.tellsOfThem(t, from, rows)
			break
		}
		if try == cancelTries {
			t.Fatalf("in %d tries the writer was never deposed", try)
		}
		b.Query(t, "TRUNCATE alone") // it went on without its standby in time
	}
	b.settled(t)
}

// commitAlone freezes the standby and has clients insert rows, and cancels their wait for it:
// false when commits went on without the standby before that.
func (b *pairBed) commitAlone(t *testing.T, standby harness.Member, rows int) (all bool) {
	t.Helper()
	boss, login := b.Open(t), b.Login(t)
	defer boss.Close()
	must(t, standby.Freeze())
	ended := make(chan error, rows)
	for n := range rows {
		go func() { ended <- insertWarned(t.Context(), login, n) }()
	}
	harness.Wait(t, gapBound, "the waits are cancelled", func() string {
		// The application's name keeps the pulse, which waits as well, out of this.
		done, err := boss.Rows(t.Context(), `SELECT count(pg_cancel_backend(pid)) FROM pg_stat_activity
			WHERE wait_event = 'SyncRep' AND application_name = '`+cancelName+`'`)
		if err != nil {
			return err.Error()
		}
		if len(ended) < rows {
			return fmt.Sprintf("%d of %d have ended, cancelled now: %v", len(ended), rows, done)
		}
		return ""
	})
	all = true
	for range rows {
		err := <-ended
		if all = all && err == nil; err != nil && !errors.Is(err, errWaited) {
			t.Fatal(err)
		}
	}
	return all
}

const cancelName = "cancelled"

// insertWarned inserts a row with PostgreSQL's own client, which is to say that the row may be
// nowhere else. It does not when commits went on without the standby before the cancelling.
func insertWarned(ctx context.Context, l harness.Login, n int) error {
	out, err := psql(ctx, l, cancelName, fmt.Sprintf("INSERT INTO alone VALUES (%d)", n))
	if err != nil {
		return err
	}
	if !strings.Contains(out, "INSERT 0 1") {
		return fmt.Errorf("psql says %q", out)
	}
	if !strings.Contains(out, notReplicated) {
		return errWaited
	}
	return nil
}

// psql runs a statement in PostgreSQL's own client, which shows warnings. It dies with ctx.
func psql(ctx context.Context, l harness.Login, name, statement string) (string, error) {
	cmd := exec.CommandContext(ctx, "psql", "-X", "-v", "ON_ERROR_STOP=1", "-c", statement)
	cmd.Env = append(cmd.Environ(), "PGHOST="+l.Address, "PGPORT="+strconv.Itoa(l.Port), "PGUSER="+l.User, "PGPASSWORD="+l.Password,
		"PGDATABASE="+l.Database, "PGSSLMODE=verify-full", "PGSSLROOTCERT="+l.CAFile, "PGAPPNAME="+name)
	out, err := cmd.CombinedOutput()
	if err != nil {
		return string(out), fmt.Errorf("%w: %s", err, out)
	}
	return string(out), nil
}

// notReplicated is PostgreSQL's warning to a client whose wait was cancelled.
const notReplicated = "might not have been replicated to the standby"

var errWaited = errors.New("the commit was not cancelled in its wait")

// tellsOfThem demands the event, and that the rows are gone with the writer that had them.
func (b *pairBed) tellsOfThem(t *testing.T, from time.Time, rows int) {
	t.Helper()
	if left := b.Query(t, "SELECT count(*) FROM alone"); left != "0" {
		t.Errorf("%s rows are there that only the former writer had", left)
	}
	b.WaitEventsFrom(t, from, "that its standby never had")
	for _, message := range b.EventsFrom(t, from) {
		if m := gaveUp.FindStringSubmatch(message); m != nil {
			t.Log(message)
			// The commit of the client that writes all the time may be one more.
			if n, err := strconv.Atoi(m[1]); err != nil || n < rows {
				t.Errorf("it tells of %s transactions, there were %d at least", m[1], rows)
			}
		}
	}
}

var gaveUp = regexp.MustCompile(`had committed (\S+) transactions that its standby never had`)
