package load

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"kurabe/lab/result"
)

func TestToolCourse(t *testing.T) {
	boom := errors.New("boom")
	after := func(n int) func([]float64) bool { return func(rates []float64) bool { return len(rates) >= n } }
	cases := map[string]struct {
		o         Options
		fail      bool
		runs      string // seconds of each run
		entered   string
		unsettled bool
		want      string
	}{
		"cold":      {o: Options{Measure: 2500 * time.Millisecond}, runs: "[3]", entered: "[measure ]"},
		"warm":      {o: Options{Warm: time.Nanosecond, WarmMax: 90 * time.Second, Measure: time.Second}, runs: "[1 1]", entered: "[warm measure ]"},
		"settled":   {o: Options{Warm: time.Nanosecond, WarmMax: 90 * time.Second, Measure: time.Second, Settled: after(3)}, runs: "[90 1]", entered: "[warm measure ]"},
		"unsettled": {o: Options{Warm: time.Nanosecond, WarmMax: 5 * time.Second, Measure: time.Second, Settled: after(6)}, runs: "[5 1]", entered: "[warm measure ]", unsettled: true},
		"change":    {o: Options{Change: func(context.Context) error { return nil }}, runs: "[]", entered: "[]", want: "around a change"},
		"fails":     {o: Options{Warm: time.Second, Measure: time.Second}, fail: true, runs: "[1]", entered: "[warm]", want: "warm up: boom"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			var runs []int
			var entered []string
			c.o.Enter = func(phase string) error { entered = append(entered, phase); return nil }
			out, err := toolCourse{Options: c.o, run: func(ctx context.Context, seconds int, measured bool, perSecond func(float64)) (*result.Load, error) {
				runs = append(runs, seconds)
				if c.fail {
					return nil, boom
				}
				for range seconds {
					if perSecond != nil && ctx.Err() == nil {
						perSecond(100)
					}
				}
				return &result.Load{}, ctx.Err()
			}}.lead(context.Background())
			if c.want != "" && wrong(err, c.want) || c.want == "" && err != nil {
				t.Fatalf("error = %v, want one with %q", err, c.want)
			}
			if fmt.Sprint(runs) != c.runs || fmt.Sprint(entered) != c.entered {
				t.Errorf("runs %v, entered %q", runs, entered)
			}
			if err == nil && (out.Unsettled != c.unsettled || phase(t, out, result.PhaseMeasure).Load == nil) {
				t.Errorf("%+v", out)
			}
		})
	}
}
