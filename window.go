package kurabe

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// minWindow is RDS's shortest backup or maintenance window.
const minWindow = 30 * time.Minute

const week = 7 * 24 * time.Hour

var weekdays = []string{"sun", "mon", "tue", "wed", "thu", "fri", "sat"}

// Window is a span of time that comes round every day or every week. Start is
// from midnight (or from Sunday's midnight), in UTC.
type Window struct {
	Start, Length, Period time.Duration
}

// ParseMaintenanceWindow reads "ddd:hh24:mi-ddd:hh24:mi" (UTC). The messages are
// RDS's own.
func ParseMaintenanceWindow(s string) (Window, error) {
	from, to, ok := strings.Cut(strings.ToLower(s), "-")
	if !ok || strings.Count(from, ":") != 2 || strings.Count(to, ":") != 2 {
		return Window{}, Errorf(CodeInvalidParameterValue, "Invalid maintenance window format: %q. Should be specified as a range ddd:hh24:mi-ddd:hh24:mi (24H Clock UTC). Example: Sun:23:45-Mon:00:15", s)
	}
	start, ok1 := parseWeekTime(from)
	end, ok2 := parseWeekTime(to)
	w := Window{start, (end - start + week) % week, week}
	switch {
	case !ok1 || !ok2:
		return Window{}, Errorf(CodeInvalidParameterValue, "Invalid day:hour:minute value in PreferredMaintenanceWindow %q", s)
	case w.Length > 24*time.Hour:
		return Window{}, Errorf(CodeInvalidParameterValue, "Maintenance window must be less than 24 hours.")
	case w.Length < minWindow:
		return Window{}, Errorf(CodeInvalidParameterValue, "The maintenance window must be at least 30 minutes.")
	}
	return w, nil
}

// ParseBackupWindow reads "hh24:mi-hh24:mi" (UTC).
func ParseBackupWindow(s string) (Window, error) {
	const day = 24 * time.Hour
	bad := Errorf(CodeInvalidParameterValue, "PreferredBackupWindow %q is not of the form hh24:mi-hh24:mi, of at least 30 minutes, in UTC", s)
	from, to, ok := strings.Cut(s, "-")
	if !ok {
		return Window{}, bad
	}
	start, ok1 := parseClock(from)
	end, ok2 := parseClock(to)
	w := Window{start, (end - start + day) % day, day}
	if !ok1 || !ok2 || w.Length < minWindow {
		return Window{}, bad
	}
	return w, nil
}

func parseWeekTime(s string) (time.Duration, bool) {
	day, clock, ok := strings.Cut(s, ":")
	if !ok {
		return 0, false
	}
	for i, d := range weekdays {
		if d == day {
			t, ok := parseClock(clock)
			return time.Duration(i)*24*time.Hour + t, ok
		}
	}
	return 0, false
}

func parseClock(s string) (time.Duration, bool) {
	h, m, ok := strings.Cut(s, ":")
	if !ok || len(h) != 2 || len(m) != 2 {
		return 0, false
	}
	hour, err1 := strconv.ParseUint(h, 10, 8)
	minute, err2 := strconv.ParseUint(m, 10, 8)
	if err1 != nil || err2 != nil || hour > 23 || minute > 59 {
		return 0, false
	}
	return time.Duration(hour)*time.Hour + time.Duration(minute)*time.Minute, true
}

// Next returns the newest opening at or before t and whether the window is open
// at t, and the first opening after t.
func (w Window) Next(t time.Time) (opened time.Time, open bool, next time.Time) {
	t = t.UTC()
	base := t.Truncate(24 * time.Hour)
	if w.Period == week {
		base = base.AddDate(0, 0, -int(base.Weekday()))
	}
	opened = base.Add(w.Start)
	for opened.After(t) {
		opened = opened.Add(-w.Period)
	}
	return opened, t.Before(opened.Add(w.Length)), opened.Add(w.Period)
}

// Overlaps says whether a daily and a weekly window share a moment.
func (w Window) Overlaps(weekly Window) bool {
	for day := -1; day <= 8; day++ {
		start := time.Duration(day)*24*time.Hour + w.Start
		if start < weekly.Start+weekly.Length && weekly.Start < start+w.Length {
			return true
		}
	}
	return false
}

// DefaultWindows chooses a backup and a maintenance window of 30 minutes from a
// seed, so that instances spread over the night: backups from 03:00 to 07:00,
// maintenance from 08:00 to 12:00, which never overlap.
func DefaultWindows(seed uint32) (backup, maintenance string) {
	slot := seed % 8
	b := 3*60 + int(slot)*30
	m := 8*60 + int(seed/8%8)*30
	day := weekdays[seed/64%7]
	clock := func(minute int) string { return fmt.Sprintf("%02d:%02d", minute/60, minute%60) }
	return clock(b) + "-" + clock(b+30), day + ":" + clock(m) + "-" + day + ":" + clock(m+30)
}
