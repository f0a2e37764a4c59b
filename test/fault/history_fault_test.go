//go:build fault

package fault

import (
	"context"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"kurabe"
	"kurabe/internal/harness"
	"kurabe/test/appends"
)

// historyCalm is the longest time between two faults; half of them follow at once.
const historyCalm = 4 * time.Second

// struck is what faults befall while clients work: a pair, or a DB cluster.
type struck struct {
	s        *harness.Service
	id       string // of its records
	login    harness.Login
	random   *rand.Rand
	failOver func(*testing.T) error
	whole    func(*testing.T)         // returns when it is
	policy   func(value string) error // what becomes of commits whose standby is lost
	clock    *clock                   // of everybody; nil: it is not set
	wishes   *wishes
}

// clockSteps is by how much a clock may be wrong, either way.
const clockSteps = time.Hour

// historyFaults are what befalls it. None waits until it is whole again: the next one may strike
// amid a failover, a rebuild or a start.
var historyFaults = []struct {
	name   string
	strike func(t *testing.T, b *struck)
}{
	{"the writer is killed", func(t *testing.T, b *struck) { b.killOne(t, b.guess(t)) }},
	{"another server is killed", func(t *testing.T, b *struck) { b.killOne(t, b.beside(b.guess(t))) }},
	{"all servers are killed", func(t *testing.T, b *struck) {
		for _, m := range b.s.Members(b.id) {
			b.killOne(t, m)
		}
	}},
	{"the writer hangs", func(t *testing.T, b *struck) { b.hang(t, false, b.guess(t)) }},
	{"another server hangs", func(t *testing.T, b *struck) { b.hang(t, false, b.beside(b.guess(t))) }},
	{"all servers hang", func(t *testing.T, b *struck) { b.hang(t, false, b.s.Members(b.id)...) }},
	{"all but the writer are killed", func(t *testing.T, b *struck) {
		writer := b.guess(t)
		for _, m := range b.s.Members(b.id) {
			if m != writer {
				b.killOne(t, m)
			}
		}
	}},
	{"the writer and the service hang", func(t *testing.T, b *struck) { b.hang(t, true, b.guess(t)) }},
	{"a planned failover", func(t *testing.T, b *struck) { _ = b.failOver(t) }}, // refused without a standby
	{"the service is killed", func(t *testing.T, b *struck) {
		b.s.Kill(t)
		b.s.Start(t)
	}},
	{"the service and the writer are killed", func(t *testing.T, b *struck) {
		writer := b.guess(t)
		b.s.Kill(t)
		b.killOne(t, writer)
		b.s.Start(t)
	}},
	{"commits go on alone no more", func(t *testing.T, b *struck) { b.mayGoOn(t, kurabe.StandbyLostBlock) }},
	{"commits go on alone", func(t *testing.T, b *struck) { b.mayGoOn(t, kurabe.StandbyLostDegrade) }},
	{"a snapshot is asked for", func(t *testing.T, b *struck) { b.wishes.snapshot(t) }},
	{"a class is asked for", func(t *testing.T, b *struck) { b.wishes.class(t) }},
	{"storage is asked for", func(t *testing.T, b *struck) { b.wishes.storage(t) }},
	{"one zone or two are asked for", func(t *testing.T, b *struck) { b.wishes.zones(t) }},
	{"the clock is set", func(t *testing.T, b *struck) {
		b.clock.set(t, time.Duration(b.random.Int64N(int64(2*clockSteps)))-clockSteps)
	}},
}

// draw is one of the faults; which ones there are is part of what a seed means. The last one
// needs a clock, and is one of three where there is one.
func (b *struck) draw() int {
	last := len(historyFaults) - 1
	if b.clock != nil && b.random.IntN(3) == 0 {
		return last
	}
	return b.random.IntN(last)
}

// mayGoOn says what becomes of commits when the standby is lost. It is refused while nobody
// answers.
func (b *struck) mayGoOn(t *testing.T, value string) {
	t.Helper()
	if err := b.policy(value); err != nil {
		t.Log(err)
	}
}

// guess is the server that writes, or one of them while none does.
func (b *struck) guess(t *testing.T) harness.Member {
	t.Helper()
	members := b.s.Members(b.id)
	if len(members) == 0 {
		t.Fatal("there is no server")
	}
	if m, err := b.s.WriterOf(t.Context(), b.id, b.login); err == nil {
		return m
	}
	return members[b.random.IntN(len(members))]
}

// beside is another one, or the same where there is one.
func (b *struck) beside(one harness.Member) harness.Member {
	others := slices.DeleteFunc(b.s.Members(b.id), func(m harness.Member) bool { return m == one })
	if len(others) == 0 {
		return one
	}
	return others[b.random.IntN(len(others))]
}

// killOne kills a server, if it runs.
func (b *struck) killOne(t *testing.T, m harness.Member) {
	t.Helper()
	if _, err := m.Server(); err != nil {
		return
	}
	if err := harness.KillServers(m); err != nil {
		t.Log(err) // it ended meanwhile
	}
}

// hang stops servers, the service too if asked, for a time in which it may be noticed
// or not.
func (b *struck) hang(t *testing.T, service bool, servers ...harness.Member) {
	t.Helper()
	var frozen []harness.Member
	for _, m := range servers {
		if _, err := m.Server(); err == nil && m.Freeze() == nil {
			frozen = append(frozen, m)
		}
	}
	if service {
		signalService(t, b.s, syscall.SIGSTOP)
	}
	harness.After(t, time.Duration(b.random.Int64N(int64(freezeWithin))))
	if service {
		signalService(t, b.s, syscall.SIGCONT)
	}
	for _, n := range b.random.Perm(len(frozen)) {
		_ = frozen[n].Thaw() // it may have been ended
	}
}

// TestHistory has clients append to lists and read them, each in a transaction of two
// tables, while one fault follows the other. Whatever they saw must be explained by one
// order: nothing acknowledged is missing, nothing was read that is gone later, no
// transaction is there by half, twice or in the wrong place.
func TestHistory(t *testing.T) {
	eachPair(t, "history", func(t *testing.T, b *pairBed) {
		b.struck(t).underHistory(t, historyTime)
		b.check(t)
	})
}

// TestHistoryClock is TestHistory while the clock of servers, service and clients goes wrong
// and right again.
func TestHistoryClock(t *testing.T) {
	c := newClock(t)
	b := newPairBed(t, "wrong", "postgres") // MariaDB waits for a time of the kernel's clock
	s := b.struck(t)
	s.clock = c
	s.underHistory(t, clockHistoryTime)
	c.set(t, 0)
	b.check(t)
}

// clockHistoryTime is how long that is.
const clockHistoryTime = 20 * time.Second

func (b *pairBed) struck(t *testing.T) *struck {
	return &struck{
		s: b.s, id: b.ID, login: b.Login(t), random: b.random, policy: b.mayGoOn,
		failOver: func(t *testing.T) error { return b.AskFailover(t) }, whole: func(t *testing.T) { b.WaitWhole(t) },
		wishes: &wishes{s: b.s, name: b.Name, random: b.random},
	}
}

func (b *struck) underHistory(t *testing.T, length time.Duration) {
	t.Helper()
	if given := os.Getenv("KURABE_HISTORY_TIME"); given != "" {
		var err error
		if length, err = time.ParseDuration(given); err != nil {
			t.Fatalf("KURABE_HISTORY_TIME: %v", err)
		}
	}
	h := newHistory(t, b.login)
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
		f := historyFaults[b.draw()]
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
	b.wishes.end(t)
	b.whole(t)
	cancel()
	clients.Wait()
	h.readAll(t)
	t.Logf("faults: %v", faults)
	h.verify(t)
	b.wishes.settled(t)
}

// progress waits until appends are acknowledged again. Where a server of MariaDB has to be
// copied for that, commits must be allowed to go on without it: nobody can copy it while they
// wait (decision 38).
func (b *struck) progress(t *testing.T, h *history, after string) {
	t.Helper()
	if b.login.Engine == "mariadb" {
		b.mayGoOn(t, kurabe.StandbyLostDegrade)
	}
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
		keys[o.Input.(appends.Op).Key] = true
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
