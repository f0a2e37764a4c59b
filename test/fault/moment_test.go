//go:build fault

package fault

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/rds"

	"kurabe/internal/harness"
)

const (
	momentsPerEngine = 20
	momentsTime      = 25 * time.Second // that the ledger writes
	restorableTime   = time.Minute
)

// row is one line of a ledger with times: at is the server's clock while the row was
// written, and with MariaDB when its statement was begun, which is what its log says;
// acked is the client's when it had the answer. Both are of one machine.
type row struct {
	n         int64
	at, acked time.Time
}

// TestRestoreToAnySecond writes numbered rows with the server's time, kills the server
// and the service meanwhile, and restores to random seconds. Each restored instance
// must show every row that was acknowledged by then, and none whose time in the
// engine's own log is later: for PostgreSQL that of the commit, for MariaDB that of the
// beginning of the statement that committed, since its log knows no other.
func TestRestoreToAnySecond(t *testing.T) {
	n := seed(t)
	for stream, engine := range []string{"postgres", "mariadb"} {
		t.Run(engine, func(t *testing.T) {
			t.Parallel() // each engine on a service of its own
			s := harness.Start(t, harness.Options{Fault: true, Args: []string{"--copy-rate", "0"}})
			s.NeedEngine(t, engine, s.Engines(t))
			in := harness.Request("source", engine)
			in.BackupRetentionPeriod, in.DBParameterGroupName = aws.Int32(1), keepsTimes(t, s, engine)
			b := &momentBed{s: s, i: s.MustCreate(t, in)}
			b.write(t)
			b.learn(t)
			b.restoreAll(t, rand.New(rand.NewPCG(n, uint64(stream))))
			b.killRestores(t)
		})
	}
}

// momentBed is an instance with a log, and what a client knows of its rows.
type momentBed struct {
	s *harness.Service
	i *harness.Instance

	mu   sync.Mutex // guards rows
	rows []row
	from time.Time
	// logged is the time of each row in the engine's log, nil before learn.
	logged map[int64]time.Time
}

var momentSQL = map[string][2]string{ // make the table; write a row and say when
	"postgres": {"CREATE TABLE moments (n bigint PRIMARY KEY, at timestamptz)",
		"INSERT INTO moments VALUES (%d, clock_timestamp()) RETURNING (extract(epoch FROM at) * 1000000)::bigint"},
	"mariadb": {"CREATE TABLE moments (n bigint PRIMARY KEY, at datetime(6))",
		"INSERT INTO moments VALUES (%d, NOW(6)) RETURNING CAST(TIMESTAMPDIFF(MICROSECOND, '1970-01-01', at) AS CHAR)"},
}

// write has a client write for a while, in which the server and the service die.
func (b *momentBed) write(t *testing.T) {
	b.i.Query(t, momentSQL[b.i.Engine][0])
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); b.client(ctx, b.i.Login(t)) }()
	harness.Wait(t, restorableTime, "a first moment can be restored", func() string {
		if b.latest(t).IsZero() {
			return "none can"
		}
		return ""
	})
	b.from = time.Now().Add(time.Second)
	id := b.i.ID
	for n, fault := range []func(){
		func() { killServers(t, b.s, id) },
		func() { b.s.Kill(t); b.s.Start(t) },
		func() { killServers(t, b.s, id); b.s.Kill(t); b.s.Start(t) },
	} {
		b.waitRows(t, n, momentsTime/4)
		fault()
	}
	b.waitRows(t, 3, momentsTime/4)
	cancel()
	<-done
}

// waitRows waits until rows have come for so long.
func (b *momentBed) waitRows(t *testing.T, part int, d time.Duration) {
	t.Helper()
	until := time.Now().Add(d)
	harness.Wait(t, time.Minute, fmt.Sprintf("rows of part %d", part), func() string {
		b.mu.Lock()
		defer b.mu.Unlock()
		if len(b.rows) == 0 || b.rows[len(b.rows)-1].acked.Before(until) {
			return fmt.Sprintf("%d rows so far", len(b.rows))
		}
		return ""
	})
}

// client writes rows until ctx ends, and logs in again after every error.
func (b *momentBed) client(ctx context.Context, l harness.Login) {
	n := int64(0)
	for ctx.Err() == nil {
		session, err := harness.Open(ctx, l)
		for err == nil && ctx.Err() == nil {
			n++
			var out []string
			if out, err = session.Rows(ctx, fmt.Sprintf(momentSQL[b.i.Engine][1], n)); err == nil && len(out) == 1 {
				micro, _ := strconv.ParseInt(out[0], 10, 64)
				b.mu.Lock()
				b.rows = append(b.rows, row{n, time.UnixMicro(micro), time.Now()})
				b.mu.Unlock()
			}
			harness.Pause(ctx, 2*time.Millisecond)
		}
		if session != nil {
			session.Close()
		}
		harness.Pause(ctx, 20*time.Millisecond)
	}
}

func (b *momentBed) latest(t *testing.T) time.Time {
	t.Helper()
	out, err := b.s.DescribeDBInstances(t.Context(), &rds.DescribeDBInstancesInput{DBInstanceIdentifier: aws.String(b.i.Name)})
	if err != nil {
		t.Fatal(err)
	}
	return aws.ToTime(out.DBInstances[0].LatestRestorableTime)
}

// restoreAll restores to random seconds, two at a time.
func (b *momentBed) restoreAll(t *testing.T, random *rand.Rand) {
	last := b.rows[len(b.rows)-1].acked
	harness.Wait(t, restorableTime, "the last row can be restored", func() string {
		if at := b.latest(t); at.Before(last) {
			return fmt.Sprintf("only up to %s, want %s", at, last)
		}
		return ""
	})
	seconds := int(last.Sub(b.from).Seconds())
	if seconds < momentsPerEngine {
		t.Fatalf("only %d seconds to choose from", seconds)
	}
	chosen := random.Perm(seconds)[:momentsPerEngine]
	slices.Sort(chosen)
	var wait sync.WaitGroup
	slots := make(chan struct{}, 2)
	for n, second := range chosen {
		at := b.from.Add(time.Duration(second) * time.Second).Truncate(time.Second)
		wait.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			b.restore(t, fmt.Sprintf("moment-%d", n), at)
		})
	}
	wait.Wait()
}

// restore restores to a moment and compares.
func (b *momentBed) restore(t *testing.T, name string, at time.Time) {
	i, err := b.ask(t, name, at)
	if err != nil {
		t.Errorf("restore to %s: %v", at, err)
		return
	}
	i.WaitStatus(t, "available")
	b.compare(t, i, at)
	i.Delete(t)
}

func (b *momentBed) ask(t *testing.T, name string, at time.Time) (*harness.Instance, error) {
	_, err := b.s.RestoreDBInstanceToPointInTime(t.Context(), &rds.RestoreDBInstanceToPointInTimeInput{
		SourceDBInstanceIdentifier: aws.String(b.i.Name), TargetDBInstanceIdentifier: aws.String(name),
		RestoreTime: aws.Time(at), BackupRetentionPeriod: aws.Int32(0),
	})
	return &harness.Instance{Service: b.s, Name: name, Engine: b.i.Engine, User: b.i.User, Password: b.i.Password, Database: b.i.Database}, err
}

// compare holds a restored instance against what the client knows.
func (b *momentBed) compare(t *testing.T, i *harness.Instance, at time.Time) {
	at = at.Truncate(time.Millisecond) // a request names no more than that
	session := i.Open(t)
	defer session.Close()
	lines, err := session.Rows(t.Context(), "SELECT n FROM moments ORDER BY n")
	if err != nil {
		t.Errorf("%s: %v", i.Name, err)
		return
	}
	have := map[int64]bool{}
	for _, line := range lines {
		n, _ := strconv.ParseInt(line, 10, 64)
		have[n] = true
	}
	by := 0
	for _, r := range b.rows {
		switch {
		case !r.acked.After(at):
			by++
			if !have[r.n] {
				t.Errorf("%s at %s: row %d is missing, acknowledged at %s", i.Name, at, r.n, r.acked)
				return
			}
		case r.at.After(at) && have[r.n]:
			t.Errorf("%s at %s: row %d is there, written at %s", i.Name, at, r.n, r.at)
			return
		}
	}
	b.compareLogged(t, i, at, have)
	t.Logf("%s: %d rows acknowledged by %s, %d there", i.Name, by, at.Format(time.TimeOnly), len(have))
}

// killRestores kills the service before and after the step in which a restore follows
// the log, and in the middle of it: what comes out is exactly the moment all the same.
func (b *momentBed) killRestores(t *testing.T) {
	at := b.rows[len(b.rows)/2].acked.Truncate(time.Second)
	for n, point := range []string{"before:restore-snapshot", "after:restore-snapshot"} {
		b.s.Arm(t, point)
		i, err := b.ask(t, fmt.Sprintf("killed-%d", n), at)
		if err != nil {
			t.Fatal(err)
		}
		harness.Wait(t, restorableTime, "the service dies "+point, func() string {
			if b.s.Running() {
				return "it does not"
			}
			return ""
		})
		b.s.Start(t)
		i.WaitStatus(t, "available")
		b.compare(t, i, at)
		i.Delete(t)
	}
	noOrphans(t, b.s)
}
