//go:build fault

package fault

import (
	"fmt"
	"testing"
	"time"

	"kurabe/internal/harness"
)

// leaseEnds is how soon a writer has ended that nobody gives a lease any more.
const leaseEnds = 4 * time.Second

// staleTime is how long it is looked at that nobody serves: several times what a failover
// takes.
const staleTime = 8 * time.Second

// caseAlone: whoever could replace the writer may do so, for all that it knows.
func caseAlone(t *testing.T, p *apart) {
	writer, standby := p.roles(t)
	server, _ := p.server(writer)
	pid, err := server.Server()
	if err != nil {
		t.Fatal(err)
	}
	p.bed.service.Kill(t)
	from := time.Now()
	p.pulse.WaitMore(t, 600) // six seconds: longer than a lease
	if n, err := p.pulse.Errors(from); n > 0 {
		t.Errorf("the client has met %d errors, the last was %v", n, err)
	}
	standby.powerOff(t)
	took := harness.WaitEnded(t, leaseEnds+apartMargin, "the writer ends", pid)
	t.Logf("the writer had ended %v after its standby", took.Round(time.Millisecond))
	if took > leaseEnds {
		t.Errorf("the writer ended %v after its standby", took)
	}
	standby.powerOn(t)
	nobodyServes(t, p) // who has the right to is the service's to say
	from = time.Now()
	p.startService(t)
	p.pulse.WaitMore(t, pairBeats)
	t.Logf("clients were served %v after the service was started", p.servedAfter(from).Sub(from).Round(time.Millisecond))
}

// caseStale: what is written without the standby is lost with it, if it is believed.
func caseStale(t *testing.T, p *apart) {
	writer, standby := p.roles(t)
	standby.powerOff(t)
	p.pulse.WaitMore(t, pairBeats)
	writer.powerOff(t)
	standby.powerOn(t)
	nobodyServes(t, p)
	writer.powerOn(t)
	p.pulse.WaitMore(t, pairBeats)
	p.isServedBy(t, writer)
}

// nobodyServes looks for a while.
func nobodyServes(t *testing.T, p *apart) {
	t.Helper()
	before := p.pulse.Acked()
	harness.After(t, staleTime)
	if more := p.pulse.Acked() - before; more > 0 {
		t.Fatalf("a server that has no right to has acknowledged %d rows", more)
	}
}

func caseBothStandbyFirst(t *testing.T, p *apart) {
	writer, standby := p.roles(t)
	bothBack(t, p, standby, writer)
}

func caseBothWriterFirst(t *testing.T, p *apart) {
	writer, standby := p.roles(t)
	bothBack(t, p, writer, standby)
}

// bothBack: nothing is demanded while only one is back, which may be the one that had every
// commit, or not, for all that is known.
func bothBack(t *testing.T, p *apart, first, second *apartHost) {
	t.Helper()
	first.powerOff(t)
	second.powerOff(t)
	from := time.Now()
	first.powerOn(t)
	harness.After(t, time.Duration(p.bed.random.Int64N(int64(apartBar))))
	second.powerOn(t)
	p.pulse.WaitMore(t, pairBeats)
	t.Logf("clients were served %v after the first host was back", p.servedAfter(from).Sub(from).Round(time.Millisecond))
}

// caseRolling: each host is away for a moment, in turn, whether the other one has come back
// to the pair by then or not.
func caseRolling(t *testing.T, p *apart) {
	for range 2 {
		for _, h := range p.bed.hosts {
			h.powerOff(t)
			harness.After(t, time.Duration(p.bed.random.Int64N(int64(2*time.Second))))
			h.powerOn(t)
			harness.After(t, time.Duration(p.bed.random.Int64N(int64(3*time.Second))))
		}
	}
	p.pulse.WaitMore(t, pairBeats)
}

// guardedWithin is how soon a writer has a warden again.
const guardedWithin = time.Second

func caseWardenDies(t *testing.T, p *apart) {
	writer, _ := p.roles(t)
	old := writer.Wardens()
	if len(old) != 1 {
		t.Fatalf("wardens %v", old)
	}
	from := time.Now()
	writer.kill(wardens)
	took := harness.Wait(t, guardedWithin+apartMargin, "another warden is there", func() string {
		if now := writer.Wardens(); len(now) != 1 || now[0] == old[0] {
			return fmt.Sprint(now)
		}
		return ""
	})
	t.Logf("another warden was there after %v", took.Round(time.Millisecond))
	if took > guardedWithin {
		t.Errorf("the writer was unguarded for %v", took)
	}
	p.pulse.WaitMore(t, 600) // longer than a lease
	if n, err := p.pulse.Errors(from); n > 0 {
		t.Errorf("the client has met %d errors, the last was %v", n, err)
	}
	p.isServedBy(t, writer)
}

// caseUnguarded: nobody answers for the server and nothing ends it. While its standby follows
// it, it is the one that serves; when both go on, its lease is long over.
func caseUnguarded(t *testing.T, p *apart) {
	writer, _ := p.roles(t)
	server, _ := p.server(writer)
	pid, err := server.Server()
	if err != nil {
		t.Fatal(err)
	}
	from := time.Now()
	thaw := writer.freeze(agents | wardens)
	defer thaw()
	harness.After(t, apartBar)
	p.pulse.WaitMore(t, pairBeats)
	gap := p.pulse.Gap(from)
	t.Logf("clients waited for %v", gap.Round(time.Millisecond))
	if gap > apartBar {
		t.Errorf("clients waited for %v", gap)
	}
	from = time.Now()
	thaw()
	took := harness.WaitEnded(t, guardedWithin+apartMargin, "the server without a lease is ended", pid)
	t.Logf("the server without a lease had ended %v after its warden went on", took.Round(time.Millisecond))
	p.pulse.WaitMore(t, pairBeats)
	if gap := p.pulse.Gap(from); gap > apartBar {
		t.Errorf("clients waited for %v after that", gap)
	}
}

// caseUnheardStandby: the service starts, and hears the host of a writer whose server has
// ended before it can know that the standby's host is lost. The writer has all that was
// acknowledged and can start; the right to write must not go to whom nobody hears.
func caseUnheardStandby(t *testing.T, p *apart) {
	writer, standby := p.roles(t)
	server, _ := p.server(writer)
	pid, err := server.Server()
	if err != nil {
		t.Fatal(err)
	}
	p.bed.service.Kill(t)
	standby.powerOff(t)
	defer standby.powerOn(t)
	harness.WaitEnded(t, leaseEnds+apartMargin, "the writer ends", pid)
	from := p.pulse.Acked()
	p.startService(t)
	for deadline := time.Now().Add(apartBar + apartMargin); p.pulse.Acked() < from+pairBeats; {
		if time.Now().After(deadline) {
			zone, _ := p.Zones(t)
			t.Errorf("the writer's host (zone %s) is well and the service too, and nobody serves; zone %s is to write", writer.zone, zone)
			return
		}
		harness.After(t, 100*time.Millisecond)
	}
}
