//go:build integration

package integration

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/rds"
	"github.com/aws/aws-sdk-go-v2/service/rds/types"

	"kurabe/internal/harness"
)

// apartBed is a service on one machine, whose databases nobody else reaches, and two further
// hosts on machines of their own, on which pairs are.
type apartBed struct {
	network *harness.Network
	service *harness.Service
	center  *harness.Machine
	hosts   []*apartHost
}

// apartHost is a machine with an agent.
type apartHost struct {
	*harness.Service
	machine *harness.Machine
	zone    string
}

// newApartBed has both hosts run with further flags.
func newApartBed(t *testing.T, flags ...string) *apartBed {
	t.Helper()
	needRoot(t)
	b := &apartBed{network: harness.NewNetwork(t)}
	b.center = b.network.Machine(t)
	b.service = harness.Start(t, harness.Options{Machine: b.center, Args: []string{"--zone", zoneHere, "--host-listen", b.join()}})
	b.add(t, zoneThere, flags...)
	b.add(t, "us-east-1c", flags...)
	return b
}

func (b *apartBed) join() string { return b.center.Address + ":7381" }

// add has a further host join, and waits until it is used.
func (b *apartBed) add(t *testing.T, zone string, flags ...string) *apartHost {
	t.Helper()
	token, err := kurabeCommand(b.service, harness.Binary(t), "hosts", "token", "--only")
	if err != nil {
		t.Fatalf("%v: %s", err, token)
	}
	h := &apartHost{machine: b.network.Machine(t), zone: zone}
	h.Service = harness.New(t, harness.Options{Machine: h.machine, Agent: true, Args: append([]string{"--address-pool", h.machine.Pool}, flags...), Env: []string{"KURABE_JOIN_TOKEN=" + strings.TrimSpace(token)}})
	h.Start(t, "--join", b.join(), "--zone", zone)
	b.hosts = append(b.hosts, h)
	b.waitUsed(t)
	return h
}

// waitUsed waits until all hosts are: one that has just been lost takes no server.
func (b *apartBed) waitUsed(t *testing.T) {
	t.Helper()
	harness.Wait(t, hostTime, "each host is used", func() string {
		out, err := kurabeCommand(b.service, harness.Binary(t), "hosts")
		if err != nil || strings.Count(out, "ready") != len(b.hosts)+1 {
			return fmt.Sprint(out, err)
		}
		return ""
	})
}

// apart is a pair with one server on each of the two hosts.
type apart struct {
	*harness.Instance
	bed   *apartBed
	pulse *harness.Pulse
}

func (b *apartBed) create(t *testing.T, engine string, changes ...func(*rds.CreateDBInstanceInput)) *apart {
	t.Helper()
	in := harness.MultiAZRequest("apart-"+engine, engine)
	in.BackupRetentionPeriod = aws.Int32(1)
	for _, change := range changes {
		change(in)
	}
	p := &apart{Instance: b.service.MustCreate(t, in), bed: b}
	p.waitWhole(t)
	p.pulse = p.Pulse(t)
	p.pulse.WaitMore(t, beatsBefore)
	return p
}

// roles are the hosts of the server that writes and of its standby.
func (p *apart) roles(t *testing.T) (writer, standby *apartHost) {
	t.Helper()
	zone := aws.ToString(p.Describe(t).AvailabilityZone)
	n := slices.IndexFunc(p.bed.hosts, func(h *apartHost) bool { return h.zone == zone })
	if n < 0 {
		t.Fatalf("the writer is in zone %s", zone)
	}
	return p.bed.hosts[n], p.bed.hosts[1-n]
}

func (h *apartHost) member(t *testing.T, id string) harness.Member {
	t.Helper()
	list := h.Members(id)
	if len(list) != 1 {
		t.Fatalf("host in zone %s has the servers %v", h.zone, list)
	}
	return list[0]
}

// waitWhole waits until there is a standby on the other host that has every commit.
func (p *apart) waitWhole(t *testing.T) {
	t.Helper()
	p.WaitLike(t, "is whole", func(d types.DBInstance) string {
		first, second := aws.ToString(d.AvailabilityZone), aws.ToString(d.SecondaryAvailabilityZone)
		if status := aws.ToString(d.DBInstanceStatus); status != "available" || second == "" || first == second {
			return fmt.Sprintf("it is %s in the zones %q and %q", status, first, second)
		}
		return ""
	})
}

// hostBar is how soon clients are served again when a host was lost: ten seconds, and a login
// that the kernel of a frozen host took in its last moment, which a client waits for as for any.
const hostBar = 10*time.Second + harness.LoginTime

// takenOver demands that the other host serves the endpoint within hostBar of the fault, and
// that nothing acknowledged is missing.
func (p *apart) takenOver(t *testing.T, from time.Time, now *apartHost) {
	t.Helper()
	p.pulse.WaitMore(t, beatsAfter)
	gap := p.pulse.Gap(from)
	t.Logf("the client waited for %v", gap.Round(time.Millisecond))
	if gap > hostBar {
		t.Errorf("clients waited for %v", gap)
	}
	p.WaitLike(t, "is served by the other host", func(d types.DBInstance) string {
		if zone := aws.ToString(d.AvailabilityZone); zone != now.zone {
			return "it is in " + zone
		}
		return ""
	})
	// The zone is the planner's decision, which the host then obeys.
	endpoint := aws.ToString(p.Describe(t).Endpoint.Address)
	harness.Wait(t, hostTime, "the endpoint is on the host that writes", func() string {
		if have := now.machine.Addresses(t); !slices.Contains(have, endpoint) {
			return fmt.Sprintf("%s is not among %v", endpoint, have)
		}
		return ""
	})
	p.pulse.Verify(t)
}

// givenUp demands that a host leaves the endpoint to the other one, and becomes its standby.
func (p *apart) givenUp(t *testing.T, was *apartHost) {
	t.Helper()
	endpoint := aws.ToString(p.Describe(t).Endpoint.Address)
	harness.Wait(t, hostTime, "the other host gives the endpoint up", func() string {
		if have := was.machine.Addresses(t); slices.Contains(have, endpoint) {
			return fmt.Sprint(have)
		}
		return ""
	})
	p.waitWhole(t)
	p.pulse.Verify(t)
}

// TestMultiAZApart has a pair on two hosts live through the losses that only several machines
// know.
func TestMultiAZApart(t *testing.T) {
	b := newApartBed(t)
	b.service.EachEngine(t, func(t *testing.T, engine string) {
		p := b.create(t, engine)
		for _, part := range []struct {
			name string
			run  func(*testing.T, *apart)
		}{
			{"a planned failover", apartInOrder},
			{"another class, and back", apartClass},
			{"the server dies", apartServerDies},
			{"the host is lost", apartHostLost},
			{"all of the host freezes", apartFrozen},
			{"the cable is pulled", apartCable},
			{"the agent freezes", apartAgentFrozen},
			{"the agent restarts", apartAgentRestarts},
			{"the service is away", apartServiceAway},
		} {
			if !t.Run(part.name, func(t *testing.T) { part.run(t, p) }) {
				t.FailNow()
			}
		}
		p.pulse.Stop()
		p.Delete(t)
		for _, h := range b.hosts {
			if left := slices.DeleteFunc(h.Homes(), func(home string) bool { return !strings.HasPrefix(home, p.ID) }); len(left) > 0 {
				t.Errorf("zone %s: left are %v", h.zone, left)
			}
		}
	})
	for _, h := range b.hosts {
		if left := h.machine.Addresses(t); len(left) > 0 && !t.Failed() { // a failed one was left to the end of the service
			t.Errorf("zone %s: left are the addresses %v", h.zone, left)
		}
	}
}

func apartInOrder(t *testing.T, p *apart) {
	writer, standby := p.roles(t)
	from := time.Now()
	if err := p.AskFailover(t); err != nil {
		t.Fatal(err)
	}
	p.WaitEventsFrom(t, from, "failover completed")
	p.takenOver(t, from, standby)
	p.givenUp(t, writer)
}

// apartClass: what restarts servers goes to the standby, which then takes over. Limits of
// PostgreSQL that fall with the class go to the writer first, in place. On a machine so busy that
// the standby had just been given up, which an event tells, the writer restarts in place.
func apartClass(t *testing.T, p *apart) {
	for _, size := range []string{"small", "micro"} {
		_, standby := p.roles(t)
		second := standby.member(t, p.ID)
		before, err := second.Server()
		if err != nil {
			t.Fatal(err)
		}
		from := time.Now()
		p.Modify(t, func(in *rds.ModifyDBInstanceInput) {
			in.DBInstanceClass, in.ApplyImmediately = aws.String(harness.Class(size)), aws.Bool(true)
		})
		p.WaitEventsFrom(t, from, "finished applying modifications")
		told := strings.Join(p.EventsFrom(t, from), "\n")
		switch {
		case !strings.Contains(told, "failover completed") && strings.Contains(told, "Commits go on without it"):
			t.Log("the standby had been given up, and the writer restarted in place")
		case size == "small" || p.Engine == "mariadb":
			p.takenOver(t, from, standby)
		default: // the standby restarts when its writer has, and nobody could replace that meanwhile
			p.WaitLike(t, "has a standby with the class", func(types.DBInstance) string {
				if now, err := second.Server(); err != nil || now == before {
					return fmt.Sprintf("it has the server %d after %d (%v)", now, before, err)
				}
				return ""
			})
		}
		p.WaitLike(t, "has the class", func(d types.DBInstance) string {
			if now := aws.ToString(d.DBInstanceClass); now != harness.Class(size) {
				return now
			}
			return ""
		})
		p.waitWhole(t)
	}
	p.pulse.WaitMore(t, beatsAfter)
	p.pulse.Verify(t)
}

// apartServerDies: the standby takes over. On a machine so busy that it had just been given up,
// which an event tells, the same server is started again, as it must be, and dies once more.
func apartServerDies(t *testing.T, p *apart) {
	for range 3 {
		writer, standby := p.roles(t)
		from := time.Now()
		if err := harness.KillServers(writer.member(t, p.ID)); err != nil {
			t.Fatal(err)
		}
		var told string
		harness.Wait(t, hostTime, "an event tells who serves", func() string {
			told = strings.Join(p.EventsFrom(t, from), "\n")
			if strings.Contains(told, "failover completed") || strings.Contains(told, "activation completed") {
				return ""
			}
			return "there are:\n" + told
		})
		if strings.Contains(told, "failover completed") {
			p.takenOver(t, from, standby)
			p.givenUp(t, writer)
			return
		}
		t.Log("the standby had been given up, and the same server was started again")
		p.waitWhole(t)
		p.pulse.WaitMore(t, beatsAfter)
		p.pulse.Verify(t)
	}
	t.Error("at none of three deaths was there a standby with every commit")
}

// lose is what a loss of power does to a host.
func (h *apartHost) lose(t *testing.T) {
	t.Helper()
	h.Kill(t)
	h.EndWardens(t)
	if err := h.EndDatabases(t.Context()); err != nil {
		t.Fatal(err)
	}
	h.machine.Forget(t)
}

// apartHostLost: a machine loses its power, and comes back later.
func apartHostLost(t *testing.T, p *apart) {
	writer, standby := p.roles(t)
	from := time.Now()
	writer.lose(t)
	p.takenOver(t, from, standby)
	writer.Start(t)
	p.givenUp(t, writer)
}

// apartFrozen: nothing on a machine runs for a while, and then all of it goes on.
func apartFrozen(t *testing.T, p *apart) {
	writer, standby := p.roles(t)
	from := time.Now()
	thaw := writer.FreezeAll(t, p.ID)
	p.takenOver(t, from, standby)
	thaw()
	p.givenUp(t, writer)
}

// apartCable: the host's warden ends its server, although its agent and everything else on it
// are well.
func apartCable(t *testing.T, p *apart) {
	writer, standby := p.roles(t)
	pid, err := writer.member(t, p.ID).Server()
	if err != nil {
		t.Fatal(err)
	}
	from := time.Now()
	writer.machine.Plug(t, false)
	defer writer.machine.Plug(t, true)
	p.takenOver(t, from, standby)
	if harness.Alive(pid) {
		t.Errorf("process %d, which is cut off, goes on", pid)
	}
	writer.machine.Plug(t, true)
	p.givenUp(t, writer)
}

// apartAgentFrozen: the server is well and serves, and nobody answers for it.
func apartAgentFrozen(t *testing.T, p *apart) {
	writer, standby := p.roles(t)
	from := time.Now()
	writer.Freeze(t)
	p.takenOver(t, from, standby)
	writer.Thaw(t)
	p.givenUp(t, writer)
}

// apartAgentRestarts: an upgrade of Kurabe moves nobody.
func apartAgentRestarts(t *testing.T, p *apart) {
	writer, _ := p.roles(t)
	// Sessions that were held at the endpoint during a failover pass through the agent.
	pulse := p.Pulse(t)
	defer pulse.Stop()
	pulse.WaitMore(t, beatsBefore)
	from := time.Now()
	writer.Terminate(t)
	pulse.WaitMore(t, 600) // six seconds: longer than a lease
	writer.Start(t)
	pulse.WaitMore(t, beatsAfter)
	if n, err := pulse.Errors(from); n > 0 {
		t.Errorf("the client has met %d errors, the last was %v", n, err)
	}
	p.waitWhole(t)
	if now, _ := p.roles(t); now != writer {
		t.Errorf("it is in zone %s, and was in %s", now.zone, writer.zone)
	}
}

// apartServiceAway: the standby's word is enough; and without that too, nobody serves.
func apartServiceAway(t *testing.T, p *apart) {
	writer, _ := p.roles(t)
	from := time.Now()
	p.bed.service.Kill(t)
	p.pulse.WaitMore(t, 900) // nine seconds: much longer than a lease
	if n, err := p.pulse.Errors(from); n > 0 {
		t.Errorf("the client has met %d errors, the last was %v", n, err)
	}
	p.bed.service.Start(t)
	p.waitWhole(t)
	p.pulse.WaitMore(t, beatsAfter)
	if now, _ := p.roles(t); now != writer {
		t.Errorf("it is in zone %s, and was in %s", now.zone, writer.zone)
	}
	p.pulse.Verify(t)
}

// TestMultiAZDrain empties the host of writers: each hands over, and its standby is made
// elsewhere.
func TestMultiAZDrain(t *testing.T) {
	b := newApartBed(t)
	var pairs []*apart
	for _, engine := range b.service.Engines(t) {
		pairs = append(pairs, b.create(t, engine))
	}
	leaves, _ := pairs[0].roles(t)
	third := b.add(t, zoneHere)
	from := time.Now()
	if out, err := kurabeCommand(b.service, harness.Binary(t), "hosts", "drain", leaves.HostID()); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if left := leaves.Homes(); len(left) > 0 { // the command has waited
		t.Errorf("on the drained host is %v", left)
	}
	for _, p := range pairs {
		p.waitWhole(t)
		p.pulse.WaitMore(t, beatsAfter)
		gap := p.pulse.Gap(from)
		t.Logf("%s: the client waited for %v", p.Name, gap.Round(time.Millisecond))
		if gap > 2*time.Second {
			t.Errorf("%s: clients waited for %v", p.Name, gap)
		}
		d := p.Describe(t)
		if zones := []string{aws.ToString(d.AvailabilityZone), aws.ToString(d.SecondaryAvailabilityZone)}; slices.Contains(zones, leaves.zone) || !slices.Contains(zones, third.zone) {
			t.Errorf("%s is in %v; the host in %s was drained", p.Name, zones, leaves.zone)
		}
		p.pulse.Verify(t)
		p.converted(t)
	}
	// Their older backups are, and keep it.
	if out, err := kurabeCommand(b.service, harness.Binary(t), "hosts", "remove", leaves.HostID()); err != nil && (strings.Contains(out, "DB instance") || !strings.Contains(out, "snapshot")) {
		t.Errorf("%v: %s", err, out)
	}
}

// converted makes it one of one zone and of two again, which no session notices, although its
// server is not where it began.
func (p *apart) converted(t *testing.T) {
	t.Helper()
	pulse := p.Pulse(t) // over a session of the server's own
	defer pulse.Stop()
	pulse.WaitMore(t, beatsBefore)
	from := time.Now()
	for _, multi := range []bool{false, true} {
		p.SetMultiAZ(t, multi)
		p.WaitLike(t, fmt.Sprint("Multi-AZ is ", multi), func(d types.DBInstance) string {
			if has := aws.ToString(d.SecondaryAvailabilityZone) != ""; aws.ToString(d.DBInstanceStatus) != "available" || aws.ToBool(d.MultiAZ) != multi || has != multi {
				return fmt.Sprintf("it is %s, Multi-AZ %v, second zone %q", aws.ToString(d.DBInstanceStatus), aws.ToBool(d.MultiAZ), aws.ToString(d.SecondaryAvailabilityZone))
			}
			return ""
		})
	}
	pulse.WaitMore(t, beatsAfter)
	if n, err := pulse.Errors(from); n > 0 {
		t.Errorf("%s: the client has met %d errors, the last was %v", p.Name, n, err)
	}
	pulse.Verify(t)
}
