package result

import (
	"math"
	"strings"
	"testing"

	"kurabe/lab/stat"
)

func TestCheckMetric(t *testing.T) {
	for _, name := range []string{
		"tps", "qps", "qps@during/idle", "resp_p95", "serv_p999", "resp_min", "cpu_per_tx", "context_switches_per_tx", "wal_per_tx", "fsyncs_per_tx",
		"read_bytes_per_tx", "write_bytes_per_tx", "errors_share", "skipped_share", "change_s", "gap_max", "gap_max@during",
		"resp_p95@during/idle", "tps@after", "tps@measure", "stmt:01 BEGIN:avg", "stmt:02 SELECT @x/:y:avg@during/idle", "stmt::avg:avg",
	} {
		if err := CheckMetric(name); err != nil {
			t.Errorf("%q: %v", name, err)
		}
	}
	for name, want := range map[string]string{
		"":                        `"" is no metric; there are tps, qps, resp_avg,`,
		"rps":                     `"rps" is no metric; there are tps`,
		"TPS":                     "is no metric",
		"tps@":                    `"" is no phase; there are measure, idle, during, after`,
		"tps@warm":                `"warm" is no phase`,
		"tps@during/":             `"" is no phase`,
		"tps@during/idle/after":   `"idle/after" is no phase`,
		"tps@idle/idle":           "a phase divided by itself",
		"tps/idle":                `"tps/idle" is no metric`,
		"change_s@idle":           "change_s is of the whole trial and has no phase",
		"stmt:01 BEGIN":           "a statement's metric is stmt:NN NAME:avg",
		"stmt::avg":               "a statement's metric is stmt:NN NAME:avg",
		"stmt:01 BEGIN:avgs":      "there can only be a phase",
		strings.Repeat("x", 1000): "at most 200 bytes",
	} {
		if err := CheckMetric(name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v does not say %q", name, err, want)
		}
	}
}

func TestFindMetric(t *testing.T) {
	for name, want := range map[string]Metric{
		"tps":                  {"tps", "throughput", "1/s", stat.HigherIsBetter, 0},
		"resp_p99@during":      {"resp_p99@during", "response time, 99th percentile, during", "ms", stat.LowerIsBetter, 10_000},
		"serv_avg@after/idle":  {"serv_avg@after/idle", "service time, average, after relative to idle", "", stat.LowerIsBetter, 0},
		"stmt:01 BEGIN:avg":    {"stmt:01 BEGIN:avg", "01 BEGIN, average", "ms", stat.LowerIsBetter, 0},
		"tps@during/idle":      {"tps@during/idle", "throughput, during relative to idle", "", stat.HigherIsBetter, 0},
		"resp_p999":            {"resp_p999", "response time, 99.9th percentile", "ms", stat.LowerIsBetter, 100_000},
		StatementMetric("2 X"): {"stmt:2 X:avg", "2 X, average", "ms", stat.LowerIsBetter, 0},
	} {
		if got, err := FindMetric(name); err != nil || got != want {
			t.Errorf("%q: %+v, %v", name, got, err)
		}
	}
}

func FuzzCheckMetric(f *testing.F) {
	for _, name := range []string{"tps", "resp_p95@during/idle", "stmt:01 BEGIN:avg@idle", "stmt:avg:avg"} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		m, err := FindMetric(name)
		if err == nil && (m.Name != name || m.Title == "" || m.Better == 0) {
			t.Errorf("%q is %+v", name, m)
		}
		if _, ok := Value(&Trial{}, name); ok {
			t.Errorf("an empty trial has %q", name)
		}
	})
}

// latencyText is a histogram with n latencies of that many microseconds, and one of
// 50 ms.
func latencyText(t testing.TB, micros, n int64) string {
	t.Helper()
	text, err := EncodeHistogram(filled(t, map[int64]int64{micros: n - 1, 50_000: 1}))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// loads are trials of every kind of load.
type loads struct{ open, bare, closed, printed, printedOpen, change, still, timeless, counted, printedTwo *Trial }

func someLoads(t *testing.T) loads {
	open := &Load{
		Transactions: 20_000, Offered: 20_200, Skipped: 101, Errors: map[string]int64{"40001": 3, "57014": 2}, Seconds: 40,
		Response: latencyText(t, 2000, 20_000), Service: latencyText(t, 1000, 20_000),
		Statements: map[string]string{"01 BEGIN": latencyText(t, 300, 3)}, Bins: []int64{5, 0, 0, 0, 7, 0, 1},
	}
	probes := map[string]float64{"cpu_s": 30, "context_switches": 80_000, "wal_bytes": 4e7, "fsyncs": 500, "read_bytes": 0, "write_bytes": 2e8, "lock_waits": 400, "lock_wait_s": 5}
	closed := &Load{Transactions: 9999, Seconds: 10, Service: latencyText(t, 1000, 9999)}
	printed := &Load{Transactions: 12_000, Seconds: 10, Summary: map[string]float64{"avg": 1.5, "p95": 3, "p99": 4, "statement 01 BEGIN": 0.2}}
	printedOpen := &Load{Transactions: 12_000, Offered: 12_000, Seconds: 10, Summary: map[string]float64{"avg": 1.5}}
	trial := func(phases ...Phase) *Trial { return &Trial{Status: StatusOK, Phases: phases} }
	measure := func(l *Load) *Trial { return trial(Phase{Name: PhaseMeasure, Load: l, Probes: probes}) }
	blocked := &Load{Transactions: 100, Seconds: 5, Service: latencyText(t, 4000, 100), Bins: []int64{0, 0, 1, 0}}
	change := trial(Phase{Name: PhaseIdle, Load: open, Probes: probes}, Phase{Name: PhaseDuring, Load: blocked})
	change.ChangeMs = 5250
	return loads{
		measure(open), trial(Phase{Name: PhaseMeasure, Load: open}), measure(closed), measure(printed), measure(printedOpen), change,
		measure(&Load{Seconds: 1}), measure(&Load{Transactions: 1}),
		measure(&Load{Transactions: 20, Seconds: 10, Statements: map[string]string{
			"00 CONNECT": latencyText(t, 300, 20), "01 BEGIN": latencyText(t, 300, 20), "02 UPDATE t": latencyText(t, 300, 20),
			"03 commit": latencyText(t, 300, 20), "04 DELETE FROM t": latencyText(t, 300, 20),
		}}),
		measure(&Load{Transactions: 12_000, Seconds: 10, Summary: map[string]float64{"avg": 1, "statement 01 BEGIN;": 1, "statement 02 UPDATE t;": 1, "statement 03 END;": 1}}),
	}
}

// valueCase is a metric of a trial; NaN is wanted where there is none.
type valueCase struct {
	name, metric string
	trial        *Trial
	want         float64
}

func TestValue(t *testing.T) {
	l := someLoads(t)
	none := math.NaN()
	checkValues(t, []valueCase{
		{"throughput", "tps", l.open, 500},
		{"response of open load", "resp_p50", l.open, 2},
		{"service of open load", "serv_p50", l.open, 1},
		{"longest", "resp_max", l.open, 50.015},
		{"shortest", "serv_min", l.open, 1},
		{"enough for the 99th", "resp_p99", l.open, 2},
		{"too few for the 99.9th", "resp_p999", l.open, none},
		{"response of closed load", "resp_p90", l.closed, 1},
		{"one too few for the 99th", "resp_p99", l.closed, none},
		{"printed average", "resp_avg", l.printed, 1.5},
		{"printed average is service too", "serv_avg", l.printed, 1.5},
		{"printed 99th", "resp_p99", l.printed, 4},
		{"not printed", "resp_max", l.printed, none},
		{"printed of open load is response", "resp_avg", l.printedOpen, 1.5},
		{"printed of open load is no service", "serv_avg", l.printedOpen, none},
		{"printed statement", "stmt:01 BEGIN:avg", l.printed, 0.2},
		{"unknown statement", "stmt:02 END:avg", l.open, none},
		{"errors", "errors_share", l.open, 5.0 / 20_005},
		{"skipped", "skipped_share", l.open, 0.005},
		{"closed load skips nothing", "skipped_share", l.closed, none},
		{"longest gap", "gap_max", l.open, 300},
		{"no bins", "gap_max", l.closed, none},
		{"no phase is idle", "tps", l.change, 500},
		{"during", "resp_p50@during", l.change, 4.001},
		{"ratio of phases", "tps@during/idle", l.change, 0.04},
		{"a phase that is not there", "tps@after", l.change, none},
		{"under a phase that is not there", "tps@idle/after", l.change, none},
		{"gap that goes on", "gap_max@during", l.change, 200},
		{"change", "change_s", l.change, 5.25},
		{"no change", "change_s", l.open, none},
		{"measure in a study with changes", "tps@measure", l.change, none},
		{"no transaction", "cpu_per_tx", l.still, none},
		{"no time", "tps", l.timeless, none},
		{"unknown", "rps", l.open, none},
	})
	if got, ok := Value(l.open, "stmt:01 BEGIN:avg"); !ok || math.Abs(got-(0.3*2+50)/3) > 0.01 {
		t.Errorf("average of a statement: %v", got)
	}
	if x, _ := Value(l.open, "tps"); x != 500 {
		t.Error("asking changed the trial")
	}
}

func checkValues(t *testing.T, cases []valueCase) {
	t.Helper()
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got, ok := Value(c.trial, c.metric)
			if math.IsNaN(c.want) {
				if ok {
					t.Errorf("%s is %v, though there is none", c.metric, got)
				}
				return
			}
			if !ok || math.Abs(got-c.want) > 1e-9+math.Abs(c.want)/1e4 {
				t.Errorf("%s is %v (%v), want %v", c.metric, got, ok, c.want)
			}
		})
	}
}

// What a transaction took is a total of the probe divided by the transactions, and is not
// there where the server did not tell.
func TestValueOfProbes(t *testing.T) {
	l := someLoads(t)
	none := math.NaN()
	checkValues(t, []valueCase{
		{"processor", "cpu_per_tx", l.open, 1.5},
		{"switches", "context_switches_per_tx", l.open, 4},
		{"log", "wal_per_tx", l.open, 2000},
		{"syncs", "fsyncs_per_tx", l.open, 0.025},
		{"read nothing", "read_bytes_per_tx", l.open, 0},
		{"written", "write_bytes_per_tx", l.open, 10_000},
		{"waits for a lock", "lock_waits_per_tx", l.open, 0.02},
		{"time of these", "lock_wait_s_per_tx", l.open, 0.00025},
		{"a server that tells nothing of locks", "lock_waits_per_tx", l.bare, none},
		{"nor of their time", "lock_wait_s_per_tx@during", l.change, none},
		{"locks of a phase", "lock_wait_s_per_tx@idle", l.change, 0.00025},
		{"no probes", "cpu_per_tx", l.bare, none},
	})
}

// Neither the begin nor the end of a transaction is a statement that anybody counts.
func TestStatementsPerSecond(t *testing.T) {
	l := someLoads(t)
	for name, c := range map[string]struct {
		trial *Trial
		want  float64 // 0 for none
	}{
		"counted": {l.counted, 4}, "printed": {l.printedTwo, 1200}, "borders alone": {l.open, 0}, "no statements": {l.closed, 0},
	} {
		if got, ok := Value(c.trial, statementsPerSecond); ok != (c.want > 0) || math.Abs(got-c.want) > 1e-9 {
			t.Errorf("%s: %v, %v, want %v", name, got, ok, c.want)
		}
	}
}

func TestStatements(t *testing.T) {
	f := &File{Trials: []Trial{
		{Phases: []Phase{{Name: PhaseWarm}, {Name: PhaseMeasure, Load: &Load{Statements: map[string]string{"02 END": "", "01 BEGIN": ""}}}}},
		{Phases: []Phase{{Name: PhaseMeasure, Load: &Load{Summary: map[string]float64{"avg": 1, "statement 03 X": 1}}}}},
	}}
	if got := strings.Join(Statements(f), "|"); got != "01 BEGIN|02 END|03 X" {
		t.Error(got)
	}
}
