package harness

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"kurabe/internal/pulse"
)

// Pulse is the client of package pulse, on a table of its own.
type Pulse struct{ *pulse.Pulse }

// PulseVerdict is what it says of its table.
type PulseVerdict = pulse.Verdict

// pulses numbers the tables.
var pulses atomic.Int64

// NewPulse makes the table and writes nothing yet.
func NewPulse(ctx context.Context, l Login) (*Pulse, error) {
	s, err := Open(ctx, l)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	table := fmt.Sprintf("pulse_%d", pulses.Add(1))
	return &Pulse{pulse.New(l, table)}, s.Exec(ctx, "CREATE TABLE "+table+" (n bigint)")
}

// Pulse is a pulse that beats until the test ends.
func (i *Instance) Pulse(t testing.TB) *Pulse {
	t.Helper()
	p, err := NewPulse(t.Context(), i.Login(t))
	if err != nil {
		t.Fatalf("pulse: %v", err)
	}
	p.Start()
	t.Cleanup(p.Stop)
	return p
}

// WaitMore waits until so many more rows were acknowledged.
func (p *Pulse) WaitMore(t testing.TB, rows int) time.Duration {
	t.Helper()
	from, began := p.Acked(), time.Now()
	return Wait(t, availableTime, "the pulse goes on", func() string {
		if now := p.Acked(); now < from+rows {
			n, err := p.Errors(began)
			return fmt.Sprintf("%d rows more, %d errors, the newest: %v", now-from, n, err)
		}
		return ""
	})
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
