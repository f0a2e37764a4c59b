//go:build fault

package fault

import (
	"os"
	"syscall"
	"testing"
	"time"

	"kurabe/internal/harness"
)

// farAway is how long a word takes to the other side of the world and more; whoever asks waits
// for twice that.
const farAway = 250 * time.Millisecond

// far has a machine be far from all others.
func far(m *harness.Machine, into, out harness.Way) (mend func()) {
	m.Stretch(into, out)
	return func() { m.Stretch(harness.Way{}, harness.Way{}) }
}

// farTime is how long a pair is looked at that is far apart: longer than anything waits before
// it takes a server for lost, and than a copy of one takes.
const farTime = 15 * time.Second

// dataOf is what another data folder of a server is not.
func (p *apart) dataOf(t *testing.T, h *apartHost) uint64 {
	t.Helper()
	server, there := p.server(h)
	if !there {
		t.Fatalf("zone %s has no server", h.zone)
	}
	info, err := os.Stat(server.DataDir())
	if err != nil {
		t.Fatal(err)
	}
	return info.Sys().(*syscall.Stat_t).Ino
}

// staysWhole demands of a pair that is far apart that it becomes whole, has the writer that it
// had, makes no server anew and serves. least is what a commit takes that waits for the standby.
func (p *apart) staysWhole(t *testing.T, writer, standby *apartHost, least time.Duration) {
	t.Helper()
	p.waitWhole(t)
	data, from := p.dataOf(t, standby), time.Now()
	looks, whole := 0, 0
	for time.Since(from) < farTime {
		if looks++; p.unwhole(p.Describe(t)) == "" {
			whole++
		}
		harness.After(t, lookPause)
	}
	p.pulse.WaitMore(t, pairBeats)
	p.isServedBy(t, writer)
	if now := p.dataOf(t, standby); now != data {
		t.Errorf("the standby was made anew")
	}
	gap := p.pulse.Gap(from)
	t.Logf("it was whole at %d of %d looks, a commit took %v at least, and clients waited for %v at most", whole, looks, p.quickest(from).Round(time.Millisecond), gap.Round(time.Millisecond))
	if whole < looks/2 {
		t.Errorf("the pair was whole at %d of %d looks only", whole, looks)
	}
	if gap > apartBar {
		t.Errorf("clients waited for %v", gap)
	}
	if took := p.quickest(from); whole == looks && took < least {
		t.Errorf("a commit took %v, which is less than a word to the standby and back", took)
	}
}

const lookPause = 250 * time.Millisecond

// quickest is how long the quickest commit took of those that were begun after a moment.
func (p *apart) quickest(from time.Time) time.Duration {
	least := time.Hour
	for _, beat := range p.pulse.Beats() {
		if beat.Began.After(from) {
			least = min(least, beat.Acked.Sub(beat.Began))
		}
	}
	return least
}

// caseFarStandby: commits are slow, and each is on both disks.
func caseFarStandby(t *testing.T, p *apart) {
	writer, standby := p.roles(t)
	defer far(standby.machine, harness.Way{Delay: farAway}, harness.Way{Delay: farAway})()
	p.staysWhole(t, writer, standby, 2*farAway)
}

// caseFarOneWay: what is sent arrives late and its answer soon, and the other way round.
func caseFarOneWay(t *testing.T, p *apart) {
	writer, standby := p.roles(t)
	mend := far(standby.machine, harness.Way{Delay: 2 * farAway}, harness.Way{})
	defer mend()
	p.staysWhole(t, writer, standby, 2*farAway)
	far(standby.machine, harness.Way{}, harness.Way{Delay: 2 * farAway})
	p.staysWhole(t, writer, standby, 2*farAway)
}

// caseJitter: frames overtake one another and come twice.
func caseJitter(t *testing.T, p *apart) {
	writer, standby := p.roles(t)
	w := harness.Way{Delay: 10 * time.Millisecond, Jitter: 100 * time.Millisecond, Twice: 0.2}
	defer far(standby.machine, w, w)()
	p.staysWhole(t, writer, standby, 2*w.Delay)
}

// caseFarService: who decides hears of all late, and is heard late.
func caseFarService(t *testing.T, p *apart) {
	writer, standby := p.roles(t)
	w := harness.Way{Delay: farAway, Jitter: farAway / 5}
	defer far(p.bed.center, w, w)()
	p.staysWhole(t, writer, standby, 0)
	from := time.Now()
	writer.powerOff(t)
	p.pulse.WaitMore(t, pairBeats)
	p.inTime(t, from)
	writer.powerOn(t)
	p.isServedBy(t, standby)
}

// caseFarHeir: the writer's host is lost while its standby is far from everybody.
func caseFarHeir(t *testing.T, p *apart) {
	writer, standby := p.roles(t)
	defer far(standby.machine, harness.Way{Delay: farAway}, harness.Way{Delay: farAway})()
	p.waitWhole(t)
	p.pulse.WaitMore(t, pairBeats)
	from := time.Now()
	writer.powerOff(t)
	p.pulse.WaitMore(t, pairBeats)
	p.inTime(t, from)
	writer.powerOn(t)
	p.isServedBy(t, standby)
}

// inTime demands that clients were served soon after a moment, by a server that is far or was
// chosen by a service that is.
func (p *apart) inTime(t *testing.T, from time.Time) {
	t.Helper()
	gap := p.pulse.Gap(from)
	t.Logf("clients waited for %v", gap.Round(time.Millisecond))
	if gap > apartBar+apartMargin {
		t.Errorf("clients waited for %v", gap)
	}
}
