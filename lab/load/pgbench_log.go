package load

import (
	"errors"
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"
	"time"

	"kurabe/lab/load/script"
	"kurabe/lab/result"
)

const (
	// logLinesMax of one thread: an hour at 50,000 transactions a second.
	logLinesMax = 180_000_000
	// instantMax is the share of transactions that may have taken no time. More is a clock
	// that pgbench has not read (see pgbenchClock).
	instantMax = 0.005
	// Fields of a line: client, number, time, script, seconds, microseconds, and with -R
	// the lag; retries may follow.
	logFieldsMin = 6
	logFieldsMax = 8
)

// pgbenchEntry is a line of pgbench's log. Times are microseconds.
type pgbenchEntry struct {
	outcome string // "" for an answer, "skipped", or how it failed
	at      int64  // of the end, since 1970
	took    int64  // with a rate: from the scheduled start
	lag     int64  // of the sending behind the schedule; with a rate only
}

// pgbenchFailures are the codes of what pgbench calls by name.
var pgbenchFailures = map[string]string{"failed": "failed", "serialization": "40001", "deadlock": "40P01"}

const pgbenchSkipped = "skipped"

func parsePgbenchEntry(line string) (e pgbenchEntry, err error) {
	f := strings.Fields(line)
	if len(f) < logFieldsMin || len(f) > logFieldsMax {
		return e, fmt.Errorf("it has %d fields", len(f))
	}
	if _, failed := pgbenchFailures[f[2]]; failed || f[2] == pgbenchSkipped {
		e.outcome = f[2]
	} else if e.took, err = natural(f[2]); err != nil {
		return e, err
	}
	seconds, err := natural(f[4])
	if err != nil {
		return e, err
	}
	part, err := natural(f[5])
	if err != nil {
		return e, err
	}
	if seconds > math.MaxInt64/2_000_000 || part >= 1_000_000 {
		return e, errors.New("its time is none")
	}
	e.at = seconds*1_000_000 + part
	if len(f) > logFieldsMin {
		e.lag, err = natural(f[6])
	}
	return e, err
}

// natural reads a whole number; pgbench writes some with a fraction of zero.
func natural(text string) (int64, error) {
	whole, _, _ := strings.Cut(text, ".")
	v, err := strconv.ParseUint(whole, 10, 63)
	if err != nil {
		return 0, fmt.Errorf("%q is no whole number", script.Brief(text))
	}
	return int64(v), nil
}

// readPgbenchLogs makes the load of a run from the logs of its threads. The first
// transaction's begin is where its bins start: before it, pgbench connected.
func readPgbenchLogs(paths []string, begin time.Time, report *pgbenchReport, open bool) (*result.Load, error) {
	start := int64(math.MaxInt64)
	if err := eachEntry(paths, func(e pgbenchEntry) { start = min(start, e.at-e.took) }); err != nil {
		return nil, err
	}
	start = max(start, begin.UnixMicro())
	t := newTally(0, open)
	t.enter(result.PhaseMeasure, 0)
	instant := int64(0)
	batch := make([]sample, 0, recorderSamples)
	err := eachEntry(paths, func(e pgbenchEntry) {
		at, took := (e.at-start)*1000, e.took*1000
		switch {
		case e.outcome == pgbenchSkipped:
			batch = append(batch, sample{kind: kindSkipped})
		case e.outcome != "":
			t.fail(0, pgbenchFailures[e.outcome], nil)
		default:
			if took == 0 {
				instant++
			}
			batch = append(batch, sample{at: at, value: took, kind: kindAnswer}, sample{value: took - e.lag*1000, kind: kindService})
			if open {
				batch = append(batch, sample{value: e.lag * 1000, kind: kindLag})
			}
		}
		if len(batch) > recorderSamples-4 {
			t.add(batch)
			batch = batch[:0]
		}
	})
	if err != nil {
		return nil, err
	}
	t.add(batch)
	t.enter("", int64(report.seconds*1e9))
	l, err := t.load(0, nil)
	if err != nil {
		return nil, err
	}
	if l.Transactions != report.transacted {
		return nil, fmt.Errorf("it has %d transactions, and the report says %d", l.Transactions, report.transacted)
	}
	if float64(instant) > instantMax*float64(l.Transactions) {
		return nil, fmt.Errorf("%d of %d transactions took no time by its log: its clock was not read; generator: kurabe measures such a load", instant, l.Transactions)
	}
	l.Summary = report.summary
	return l, nil
}

func eachEntry(paths []string, visit func(pgbenchEntry)) error {
	for _, path := range paths {
		file, err := os.Open(path)
		if err != nil {
			return err
		}
		err = eachLine(file, logLinesMax, func(_ int, line string) error {
			e, err := parsePgbenchEntry(line)
			if err == nil {
				visit(e)
			}
			return err
		})
		file.Close() // it was read only
		if err != nil {
			return err
		}
	}
	return nil
}
