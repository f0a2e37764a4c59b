package load

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"kurabe/lab/result"
)

const (
	// binWidth is that of Load.Bins.
	binWidth = 100 * time.Millisecond
	// recorderSamples are kept before the common lock is taken: at 100,000 requests a
	// second with three samples each, 1,200 times a second for some microseconds.
	recorderSamples = 256
	// binsMax bounds a phase: 24 h.
	binsMax = 24 * 3600 * 10
)

// Kinds of samples; from kindStatement on the statements by index.
const (
	kindAnswer    = iota // of a transaction: response and, with at, the bins
	kindService          // of a transaction
	kindLag              // sent after due, of an arrival that found a client free
	kindSkipped          // an arrival that found none in time
	kindStatement        // service
)

// sample is one value. Times count from the start of the run, nanoseconds.
type sample struct {
	due   int64 // when the transaction was due: decides the phase
	at    int64 // when the answer came
	value int64
	kind  int
}

// boundary is the begin of a phase, nanoseconds from the start.
type boundary struct {
	phase string
	start int64
}

// recorder is a worker's own part of the record.
type recorder struct {
	tally    *tally
	samples  []sample
	answered atomic.Int64 // so far; the worker adds, the warm-up reads
	_        [64]byte     // the next worker's counter is on another cache line
}

func newRecorder(t *tally) *recorder {
	return &recorder{tally: t, samples: make([]sample, 0, recorderSamples)}
}

func (r *recorder) add(s sample) {
	r.samples = append(r.samples, s)
	if len(r.samples) == recorderSamples {
		r.flush()
	}
}

func (r *recorder) flush() {
	r.tally.add(r.samples)
	r.samples = r.samples[:0]
}

// tally is the record of all workers, by phase.
type tally struct {
	kinds int
	open  bool // response differs from service

	mu     sync.Mutex // guards what follows
	bounds []boundary
	phases []*phaseTally // as bounds
}

// phaseTally counts in one phase. The warm-up has none of it but its place.
type phaseTally struct {
	measured   bool
	histograms []*hdrhistogram.Histogram // by kind; nil until there is a value
	skipped    int64
	answered   int64
	errors     map[string]int64
	refusal    error // the first that the server gave a reason for
	bins       []int64
	slowest    []float64 // ms, as bins
}

func newTally(statements int, open bool) *tally {
	return &tally{kinds: kindStatement + statements, open: open}
}

// enter begins a phase; "" ends the last.
func (t *tally) enter(phase string, start int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.bounds = append(t.bounds, boundary{phase, start})
	t.phases = append(t.phases, &phaseTally{
		measured:   phase != "" && phase != result.PhaseWarm,
		histograms: make([]*hdrhistogram.Histogram, t.kinds),
		errors:     map[string]int64{},
	})
}

// phaseAt is the phase of a time. What was due a moment before the first phase began
// counts to it. There are four phases at the most, so a search has nothing to win.
func (t *tally) phaseAt(at int64) int {
	n := len(t.bounds) - 1
	for n > 0 && t.bounds[n].start > at {
		n--
	}
	return n
}

func (t *tally) add(samples []sample) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, s := range samples {
		p := t.phases[t.phaseAt(s.due)]
		if !p.measured {
			continue
		}
		if s.kind == kindAnswer {
			t.bin(s)
		}
		switch s.kind {
		case kindSkipped:
			p.skipped++
			continue
		case kindAnswer:
			p.answered++
			if !t.open {
				continue // response is service
			}
		}
		if p.histograms[s.kind] == nil {
			p.histograms[s.kind] = result.NewHistogram()
		}
		// The value is in range, so it cannot be refused.
		_ = p.histograms[s.kind].RecordValue(micros(s.value))
	}
}

// micros rounds nanoseconds to what a histogram takes.
func micros(ns int64) int64 { return min(max((ns+500)/1000, 1), result.MaxHistogramMicros) }

// bin counts an answer where it came, which may be a later phase than the one that the
// request belongs to.
func (t *tally) bin(s sample) {
	at := t.phaseAt(s.at)
	p := t.phases[at]
	n := (s.at - t.bounds[at].start) / int64(binWidth)
	if !p.measured || n < 0 || n >= binsMax {
		return
	}
	for int64(len(p.bins)) <= n {
		p.bins = append(p.bins, 0)
		p.slowest = append(p.slowest, 0)
	}
	p.bins[n]++
	p.slowest[n] = max(p.slowest[n], float64(s.value)/1e6)
}

// fail counts a transaction that failed.
func (t *tally) fail(due int64, code string, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	p := t.phases[t.phaseAt(due)]
	if !p.measured {
		return
	}
	p.errors[code]++
	if p.refusal == nil && code != codeConnection && code != codeUnanswered {
		p.refusal = err
	}
}

// refused is the server's reason when it refused every transaction of a phase, as it
// does when a script names a table that is not there. Such a phase measures nothing.
func (t *tally) refused(n int) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if p := t.phases[n]; p.answered == 0 && p.refusal != nil {
		return fmt.Errorf("no transaction went well: %w", p.refusal)
	}
	return nil
}

// load is the record of the n-th phase, which lasted from its begin to the next's.
func (t *tally) load(n int, labels []string) (*result.Load, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	p := t.phases[n]
	ns := t.bounds[n+1].start - t.bounds[n].start
	l := &result.Load{Transactions: p.answered, Skipped: p.skipped, Seconds: float64(ns) / 1e9, Generator: map[string]float64{}, Prog: progOwn}
	failed := int64(0)
	for _, n := range p.errors {
		failed += n
	}
	if len(p.errors) > 0 {
		l.Errors = p.errors
	}
	l.Bins, l.BinsMax = p.whole(ns)
	if t.open {
		l.Offered = p.answered + p.skipped + failed
		if lag := p.histograms[kindLag]; lag != nil {
			l.Generator["lag_p99_ms"] = float64(lag.ValueAtQuantile(99)) / 1000
		}
	}
	return l, p.encode(l, labels)
}

// whole gives a bin for every 100 ms that the phase has in full, also for the last ones
// in which nothing was answered. A piece at the end would look like a pause.
func (p *phaseTally) whole(ns int64) ([]int64, []float64) {
	n := min(ns/int64(binWidth), binsMax)
	bins, slowest := make([]int64, n), make([]float64, n)
	copy(bins, p.bins)
	copy(slowest, p.slowest)
	return bins, slowest
}

func (p *phaseTally) encode(l *result.Load, labels []string) error {
	put := func(kind int, into *string) error {
		if p.histograms[kind] == nil {
			return nil
		}
		text, err := result.EncodeHistogram(p.histograms[kind])
		*into = text
		return err
	}
	if err := put(kindAnswer, &l.Response); err != nil {
		return fmt.Errorf("response times: %w", err)
	}
	if err := put(kindService, &l.Service); err != nil {
		return fmt.Errorf("service times: %w", err)
	}
	for n, label := range labels {
		var text string
		if err := put(kindStatement+n, &text); err != nil {
			return fmt.Errorf("statement %s: %w", label, err)
		}
		if text != "" {
			if l.Statements == nil {
				l.Statements = map[string]string{}
			}
			l.Statements[label] = text
		}
	}
	return nil
}
