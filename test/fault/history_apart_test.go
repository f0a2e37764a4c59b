//go:build fault

package fault

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"kurabe/internal/harness"
	"kurabe/test/appends"
)

const (
	// apartHistoryTime is how long faults come by default; KURABE_HISTORY_TIME says otherwise.
	apartHistoryTime = 30 * time.Second
	// awaitMost is how long a client waits for an answer: a machine that is cut off never
	// says that it will not answer.
	awaitMost = 3 * time.Second
)

// errUnanswered is the end of a session that its client waits for no more.
var errUnanswered = errors.New("not answered in time")

// farClient is client, of one who gives a session up that does not answer. What is under way
// on it is not called off and may happen at any time: see transact.
func (h *history) farClient(ctx context.Context, id int, random *rand.Rand) {
	for ctx.Err() == nil {
		limited, cancel := context.WithTimeout(ctx, awaitMost)
		s, err := harness.Open(limited, h.login)
		cancel()
		if err != nil {
			harness.Pause(ctx, historyPause)
			continue
		}
		for err == nil && ctx.Err() == nil {
			key := h.key(random)
			if random.IntN(2) == 0 {
				limited, cancel := context.WithTimeout(ctx, awaitMost)
				err = h.read(limited, s, id, key)
				cancel()
			} else {
				err = h.farAppend(s, id, key)
			}
			harness.Pause(ctx, time.Duration(random.Int64N(int64(historyPause))))
		}
		if !errors.Is(err, errUnanswered) { // whoever works on it closes it
			s.Close()
		}
	}
}

func (h *history) farAppend(s harness.Session, id, key int) error {
	value, call := h.begin()
	o := porcupine.Operation{ClientId: id, Input: appends.Op{Key: key, Value: value}, Call: call}
	type outcome struct {
		sent bool
		err  error
	}
	ended, gone := make(chan outcome, 1), make(chan struct{})
	go func() { // ends with the session, at the latest when the instance is deleted
		sent, err := transact(s, value, key)
		ended <- outcome{sent, err}
		select {
		case <-gone:
			s.Close()
		default:
		}
	}()
	late := time.NewTimer(awaitMost)
	defer late.Stop()
	select {
	case got := <-ended:
		h.appended(o, got.sent, got.err)
		return got.err
	case <-late.C:
		close(gone)
		h.appended(o, true, errUnanswered)
		return errUnanswered
	}
}

// appendsSince are those that were begun after a moment and acknowledged.
func (h *history) appendsSince(moment int64) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	count := 0
	for n := len(h.ops) - 1; n >= 0 && h.ops[n].Return >= moment; n-- {
		if o := h.ops[n]; o.Call >= moment && o.Return != math.MaxInt64 && o.Input.(appends.Op).Value != 0 {
			count++
		}
	}
	return count
}

// TestHistoryApart is TestHistory of a pair on two hosts, with the faults that only several
// machines know.
func TestHistoryApart(t *testing.T) {
	b := newApartBed(t)
	b.service.EachEngine(t, func(t *testing.T, engine string) {
		length := apartHistoryTime
		if given := os.Getenv("KURABE_HISTORY_TIME"); given != "" {
			var err error
			if length, err = time.ParseDuration(given); err != nil {
				t.Fatalf("KURABE_HISTORY_TIME: %v", err)
			}
		}
		underApartHistory(t, b.create(t, "history", engine), length)
	})
}

func underApartHistory(t *testing.T, p *apart, length time.Duration) {
	h := newHistory(t, p.Login(t))
	ctx, cancel := context.WithCancel(t.Context())
	var clients sync.WaitGroup
	defer clients.Wait()
	defer cancel()
	for id := range historyClients {
		random := rand.New(rand.NewPCG(p.bed.random.Uint64(), 0))
		clients.Go(func() { h.farClient(ctx, id, random) })
	}
	n := &nemesis{apart: p, history: h, random: p.bed.random, counts: map[string]int{}}
	for time.Since(h.began) < length && !t.Failed() {
		if n.random.IntN(2) == 0 {
			n.tolerable(t)
		} else {
			n.wild(t)
		}
	}
	t.Logf("faults: %v; clients waited for %v at most after one that a pair is made for", n.counts, n.longest.Round(time.Millisecond))
	n.goOn(t)
	n.served(t, h.now(), "all faults", pairSettleTime)
	p.waitWhole(t)
	cancel()
	clients.Wait()
	h.readAll(t)
	h.verify(t)
	p.wishes.settled(t)
	p.tidy(t)
}
