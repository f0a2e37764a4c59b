package load

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"regexp"
	"strconv"

	"kurabe/lab/load/script"
)

const (
	reportLinesMax = 20_000
	// summaryAverage is the mean in Load.Summary; that of a statement is named after it.
	summaryAverage   = "avg"
	summaryStatement = "statement "
)

// pgbenchReport is what pgbench prints at its end.
type pgbenchReport struct {
	seconds    float64 // without the time of connecting
	summary    map[string]float64
	transacted int64
	last       string // of the statements that were read
}

var (
	pgbenchTPS       = regexp.MustCompile(`^tps = ([0-9.]+) \((?:without|including)`)
	pgbenchDone      = regexp.MustCompile(`^number of transactions actually processed: (\d+)`)
	pgbenchLatency   = regexp.MustCompile(`^latency average = ([0-9.]+) ms`)
	pgbenchSection   = regexp.MustCompile(`^statement latencies in milliseconds`)
	pgbenchStatement = regexp.MustCompile(`^\s+([0-9]+\.[0-9]+)\s+(?:\d+\s+)?(?:\d+\s+)?(\S.*)$`)
	pgbenchRate      = regexp.MustCompile(`^progress: [0-9.]+ s, ([0-9.]+) tps`)
)

// pgbenchProgress reads the rate of the last second from a line of -P.
func pgbenchProgress(line string) (float64, bool) {
	m := pgbenchRate.FindStringSubmatch(line)
	if m == nil {
		return 0, false
	}
	v, err := figure(m[1])
	return v, err == nil
}

// figure reads a number that is finite and not negative.
func figure(text string) (float64, error) {
	v, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsInf(v, 0) || math.IsNaN(v) || v < 0 {
		return 0, fmt.Errorf("%q is no figure", script.Brief(text))
	}
	return v, nil
}

func parsePgbench(out []byte) (*pgbenchReport, error) {
	r := &pgbenchReport{summary: map[string]float64{}}
	rate, statements, listing := -1.0, 0, false
	err := eachLine(bytes.NewReader(out), reportLinesMax, func(_ int, line string) error {
		var err error
		switch {
		case pgbenchSection.MatchString(line):
			listing = true
		case listing:
			err = r.statement(line, &statements)
		default:
			if m := pgbenchTPS.FindStringSubmatch(line); m != nil {
				rate, err = figure(m[1])
			} else if m := pgbenchDone.FindStringSubmatch(line); m != nil {
				r.transacted, err = strconv.ParseInt(m[1], 10, 64)
			} else if m := pgbenchLatency.FindStringSubmatch(line); m != nil {
				r.summary[summaryAverage], err = figure(m[1])
			}
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	if rate < 0 {
		return nil, errors.New("it has no line with tps")
	}
	if rate > 0 {
		r.seconds = float64(r.transacted) / rate
	}
	return r, nil
}

// statement reads a line of -r: the mean in ms, from version 15 on failures and retries,
// and the command. Commands of pgbench itself are left out, but for the clock, whose time
// is that of the statement before it.
func (r *pgbenchReport) statement(line string, count *int) error {
	m := pgbenchStatement.FindStringSubmatch(line)
	if m == nil || m[2][0] == '\\' && (m[2] != pgbenchClock || *count == 0) {
		return nil
	}
	v, err := figure(m[1])
	if m[2] == pgbenchClock {
		r.summary[r.last] += v
		return err
	}
	if *count == script.StatementsMax {
		return fmt.Errorf("more than %d statements", script.StatementsMax)
	}
	*count++
	r.last = summaryStatement + script.Label(*count, script.LabelText(m[2]))
	r.summary[r.last] = v
	return err
}
