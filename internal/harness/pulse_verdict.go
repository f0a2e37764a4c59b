package harness

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"
)

// Gap is the longest time without an acknowledgement from a moment on, that which lasts
// included. It counts from the last acknowledgement before.
func (p *Pulse) Gap(from time.Time) time.Duration {
	p.mu.Lock()
	end := p.ended
	p.mu.Unlock()
	if end.IsZero() {
		end = time.Now()
	}
	return longestGap(p.Beats(), from, end)
}

func longestGap(beats []Beat, from, end time.Time) time.Duration {
	last, longest := from, time.Duration(0)
	for _, b := range beats {
		if !b.Acked.Before(from) {
			longest = max(longest, b.Acked.Sub(last))
		}
		if b.Acked.After(last) || b.Acked.Before(from) {
			last = b.Acked
		}
	}
	return max(longest, end.Sub(last))
}

// LongestWait is how long the slowest of the rows took that were acknowledged from a
// moment on.
func (p *Pulse) LongestWait(from time.Time) time.Duration {
	longest := time.Duration(0)
	for _, b := range p.Beats() {
		if !b.Acked.Before(from) {
			longest = max(longest, b.Acked.Sub(b.Began))
		}
	}
	return longest
}

// PulseVerdict holds the table of a pulse against what its client knows.
type PulseVerdict struct {
	Acked   int
	Missing []int64  // acknowledged, and not there
	Twice   []int64  // there more than once
	Strange []string // never written
}

// Wrong says what is wrong, "" when nothing is.
func (v PulseVerdict) Wrong() string {
	if len(v.Missing)+len(v.Twice)+len(v.Strange) == 0 {
		return ""
	}
	return fmt.Sprintf("of %d acknowledged rows %d are missing, such as %v; there twice are %v, never written were %v", v.Acked,
		len(v.Missing), v.Missing[:min(len(v.Missing), 10)], v.Twice[:min(len(v.Twice), 10)], v.Strange[:min(len(v.Strange), 10)])
}

// Judge reads the table. It may be called while the client writes: what is acknowledged
// by now must be there, what is there must have been tried by then.
func (p *Pulse) Judge(ctx context.Context) (PulseVerdict, error) {
	beats := p.Beats()
	rows, err := p.RowsAt(ctx, p.login)
	if err != nil {
		return PulseVerdict{}, err
	}
	p.mu.Lock()
	tried := p.tried
	p.mu.Unlock()
	return judge(beats, tried, rows), nil
}

// RowsAt reads the table elsewhere: where the instance was restored to.
func (p *Pulse) RowsAt(ctx context.Context, l Login) ([]string, error) {
	s, err := Open(ctx, l)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	return s.Rows(ctx, "SELECT n FROM "+p.table)
}

func judge(beats []Beat, tried int64, rows []string) PulseVerdict {
	v := PulseVerdict{Acked: len(beats)}
	have := map[int64]int{}
	for _, r := range rows {
		n, err := strconv.ParseInt(r, 10, 64)
		if err != nil || n < 1 || n > tried {
			v.Strange = append(v.Strange, r)
			continue
		}
		if have[n]++; have[n] == 2 {
			v.Twice = append(v.Twice, n)
		}
	}
	for _, b := range beats {
		if have[b.N] == 0 {
			v.Missing = append(v.Missing, b.N)
		}
	}
	slices.Sort(v.Missing)
	return v
}

// Verify demands that every acknowledged row is there, exactly once, and none that was
// never written. It waits for an endpoint that serves.
func (p *Pulse) Verify(t testing.TB) {
	t.Helper()
	var v PulseVerdict
	Wait(t, availableTime, "the rows of the pulse can be read", func() string {
		var err error
		if v, err = p.Judge(t.Context()); err != nil {
			return err.Error()
		}
		return ""
	})
	if wrong := v.Wrong(); wrong != "" {
		t.Fatalf("pulse: %s", wrong)
	}
}
