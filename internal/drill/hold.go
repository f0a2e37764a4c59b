package drill

import (
	"context"
	"errors"
	"time"

	"kurabe"
)

// HoldTime is how long a host keeps a freeze or a cut up without a word of the drill.
const HoldTime = 10 * time.Second

// Held is what a host tells of a freeze or a cut that it keeps up.
type Held struct {
	Over    bool   `json:"over"`              // it is: the server goes on, or is reached again
	Ended   bool   `json:"ended,omitempty"`   // of a freeze: the server was ended meanwhile
	Silent  bool   `json:"silent,omitempty"`  // it was ended since the drill had said nothing for HoldTime
	Lost    uint64 `json:"lost,omitempty"`    // of a cut: how many packets were
	Failure string `json:"failure,omitempty"` // what went wrong

	// Forgotten: the host's agent was started anew, and knows of none. It has ended with the
	// one before.
	Forgotten bool `json:"forgotten,omitempty"`
}

// hold is a freeze or a cut under way.
type hold struct {
	word chan bool     // of the drill; true ends it
	done chan struct{} // closes when it is over
	held Held          // then
	// look is called now and then, and says whether it is over. end ends it.
	look func() (bool, error)
	end  func(*Held) error
}

// keep has it last until its time is up, the drill ends it or says nothing for a time.
func (l *hold) keep(most, silence time.Duration) {
	defer close(l.done)
	over, quiet, tick := time.NewTimer(most), time.NewTimer(silence), time.NewTicker(lookEvery)
	defer over.Stop()
	defer quiet.Stop()
	defer tick.Stop()
	var failure error
	for ended := false; !ended; {
		select {
		case <-over.C:
			ended = true
		case <-quiet.C:
			l.held.Silent, ended = true, true
		case ended = <-l.word:
			quiet.Reset(silence)
		case <-tick.C:
			ended, failure = l.look()
			ended = ended || failure != nil
		}
	}
	if failure = errors.Join(failure, l.end(&l.held)); failure != nil {
		l.held.Failure = failure.Error()
	}
	l.held.Over = true
}

// say tells it a word of the drill, waits for the end that it may have asked for, and returns
// what is known.
func (l *hold) say(ctx context.Context, end bool) (Held, error) {
	select {
	case l.word <- end:
	case <-l.done:
	case <-ctx.Done():
		return Held{}, ctx.Err()
	}
	if end {
		select {
		case <-l.done:
		case <-ctx.Done():
			return Held{}, ctx.Err()
		}
	}
	select {
	case <-l.done:
		return l.held, nil
	default:
		return Held{}, nil
	}
}

// Hold has what was begun by a permit go on, or end, and says what is known of it.
func (p *Permits) Hold(ctx context.Context, server kurabe.InstanceID, key string, end bool) (Held, error) {
	p.mu.Lock()
	var l *hold
	if g, known := p.given[key]; known && g.Server == server {
		l = g.hold
	}
	p.mu.Unlock()
	if l == nil {
		return Held{Over: true, Forgotten: true}, nil
	}
	return l.say(ctx, end)
}

func newHold(look func() (bool, error), end func(*Held) error) *hold {
	return &hold{word: make(chan bool), done: make(chan struct{}), look: look, end: end}
}
