//go:build fault

package fault

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/rds"
	"github.com/aws/aws-sdk-go-v2/service/rds/types"

	"kurabe/internal/harness"
)

// logBed is an instance with a log, into which a client writes all the time.
type logBed struct {
	*momentBed
	stop func() // ends the client
}

// pouring makes a table for bulk that no compression makes smaller, and adds
// pourBytes to it in a transaction of its own.
var pouring = map[string][2]string{
	"postgres": {"CREATE TABLE poured (x bytea)",
		"INSERT INTO poured SELECT (SELECT string_agg(uuid_send(gen_random_uuid()), '') FROM generate_series(1, 64) WHERE n > 0) FROM generate_series(1, 4096) n"},
	"mariadb": {"CREATE TABLE poured (x varbinary(1024))", "INSERT INTO poured SELECT random_bytes(1024) FROM seq_1_to_4096"},
}

const (
	pourBytes = 4 << 20
	// pieceBytes closes a piece of the log, wherever it began.
	pieceBytes = 20 << 20
)

func newLogBed(t *testing.T, s *harness.Service, engine string) *logBed {
	t.Helper()
	in := harness.Request("source-"+engine, engine)
	in.BackupRetentionPeriod = aws.Int32(1)
	b := writeInto(t, s.MustCreate(t, in))
	b.grows(t)
	return b
}

// writeInto has a client write into an instance until the test ends.
func writeInto(t *testing.T, i *harness.Instance) *logBed {
	t.Helper()
	b := &logBed{momentBed: &momentBed{s: i.Service, i: i}}
	b.i.Query(t, momentSQL[i.Engine][0])
	b.i.Query(t, pouring[i.Engine][0])
	login := b.i.Login(t)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); b.client(ctx, login) }()
	b.stop = sync.OnceFunc(func() { cancel(); <-done })
	t.Cleanup(b.stop)
	return b
}

// grows waits until what is acknowledged by now can be restored, and returns now.
func (b *logBed) grows(t *testing.T) time.Time {
	t.Helper()
	now := time.Now()
	harness.Wait(t, restorableTime, "what is acknowledged by now can be restored", func() string {
		if at, err := b.restorable(t); err != nil || at.Before(now) {
			return fmt.Sprintf("only up to %s, want %s, %v", at, now, err)
		}
		return ""
	})
	return now
}

// restorable is the latest restorable time, for those who look again after an error.
func (b *logBed) restorable(t *testing.T) (time.Time, error) {
	out, err := b.s.DescribeDBInstances(t.Context(), &rds.DescribeDBInstancesInput{DBInstanceIdentifier: aws.String(b.i.Name)})
	if err != nil {
		return time.Time{}, err
	}
	return aws.ToTime(out.DBInstances[0].LatestRestorableTime), nil
}

// stands waits until the latest restorable time has stood still for longer than it
// takes to be told of, and returns it.
func (b *logBed) stands(t *testing.T) time.Time {
	t.Helper()
	var at, since time.Time
	harness.Wait(t, restorableTime, "the latest restorable time stands still", func() string {
		now, err := b.restorable(t)
		if err != nil {
			return err.Error()
		}
		if !now.Equal(at) || at.IsZero() {
			at, since = now, time.Now()
		}
		if time.Since(since) < standsTime {
			return fmt.Sprintf("it is %s", at)
		}
		return ""
	})
	return at
}

// standsTime is three reports of how far the logs reach.
const standsTime = 6 * time.Second

// pour writes so many bytes of log; the table is empty again afterwards.
func (b *logBed) pour(t *testing.T, bytes int) {
	t.Helper()
	session := b.i.Open(t)
	defer session.Close()
	b.pourInto(t, session, bytes)
}

// pourInto needs no service.
func (b *logBed) pourInto(t *testing.T, session harness.Session, bytes int) {
	t.Helper()
	for range bytes / pourBytes {
		if err := session.Exec(t.Context(), pouring[b.i.Engine][1]); err != nil {
			t.Fatalf("pour: %v", err)
		}
	}
	if err := session.Exec(t.Context(), "TRUNCATE TABLE poured"); err != nil {
		t.Fatalf("pour: %v", err)
	}
}

// spooled are the files of the log that are not in the repository yet, and their size.
func (b *logBed) spooled() (files []string, bytes int64) {
	files, _ = filepath.Glob(filepath.Join(b.s.Data, "logs", b.i.ID, "*", "*.piece")) // the pattern is well formed
	for _, file := range files {
		if info, err := os.Stat(file); err == nil {
			bytes += info.Size()
		}
	}
	return files, bytes
}

// pushTime: pauses between pushes that fail grow to a minute, here to 16 s.
const pushTime = time.Minute

// pushed waits until no more than the piece that grows is outside of the repository.
func (b *logBed) pushed(t *testing.T) time.Duration {
	t.Helper()
	return harness.Wait(t, pushTime, "the log is in the repository", func() string {
		if files, bytes := b.spooled(); len(files) > 1 {
			return fmt.Sprintf("%d files of %d bytes wait", len(files), bytes)
		}
		return ""
	})
}

// snapshot takes a snapshot and waits until it is there, wherever the repository is.
func (b *logBed) snapshot(t *testing.T, name string) {
	t.Helper()
	b.takeSnapshot(t, name)
	of := &snapshotBed{s: b.s}
	of.reaches(t, name, "available")
}

func (b *logBed) takeSnapshot(t *testing.T, name string) {
	t.Helper()
	// One that the planner has begun by itself, as it does after a gap, is over soon.
	harness.Wait(t, settleTime, "a snapshot can be asked for", func() string {
		_, err := b.s.CreateDBSnapshot(t.Context(), &rds.CreateDBSnapshotInput{
			DBInstanceIdentifier: aws.String(b.i.Name), DBSnapshotIdentifier: aws.String(name),
		})
		var busy *types.InvalidDBInstanceStateFault
		switch {
		case errors.As(err, &busy):
			return err.Error()
		case err != nil && b.s.Running(): // else it died before it had answered
			t.Fatal(err)
		}
		return ""
	})
}

// said waits until the service's log has words since a mark.
func (b *logBed) said(t *testing.T, mark int, words ...string) {
	t.Helper()
	harness.Wait(t, pushTime, "the service says "+strings.Join(words, ", "), func() string {
		text := b.s.Log.Since(mark)
		for _, w := range words {
			if !strings.Contains(text, w) {
				return fmt.Sprintf("it does not say %q", w)
			}
		}
		return ""
	})
}

// acked are the rows that were acknowledged so far.
func (b *logBed) acked() []row {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.rows)
}

// pauseMax is the longest that a client may wait for one row while the disk is busy
// with everything else that these tests do.
const pauseMax = 5 * time.Second

// unnoticed ends the client and demands that every row that it tried was acknowledged
// at the first try, and soon.
func (b *logBed) unnoticed(t *testing.T) {
	t.Helper()
	b.stop()
	rows := b.acked()
	last := rows[len(rows)-1]
	if refused := last.n - int64(len(rows)); refused > 0 {
		t.Errorf("%d of %d rows were not acknowledged", refused, last.n)
	}
	longest := time.Duration(0)
	for n := 1; n < len(rows); n++ {
		longest = max(longest, rows[n].acked.Sub(rows[n-1].acked))
	}
	t.Logf("%d rows, the longest pause between two: %v", len(rows), longest.Round(time.Millisecond))
	if longest > pauseMax {
		t.Errorf("a row took %v", longest)
	}
}

// refused demands that a moment is refused with words, and that nothing was made.
func (b *logBed) refused(t *testing.T, at time.Time, words string) {
	t.Helper()
	_, err := b.ask(t, "refused", at)
	if err == nil || !strings.Contains(err.Error(), words) {
		t.Errorf("the moment %s: %v, want a refusal with %q", at, err, words)
	}
	out, err := b.s.DescribeDBInstances(t.Context(), &rds.DescribeDBInstancesInput{})
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range out.DBInstances {
		if aws.ToString(i.DBInstanceIdentifier) == "refused" {
			t.Errorf("it was made all the same, and is %s", aws.ToString(i.DBInstanceStatus))
		}
	}
}

// exact restores to moments, two at a time, and compares each with what the client
// knows. The client must have ended.
func (b *logBed) exact(t *testing.T, moments ...time.Time) {
	t.Helper()
	var wait sync.WaitGroup
	slots := make(chan struct{}, 2)
	for n, at := range moments {
		at = at.Truncate(time.Second) // MariaDB's log knows no parts of one
		wait.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			b.restore(t, fmt.Sprintf("exact-%s-%d", b.i.Engine, n), at)
		})
	}
	wait.Wait()
}
