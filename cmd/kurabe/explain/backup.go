package explain

import (
	"fmt"
	"io"
	"strings"
	"time"

	"kurabe"
)

// Backups mirrors the automated backups in the answer of Explain.
type Backups struct {
	At, Earliest, Latest, DueAt time.Time
	RetentionDays               int
	Window, DueWhy              string
	Log                         *kurabe.InstanceLog
}

// print tells what can be restored, how late that is, and what the log and the next
// snapshot do.
func (b Backups) print(w io.Writer) {
	lines := b.lines()
	fmt.Fprintf(w, "backups     %s\n", strings.Join(lines, "\n            "))
}

func (b Backups) lines() []string {
	var lines []string
	add := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	switch {
	case b.RetentionDays == 0:
		add("none are made: their retention is 0 days")
	case b.Latest.IsZero():
		add("kept for %s; no moment can be restored yet", days(b.RetentionDays))
	default:
		add("kept for %s; any moment from %s to %s (%s behind) can be restored", days(b.RetentionDays), When(b.Earliest), When(b.Latest), behind(b.At, b.Latest))
	}
	lines = append(lines, b.logLines()...)
	switch {
	case b.DueWhy == "":
	case b.DueAt.IsZero():
		add("next snapshot: %s", b.DueWhy)
	case !b.DueAt.After(b.At):
		add("next snapshot: now, as soon as the DB instance is available: %s", b.DueWhy)
	default:
		add("next snapshot: %s: %s", When(b.DueAt), b.DueWhy)
	}
	return lines
}

// logLines tell of the continuous log: the run that goes on, what there is of it and
// where, and the newest gap.
func (b Backups) logLines() []string {
	if b.Log == nil || len(b.Log.Runs) == 0 {
		if b.RetentionDays == 0 {
			return nil
		}
		return []string{"log: the host keeps none yet"}
	}
	var lines []string
	runs := b.Log.Runs
	newest := runs[len(runs)-1]
	if newest.Ended == "" {
		lines = append(lines, fmt.Sprintf("log: there since %s without a gap, %s behind", When(runs[b.Log.Root(len(runs)-1)].First.At), behind(b.At, newest.Last.At)))
	} else {
		lines = append(lines, fmt.Sprintf("log: stands still since %s: %s", When(newest.Last.At), newest.Ended))
	}
	if b.Log.Failure != "" {
		lines = append(lines, "log: it does not grow: "+b.Log.Failure)
	}
	lines = append(lines, fmt.Sprintf("log: %s in the repository, %s only in the spool so far",
		kurabe.FormatBytes(max(0, b.Log.StoredBytes-b.Log.SpoolBytes)), kurabe.FormatBytes(b.Log.SpoolBytes)))
	for n := len(runs) - 2; n >= 0; n-- {
		if runs[n].Ended == "" || b.Log.Continued(n) {
			continue
		}
		return append(lines, fmt.Sprintf("last gap: nothing between %s and %s can be restored: %s", When(runs[n].Last.At), When(runs[n+1].First.At), runs[n].Ended))
	}
	return lines
}

// When is a time as a person reads it, in local time.
func When(t time.Time) string { return t.Local().Format(time.DateTime) }

// behind is how late a moment is, to the second.
func behind(now, at time.Time) string { return max(0, now.Sub(at)).Round(time.Second).String() }

func days(n int) string {
	if n == 1 {
		return "1 day"
	}
	return fmt.Sprintf("%d days", n)
}
