//go:build integration

package integration

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/rds/types"

	"kurabe/internal/harness"
)

// TestDrainMovesLoneServers empties a host of instances with one server, there and back:
// their clients wait for a failover in order, and find everything at the same endpoint.
func TestDrainMovesLoneServers(t *testing.T) {
	b := newApartBed(t)
	var lone []*apart
	for _, engine := range b.service.Engines(t) {
		in := harness.Request("lone-"+engine, engine)
		in.AvailabilityZone, in.BackupRetentionPeriod = aws.String(b.hosts[0].zone), aws.Int32(1)
		p := &apart{Instance: b.service.MustCreate(t, in), bed: b}
		p.pulse = p.Pulse(t)
		p.pulse.WaitMore(t, beatsBefore)
		lone = append(lone, p)
	}
	for n, h := range b.hosts {
		from, to := time.Now(), b.hosts[1-n]
		drain(t, b, h, "drain") // which waits
		if left := h.Homes(); len(left) > 0 {
			t.Errorf("on the drained host is %v", left)
		}
		for _, p := range lone {
			p.moved(t, h, to, from)
		}
		drain(t, b, h, "drain", "--undo")
	}
	for _, p := range lone {
		p.pulse.WaitMore(t, beatsAfter)
		p.pulse.Verify(t)
	}
}

func drain(t *testing.T, b *apartBed, h *apartHost, args ...string) {
	t.Helper()
	if out, err := kurabeCommand(b.service, harness.Binary(t), append(append([]string{"hosts"}, args...), h.HostID())...); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}

// moved demands that an instance is served by another host, at the endpoint that it had, and
// has never been taken for a pair.
func (p *apart) moved(t *testing.T, from, to *apartHost, since time.Time) {
	t.Helper()
	endpoint := aws.ToString(p.Describe(t).Endpoint.Address)
	p.WaitLike(t, "is moved", func(d types.DBInstance) string {
		if aws.ToBool(d.MultiAZ) || aws.ToString(d.SecondaryAvailabilityZone) != "" {
			t.Errorf("%s: Multi-AZ %v, second zone %s", p.Name, aws.ToBool(d.MultiAZ), aws.ToString(d.SecondaryAvailabilityZone))
		}
		if zone, status := aws.ToString(d.AvailabilityZone), aws.ToString(d.DBInstanceStatus); zone != to.zone || status != "available" {
			return fmt.Sprintf("it is %s in %s", status, zone)
		}
		return ""
	})
	p.pulse.WaitMore(t, beatsAfter)
	gap := p.pulse.Gap(since)
	t.Logf("%s: moved after %s, the client waited for %v", p.Name, time.Since(since), gap.Round(time.Millisecond))
	if gap > 2*time.Second {
		t.Errorf("%s: clients waited for %v", p.Name, gap)
	}
	if now := aws.ToString(p.Describe(t).Endpoint.Address); now != endpoint || !slices.Contains(to.machine.Addresses(t), endpoint) {
		t.Errorf("%s: the endpoint was %s, is %s, and its host has %v", p.Name, endpoint, now, to.machine.Addresses(t))
	}
	events := strings.Join(p.EventsFrom(t, since), "\n")
	if !strings.Contains(events, "has been moved to host "+to.HostID()) || strings.Contains(events, "Multi-AZ") {
		t.Errorf("%s: events\n%s", p.Name, events)
	}
	p.pulse.Verify(t)
}
