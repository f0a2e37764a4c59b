//go:build fault

package fault

import (
	"testing"
	"time"

	"kurabe/internal/harness"
)

// clockWrongLeast and clockWrongMost are by how much the clock of a host may be wrong, either way.
const (
	clockWrongLeast = time.Minute
	clockWrongMost  = 12 * time.Hour
)

// misled sets the clock of a host, and right again.
func misled(t *testing.T, p *apart, h *apartHost) func() {
	t.Helper()
	by := clockWrongLeast + time.Duration(p.bed.random.Int64N(int64(clockWrongMost-clockWrongLeast)))
	if p.bed.random.IntN(2) == 0 {
		by = -by
	}
	if p.bed.clock == nil {
		return func() {}
	}
	t.Logf("the clock in zone %s is wrong by %v", h.zone, by.Round(time.Second))
	p.bed.clock.setOn(t, h.machine, by)
	return func() { p.bed.clock.setOn(t, h.machine, 0) }
}

// What is far from wrong: a time zone or two, and half a day.
const (
	clockBack  = -3 * time.Hour
	clockAhead = 12 * time.Hour
)

// TestApartClock has a pair on two hosts live with clocks that are hours apart.
func TestApartClock(t *testing.T) {
	wrong := []time.Duration{clockBack, clockAhead}
	b := newApartBed(t, hostChange{prepare: func(t *testing.T, b *apartBed, h *apartHost) {
		if b.clock == nil {
			t.Skip("the clock of a host cannot be set here")
		}
		b.clock.setOn(t, h.machine, wrong[len(b.hosts)])
	}})
	b.service.EachEngine(t, func(t *testing.T, engine string) {
		b.clock.setOn(t, b.hosts[0].machine, clockBack)
		b.clock.setOn(t, b.hosts[1].machine, clockAhead)
		p := b.create(t, "clock", engine)
		p.pulse = p.Pulse(t)
		for _, c := range []struct {
			name string
			run  func(*testing.T, *apart)
		}{
			{"both hosts have joined by wrong clocks", caseJoinedWrong},
			{"the writer's clock is set back, and its host is lost", caseWriterBack},
			{"the standby's clock is set back and ahead, and it takes over", caseStandbyWrong},
			{"the service's clock is set back, and the writer's host is lost", caseServiceBack},
			{"the writer's clock is set back, and the service is away", caseBackAlone},
		} {
			t.Run(c.name, func(t *testing.T) { c.run(t, p) })
			for _, m := range []*harness.Machine{b.center, b.hosts[0].machine, b.hosts[1].machine} {
				b.clock.setOn(t, m, 0)
			}
			p.waitWhole(t)
			p.pulse.WaitMore(t, pairBeats)
			p.pulse.Verify(t)
		}
		p.pulse.Stop()
		p.tidy(t)
	})
}

// loses ends the writer's host, and demands that the standby's serves in time.
func (p *apart) loses(t *testing.T, writer, standby *apartHost) {
	t.Helper()
	from := time.Now()
	writer.powerOff(t)
	defer writer.powerOn(t)
	p.pulse.WaitMore(t, pairBeats)
	gap := p.servedAfter(from).Sub(from)
	t.Logf("clients waited for %v", gap.Round(time.Millisecond))
	if gap > apartBar+apartMargin {
		t.Errorf("clients waited for %v", gap)
	}
	if _, has := p.server(standby); !has {
		t.Errorf("zone %s has no server", standby.zone)
	}
}

// caseJoinedWrong: a failover in order, there and back.
func caseJoinedWrong(t *testing.T, p *apart) {
	for range 2 {
		_, standby := p.roles(t)
		p.askQuickly(t)
		harness.Wait(t, settleTime, "the other host writes", func() string {
			if zone, _ := p.Zones(t); zone != standby.zone {
				return zone
			}
			return ""
		})
		p.waitWhole(t)
	}
}

func caseWriterBack(t *testing.T, p *apart) {
	writer, standby := p.roles(t)
	p.bed.clock.setOn(t, writer.machine, clockBack)
	p.pulse.WaitMore(t, pairBeats)
	p.loses(t, writer, standby)
}

func caseStandbyWrong(t *testing.T, p *apart) {
	for _, by := range []time.Duration{clockAhead, clockBack} {
		writer, standby := p.roles(t)
		p.bed.clock.setOn(t, standby.machine, by)
		p.pulse.WaitMore(t, 600) // longer than it takes to notice a standby that does not follow
		p.waitWhole(t)
		p.loses(t, writer, standby)
	}
}

func caseServiceBack(t *testing.T, p *apart) {
	writer, standby := p.roles(t)
	p.bed.clock.setOn(t, p.bed.center, clockBack)
	p.pulse.WaitMore(t, pairBeats)
	p.loses(t, writer, standby)
}

// caseBackAlone: its standby's word keeps the writer up.
func caseBackAlone(t *testing.T, p *apart) {
	writer, _ := p.roles(t)
	p.bed.clock.setOn(t, writer.machine, clockBack)
	p.pulse.WaitMore(t, pairBeats)
	p.bed.service.Kill(t)
	defer p.startService(t)
	from := time.Now()
	p.pulse.WaitMore(t, 600) // longer than a lease
	if n, err := p.pulse.Errors(from); n > 0 {
		t.Errorf("the client has met %d errors, the last was %v", n, err)
	}
}
