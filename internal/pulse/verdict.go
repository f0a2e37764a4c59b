package pulse

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"
)

// Silence is a time in which nothing was acknowledged.
type Silence struct{ From, To time.Time }

// Lasted is how long.
func (s Silence) Lasted() time.Duration { return s.To.Sub(s.From) }

// Gap is the longest time without an acknowledgement from a moment on, that which lasts
// included. It counts from the last acknowledgement before.
func (p *Pulse) Gap(from time.Time) time.Duration { return p.Longest(from).Lasted() }

// Longest is when the Gap was.
func (p *Pulse) Longest(from time.Time) Silence { return longest(p.Silences(from)) }

func longest(list []Silence) (most Silence) {
	for _, s := range list {
		if s.Lasted() > most.Lasted() {
			most = s
		}
	}
	return most
}

// Silences are the times between acknowledgements from a moment on, in order. The first
// counts from the last acknowledgement before.
func (p *Pulse) Silences(from time.Time) []Silence {
	p.mu.Lock()
	now := p.ended
	p.mu.Unlock()
	if now.IsZero() {
		now = time.Now()
	}
	return silences(p.Beats(), from, now)
}

func silences(beats []Beat, from, now time.Time) (list []Silence) {
	last := from
	for _, b := range beats {
		if !b.Acked.Before(from) && b.Acked.After(last) {
			list = append(list, Silence{last, b.Acked})
		}
		if b.Acked.After(last) || b.Acked.Before(from) {
			last = b.Acked
		}
	}
	return append(list, Silence{last, now})
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

// Verdict holds the table of a pulse against what its client knows.
type Verdict struct {
	Acked   int
	Missing []int64  // acknowledged, and not there
	Twice   []int64  // there more than once
	Strange []string // never written
	// Unanswered are the rows that are there although the client was never told so. A
	// server that dies may have written what it could not answer.
	Unanswered int
}

// Wrong says what is wrong, "" when nothing is.
func (v Verdict) Wrong() string {
	if len(v.Missing)+len(v.Twice)+len(v.Strange) == 0 {
		return ""
	}
	return fmt.Sprintf("of %d acknowledged rows %d are missing, for example %v; duplicate rows: %v; rows never written: %v", v.Acked,
		len(v.Missing), v.Missing[:min(len(v.Missing), 10)], v.Twice[:min(len(v.Twice), 10)], v.Strange[:min(len(v.Strange), 10)])
}

// Judge reads the table. It may be called while the client writes: what is acknowledged
// by now must be there, what is there must have been tried by then.
func (p *Pulse) Judge(ctx context.Context) (Verdict, error) { return p.JudgeAt(ctx, p.login) }

// JudgeAt reads the table elsewhere, as at a read replica.
func (p *Pulse) JudgeAt(ctx context.Context, l Login) (Verdict, error) {
	beats := p.Beats()
	rows, err := p.RowsAt(ctx, l)
	if err != nil {
		return Verdict{}, err
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

func judge(beats []Beat, tried int64, rows []string) Verdict {
	v := Verdict{Acked: len(beats)}
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
	v.Unanswered = len(have)
	for _, b := range beats {
		if have[b.N] == 0 {
			v.Missing = append(v.Missing, b.N)
		} else {
			v.Unanswered--
		}
	}
	slices.Sort(v.Missing)
	return v
}
