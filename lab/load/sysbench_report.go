package load

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"regexp"
	"strconv"

	"github.com/HdrHistogram/hdrhistogram-go"

	"kurabe/lab/result"
)

// errorIgnored are the errors that sysbench repeats a transaction after: deadlocks, lock
// timeouts and duplicate keys. It does not tell them apart.
const errorIgnored = "ignored"

var (
	sysbenchRate    = regexp.MustCompile(`^\[ \d+s \] thds: \d+ tps: ([0-9.]+)`)
	sysbenchBucket  = regexp.MustCompile(`^\s*([0-9]+\.[0-9]+) \|\**\s+(\d+)$`)
	sysbenchDone    = regexp.MustCompile(`^\s+transactions:\s+(\d+)\s`)
	sysbenchIgnored = regexp.MustCompile(`^\s+ignored errors:\s+(\d+)\s`)
	sysbenchTime    = regexp.MustCompile(`^\s+total time:\s+([0-9.]+)s$`)
	sysbenchLatency = regexp.MustCompile(`^\s+(min|avg|max|(?:\d+)th percentile):\s+([0-9.]+)$`)
)

// sysbenchNames are the names in Load.Summary of what sysbench calls otherwise.
var sysbenchNames = map[string]string{"min": "min", "avg": summaryAverage, "max": "max", "95th percentile": "p95"}

// sysbenchProgress reads the rate of the last second from a line of --report-interval.
func sysbenchProgress(line string) (float64, bool) {
	m := sysbenchRate.FindStringSubmatch(line)
	if m == nil {
		return 0, false
	}
	v, err := figure(m[1])
	return v, err == nil
}

// sysbenchReport is a report while it is read.
type sysbenchReport struct {
	load      *result.Load
	histogram *hdrhistogram.Histogram
	counted   int64 // in the histogram
}

// parseSysbench reads a report. With a rate, sysbench's times begin when a transaction
// was due, so its histogram is of responses.
func parseSysbench(out []byte, open bool) (*result.Load, error) {
	r := &sysbenchReport{histogram: result.NewHistogram(),
		load: &result.Load{Transactions: -1, Summary: map[string]float64{}, Generator: map[string]float64{}}}
	if err := eachLine(bytes.NewReader(out), reportLinesMax, func(_ int, line string) error { return r.line(line) }); err != nil {
		return nil, err
	}
	l := r.load
	if l.Transactions < 0 || l.Seconds == 0 {
		return nil, errors.New("it has no totals")
	}
	if r.counted == 0 {
		return l, nil
	}
	text, err := result.EncodeHistogram(r.histogram)
	if err != nil {
		return nil, err
	}
	if l.Service = text; open {
		l.Service, l.Response = "", text
		// sysbench waits for a thread as long as it takes, and skips nothing.
		l.Offered = l.Transactions + l.Errors[errorIgnored]
	}
	return l, nil
}

func (r *sysbenchReport) line(line string) error {
	var err error
	if m := sysbenchBucket.FindStringSubmatch(line); m != nil {
		return r.bucket(m[1], m[2])
	}
	if m := sysbenchDone.FindStringSubmatch(line); m != nil {
		r.load.Transactions, err = strconv.ParseInt(m[1], 10, 64)
	} else if m := sysbenchTime.FindStringSubmatch(line); m != nil {
		r.load.Seconds, err = figure(m[1])
	} else if m := sysbenchLatency.FindStringSubmatch(line); m != nil {
		if name, ok := sysbenchNames[m[1]]; ok {
			r.load.Summary[name], err = figure(m[2])
		}
	} else if m := sysbenchIgnored.FindStringSubmatch(line); m != nil {
		var n int64
		if n, err = strconv.ParseInt(m[1], 10, 64); n > 0 {
			r.load.Errors = map[string]int64{errorIgnored: n}
		}
	}
	return err
}

// bucket adds a line of the histogram: a time in ms and how many transactions took it.
func (r *sysbenchReport) bucket(value, count string) error {
	ms, err := figure(value)
	if err != nil {
		return err
	}
	n, err := strconv.ParseInt(count, 10, 64)
	if err != nil {
		return err
	}
	if n > math.MaxInt64/4-r.counted {
		return fmt.Errorf("%d transactions are more than can be", n)
	}
	r.counted += n
	return r.histogram.RecordValues(micros(int64(min(ms, 1e9)*1e6)), n)
}
