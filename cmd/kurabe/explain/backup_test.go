package explain

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"kurabe"
)

func TestPrintBackups(t *testing.T) {
	now := time.Date(2026, 7, 1, 5, 0, 10, 0, time.Local)
	ago := func(d time.Duration) time.Time { return now.Add(-d) }
	run := func(from, to time.Duration, ended string) kurabe.LogRun {
		return kurabe.LogRun{Began: ago(from), First: kurabe.LogMark{At: ago(from)}, Last: kurabe.LogMark{At: ago(to)}, Ended: ended}
	}
	logOf := func(runs ...kurabe.LogRun) *kurabe.InstanceLog {
		return &kurabe.InstanceLog{Runs: runs, StoredBytes: 3<<30 + 5<<20, SpoolBytes: 5 << 20}
	}
	failing := logOf(run(time.Hour, time.Minute, ""))
	failing.Failure = "the server does not answer"
	for _, c := range []struct {
		name string
		b    Backups
		want []string
	}{
		{"none", Backups{At: now}, []string{"backups     none are made: their retention is 0 days\n"}},
		{"nothing yet", Backups{At: now, RetentionDays: 1, DueWhy: "the first waits"}, []string{
			"backups     kept for 1 day; no moment can be restored yet\n",
			"            log: the host keeps none yet\n",
			"            next snapshot: the first waits\n",
		}},
		{"due", Backups{At: now, RetentionDays: 1, DueAt: now, DueWhy: "the log has a gap"}, []string{
			"next snapshot: now, as soon as the DB instance is available: the log has a gap\n",
		}},
		{"whole", Backups{At: now, RetentionDays: 7, Earliest: ago(time.Hour), Latest: ago(3 * time.Second), Log: logOf(run(2*time.Hour, 2*time.Second, "")),
			DueAt: now.Add(time.Hour), DueWhy: "the backup window 03:00-03:30 UTC opens"}, []string{
			"backups     kept for 7 days; any moment from 2026-07-01 04:00:10 to 2026-07-01 05:00:07 (3s behind) can be restored\n",
			"            log: there since 2026-07-01 03:00:10 without a gap, 2s behind\n",
			"            log: 3 GiB in the repository, 5 MiB only in the spool so far\n",
			"            next snapshot: 2026-07-01 06:00:10: the backup window 03:00-03:30 UTC opens\n",
		}},
		{"after a gap", Backups{At: now, RetentionDays: 7, Log: logOf(run(4*time.Hour, 3*time.Hour, "first"), run(3*time.Hour, 2*time.Hour, "segment 7 is gone"), run(time.Hour, 0, ""))}, []string{
			"log: there since 2026-07-01 04:00:10 without a gap, 0s behind\n",
			"last gap: nothing between 2026-07-01 03:00:10 and 2026-07-01 04:00:10 can be restored: segment 7 is gone\n",
		}},
		{"another server goes on", Backups{At: now, RetentionDays: 7, Log: logOf(run(4*time.Hour, 2*time.Hour, "joined"), func() kurabe.LogRun {
			r := run(2*time.Hour, 0, "")
			r.Continues, r.After = run(4*time.Hour, 2*time.Hour, "joined").Began, run(4*time.Hour, 2*time.Hour, "").Last.Position
			return r
		}())}, []string{
			"log: there since 2026-07-01 01:00:10 without a gap, 0s behind\n",
		}},
		{"stands still", Backups{At: now, RetentionDays: 7, Log: logOf(run(4*time.Hour, 3*time.Hour, "the spool is full"))}, []string{
			"log: stands still since 2026-07-01 02:00:10: the spool is full\n",
		}},
		{"fails", Backups{At: now, RetentionDays: 7, Log: failing}, []string{
			"1m0s behind\n", "log: it does not grow: the server does not answer\n",
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var out bytes.Buffer
			c.b.print(&out)
			for _, want := range c.want {
				if !strings.Contains(out.String(), want) {
					t.Errorf("no %q in:\n%s", want, out.String())
				}
			}
			if c.name != "after a gap" && strings.Contains(out.String(), "last gap") {
				t.Errorf("a gap that is none:\n%s", out.String())
			}
		})
	}
}
