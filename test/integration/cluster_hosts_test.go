//go:build integration

package integration

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/rds"

	"kurabe/internal/harness"
)

// clusterApart is a DB cluster with a server on each of three hosts.
type clusterApart struct {
	*clusterBed
	hosts []*apartHost
}

// writerHost is where the server is that writes.
func (b *clusterApart) writerHost(t *testing.T) *apartHost {
	t.Helper()
	out, err := b.s.DescribeDBInstances(t.Context(), &rds.DescribeDBInstancesInput{DBInstanceIdentifier: aws.String(b.named(t))})
	must(t, err)
	zone := aws.ToString(out.DBInstances[0].AvailabilityZone)
	n := slices.IndexFunc(b.hosts, func(h *apartHost) bool { return h.zone == zone })
	if n < 0 {
		t.Fatalf("the writer is in zone %s", zone)
	}
	return b.hosts[n]
}

// TestClusterApart loses the host of the writer of a cluster, whose servers are on three: the
// one with most of the others takes over, with both endpoints, and the lost one comes back as
// a reader.
func TestClusterApart(t *testing.T) {
	bed := newApartBed(t)
	bed.add(t, zoneHere)
	bed.service.EachEngine(t, func(t *testing.T, engine string) {
		(&clusterApart{newClusterBed(t, bed.service, engine), bed.hosts}).losesEach(t)
	})
}

func (b *clusterApart) losesEach(t *testing.T) {
	b.pulse.WaitMore(t, beatsBefore)
	owner := harness.Owners(b.hosts[0].Homes())[0]
	waitReaders(t, b.s) // whose hosts are asked over the network
	for _, c := range []struct {
		name   string
		strike func(t *testing.T, h *apartHost) (back func())
	}{
		{"lost", func(t *testing.T, h *apartHost) func() {
			h.Kill(t)
			h.EndWardens(t)
			must(t, h.EndDatabases(t.Context()))
			h.machine.Forget(t)
			return func() { h.Start(t) }
		}},
		{"frozen", func(t *testing.T, h *apartHost) func() { return h.FreezeAll(t, owner) }},
		{"cut off", func(t *testing.T, h *apartHost) func() {
			h.machine.Plug(t, false)
			return func() { h.machine.Plug(t, true) }
		}},
	} {
		inTurn(t, c.name, func(t *testing.T) { b.struck(t, func(h *apartHost) func() { return c.strike(t, h) }) })
	}
	b.pulse.Stop()
	b.delete(t)
	for _, h := range b.hosts {
		harness.Wait(t, hostTime, "nothing of "+owner+" is left", func() string {
			if left := h.machine.Addresses(t); len(left) > 0 || len(h.Homes()) > 0 {
				return fmt.Sprint(left, h.Homes())
			}
			return ""
		})
	}
}

// struck has the writer's host struck, and given back once another server writes: both
// endpoints are with that one, and the host comes back without them.
func (b *clusterApart) struck(t *testing.T, strike func(h *apartHost) (back func())) {
	t.Helper()
	b.whole(t)
	was, from := b.writerHost(t), time.Now()
	named := b.named(t)
	back := strike(was)
	harness.Wait(t, hostTime, "another server is to write", func() string {
		if now := b.named(t); now == named {
			return now + " does"
		}
		return ""
	})
	b.pulse.WaitMore(t, beatsAfter)
	gap := b.pulse.Gap(from)
	t.Logf("clients waited for %v", gap.Round(time.Millisecond))
	if gap > hostBar {
		t.Errorf("clients waited for %v", gap)
	}
	now := b.writerHost(t)
	for _, endpoint := range []string{b.login.Address, b.read.Address} {
		if have := now.machine.Addresses(t); !slices.Contains(have, endpoint) {
			t.Errorf("%s is not on the host that writes, which has %v", endpoint, have)
		}
	}
	r := &reader{}
	r.once(t.Context(), b.read)
	if r.standby != 1 {
		t.Errorf("no standby can be read: %+v", r)
	}
	back()
	harness.Wait(t, hostTime, "the host that was lost gives the endpoints up", func() string {
		if have := was.machine.Addresses(t); slices.Contains(have, b.login.Address) || slices.Contains(have, b.read.Address) {
			return fmt.Sprint(have)
		}
		return ""
	})
	b.whole(t)
	b.pulse.Verify(t)
}
