package kurabe

import (
	"testing"
	"time"
)

func TestMaintenanceWindow(t *testing.T) {
	sunday := time.Date(2026, 3, 8, 0, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		name, window string
		at           time.Duration // from Sunday's midnight
		open         bool
		next         time.Duration
	}{
		{"before it", "sun:05:00-sun:05:30", 4 * time.Hour, false, 5 * time.Hour},
		{"at its opening", "sun:05:00-sun:05:30", 5 * time.Hour, true, week + 5*time.Hour},
		{"at its end", "sun:05:00-sun:05:30", 5*time.Hour + 30*time.Minute, false, week + 5*time.Hour},
		{"over midnight", "sat:23:45-sun:00:15", 10 * time.Minute, true, 6*24*time.Hour + 23*time.Hour + 45*time.Minute},
		{"capital letters", "Mon:01:00-Mon:02:00", 25*time.Hour + time.Minute, true, week + 25*time.Hour},
	} {
		t.Run(c.name, func(t *testing.T) {
			w, err := ParseMaintenanceWindow(c.window)
			if err != nil {
				t.Fatal(err)
			}
			_, open, next := w.Next(sunday.Add(c.at))
			if open != c.open || !next.Equal(sunday.Add(c.next)) {
				t.Fatalf("open %v next %v, want %v %v", open, next, c.open, sunday.Add(c.next))
			}
		})
	}
	for _, bad := range []string{"", "sun:05:00", "sun:05:00-sun:05:29", "sun:05:00-mon:06:00", "abc:05:00-sun:06:00", "sun:24:00-sun:05:00", "sun:05:00-sun:05:60", "sun:5:00-sun:06:00"} {
		if _, err := ParseMaintenanceWindow(bad); CodeOf(err) != CodeInvalidParameterValue {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

func TestWindowsOverlap(t *testing.T) {
	for _, c := range []struct {
		daily, weekly string
		want          bool
	}{
		{"03:00-03:30", "sun:03:15-sun:03:45", true},
		{"03:00-03:30", "sun:03:30-sun:04:00", false},
		{"23:45-00:15", "mon:00:00-mon:00:30", true},
		{"23:45-00:15", "sat:23:30-sun:00:00", true},
	} {
		daily, err1 := ParseBackupWindow(c.daily)
		weekly, err2 := ParseMaintenanceWindow(c.weekly)
		if err1 != nil || err2 != nil || daily.Overlaps(weekly) != c.want {
			t.Errorf("%s and %s: %v %v, overlap %v", c.daily, c.weekly, err1, err2, daily.Overlaps(weekly))
		}
	}
}

func TestDefaultWindowsNeverOverlap(t *testing.T) {
	for seed := range uint32(1000) {
		backup, maintenance := DefaultWindows(seed)
		daily, err1 := ParseBackupWindow(backup)
		weekly, err2 := ParseMaintenanceWindow(maintenance)
		if err1 != nil || err2 != nil || daily.Overlaps(weekly) {
			t.Fatalf("seed %d: %s %s", seed, backup, maintenance)
		}
	}
}

func FuzzWindows(f *testing.F) {
	f.Add("sun:05:00-sun:05:30")
	f.Add("23:45-00:15")
	f.Fuzz(func(t *testing.T, s string) {
		at := time.Date(2026, 3, 8, 1, 2, 3, 0, time.UTC)
		for _, parse := range []func(string) (Window, error){ParseMaintenanceWindow, ParseBackupWindow} {
			w, err := parse(s)
			if err != nil {
				continue
			}
			opened, open, next := w.Next(at)
			if opened.After(at) || !next.After(at) || open != at.Before(opened.Add(w.Length)) {
				t.Fatalf("%q: opened %v open %v next %v", s, opened, open, next)
			}
		}
	})
}
