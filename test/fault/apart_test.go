//go:build fault

package fault

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/rds"
	"github.com/aws/aws-sdk-go-v2/service/rds/types"

	"kurabe/internal/harness"
)

// apartBed is a service on a machine of its own and two hosts on theirs, on which pairs are.
type apartBed struct {
	service *harness.Service
	center  *harness.Machine
	hosts   []*apartHost
	cuts    *harness.Cuts
	clock   *clock // of each host; nil: it cannot be set here
	random  *rand.Rand
}

// apartHost is a machine with an agent.
type apartHost struct {
	*harness.Service
	machine *harness.Machine
	zone    string
	join    []string // how its agent is started
}

// hostChange is what is other than usual about the hosts of a bed.
type hostChange struct {
	options func(*harness.Options)                  // of how its agent runs
	prepare func(*testing.T, *apartBed, *apartHost) // before that is started
}

// newApartBed makes it, with hosts that are changed so.
func newApartBed(t *testing.T, changes ...hostChange) *apartBed {
	t.Helper()
	needRoot(t)
	network := harness.NewNetwork(t)
	b := &apartBed{center: network.FarMachine(t), random: rand.New(rand.NewPCG(seed(t), 0))}
	b.clock, _ = openClock(t)
	join := b.center.Address + ":7381"
	b.service = harness.Start(t, harness.Options{Machine: b.center, Args: []string{"--zone", "us-east-1a", "--host-listen", join}})
	machines := []*harness.Machine{b.center}
	for _, zone := range []string{"us-east-1b", "us-east-1c"} {
		token, err := b.command(t, "hosts", "token", "--only")
		if err != nil {
			t.Fatalf("%v: %s", err, token)
		}
		h := &apartHost{machine: network.FarMachine(t), zone: zone, join: []string{"--join", join, "--zone", zone}}
		o := harness.Options{Machine: h.machine, Agent: true, Args: []string{"--address-pool", h.machine.Pool}, Env: []string{"KURABE_JOIN_TOKEN=" + strings.TrimSpace(token)}}
		for _, c := range changes {
			if c.options != nil {
				c.options(&o)
			}
		}
		h.Service = harness.New(t, o)
		for _, c := range changes {
			if c.prepare != nil {
				c.prepare(t, b, h)
			}
		}
		h.Start(t, h.join...)
		b.hosts = append(b.hosts, h)
		machines = append(machines, h.machine)
	}
	b.cuts = network.Cuts(t, machines...)
	b.waitUsed(t)
	return b
}

// waitUsed waits until all hosts are: one that has just been lost takes no server.
func (b *apartBed) waitUsed(t *testing.T) {
	t.Helper()
	harness.Wait(t, settleTime, "both hosts are used", func() string {
		out, err := b.command(t, "hosts")
		if err != nil || strings.Count(out, "ready") != 1+len(b.hosts) {
			return fmt.Sprint(out, err)
		}
		return ""
	})
}

// command asks the service as its operator does.
func (b *apartBed) command(t *testing.T, args ...string) (string, error) {
	c := exec.Command(harness.Binary(t), append(args, "--data", b.service.Data, "--endpoint", b.service.URL())...)
	c.Env = slices.DeleteFunc(os.Environ(), func(e string) bool { return strings.HasPrefix(e, "AWS_") })
	out, err := c.CombinedOutput()
	return string(out), err
}

// apart is a pair with one server on each of the two hosts.
type apart struct {
	*harness.Instance
	bed    *apartBed
	login  harness.Login
	pulse  *harness.Pulse
	wishes *wishes
	left   time.Time // when a full disk had been left
}

func (b *apartBed) create(t *testing.T, name, engine string) *apart {
	t.Helper()
	name += "-" + engine
	_, err := b.service.CreateDBParameterGroup(t.Context(), &rds.CreateDBParameterGroupInput{
		DBParameterGroupName: aws.String("of-" + name), DBParameterGroupFamily: familyOf(t, b.service, engine), Description: aws.String("for a test"),
	})
	if err != nil {
		t.Fatal(err)
	}
	b.waitUsed(t)
	in := harness.MultiAZRequest(name, engine)
	in.DBParameterGroupName = aws.String("of-" + name)
	p := &apart{Instance: b.service.MustCreate(t, in), bed: b, wishes: &wishes{s: b.service, name: name, random: b.random}}
	p.waitWhole(t)
	p.login = p.Login(t)
	return p
}

// setStandbyLost says what becomes of commits when the standby of an instance is lost.
func (b *apartBed) setStandbyLost(ctx context.Context, name, value string) error {
	_, err := b.service.ModifyDBParameterGroup(ctx, &rds.ModifyDBParameterGroupInput{DBParameterGroupName: aws.String("of-" + name), Parameters: standbyLost(value)})
	return err
}

// guess is the host of the server that writes, and the other one: the host that has the
// endpoint, or any of the two while both have it or none.
func (p *apart) guess() (writer, standby *apartHost) {
	n := p.bed.random.IntN(2)
	if has := []bool{p.hasEndpoint(0), p.hasEndpoint(1)}; has[0] != has[1] {
		n = slices.Index(has, true)
	}
	return p.bed.hosts[n], p.bed.hosts[1-n]
}

func (p *apart) hasEndpoint(n int) bool {
	return slices.Contains(p.bed.hosts[n].machine.Held(), p.login.Address)
}

// server is the pair's server on a host, if it has one.
func (p *apart) server(h *apartHost) (harness.Member, bool) {
	list := h.Members(p.ID)
	if len(list) == 0 {
		return harness.Member{}, false
	}
	return list[0], true
}

// unwhole is what the pair lacks: a standby on the other host that has every commit.
func (p *apart) unwhole(d types.DBInstance) string {
	first, second := aws.ToString(d.AvailabilityZone), aws.ToString(d.SecondaryAvailabilityZone)
	if status := aws.ToString(d.DBInstanceStatus); status != "available" || second == "" || first == second {
		return fmt.Sprintf("it is %s in the zones %q and %q", status, first, second)
	}
	return ""
}

func (p *apart) waitWhole(t *testing.T) {
	t.Helper()
	p.WaitLike(t, "is whole", p.unwhole)
}

// roles are the hosts of the server that writes and of its standby, once the pair is whole.
func (p *apart) roles(t *testing.T) (writer, standby *apartHost) {
	t.Helper()
	p.waitWhole(t)
	zone, _ := p.Zones(t)
	n := slices.IndexFunc(p.bed.hosts, func(h *apartHost) bool { return h.zone == zone })
	return p.bed.hosts[n], p.bed.hosts[1-n]
}

// tidy demands that what was deleted leaves nothing on either host.
func (p *apart) tidy(t *testing.T) {
	t.Helper()
	p.Delete(t)
	for _, h := range p.bed.hosts {
		harness.Wait(t, settleTime, "nothing is left in zone "+h.zone, func() string {
			if left, homes, guards := h.machine.Held(), h.Homes(), h.Wardens(); len(left) > 0 || len(homes) > 0 || len(guards) > 0 {
				return fmt.Sprint(left, homes, guards)
			}
			return ""
		})
	}
}

// apartBar is how soon clients are served again after a fault that a pair is made for, and
// apartMargin what a busy machine may add to that.
const (
	apartBar    = 10 * time.Second
	apartMargin = 10 * time.Second
)

// askQuickly asks for a failover, of a service that may not answer.
func (p *apart) askQuickly(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	_, _ = p.bed.service.RebootDBInstance(ctx, &rds.RebootDBInstanceInput{DBInstanceIdentifier: aws.String(p.Name), ForceFailover: aws.Bool(true)})
}

// startService starts the service, unless it runs.
func (p *apart) startService(t *testing.T) {
	t.Helper()
	if !p.bed.service.Running() {
		p.bed.service.Start(t)
	}
}
