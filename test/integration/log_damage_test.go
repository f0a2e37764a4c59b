//go:build integration

package integration

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/rds"

	"kurabe/internal/harness"
)

// pouring makes a table for bulk, and fills it with more than a piece of the log holds, which
// no compression makes smaller.
var pouring = map[string][2]string{
	"postgres": {"CREATE TABLE poured (x bytea)",
		"INSERT INTO poured SELECT (SELECT string_agg(uuid_send(gen_random_uuid()), '') FROM generate_series(1, 64) WHERE n > 0) FROM generate_series(1, 20480) n"},
	"mariadb": {"CREATE TABLE poured (x varbinary(1024))", "INSERT INTO poured SELECT random_bytes(1024) FROM seq_1_to_20480"},
}

const toldTime = 4 * time.Minute // a survey a minute, and a check of the whole log

// TestDamagedLog: of the stored log one object is damaged and the next one is gone. The user
// is told what cannot be restored, which nothing claims from then on; the log is begun anew,
// and what lies before and after can be restored. Then all of it is lost, and told of alike.
func TestDamagedLog(t *testing.T) {
	s := harness.Start(t, harness.Options{Args: []string{"--copy-rate", "0"}})
	s.EachEngine(t, func(t *testing.T, engine string) {
		l := backedUp(t, s, engine)
		l.Query(t, pouring[engine][0])
		l.pour(t, 2) // the moment is in one of them, or before
		before := len(l.pieces())
		counted := time.Now()
		l.pour(t, 2)
		l.logged(t)
		lost := time.Now().UTC()
		harness.Wait(t, time.Minute, "a second goes by", pastSecond(lost))

		pieces := l.pieces()
		spoil(t, pieces[before], false)
		damaged := time.Now()
		spoil(t, pieces[before+1], true)
		l.told(t, 1)
		within := func() bool {
			at := aws.ToTime(l.Describe(t).LatestRestorableTime)
			return at.After(counted) && at.Before(damaged)
		}
		harness.Wait(t, time.Minute, "nothing that is lost is claimed", func() string {
			if within() {
				return "it is"
			}
			return ""
		})
		l.logged(t) // a new snapshot, and the log behind it
		l.refused(t, lost)
		half, whole := l.restoreLost(t, s, "half-"+engine, l.moment), l.restoreLost(t, s, "whole-"+engine, time.Time{})
		for i, want := range map[*harness.Instance]string{half: l.half, whole: l.whole} {
			i.WaitStatus(t, "available")
			if got := i.Query(t, contentSQL); got != want {
				t.Errorf("%s holds %s, want %s", i.Name, got, want)
			}
			i.Delete(t)
		}
		if within() {
			t.Error("what is lost is claimed again")
		}

		l.pour(t, 1)
		gone := l.tellings(t)
		for _, p := range l.pieces() { // of what was lost before only the marks are there
			if err := errors.Join(os.RemoveAll(p), os.RemoveAll(p+".marks")); err != nil {
				t.Fatal(err)
			}
		}
		l.told(t, gone+1)
		l.logged(t)
		l.refused(t, l.moment)
		l.Delete(t)
	})
}

// pour writes log until there are so many pieces more in the repository.
func (l *lostBackup) pour(t *testing.T, more int) {
	t.Helper()
	for want := len(l.pieces()) + more; len(l.pieces()) < want; {
		had := len(l.pieces())
		l.Query(t, pouring[l.Engine][1])
		harness.Wait(t, 2*time.Minute, "the log is pushed", func() string {
			if len(l.pieces()) <= had {
				return "nothing more is"
			}
			return ""
		})
	}
}

// pieces are those of the log in the repository whose marks are there too, in their order.
func (l *lostBackup) pieces() []string {
	all, _ := filepath.Glob(filepath.Join(l.Service.Data, "repository", "logs", l.ID, "*", "*", "*-*.marks")) // the pattern is well formed
	for n := range all {
		all[n] = strings.TrimSuffix(all[n], ".marks")
	}
	slices.Sort(all)
	return all
}

// tellings counts the events about damage of the stored log.
func (l *lostBackup) tellings(t *testing.T) (n int) {
	t.Helper()
	for _, m := range l.Events(t) {
		if strings.Contains(m, "The stored log of the DB instance is damaged: ") {
			n++
		}
	}
	return n
}

// told waits for so many of them.
func (l *lostBackup) told(t *testing.T, want int) {
	t.Helper()
	harness.Wait(t, toldTime, "the damage is told", func() string {
		if l.tellings(t) < want {
			return strings.Join(l.Events(t), "\n")
		}
		return ""
	})
}

// refused asks for a moment that cannot be restored any more.
func (l *lostBackup) refused(t *testing.T, at time.Time) {
	t.Helper()
	_, err := l.Service.RestoreDBInstanceToPointInTime(t.Context(), &rds.RestoreDBInstanceToPointInTimeInput{
		SourceDBInstanceIdentifier: aws.String(l.Name), TargetDBInstanceIdentifier: aws.String("refused-" + l.Engine),
		RestoreTime: aws.Time(at), DBInstanceClass: aws.String(harness.Class("micro")),
	})
	if err == nil || !strings.Contains(err.Error(), "cannot be restored to") {
		t.Errorf("a restore to %s: %v", at, err)
	}
}
