//go:build fault

package fault

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"kurabe/internal/harness"
)

// apartCases are in the order in which they come. both: each engine takes part in its own way.
var apartCases = []struct {
	name string
	run  func(*testing.T, *apart)
	both bool
}{
	{"an isolated writer ends its sessions before another one serves", caseIsolated, false},
	{"without the service and the standby the writer ends", caseAlone, false},
	{"a standby that is behind is never promoted", caseStale, false},
	{"both hosts lose their power, the standby's is back first", caseBothStandbyFirst, false},
	{"both hosts lose their power, the writer's is back first", caseBothWriterFirst, false},
	{"short outages roll", caseRolling, false},
	{"the warden dies", caseWardenDies, false},
	{"warden and agent freeze", caseUnguarded, false},
	{"the service is back before the standby", caseUnheardStandby, false},
	{"the standby is far", caseFarStandby, true},
	{"the standby is far in one direction", caseFarOneWay, false},
	{"frames overtake one another and come twice", caseJitter, false},
	{"the service is far", caseFarService, false},
	{"the standby is far when the writer's host is lost", caseFarHeir, false},
	{"the writer's host hears nobody", caseDeaf, true},
}

// TestApart has a pair on two hosts live through what has lost data or stayed up too long
// elsewhere.
func TestApart(t *testing.T) {
	b := newApartBed(t)
	b.service.EachEngine(t, func(t *testing.T, engine string) {
		p := b.create(t, "case", engine)
		p.pulse = p.Pulse(t)
		for n, c := range apartCases {
			// What decides is the same for both engines: where time is short, each takes its turn.
			if turn := map[bool]int{true: 0, false: 1}[engine == "postgres"]; n%2 != turn && n > 0 && !c.both && !harness.Whole() {
				continue
			}
			t.Run(c.name, func(t *testing.T) { c.run(t, p) })
			p.waitWhole(t)
			p.pulse.WaitMore(t, pairBeats)
			p.pulse.Verify(t)
		}
		p.pulse.Stop()
		p.tidy(t)
	})
}

// isolated is a client on the writer's own machine.
type isolated struct {
	mu    sync.Mutex // guards the rest
	acked time.Time  // the newest
	ended time.Time  // its session
}

// work commits one row after the other until its session ends.
func (c *isolated) work(s harness.Session, table string) {
	for n := 0; ; n++ {
		err := s.Exec(context.Background(), fmt.Sprintf("INSERT INTO %s VALUES (%d)", table, n))
		c.mu.Lock()
		if c.acked = time.Now(); err != nil {
			c.ended = c.acked
		}
		c.mu.Unlock()
		if err != nil {
			s.Close()
			return
		}
	}
}

// idle waits for the end of its session, which has nothing under way when it comes.
func (c *isolated) idle(s harness.Session, sleep string) {
	err := s.Exec(context.Background(), sleep)
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil {
		c.ended = time.Now()
	}
	s.Close()
}

const isolatedClients = 3

// caseIsolated: its server is well, and so is everything on its machine, clients too.
func caseIsolated(t *testing.T, p *apart) {
	writer, standby := p.roles(t)
	p.Query(t, "CREATE TABLE IF NOT EXISTS isolated (n bigint)")
	clients := make([]*isolated, isolatedClients+1)
	var work sync.WaitGroup
	defer work.Wait()
	for n := range clients {
		var s harness.Session
		writer.machine.Inside(t, func() {
			var err error
			if s, err = harness.Open(t.Context(), p.login); err != nil {
				t.Fatal(err)
			}
		})
		clients[n] = &isolated{}
		if n < isolatedClients {
			work.Go(func() { clients[n].work(s, "isolated") })
		} else {
			work.Go(func() {
				clients[n].idle(s, map[string]string{"postgres": "SELECT pg_sleep(60)", "mariadb": "SELECT SLEEP(60)"}[p.Engine])
			})
		}
	}
	p.pulse.WaitMore(t, pairBeats)
	cut := time.Now()
	mend := plug(t, writer.machine)
	defer mend()
	p.pulse.WaitMore(t, pairBeats)
	var ended time.Time
	for n, c := range clients {
		c.mu.Lock()
		if c.ended.IsZero() {
			t.Errorf("the session of client %d goes on", n)
		} else if c.ended.After(ended) {
			ended = c.ended
		}
		c.mu.Unlock()
	}
	served := p.servedAfter(cut)
	t.Logf("sessions had ended %v after the cut, the other host served after %v", ended.Sub(cut).Round(time.Millisecond), served.Sub(cut).Round(time.Millisecond))
	if !ended.Before(served) {
		t.Errorf("sessions ended %v after another host served", ended.Sub(served))
	}
	if gap := served.Sub(cut); gap > apartBar {
		t.Errorf("clients waited for %v", gap)
	}
	mend()
	p.isServedBy(t, standby)
}

// servedAfter is when the first row was acknowledged that was begun after a moment.
func (p *apart) servedAfter(moment time.Time) time.Time {
	for _, beat := range p.pulse.Beats() {
		if beat.Began.After(moment) {
			return beat.Acked
		}
	}
	return time.Time{}
}

// isServedBy demands that the pair is whole, with the writer on this host.
func (p *apart) isServedBy(t *testing.T, h *apartHost) {
	t.Helper()
	if now, _ := p.roles(t); now != h {
		t.Errorf("zone %s writes, want %s", now.zone, h.zone)
	}
}
