package result

import (
	"fmt"
	"slices"
	"strings"

	"kurabe/lab/stat"
)

// Tails need this many requests in a phase, or they are the story of a handful.
const (
	leastP99  = 10_000
	leastP999 = 100_000
)

// Metric is a number of a trial.
type Metric struct {
	Name  string
	Title string
	Unit  string // "" of a share or a ratio
	// Better is the direction of an improvement.
	Better stat.Direction
	// LeastRequests is how many requests a phase must have for the number to be there.
	LeastRequests int64
}

// Metrics are those that have no phase in their name, in the order in which they are
// shown. Beside them there is the average of each statement, "stmt:01 BEGIN:avg".
//
// A name may end in a phase, "resp_p95@during", or in two whose ratio it is,
// "resp_p95@during/idle". Without one it is of the phase measure, or of idle in a study
// with changes.
var Metrics = append([]Metric{
	{"tps", "throughput", "1/s", stat.HigherIsBetter, 0},
	{statementsPerSecond, "statements", "1/s", stat.HigherIsBetter, 0},
}, append(append(latencies("resp", "response"), latencies("serv", "service")...), []Metric{
	{"cpu_per_tx", "processor time per transaction", "ms", stat.LowerIsBetter, 0},
	{"context_switches_per_tx", "context switches per transaction", "", stat.LowerIsBetter, 0},
	{"wal_per_tx", "log written per transaction", "bytes", stat.LowerIsBetter, 0},
	{"fsyncs_per_tx", "syncs per transaction", "", stat.LowerIsBetter, 0},
	{"read_bytes_per_tx", "read per transaction", "bytes", stat.LowerIsBetter, 0},
	{"write_bytes_per_tx", "written per transaction", "bytes", stat.LowerIsBetter, 0},
	{"lock_waits_per_tx", "waits for a lock per transaction", "", stat.LowerIsBetter, 0},
	{"lock_wait_s_per_tx", "time waiting for locks per transaction", "s", stat.LowerIsBetter, 0},
	{"errors_share", "share of transactions with an error", "", stat.LowerIsBetter, 0},
	{"skipped_share", "share of arrivals that were not sent", "", stat.LowerIsBetter, 0},
	{gapMax, "longest time without an answer", "ms", stat.LowerIsBetter, 0},
	{changeSeconds, "duration of the change", "s", stat.LowerIsBetter, 0},
}...)...)

const (
	gapMax        = "gap_max"
	changeSeconds = "change_s"
	// statementsPerSecond counts neither the begin nor the end of a transaction.
	statementsPerSecond = "qps"
)

// latencies are the metrics of a histogram. Response counts from the scheduled start,
// service from the sending.
func latencies(prefix, title string) []Metric {
	const ms = "ms"
	return []Metric{
		{prefix + "_avg", title + " time, average", ms, stat.LowerIsBetter, 0},
		{prefix + "_p50", title + " time, median", ms, stat.LowerIsBetter, 0},
		{prefix + "_p90", title + " time, 90th percentile", ms, stat.LowerIsBetter, 0},
		{prefix + "_p95", title + " time, 95th percentile", ms, stat.LowerIsBetter, 0},
		{prefix + "_p99", title + " time, 99th percentile", ms, stat.LowerIsBetter, leastP99},
		{prefix + "_p999", title + " time, 99.9th percentile", ms, stat.LowerIsBetter, leastP999},
		{prefix + "_max", title + " time, longest", ms, stat.LowerIsBetter, 0},
		{prefix + "_min", title + " time, shortest", ms, stat.LowerIsBetter, 0},
	}
}

const (
	statementPrefix = "stmt:"
	statementSuffix = ":avg"
)

// StatementMetric is the name of the metric of a statement, which is named as in
// Load.Statements.
func StatementMetric(statement string) string { return statementPrefix + statement + statementSuffix }

// metricPhases are the phases that a name can end in.
var metricPhases = []string{PhaseMeasure, PhaseIdle, PhaseDuring, PhaseAfter}

// parsed is a metric's name, taken apart.
type parsed struct {
	Metric           // with the name and title of the whole
	base      string // "resp_p95"
	statement string // of stmt:…:avg, "" in all others
	phase     string // "" for the main one
	over      string // the phase that it is divided by, "" for none
}

// FindMetric returns what a name means: one of Metrics, of a statement, of a phase, or
// of a ratio of phases.
func FindMetric(name string) (Metric, error) {
	p, err := parseMetric(name)
	return p.Metric, err
}

// CheckMetric says what is wrong with the name of a metric; nil when nothing is.
func CheckMetric(name string) error {
	_, err := parseMetric(name)
	return err
}

func parseMetric(name string) (parsed, error) {
	if len(name) > maxNameSize {
		return parsed{}, fmt.Errorf("the name of a metric has at most %d bytes", maxNameSize)
	}
	p, phases, err := parseBase(name)
	if err != nil {
		return parsed{}, err
	}
	if phases == "" {
		return p, nil
	}
	if p.base == changeSeconds {
		return parsed{}, fmt.Errorf("%q: %s is of the whole trial and has no phase", name, changeSeconds)
	}
	first, second, isRatio := strings.Cut(strings.TrimPrefix(phases, "@"), "/")
	p.phase, p.over = first, second
	for _, phase := range []string{first, second}[:1+bit(isRatio)] {
		if !slices.Contains(metricPhases, phase) {
			return parsed{}, fmt.Errorf("%q: %q is no phase; there are %s", name, phase, strings.Join(metricPhases, ", "))
		}
	}
	if isRatio && first == second {
		return parsed{}, fmt.Errorf("%q: a phase divided by itself", name)
	}
	p.Name = name
	p.Title += ", " + first
	if isRatio {
		p.Title += " relative to " + second
		p.Unit = ""
	}
	return p, nil
}

func bit(b bool) int {
	if b {
		return 1
	}
	return 0
}

// parseBase splits off the phases, with the @ that they begin with. The name of a
// statement may hold any character, an @ too.
func parseBase(name string) (p parsed, phases string, err error) {
	if rest, ok := strings.CutPrefix(name, statementPrefix); ok {
		end := strings.LastIndex(rest, statementSuffix)
		if end < 1 {
			return p, "", fmt.Errorf("%q: a statement's metric is %s", name, StatementMetric("NN NAME"))
		}
		phases = rest[end+len(statementSuffix):]
		if phases != "" && phases[0] != '@' {
			return p, "", fmt.Errorf("%q: after %s there can only be a phase, as in @during", name, statementSuffix)
		}
		p.base, p.statement = name[:len(name)-len(phases)], rest[:end]
		p.Metric = Metric{p.base, p.statement + ", average", "ms", stat.LowerIsBetter, 0}
		return p, phases, nil
	}
	base, _, _ := strings.Cut(name, "@")
	i := slices.IndexFunc(Metrics, func(m Metric) bool { return m.Name == base })
	if i < 0 {
		return p, "", fmt.Errorf("%q is no metric; there are %s", name, metricNames())
	}
	p.Metric, p.base = Metrics[i], base
	return p, name[len(base):], nil
}

func metricNames() string {
	var names []string
	for _, m := range Metrics {
		names = append(names, m.Name)
	}
	return strings.Join(append(names, StatementMetric("NN NAME")), ", ")
}
