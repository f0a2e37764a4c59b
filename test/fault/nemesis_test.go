//go:build fault

package fault

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/rds/types"

	"kurabe"
	"kurabe/internal/harness"
)

// nemesis has faults befall a pair while clients work.
type nemesis struct {
	*apart
	history *history
	random  *rand.Rand
	counts  map[string]int
	longest time.Duration
}

// strike is one fault. It answers with what ends it.
type strike func(t *testing.T, p *apart, writer, standby *apartHost) (mend func())

// apartFault is a kind of fault. clients: who is hit may be well while clients cannot speak
// with it, or cannot be replaced; so nothing is demanded before it ends.
type apartFault struct {
	name   string
	worse  bool // than what a pair is made for
	strike strike
}

// onWriter and onStandby make a strike of what befalls one host.
func onWriter(do func(*testing.T, *apart, *apartHost) func()) strike {
	return func(t *testing.T, p *apart, writer, _ *apartHost) func() { return do(t, p, writer) }
}

func onStandby(do func(*testing.T, *apart, *apartHost) func()) strike {
	return func(t *testing.T, p *apart, _, standby *apartHost) func() { return do(t, p, standby) }
}

func killed(of part) func(*testing.T, *apart, *apartHost) func() {
	return func(t *testing.T, _ *apart, h *apartHost) func() {
		if of&agents != 0 {
			h.killAgent(t)
		}
		h.kill(of &^ agents)
		return func() { h.launch(t) }
	}
}

func frozen(of part) func(*testing.T, *apart, *apartHost) func() {
	return func(_ *testing.T, _ *apart, h *apartHost) func() { return h.freeze(of) }
}

func powerless(t *testing.T, _ *apart, h *apartHost) func() {
	h.powerOff(t)
	return func() { h.powerOn(t) }
}

func unplugged(t *testing.T, _ *apart, h *apartHost) func() { return plug(t, h.machine) }

func unheard(part float64) func(*testing.T, *apart, *apartHost) func() {
	return func(t *testing.T, p *apart, h *apartHost) func() { return p.bed.mute(t, h.machine, part) }
}

func wished(what func(*wishes, *testing.T)) strike {
	return func(t *testing.T, p *apart, _, _ *apartHost) func() {
		if p.bed.service.Running() {
			what(p.wishes, t)
		}
		return func() {}
	}
}

// parted cuts a host from the service, both directions or one.
func parted(fromHost, both bool) func(*testing.T, *apart, *apartHost) func() {
	return func(t *testing.T, p *apart, h *apartHost) func() {
		if fromHost {
			return p.bed.cut(t, h.machine, p.bed.center, both)
		}
		return p.bed.cut(t, p.bed.center, h.machine, both)
	}
}

// apartFaults are all kinds. The order is part of what a seed means.
var apartFaults = []apartFault{
	{"the writer's server is killed", false, onWriter(killed(servers))},
	{"the standby's server is killed", false, onStandby(killed(servers))},
	{"the writer's agent is killed", false, onWriter(killed(agents))},
	{"the standby's agent is killed", false, onStandby(killed(agents))},
	{"the writer's warden is killed", false, onWriter(killed(wardens))},
	{"the writer's host loses its power", false, onWriter(powerless)},
	{"the standby's host loses its power", false, onStandby(powerless)},
	{"the writer's server freezes", false, onWriter(frozen(servers))},
	{"the standby's server freezes", false, onStandby(frozen(servers))},
	{"the writer's agent freezes", false, onWriter(frozen(agents))},
	{"the standby's agent freezes", false, onStandby(frozen(agents))},
	{"the writer's warden freezes", false, onWriter(frozen(wardens))},
	{"the writer's agent and warden freeze", false, onWriter(frozen(agents | wardens))},
	{"all of the writer's host freezes", false, onWriter(frozen(everything))},
	{"all of the standby's host freezes", false, onStandby(frozen(everything))},
	{"the writer's cable is pulled", false, onWriter(unplugged)},
	{"the standby's cable is pulled", false, onStandby(unplugged)},
	{"nobody hears the writer's host", false, onWriter(unheard(1))},
	{"nobody hears the standby's host", false, onStandby(unheard(1))},
	{"the writer's host stutters", true, onWriter(unheard(lossy))},
	{"the standby's host stutters", true, onStandby(unheard(lossy))},
	{"writer and service are parted", false, onWriter(parted(true, true))},
	{"standby and service are parted", false, onStandby(parted(true, true))},
	{"the service does not hear the writer", false, onWriter(parted(true, false))},
	{"the writer does not hear the service", false, onWriter(parted(false, false))},
	{"the service does not hear the standby", false, onStandby(parted(true, false))},
	{"the standby does not hear the service", false, onStandby(parted(false, false))},
	{"writer and standby are parted", false, func(t *testing.T, p *apart, w, s *apartHost) func() { return p.bed.cut(t, w.machine, s.machine, true) }},
	{"the standby does not hear the writer", false, func(t *testing.T, p *apart, w, s *apartHost) func() { return p.bed.cut(t, w.machine, s.machine, false) }},
	{"the writer does not hear the standby", false, func(t *testing.T, p *apart, w, s *apartHost) func() { return p.bed.cut(t, s.machine, w.machine, false) }},
	{"a planned failover", false, func(t *testing.T, p *apart, _, _ *apartHost) func() {
		if p.bed.service.Running() {
			p.askQuickly(t)
		}
		return func() {}
	}},
	{"the service is killed", false, func(t *testing.T, p *apart, _, _ *apartHost) func() {
		p.bed.service.Kill(t)
		return func() { p.startService(t) }
	}},
	{"the service freezes", false, func(t *testing.T, p *apart, _, _ *apartHost) func() {
		if !p.bed.service.Running() {
			return func() {}
		}
		h := apartHost{Service: p.bed.service}
		return h.freeze(agents)
	}},
	{"the service's cable is pulled", false, func(t *testing.T, p *apart, _, _ *apartHost) func() { return plug(t, p.bed.center) }},
	{"the writer's host is far", false, onWriter(distant(farMost, true, true))},
	{"the standby's host is far", false, onStandby(distant(farMost, true, true))},
	{"the way to the standby's host is long", false, onStandby(distant(farMost, true, false))},
	{"the way from the standby's host is long", false, onStandby(distant(farMost, false, true))},
	{"the service is far", false, func(t *testing.T, p *apart, _, _ *apartHost) func() {
		return distant(farMost, true, true)(t, p, &apartHost{machine: p.bed.center})
	}},
	{"the writer's host is very far", true, onWriter(distant(farthest, true, true))},
	{"the standby's host is very far", true, onStandby(distant(farthest, true, true))},
	{"the clock of the writer's host is set", false, onWriter(misled)},
	{"the clock of the standby's host is set", false, onStandby(misled)},
	{"a snapshot is asked for", false, wished((*wishes).snapshot)},
	{"a class is asked for", false, wished((*wishes).class)},
	{"storage is asked for", false, wished((*wishes).storage)},
	{"one zone or two are asked for", true, wished((*wishes).zones)},
	{"the writer's host hears nobody", false, onWriter(deaf)},
	{"the standby's host hears nobody", false, onStandby(deaf)},
}

// apartSettle is how long a pair is to look whole before the next fault counts as one alone:
// longer than it takes the service to notice that a host is lost, or an agent to restart.
const apartSettle = 6 * time.Second

// mayBlock says what becomes of commits when the standby is lost. It is refused while the service
// does not answer.
func (n *nemesis) mayBlock(t *testing.T, value string) error {
	ctx, cancel := context.WithTimeout(t.Context(), answerMost)
	defer cancel()
	err := n.bed.setStandbyLost(ctx, n.Name, value)
	t.Logf("%7.2fs the policy is to be %s: %v", time.Since(n.history.began).Seconds(), value, err)
	if err == nil {
		n.counts["the policy is "+value]++
	}
	return err
}

// goOn has commits go on with one server, else they would have to wait for whoever is lost; and
// there are to be two.
func (n *nemesis) goOn(t *testing.T) {
	t.Helper()
	n.wishes.end(t)
	harness.Wait(t, settleTime, "the policy is changed", func() string {
		if err := n.mayBlock(t, kurabe.StandbyLostDegrade); err != nil {
			return err.Error()
		}
		return ""
	})
}

const answerMost = 5 * time.Second

// settle waits until the pair is whole and stays so.
func (n *nemesis) settle(t *testing.T) {
	t.Helper()
	since := time.Now()
	n.WaitLike(t, "is whole and stays so", func(d types.DBInstance) string {
		missing := n.unwhole(d)
		for _, h := range n.bed.hosts {
			if len(h.pids(servers)) == 0 || len(h.pids(agents)) == 0 {
				missing = "not everything runs in zone " + h.zone
			}
		}
		if missing != "" {
			since = time.Now()
		} else if time.Since(since) < apartSettle {
			return "it has been whole for a moment only"
		}
		return missing
	})
}

// tolerable waits until the pair is whole, has one fault befall it and demands that clients
// are served again while it lasts, and after it.
func (n *nemesis) tolerable(t *testing.T) {
	t.Helper()
	n.goOn(t)
	n.settle(t)
	f := n.draw(func(f apartFault) bool { return !f.worse })
	writer, standby := n.guess()
	began := n.history.now()
	t.Logf("%7.2fs %s (zone %s writes)", time.Since(n.history.began).Seconds(), f.name, writer.zone)
	mend := f.strike(t, n.apart, writer, standby)
	took := n.served(t, began, f.name, apartBar+apartMargin)
	n.longest = max(n.longest, took)
	if n.random.IntN(2) == 0 {
		harness.After(t, n.upTo(apartBar)) // it lasts, and all is to go on
		n.served(t, n.history.now(), f.name+", which lasts", apartBar+apartMargin)
	}
	mend()
	n.served(t, n.history.now(), "the end of: "+f.name, apartBar+apartMargin)
	t.Logf("%7.2fs it has ended; clients had waited for %v", time.Since(n.history.began).Seconds(), took.Round(time.Millisecond))
}

// together is how many faults of wild may hold at a time.
const together = 3

// wild has several faults at a time befall whatever there is. Nothing is demanded meanwhile
// but what verify does.
func (n *nemesis) wild(t *testing.T) {
	t.Helper()
	switch n.random.IntN(3) {
	case 0:
		_ = n.mayBlock(t, kurabe.StandbyLostBlock)
	case 1:
		_ = n.mayBlock(t, kurabe.StandbyLostDegrade)
	}
	var mends []func()
	var names []string
	for range 1 + n.random.IntN(together) {
		f := n.draw(func(apartFault) bool { return true })
		writer, standby := n.guess()
		names = append(names, f.name)
		mends = append(mends, f.strike(t, n.apart, writer, standby))
		harness.After(t, n.upTo(apartBar/2))
	}
	at := time.Since(n.history.began).Seconds()
	for _, k := range n.random.Perm(len(mends)) {
		mends[k]()
		if n.random.IntN(2) == 0 {
			harness.After(t, n.upTo(time.Second))
		}
	}
	t.Logf("%7.2fs until %.2fs: %s", at, time.Since(n.history.began).Seconds(), strings.Join(names, "; "))
}

func (n *nemesis) draw(fits func(apartFault) bool) apartFault {
	all := slices.DeleteFunc(slices.Clone(apartFaults), func(f apartFault) bool { return !fits(f) })
	f := all[n.random.IntN(len(all))]
	n.counts[f.name]++
	return f
}

func (n *nemesis) upTo(most time.Duration) time.Duration {
	return time.Duration(n.random.Int64N(int64(most)))
}

// served waits until appends that were begun after a moment are acknowledged.
func (n *nemesis) served(t *testing.T, from int64, after string, within time.Duration) time.Duration {
	t.Helper()
	harness.Wait(t, within, "clients are served after: "+after, func() string {
		if got := n.history.appendsSince(from); got < historyClients {
			return fmt.Sprintf("%d appends", got)
		}
		return ""
	})
	return time.Duration(n.history.now() - from)
}
