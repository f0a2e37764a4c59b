package result

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
)

// binMs is the width of Load.Bins.
const binMs = 100

// Value is a metric of a trial, in the metric's unit; not there when the trial did not
// measure it or had too few requests for it. Whoever asks a trial for many should make
// a Sheet of it.
func Value(t *Trial, metric string) (float64, bool) { return NewSheet(t).Value(metric) }

// Sheet answers for the metrics of one trial and decodes each histogram once.
type Sheet struct {
	trial     *Trial
	latencies map[string]*latency // by the encoded histogram
	err       error               // the first histogram that could not be decoded
}

// NewSheet returns the sheet of a trial, which must not change meanwhile.
func NewSheet(t *Trial) *Sheet { return &Sheet{trial: t, latencies: map[string]*latency{}} }

// latency is what metrics ask of a histogram, in milliseconds.
type latency struct {
	requests int64
	values   map[string]float64
}

// quantiles are percents, by the end of a metric's name.
var quantiles = map[string]float64{"p50": 50, "p90": 90, "p95": 95, "p99": 99, "p999": 99.9}

// Value is as the function of that name.
func (s *Sheet) Value(metric string) (float64, bool) {
	p, err := parseMetric(metric)
	if err != nil {
		return 0, false
	}
	if p.base == changeSeconds {
		return s.trial.ChangeMs / 1000, s.trial.ChangeMs > 0
	}
	phase := s.trial.Main()
	if p.phase != "" {
		phase = s.trial.Phase(p.phase)
	}
	value, ok := s.ofPhase(phase, p)
	if !ok || p.over == "" {
		return value, ok
	}
	under, ok := s.ofPhase(s.trial.Phase(p.over), p)
	return finite(value/under, ok)
}

// finite leaves out what no division of measured quantities should give.
func finite(x float64, ok bool) (float64, bool) {
	if !ok || math.IsNaN(x) || math.IsInf(x, 0) {
		return 0, false
	}
	return x, true
}

// ofPhase is a metric of one phase, whatever phases its name has.
func (s *Sheet) ofPhase(phase *Phase, p parsed) (float64, bool) {
	if phase == nil || phase.Load == nil {
		return 0, false
	}
	l := phase.Load
	if p.statement != "" {
		return s.statement(l, p.statement)
	}
	if counter, ok := perTransaction[p.base]; ok {
		total, ok := phase.Probes[counter.probe]
		return finite(total*counter.factor/float64(l.Transactions), ok)
	}
	switch p.base {
	case "tps":
		return finite(float64(l.Transactions)/l.Seconds, true)
	case "errors_share":
		errors := total(l.Errors)
		return finite(errors/(errors+float64(l.Transactions)), true)
	case "skipped_share":
		return finite(float64(l.Skipped)/float64(l.Offered), true)
	case gapMax:
		return longestGap(l.Bins)
	case statementsPerSecond:
		return s.statementRate(l)
	}
	kind, figure, _ := strings.Cut(p.base, "_")
	return s.latency(l, kind, figure, p.LeastRequests)
}

// perTransaction are totals of probes and the factor to the metric's unit.
var perTransaction = map[string]struct {
	probe  string
	factor float64
}{
	"cpu_per_tx":              {"cpu_s", 1000},
	"context_switches_per_tx": {"context_switches", 1},
	"wal_per_tx":              {"wal_bytes", 1},
	"fsyncs_per_tx":           {"fsyncs", 1},
	"read_bytes_per_tx":       {"read_bytes", 1},
	"write_bytes_per_tx":      {"write_bytes", 1},
	"lock_waits_per_tx":       {"lock_waits", 1},
	"lock_wait_s_per_tx":      {"lock_wait_s", 1},
}

// borders are what begins and ends a transaction, or comes before it.
var borders = []string{"CONNECT", "BEGIN", "START TRANSACTION", "COMMIT", "END", "ROLLBACK"}

// statementRate is how many statements a second were answered, those at the borders of
// transactions not counted. A generator without histograms tells which there are, and
// each transaction has each.
func (s *Sheet) statementRate(l *Load) (float64, bool) {
	count, known := 0.0, false
	counted := func(name string) bool {
		_, text, _ := strings.Cut(name, " ")
		text = strings.ToUpper(strings.TrimRight(text, "; "))
		return !slices.Contains(borders, text)
	}
	for name, text := range l.Statements {
		if h := s.decode(text); h != nil && counted(name) {
			count, known = count+float64(h.requests), true
		}
	}
	if len(l.Statements) == 0 {
		for name := range l.Summary {
			if statement, ok := strings.CutPrefix(name, summaryStatement); ok && counted(statement) {
				count, known = count+float64(l.Transactions), true
			}
		}
	}
	return finite(count/l.Seconds, known)
}

// total is no int64: the sum of counts that are in a file may not fit in one.
func total(counts map[string]int64) float64 {
	sum := 0.0
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		sum += float64(counts[name])
	}
	return sum
}

// longestGap is in milliseconds, to 100; 0 when every bin has an answer.
func longestGap(bins []int64) (float64, bool) {
	longest, run := 0, 0
	for _, n := range bins {
		if n > 0 {
			run = 0
			continue
		}
		run++
		longest = max(longest, run)
	}
	return float64(longest) * binMs, len(bins) > 0
}

// latency answers from the histogram, or from what a generator printed that gives none.
func (s *Sheet) latency(l *Load, kind, figure string, least int64) (float64, bool) {
	text := l.Service
	if kind == "resp" && l.Response != "" {
		text = l.Response
	}
	if text == "" {
		// What a generator prints of open load counts from the schedule.
		if kind == "serv" && l.Offered > 0 || l.Transactions < least {
			return 0, false
		}
		value, ok := l.Summary[figure]
		return value, ok
	}
	h := s.decode(text)
	if h == nil || h.requests < max(least, 1) {
		return 0, false
	}
	value, ok := h.values[figure]
	return value, ok
}

func (s *Sheet) statement(l *Load, name string) (float64, bool) {
	if text := l.Statements[name]; text != "" {
		h := s.decode(text)
		if h == nil || h.requests == 0 {
			return 0, false
		}
		return h.values["avg"], true
	}
	value, ok := l.Summary[summaryStatement+name]
	return value, ok
}

// summaryStatement begins the names of statements' averages in Load.Summary.
const summaryStatement = "statement "

func (s *Sheet) decode(text string) *latency {
	if l, ok := s.latencies[text]; ok {
		return l
	}
	h, err := DecodeHistogram(text)
	if err != nil {
		if s.err == nil {
			s.err = fmt.Errorf("block %d, %s, %s: %w", s.trial.Block, s.trial.Variant, s.trial.Workload, err)
		}
		s.latencies[text] = nil
		return nil
	}
	ms := func(micros float64) float64 { return micros / 1000 }
	l := &latency{requests: h.TotalCount(), values: map[string]float64{
		"avg": ms(h.Mean()), "max": ms(float64(h.Max())), "min": ms(float64(h.Min())),
	}}
	for name, percent := range quantiles {
		l.values[name] = ms(float64(h.ValueAtPercentile(percent)))
	}
	s.latencies[text] = l
	return l
}

// Err is the first histogram of those asked for that could not be decoded. A file that
// was read has none.
func (s *Sheet) Err() error { return s.err }

// Statements are the names of the statements that any trial has a latency of, in their
// order.
func Statements(f *File) []string {
	seen := map[string]bool{}
	for i := range f.Trials {
		for _, p := range f.Trials[i].Phases {
			if p.Load == nil {
				continue
			}
			for name := range p.Load.Statements {
				seen[name] = true
			}
			for name := range p.Load.Summary {
				if statement, ok := strings.CutPrefix(name, summaryStatement); ok {
					seen[statement] = true
				}
			}
		}
	}
	return slices.Sorted(maps.Keys(seen))
}
