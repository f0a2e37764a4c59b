package backup_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"kurabe"
	"kurabe/internal/plan/backup"
)

// TestRetention checks that a snapshot is kept exactly as long as a moment within the
// retention needs it.
func TestRetention(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		days := rapid.IntRange(1, 35).Draw(rt, "days")
		hours := rapid.SliceOfNDistinct(rapid.IntRange(0, 24*60), 1, 8, rapid.ID[int]).Draw(rt, "taken")
		slices.Sort(hours)
		now := monday.Add(time.Duration(rapid.IntRange(24*60, 24*90).Draw(rt, "now")) * time.Hour)
		oldest := now.AddDate(0, 0, -days) // the first moment that was promised
		for n, h := range hours {
			taken := monday.Add(time.Duration(h) * time.Hour)
			r := &backup.Retention{Days: days}
			if n+1 < len(hours) {
				r.Newer = monday.Add(time.Duration(hours[n+1]) * time.Hour)
			}
			s := newSnapSim(rt)
			s.w.Spec.Kind, s.w.Now, s.w.Retention = kurabe.SnapshotAutomated, now, r
			s.w.Status = &kurabe.SnapshotStatus{ID: "snap-a", SpecRevision: 1, State: kurabe.SnapshotAvailable, Host: "h1", Facts: kurabe.SnapshotFacts{TakenAt: taken, Percent: 100}}
			s.w.Assignment = &kurabe.SnapshotAssignment{Generation: 1, Host: "h1", Snapshot: "snap-a", Goal: kurabe.SnapshotPresent, Of: "db-A", Kind: kurabe.SnapshotAutomated, Source: s.w.Spec.Source, Name: s.w.Spec.Name}
			s.w.Report = &kurabe.SnapshotReport{Host: "h1", Snapshot: "snap-a", Generation: 1, Done: true, Facts: s.w.Status.Facts}
			result := backup.Next(s.w)
			goes := result.Assignment != nil && result.Assignment.Goal == kurabe.SnapshotAbsent
			// It is needed for the moments from taken to Newer; are any of them promised?
			needed := r.Newer.IsZero() || r.Newer.After(oldest)
			if goes == needed {
				rt.Fatalf("taken %s, newer %s, promised from %s: goes %v", taken, r.Newer, oldest, goes)
			}
			if !goes && !r.Newer.IsZero() && !result.LookAgain.Equal(r.Newer.AddDate(0, 0, days)) {
				rt.Fatalf("looks again at %s", result.LookAgain)
			}
		}
	})
}

// One that was there and is lost may be found again: its disk was mounted late, say. One
// that never was there goes as soon as another is.
func TestRetentionOfFailed(t *testing.T) {
	for _, c := range []struct {
		name  string
		taken time.Time
		newer time.Time
		goes  bool
	}{
		{"never taken", time.Time{}, monday.Add(-time.Hour), true},
		{"never taken, the newest", time.Time{}, time.Time{}, false},
		{"lost", monday.AddDate(0, 0, -1), monday.Add(-time.Hour), false},
		{"lost, and needless", monday.AddDate(0, 0, -9), monday.AddDate(0, 0, -8), true},
	} {
		b := backup.Backup{TakenAt: c.taken, State: kurabe.SnapshotFailed}
		if got := goes(t, b, monday, backup.Retention{Days: 7, Newer: c.newer}); got != c.goes {
			t.Errorf("%s: goes %v", c.name, got)
		}
	}
}

func TestRetentionEnds(t *testing.T) {
	for name, c := range map[string]struct {
		r    backup.Retention
		want string
	}{
		"switched off":                   {backup.Retention{Days: 0}, "switched off"},
		"deleted with its instance":      {backup.Retention{Days: 7, Dropped: true}, "deleted together"},
		"its deleted instance's is over": {backup.Retention{Days: 7, Until: monday.AddDate(0, 0, -7)}, "retention of its deleted instance"},
		"still within it":                {backup.Retention{Days: 7, Until: monday.AddDate(0, 0, -6)}, ""},
		"the newest of all":              {backup.Retention{Days: 1}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSnapSim(t)
			s.w.Spec.Kind, s.w.Retention = kurabe.SnapshotAutomated, &c.r
			s.w.Status = &kurabe.SnapshotStatus{ID: "snap-a", State: kurabe.SnapshotAvailable, Host: "h1"}
			s.w.Assignment = &kurabe.SnapshotAssignment{Generation: 1, Host: "h1", Snapshot: "snap-a", Goal: kurabe.SnapshotPresent}
			r := backup.Next(s.w)
			goes := r.Assignment != nil && r.Assignment.Goal == kurabe.SnapshotAbsent
			if goes != (c.want != "") || goes && !strings.Contains(strings.Join(r.Reasons, "; "), c.want) {
				t.Fatalf("goes %v: %v", goes, r.Reasons)
			}
		})
	}
}
