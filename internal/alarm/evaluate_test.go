package alarm

import (
	"encoding/json"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"kurabe"
)

var noon = time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)

// watch is an alarm of m out of n, above 0.5.
func watch(m, n int, missing kurabe.MissingData) Due {
	return Due{kurabe.Alarm{
		Name: "a", Queries: []kurabe.MetricQuery{{Namespace: "mine", Name: "m", Stat: "Average"}}, Period: 60,
		EvaluationPeriods: n, DatapointsToAlarm: m, Comparison: kurabe.Greater, Threshold: 0.5, MissingData: missing,
	}, noon.Unix()}
}

// row makes data points of a row of CloudWatch's tables, the oldest first: 0 is within the
// threshold, X crosses it, - is missing.
func row(d Due, text string) (points []Point) {
	words := strings.Fields(text)
	for n, w := range words {
		at := d.End - int64(len(words)-n)*d.Period
		switch w {
		case "0":
			points = append(points, Point{at, 0, 1})
		case "X":
			points = append(points, Point{at, 1, 1})
		}
	}
	return points
}

// The tables of "Configuring how CloudWatch alarms treat missing data", of the user guide as it
// is and of an earlier edition, with the rules that the text around them adds. The evaluation
// range is five data points; keep is the present state.
func TestMissingData(t *testing.T) {
	const ok, alarm, unknown, keep = kurabe.AlarmOK, kurabe.AlarmAlarm, kurabe.AlarmInsufficientData, ""
	for _, c := range []struct {
		m    int
		data string

		missing, ignore, breaching, notBreaching kurabe.AlarmState
	}{
		{3, "0 - X - X", ok, ok, ok, ok},
		{3, "- - - - 0", ok, ok, ok, ok},
		{3, "- - - - -", unknown, keep, alarm, ok},
		{3, "0 X X - X", alarm, alarm, alarm, alarm},
		{3, "- - X - -", alarm, keep, alarm, ok},
		{3, "0 - - - -", ok, ok, ok, ok},
		{3, "- - - - X", unknown, keep, alarm, ok},
		{3, "- - - X -", unknown, keep, alarm, ok},
		{3, "X - - - -", alarm, keep, alarm, ok},
		{3, "0 X X X 0", ok, ok, ok, ok},
		{2, "0 - X - X", alarm, alarm, alarm, alarm},
		{2, "0 0 X 0 X", alarm, alarm, alarm, alarm},
		{2, "0 - X - -", ok, ok, alarm, ok},
		{2, "- - - - 0", ok, ok, alarm, ok},
		{2, "- - - X -", alarm, keep, alarm, ok},
		{2, "- - - - X", unknown, keep, alarm, ok},
		{1, "- - - - X", alarm, alarm, alarm, alarm},
	} {
		for missing, want := range map[kurabe.MissingData]kurabe.AlarmState{
			"": c.missing, kurabe.MissingIsMissing: c.missing, kurabe.MissingIsIgnored: c.ignore,
			kurabe.MissingIsBreaching: c.breaching, kurabe.MissingIsNotBreaching: c.notBreaching,
		} {
			d := watch(c.m, 3, missing)
			v, known := Evaluate(d, row(d, c.data), noon)
			if known != (want != keep) || v.State != want {
				t.Errorf("%d out of 3, %s, %q: %q, known %v; want %q", c.m, c.data, missing, v.State, known, want)
			}
		}
	}
}

func TestComparisons(t *testing.T) {
	for c, want := range map[kurabe.Comparison][3]bool{
		kurabe.Greater: {false, false, true}, kurabe.GreaterOrEqual: {false, true, true}, kurabe.Less: {true, false, false}, kurabe.LessOrEqual: {true, true, false},
	} {
		for n, value := range []float64{4, 5, 6} {
			d := watch(0, 1, "")
			d.Comparison, d.Threshold = c, 5
			v, _ := Evaluate(d, []Point{{d.End - 60, value, 1}}, noon)
			if (v.State == kurabe.AlarmAlarm) != want[n] {
				t.Errorf("%v %s 5: %s", value, c, v.State)
			}
		}
	}
}

// CloudWatch's words for the same evaluations.
func TestReasons(t *testing.T) {
	for _, c := range []struct {
		m, n    int
		missing kurabe.MissingData
		data    string
		want    string
	}{
		{0, 1, "", "X", "Threshold Crossed: 1 datapoint [1.0 (28/11/26 11:59:00)] was greater than the threshold (0.5)."},
		{1, 1, "", "0", "Threshold Crossed: 1 out of the last 1 datapoints [0.0 (28/11/26 11:59:00)] was not greater than the threshold (0.5) (minimum 1 datapoint for ALARM -> OK transition)."},
		{2, 2, "", "X X", "Threshold Crossed: 2 out of the last 2 datapoints [1.0 (28/11/26 11:59:00), 1.0 (28/11/26 11:58:00)] were greater than the threshold (0.5) (minimum 2 datapoints for OK -> ALARM transition)."},
		{0, 1, "breaching", "", "Threshold Crossed: no datapoints were received for 1 period and 1 missing datapoint was treated as [Breaching]."},
		{0, 2, "notBreaching", "", "Threshold Crossed: no datapoints were received for 2 periods and 2 missing datapoints were treated as [NonBreaching]."},
		{1, 20, "notBreaching", "X", "Threshold Crossed: 1 out of the last 20 datapoints [1.0 (28/11/26 11:59:00)] was greater than the threshold (0.5) and 19 missing datapoints were treated as [NonBreaching] (minimum 1 datapoint for OK -> ALARM transition)."},
		{2, 3, "breaching", "0", "Threshold Crossed: 2 missing datapoints were treated as [Breaching]."},
		{0, 1, "", "", "Insufficient Data: 1 datapoint was unknown."},
		{0, 3, "", "", "Insufficient Data: 3 datapoints were unknown."},
		{6, 6, "", "X X X X X X", "Threshold Crossed: 6 out of the last 6 datapoints were greater than the threshold (0.5). The most recent datapoints which crossed the threshold: [1.0 (28/11/26 11:59:00), 1.0 (28/11/26 11:58:00), 1.0 (28/11/26 11:57:00), 1.0 (28/11/26 11:56:00), 1.0 (28/11/26 11:55:00)] (minimum 6 datapoints for OK -> ALARM transition)."},
	} {
		d := watch(c.m, c.n, c.missing)
		if v, _ := Evaluate(d, row(d, c.data), noon); v.Reason != c.want {
			t.Errorf("%+v:\n%s\nwant\n%s", c, v.Reason, c.want)
		}
	}
}

func TestReasonData(t *testing.T) {
	d := watch(2, 3, "")
	d.Queries[0].Unit = "Count"
	v, _ := Evaluate(d, row(d, "X - X"), noon.Add(20*time.Second))
	want := `{"version":"1.0","queryDate":"2026-11-28T12:00:20.000+0000","startDate":"2026-11-28T11:57:00.000+0000","unit":"Count","statistic":"Average","period":60,` +
		`"recentDatapoints":[1.0,1.0],"threshold":0.5,"evaluatedDatapoints":[{"timestamp":"2026-11-28T11:59:00.000+0000","sampleCount":1.0,"value":1.0},` +
		`{"timestamp":"2026-11-28T11:58:00.000+0000"},{"timestamp":"2026-11-28T11:57:00.000+0000","sampleCount":1.0,"value":1.0}]}`
	if v.Data != want {
		t.Errorf("got\n%s\nwant\n%s", v.Data, want)
	}
	d = watch(0, 8640, "breaching")
	v, _ = Evaluate(d, row(d, strings.Repeat("X ", 8640)), noon)
	if !json.Valid([]byte(v.Data)) || len(v.Data) > dataBytesMax || len(v.Data) < dataBytesMax/4 || len(v.Reason) > 1023 {
		t.Errorf("%d bytes of data, %d of reason: %s", len(v.Data), len(v.Reason), v.Data)
	}
}

func TestNumbers(t *testing.T) {
	for x, want := range map[float64]string{
		0: "0.0", 5: "5.0", -2.5: "-2.5", 99.50160229693434: "99.50160229693434", 2147483648: "2.147483648E9", 1e7: "1.0E7", 9999999: "9999999.0",
		0.001: "0.001", 0.0005: "5.0E-4", 83714617344: "8.3714617344E10", -1e-10: "-1.0E-10",
	} {
		if got := number(x).String(); got != want {
			t.Errorf("%v: %s, want %s", x, got, want)
		}
	}
}

// A percentile of few samples leaves the state, where the alarm wants that.
func TestLowSamples(t *testing.T) {
	for _, c := range []struct {
		stat    string
		samples float64
		known   bool
	}{
		{"p99", 999, false}, {"p99", 1001, true}, {"p50", 19, false}, {"p50", 21, true}, {"p10", 99, false}, {"p10", 101, true}, {"p100", 1, true}, {"Average", 1, true},
	} {
		d := watch(0, 1, "")
		d.Queries[0].Stat, d.LowSamples = c.stat, kurabe.LowSamplesIgnore
		points := []Point{{d.End - 60, 1, c.samples}}
		if _, known := Evaluate(d, points, noon); known != c.known {
			t.Errorf("%+v: known %v", c, known)
		}
		d.LowSamples = kurabe.LowSamplesEvaluate
		if _, known := Evaluate(d, points, noon); !known {
			t.Errorf("%+v: not evaluated", c)
		}
	}
}

// Of random data: what is there decides as it would without gaps, the input is left as it is, the
// order of points does not matter, what is not of the range does not count, and a state is one of
// the three with a reason.
func TestRandomData(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		n := rapid.IntRange(1, 8).Draw(r, "n")
		d := watch(rapid.IntRange(0, n).Draw(r, "m"), n, rapid.SampledFrom(kurabe.MissingDatas).Draw(r, "missing"))
		var points []Point
		for age := range rapid.IntRange(0, n+6).Draw(r, "ages") {
			if rapid.Bool().Draw(r, "there") {
				points = append(points, Point{d.End - int64(age+1)*d.Period, float64(rapid.IntRange(0, 1).Draw(r, "value")), 1})
			}
		}
		before := slices.Clone(points)
		v, known := Evaluate(d, points, noon)
		if !reflect.DeepEqual(points, before) {
			r.Fatal("the input was changed")
		}
		inRange := func(p Point) bool { return p.At >= d.Begin() && p.At < d.End }
		others := slices.DeleteFunc(rapid.Permutation(points).Draw(r, "order"), func(p Point) bool { return !inRange(p) })
		others = append(others, Point{d.End, math.Inf(1), 1}, Point{d.End - d.Period - 1, math.Inf(1), 1})
		if again, _ := Evaluate(d, others, noon); again != v {
			r.Fatalf("%+v, and in another order %+v", v, again)
		}
		if known && (!slices.Contains(kurabe.AlarmStates, v.State) || v.Reason == "" || !json.Valid([]byte(v.Data))) {
			r.Fatalf("verdict %+v", v)
		}
		there := slices.DeleteFunc(slices.Clone(before), func(p Point) bool { return !inRange(p) })
		slices.SortFunc(there, func(a, b Point) int { return int(b.At - a.At) })
		crossing, _ := d.split(there[:min(n, len(there))])
		switch {
		case len(crossing) >= d.ToAlarm() && v.State != kurabe.AlarmAlarm:
			r.Fatalf("%d points cross and the state is %s", len(crossing), v.State)
		case len(there) >= n && len(crossing) < d.ToAlarm() && v.State != kurabe.AlarmOK:
			r.Fatalf("%d of %d points cross, none is missing, and the state is %s", len(crossing), n, v.State)
		case v.State == kurabe.AlarmInsufficientData && d.MissingData != kurabe.MissingIsMissing:
			r.Fatalf("insufficient data where they are %s", d.MissingData)
		}
	})
}
