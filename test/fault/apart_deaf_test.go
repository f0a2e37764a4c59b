//go:build fault

package fault

import (
	"testing"
	"time"
)

// deafen has a host hear neither the service nor the other hosts. What it says arrives.
func (b *apartBed) deafen(t *testing.T, h *apartHost) (mend func()) {
	t.Helper()
	all := []func(){b.cut(t, b.center, h.machine, false)}
	for _, other := range b.hosts {
		if other != h {
			all = append(all, b.cut(t, other.machine, h.machine, false))
		}
	}
	return func() {
		for _, mend := range all {
			mend()
		}
	}
}

func deaf(t *testing.T, p *apart, h *apartHost) func() { return p.bed.deafen(t, h) }

// caseDeaf: the writer's host hears nobody, and is heard: it says that its standby does not
// answer. It could not be told to go on alone.
func caseDeaf(t *testing.T, p *apart) {
	writer, standby := p.roles(t)
	p.pulse.WaitMore(t, pairBeats)
	from := time.Now()
	mend := p.bed.deafen(t, writer)
	defer mend()
	p.pulse.WaitMore(t, pairBeats)
	gap := p.servedAfter(from).Sub(from)
	t.Logf("the other host served after %v", gap.Round(time.Millisecond))
	if gap > apartBar {
		t.Errorf("clients waited for %v", gap)
	}
	mend()
	p.isServedBy(t, standby)
}
