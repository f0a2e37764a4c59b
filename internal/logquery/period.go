package logquery

import (
	"strings"
	"time"
)

// period is the width of a bin: milliseconds, or calendar months of UTC.
type period struct {
	count  int64 // milliseconds or months; 0 is none
	months bool
	shift  int64 // milliseconds from the Unix epoch to the beginning of some bin
}

const (
	second = int64(1000)
	day    = 24 * 3600 * second
)

var units = []struct {
	names string
	period
}{
	{"ms millisecond milliseconds msec", period{count: 1}},
	{"s second seconds sec", period{count: second}},
	{"m minute minutes min", period{count: 60 * second}},
	{"h hour hours hr", period{count: 3600 * second}},
	{"d day days", period{count: day}},
	{"w week weeks", period{count: 7 * day, shift: 4 * day}}, // 1970-01-05 is the first Monday
	{"mo month months mon", period{count: 1, months: true}},
	{"q quarter quarters qtr", period{count: 3, months: true}},
	{"y year years yr", period{count: 12, months: true}},
}

// periodOf returns a period of n units.
func periodOf(n int64, unit string) (period, bool) {
	const most = 1_000_000
	for _, u := range units {
		for name := range strings.FieldsSeq(u.names) {
			if strings.EqualFold(name, unit) {
				u.count *= n
				return u.period, n > 0 && n <= most
			}
		}
	}
	return period{}, false
}

// floor is the beginning of the bin of a time, in Unix milliseconds; ceil is the beginning of the
// next, unless the time is one itself.
func (p period) floor(at int64) int64 {
	if !p.months {
		over := (at - p.shift) % p.count
		if over < 0 {
			over += p.count
		}
		return at - over
	}
	y, m, _ := time.UnixMilli(at).UTC().Date()
	n := int64(y)*12 + int64(m) - 1
	return monthTime(n - n%p.count)
}

func (p period) ceil(at int64) int64 {
	floor := p.floor(at)
	switch {
	case floor == at:
		return at
	case !p.months:
		return floor + p.count
	}
	y, m, _ := time.UnixMilli(floor).UTC().Date()
	return monthTime(int64(y)*12 + int64(m) - 1 + p.count)
}

func monthTime(month int64) int64 {
	return time.Date(int(month/12), time.Month(month%12+1), 1, 0, 0, 0, 0, time.UTC).UnixMilli()
}
