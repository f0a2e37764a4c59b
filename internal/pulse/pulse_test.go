package pulse

import (
	"reflect"
	"testing"
	"time"
)

// at is a moment of the tables below, in milliseconds.
func at(ms int) time.Time { return time.UnixMilli(int64(ms)) }

func TestLongestSilence(t *testing.T) {
	beats := func(acked ...int) (list []Beat) {
		for n, ms := range acked {
			list = append(list, Beat{int64(n + 1), at(ms - 1), at(ms)})
		}
		return list
	}
	for name, c := range map[string]struct {
		beats     []Beat
		from, end int
		want      time.Duration
	}{
		"nothing was ever acknowledged":    {nil, 100, 700, 600 * time.Millisecond},
		"in the middle":                    {beats(90, 110, 400, 410), 100, 420, 290 * time.Millisecond},
		"it began before the moment":       {beats(50, 250, 260), 100, 270, 200 * time.Millisecond},
		"what was before does not count":   {beats(10, 90, 110, 120), 100, 130, 20 * time.Millisecond},
		"it lasts":                         {beats(90, 110), 100, 900, 790 * time.Millisecond},
		"nothing since":                    {beats(90), 100, 500, 410 * time.Millisecond},
		"two sessions, not quite in order": {beats(90, 300, 295, 310), 100, 320, 210 * time.Millisecond},
	} {
		if got := longest(silences(c.beats, at(c.from), at(c.end))).Lasted(); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

func TestJudgePulse(t *testing.T) {
	beats := []Beat{{N: 1}, {N: 2}, {N: 4}}
	for name, c := range map[string]struct {
		rows []string
		want Verdict
	}{
		"all there":                      {[]string{"4", "1", "2"}, Verdict{Acked: 3}},
		"one more that failed":           {[]string{"1", "2", "3", "4"}, Verdict{Acked: 3, Unanswered: 1}},
		"one is missing":                 {[]string{"1", "3", "4"}, Verdict{Acked: 3, Missing: []int64{2}, Unanswered: 1}},
		"none is there":                  {nil, Verdict{Acked: 3, Missing: []int64{1, 2, 4}}},
		"an acknowledged one thrice":     {[]string{"1", "2", "2", "2", "4"}, Verdict{Acked: 3, Twice: []int64{2}}},
		"a failed one twice":             {[]string{"1", "2", "3", "3", "4"}, Verdict{Acked: 3, Twice: []int64{3}, Unanswered: 1}},
		"one that nobody wrote":          {[]string{"1", "2", "4", "6"}, Verdict{Acked: 3, Strange: []string{"6"}}},
		"what is no number, nor was one": {[]string{"1", "2", "4", "x", "0"}, Verdict{Acked: 3, Strange: []string{"x", "0"}}},
	} {
		got := judge(beats, 5, c.rows)
		if !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
		if wrong := len(c.want.Missing)+len(c.want.Twice)+len(c.want.Strange) > 0; wrong != (got.Wrong() != "") {
			t.Errorf("%s: %q", name, got.Wrong())
		}
	}
}
