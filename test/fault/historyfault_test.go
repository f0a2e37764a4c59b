//go:build fault

package fault

import (
	"context"
	"math/rand/v2"
	"os"
	"sync"
	"testing"
	"time"

	"kurabe/internal/harness"
)

// historyCalm is the longest time between two faults; half of them follow at once.
const historyCalm = 4 * time.Second

// historyFaults are what befalls a pair while clients work. None waits until the pair is
// whole again: the next one may strike amid a failover, a rebuild or a start.
var historyFaults = []struct {
	name   string
	strike func(t *testing.T, b *pairBed)
}{
	{"the writer is killed", func(t *testing.T, b *pairBed) { b.killOne(t, b.guess(t)) }},
	{"the other server is killed", func(t *testing.T, b *pairBed) { b.killOne(t, b.beside(b.guess(t))) }},
	{"both servers are killed", func(t *testing.T, b *pairBed) {
		for _, m := range b.s.Members(b.ID) {
			b.killOne(t, m)
		}
	}},
	{"the writer hangs", func(t *testing.T, b *pairBed) { b.hang(t, false, b.guess(t)) }},
	{"the other server hangs", func(t *testing.T, b *pairBed) { b.hang(t, false, b.beside(b.guess(t))) }},
	{"both servers hang", func(t *testing.T, b *pairBed) { b.hang(t, false, b.s.Members(b.ID)...) }},
	{"the writer and the service hang", func(t *testing.T, b *pairBed) { b.hang(t, true, b.guess(t)) }},
	{"a failover in order", func(t *testing.T, b *pairBed) { _ = b.AskFailover(t) }}, // refused without a standby
	{"the service is killed", func(t *testing.T, b *pairBed) {
		b.s.Kill(t)
		b.s.Start(t)
	}},
	{"the service and the writer are killed", func(t *testing.T, b *pairBed) {
		writer := b.guess(t)
		b.s.Kill(t)
		b.killOne(t, writer)
		b.s.Start(t)
	}},
}

// guess is the server that writes, or one of the two while none does.
func (b *pairBed) guess(t *testing.T) harness.Member {
	t.Helper()
	members := b.s.Members(b.ID)
	if len(members) == 0 {
		t.Fatal("there is no server")
	}
	login := b.Login(t)
	if m, err := b.s.WriterOf(t.Context(), b.ID, login); err == nil {
		return m
	}
	return members[b.random.IntN(len(members))]
}

// beside is the other one of two, or the same where there is one.
func (b *pairBed) beside(one harness.Member) harness.Member {
	for _, m := range b.s.Members(b.ID) {
		if m != one {
			return m
		}
	}
	return one
}

// killOne kills a server, if it runs.
func (b *pairBed) killOne(t *testing.T, m harness.Member) {
	t.Helper()
	if _, err := m.Server(); err != nil {
		return
	}
	if err := harness.KillServers(m); err != nil {
		t.Log(err) // it ended meanwhile
	}
}

// hang stops servers, the service too if asked, for a time in which the pair may or may
// not notice.
func (b *pairBed) hang(t *testing.T, service bool, servers ...harness.Member) {
	t.Helper()
	var frozen []harness.Member
	for _, m := range servers {
		if _, err := m.Server(); err == nil && m.Freeze() == nil {
			frozen = append(frozen, m)
		}
	}
	if service {
		b.freeze(t, nil, true)
	}
	harness.After(t, time.Duration(b.random.Int64N(int64(freezeWithin))))
	if service {
		b.thaw(t, b.random, nil, true)
	}
	for _, n := range b.random.Perm(len(frozen)) {
		_ = frozen[n].Thaw() // it may have been ended
	}
}

// TestHistory has clients append to lists and read them, each in a transaction of two
// tables, while one fault follows the other. Whatever they saw must be explained by one
// order: nothing acknowledged is missing, nothing was read that is gone later, no
// transaction is there by half, twice or in the wrong place.
func TestHistory(t *testing.T) { eachPair(t, "history", underHistory) }

func underHistory(t *testing.T, b *pairBed) {
	length := historyTime
	if given := os.Getenv("KURABE_HISTORY_TIME"); given != "" {
		var err error
		if length, err = time.ParseDuration(given); err != nil {
			t.Fatalf("KURABE_HISTORY_TIME: %v", err)
		}
	}
	h := newHistory(t, b.Instance)
	ctx, cancel := context.WithCancel(t.Context())
	var clients sync.WaitGroup
	defer clients.Wait()
	defer cancel()
	for id := range historyClients {
		random := rand.New(rand.NewPCG(b.random.Uint64(), 0))
		clients.Go(func() { h.client(ctx, id, random) })
	}
	faults := map[string]int{}
	for time.Since(h.began) < length && !t.Failed() {
		f := historyFaults[b.random.IntN(len(historyFaults))]
		faults[f.name]++
		f.strike(t, b)
		if b.random.IntN(2) == 0 {
			harness.After(t, time.Duration(b.random.Int64N(int64(historyCalm))))
		}
		if b.random.IntN(4) == 0 {
			b.progress(t, h, f.name)
		}
	}
	b.progress(t, h, "the last fault")
	b.WaitWhole(t)
	cancel()
	clients.Wait()
	h.readAll(t)
	t.Logf("faults: %v", faults)
	h.verify(t)
	b.check(t)
}

// progress waits until appends are acknowledged again.
func (b *pairBed) progress(t *testing.T, h *history, after string) {
	t.Helper()
	before := h.acknowledged()
	harness.Wait(t, pairSettleTime, "appends are acknowledged after: "+after, func() string {
		if h.acknowledged() < before+historyClients {
			return "none is"
		}
		return ""
	})
}

// readAll reads every list at the end. The last failover that was asked for may yet come.
func (h *history) readAll(t *testing.T) {
	t.Helper()
	keys := map[int]bool{}
	for _, o := range h.ops {
		keys[o.Input.(appended).key] = true
	}
	harness.Wait(t, pairSettleTime, "every list is read", func() string {
		s, err := harness.Open(t.Context(), h.login)
		if err != nil {
			return err.Error()
		}
		defer s.Close()
		for key := range keys {
			if err := h.read(t.Context(), s, historyClients, key); err != nil {
				return err.Error()
			}
			delete(keys, key)
		}
		return ""
	})
}
