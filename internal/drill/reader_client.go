package drill

import (
	"context"
	"sync"
	"time"

	"kurabe/internal/pulse"
)

// Reads is what a client of the reader endpoint saw.
type Reads struct {
	Answered int `json:"answered"`
	// AtWriter were answered by the writer, to whom readers' sessions come only while there is
	// no reader.
	AtWriter int `json:"atWriter"`
	Errors   int `json:"errors"` // from the fault on
	// Gap is the longest time without an answer, which began GapFrom after the fault.
	Gap     float64 `json:"gapSeconds"`
	GapFrom float64 `json:"gapFromSeconds"`
}

// readTime bounds one read, so that one which hangs is not the last.
const readTime = 5 * time.Second

// reads is a client that reads by one session until that breaks, and then by another.
type reads struct {
	login    pulse.Login
	question string // "true" is the answer of a reader

	mu       sync.Mutex // guards the rest
	answers  []time.Time
	atWriter int
	errors   []time.Time
	ended    time.Time // zero while it reads
}

func newReads(l pulse.Login, question string) *reads { return &reads{login: l, question: question} }

// run reads every pulse.Every until ctx ends.
func (r *reads) run(ctx context.Context) {
	tick := time.NewTicker(pulse.Every)
	defer tick.Stop()
	var s pulse.Session
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			if s != nil {
				s.Close()
			}
			r.end(time.Now())
			return
		}
		next, err := r.once(ctx, s)
		if err != nil && next != nil {
			next.Close()
			next = nil
		}
		if s = next; err != nil && ctx.Err() == nil {
			r.failed(time.Now())
		}
	}
}

// once reads over a session, which it opens when there is none.
func (r *reads) once(ctx context.Context, s pulse.Session) (pulse.Session, error) {
	limited, cancel := context.WithTimeout(ctx, readTime)
	defer cancel()
	if s == nil {
		var err error
		if s, err = pulse.Open(limited, r.login); err != nil {
			return nil, err
		}
	}
	rows, err := s.Rows(limited, r.question)
	if err == nil {
		r.took(time.Now(), len(rows) == 1 && rows[0] == "true")
	}
	return s, err
}

func (r *reads) took(at time.Time, byReader bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.answers = append(r.answers, at)
	if !byReader {
		r.atWriter++
	}
}

func (r *reads) failed(at time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.errors = append(r.errors, at)
}

func (r *reads) end(at time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ended = at
}

func (r *reads) answered() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.answers)
}

// report counts from the fault on, but for the answers; a gap counts from the last answer
// before that, and the last one lasts until the end.
func (r *reads) report(fault time.Time) *Reads {
	r.mu.Lock()
	defer r.mu.Unlock()
	o := &Reads{Answered: len(r.answers), AtWriter: r.atWriter}
	for _, at := range r.errors {
		if !at.Before(fault) {
			o.Errors++
		}
	}
	for n, from := range r.answers {
		to := r.ended
		if n+1 < len(r.answers) {
			to = r.answers[n+1]
		}
		if gap := to.Sub(from).Seconds(); !to.Before(fault) && gap > o.Gap {
			o.Gap, o.GapFrom = gap, from.Sub(fault).Seconds()
		}
	}
	return o
}
