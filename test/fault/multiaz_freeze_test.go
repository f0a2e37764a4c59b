//go:build fault

package fault

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"syscall"
	"testing"
	"time"

	"kurabe/internal/harness"
)

// freezeRounds are how often something hangs, by engine: each of freezes once, and twice when
// all is asked for.
var freezeRounds = map[string]int{"postgres": map[bool]int{true: 12, false: 6}[harness.Whole()], "mariadb": 6}

// freezeWithin is longer than it takes to notice a server that hangs, so that some are
// thawed before, some amid a failover, and some after it.
const freezeWithin = 6 * time.Second

// freezes are what hangs and goes on. A service that hangs beside a server that lives, or
// the other way around, is what most designs forget.
var freezes = []struct {
	name    string
	servers func(b *pairBed) []harness.Member
	service bool
}{
	{"the writer", func(b *pairBed) []harness.Member { return []harness.Member{b.writer} }, false},
	{"the standby", func(b *pairBed) []harness.Member { return []harness.Member{b.standby} }, false},
	{"both servers", func(b *pairBed) []harness.Member { return []harness.Member{b.writer, b.standby} }, false},
	{"the service", func(*pairBed) []harness.Member { return nil }, true},
	{"the writer and the service", func(b *pairBed) []harness.Member { return []harness.Member{b.writer} }, true},
	{"the standby and the service", func(b *pairBed) []harness.Member { return []harness.Member{b.standby} }, true},
}

// TestFreezeForAWhile has servers, the service or both hang for a random time and go on.
// A writer that goes on may have been deposed meanwhile: what it acknowledges then, to a
// session that it had before, must be there like any other row.
func TestFreezeForAWhile(t *testing.T) { eachPair(t, "frozen", freezeForAWhile) }

func freezeForAWhile(t *testing.T, b *pairBed) {
	for round := range freezeRounds[b.Engine] {
		f := freezes[round%len(freezes)]
		d := time.Duration(b.random.Int64N(int64(freezeWithin)))
		if round == 0 {
			d = freezeWithin // one failover at least, whatever chance gives the others
		}
		what := fmt.Sprintf("round %d: %s for %v", round+1, f.name, d.Round(time.Millisecond))
		becomeWhole(t, b)
		b.pulse.WaitMore(t, pairBeats)
		session := b.Open(t)
		from := time.Now()
		b.freeze(t, f.servers(b), f.service)
		var waits sync.WaitGroup
		waits.Go(func() { b.insist(t, session) })
		harness.After(t, d)
		b.thaw(t, b.random, f.servers(b), f.service)
		waits.Wait()
		session.Close()
		b.check(t)
		b.WaitWhole(t)
		now, _ := b.Pair(t)
		t.Logf("%s: %v without an answer; %s wrote, %s writes", what, b.pulse.Gap(from).Round(time.Millisecond), b.writer.ID, now.ID)
		if round == 0 && now.ID == b.writer.ID {
			t.Error("nobody took the writer's place")
		}
		if t.Failed() {
			t.Fatal(what)
		}
	}
}

// insist tries to write on a session that was open before, until it is cut.
func (b *pairBed) insist(t *testing.T, session harness.Session) {
	for n := 0; n < insistMost && b.pulse.Attempt(t.Context(), session) == nil; n++ {
		harness.Pause(t.Context(), insistPause)
	}
}

// insistMost rows at most: a session that is not cut must not write for ever.
const (
	insistMost  = 100
	insistPause = 10 * time.Millisecond
)

func (b *pairBed) freeze(t *testing.T, servers []harness.Member, service bool) {
	t.Helper()
	if service {
		signalService(t, b.s, syscall.SIGSTOP)
	}
	for _, m := range servers {
		if err := m.Freeze(); err != nil {
			t.Fatal(err)
		}
	}
}

// thaw has all go on, in a random order.
func (b *pairBed) thaw(t *testing.T, random *rand.Rand, servers []harness.Member, service bool) {
	t.Helper()
	last := service && random.IntN(2) == 0
	if service && !last {
		signalService(t, b.s, syscall.SIGCONT)
	}
	for _, n := range random.Perm(len(servers)) {
		if err := servers[n].Thaw(); err != nil {
			t.Fatal(err)
		}
	}
	if last {
		signalService(t, b.s, syscall.SIGCONT)
	}
}

func signalService(t *testing.T, service *harness.Service, s syscall.Signal) {
	t.Helper()
	if err := syscall.Kill(service.PID(), s); err != nil {
		t.Fatal(err)
	}
}
