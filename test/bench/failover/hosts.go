package failover

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/rds/types"

	"kurabe/internal/harness"
	"kurabe/test/bench/bed"
)

// Hosts is the name of what needs several machines; it is part of "failover", too.
const Hosts = "hosts"

// MachinesNamed says whether machines in miniature are needed. They are made for a run
// that names them, and for no other: all of it is in namespaces then.
func MachinesNamed(s bed.Settings) bool {
	names := strings.Split(s.Only, ",")
	return slices.Contains(names, "failover") || slices.Contains(names, Hosts)
}

// The zones of the three machines. The service's own host lends its databases to nobody
// else, so a pair is on the other two.
const zoneCenter = bed.Region + "a"

var zonesApart = []string{bed.Region + "b", bed.Region + "c"}

// joinTime bounds how long a host takes until it is used.
const joinTime = time.Minute

// hostsBed is a service on one machine in miniature and two further ones with an agent each.
type hostsBed struct {
	*harness.Standalone
	center *harness.Service
	hosts  []*benchHost
}

// benchHost is a machine with an agent.
type benchHost struct {
	*harness.Service
	machine *harness.Machine
	zone    string
}

// hostsToBeHad says whether this run has several machines.
func (r *comparison) hostsToBeHad() bool {
	return MachinesNamed(r.Settings) && (harness.Apart() || r.List)
}

// sayNoHosts has a row say why there cannot be any.
func (r *comparison) sayNoHosts() {
	why := "machines in miniature need network namespaces, which root alone can make"
	switch {
	case r.hostsToBeHad():
		return
	case !MachinesNamed(r.Settings):
		why = "only with --only failover or --only " + Hosts
	}
	r.Out.Row(bed.Row{Bench: "failover", What: "losses over two hosts", Value: bed.NotMeasured, Note: why})
}

// apart is the lab over two hosts. It is started when it is needed first, and again after a
// loss that left a host in a state from which it does not come back.
type apart struct {
	r   *comparison
	lab *site // nil: not started
}

// open starts the service and its hosts, if they do not run.
func (a *apart) open(ctx context.Context) (*site, error) {
	if a.lab != nil {
		return a.lab, nil
	}
	lab, err := a.r.NewLab()
	if err != nil {
		return nil, err
	}
	l := &site{Lab: lab}
	b := &hostsBed{Standalone: harness.NewStandalone(context.WithoutCancel(ctx), a.r.Out.Say)}
	l.hosts, l.Data, a.lab = b, filepath.Join(l.Dir, "center"), l
	err = b.start(ctx, l)
	if err == nil {
		l.Api = b.center.Client
		err = l.FindEngines(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, a.close())
	}
	return l, nil
}

// close ends the machines and everything on them.
func (a *apart) close() error {
	l := a.lab
	if l == nil {
		return nil
	}
	a.lab = nil
	if l.Keep {
		for _, s := range l.hosts.services() {
			l.Out.Sample("log", map[string]any{"data": s.Data, "log": s.Log.String()})
		}
	}
	return errors.Join(l.hosts.Close(), l.Close())
}

func (b *hostsBed) start(ctx context.Context, l *site) error {
	var join string
	err := b.Try(func(t testing.TB) {
		network := harness.NewNetwork(t)
		center := network.Machine(t)
		join = center.Address + ":7381"
		b.center = harness.New(t, harness.Options{Binary: l.Bin, Data: l.Data, Machine: center, Args: []string{"--region", bed.Region, "--zone", zoneCenter, "--host-listen", join}})
		b.center.Start(t)
		for _, zone := range zonesApart {
			token, err := b.ask(ctx, l.Bin, "hosts", "token", "--only")
			if err != nil {
				t.Fatal(err)
			}
			h := &benchHost{machine: network.Machine(t), zone: zone}
			h.Service = harness.New(t, harness.Options{Binary: l.Bin, Data: filepath.Join(l.Dir, zone), Machine: h.machine, Agent: true,
				Args: []string{"--address-pool", h.machine.Pool}, Env: []string{"KURABE_JOIN_TOKEN=" + token}})
			b.hosts = append(b.hosts, h)
			h.Start(t, "--join", join, "--zone", zone)
		}
	})
	for deadline := time.Now().Add(joinTime); err == nil; _ = bed.Wait(ctx, bed.PollPause) {
		var list string
		if list, err = b.ask(ctx, l.Bin, "hosts"); strings.Count(list, "ready") == 1+len(b.hosts) {
			return err
		}
		if time.Now().After(deadline) || ctx.Err() != nil {
			return errors.Join(ctx.Err(), fmt.Errorf("not all hosts are used: %s", list))
		}
	}
	return err
}

// ask has the program ask its service.
func (b *hostsBed) ask(ctx context.Context, bin string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, bin, append(args, "--data", b.center.Data, "--endpoint", b.center.URL())...)
	cmd.Env = slices.DeleteFunc(os.Environ(), func(e string) bool { return strings.HasPrefix(e, "AWS_") })
	out, err := cmd.CombinedOutput()
	if err != nil {
		err = fmt.Errorf("kurabe %s: %w: %s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out)), err
}

func (b *hostsBed) services() (all []*harness.Service) {
	if b.center != nil {
		all = append(all, b.center)
	}
	for _, h := range b.hosts {
		all = append(all, h.Service)
	}
	return all
}

// host is the one in a zone.
func (b *hostsBed) host(zone string) (*benchHost, error) {
	for _, h := range b.hosts {
		if h.zone == zone {
			return h, nil
		}
	}
	return nil, fmt.Errorf("a server is in zone %q, where no host is", zone)
}

// member is the server of an instance on the host in a zone.
func (b *hostsBed) member(zone, id string) (m harness.Member, err error) {
	h, err := b.host(zone)
	if err != nil {
		return m, err
	}
	list := h.Members(id)
	if len(list) != 1 {
		return m, fmt.Errorf("the host in zone %s has the servers %v, want one", zone, list)
	}
	return list[0], nil
}

// writerHome is the folder of the server that follows no other.
func (b *hostsBed) writerHome(id string) string {
	for _, h := range b.hosts {
		for _, m := range h.Members(id) {
			if !m.Follows() {
				return m.Home()
			}
		}
	}
	return ""
}

// notWhole says what an instance lacks to be one of two hosts.
func (b *hostsBed) notWhole(d types.DBInstance) string {
	first, second := aws.ToString(d.AvailabilityZone), aws.ToString(d.SecondaryAvailabilityZone)
	switch status := aws.ToString(d.DBInstanceStatus); {
	case status != "available":
		return "it is " + status
	case second == "" || second == first:
		return fmt.Sprintf("its zones are %q and %q", first, second)
	}
	for _, zone := range []string{first, second} {
		m, err := b.member(zone, aws.ToString(d.DbiResourceId))
		if err != nil {
			return err.Error()
		}
		if _, err := m.Server(); err != nil {
			return err.Error()
		}
		if m.Follows() != (zone == second) {
			return fmt.Sprintf("%s in zone %s follows: %v", m.ID, zone, m.Follows())
		}
	}
	return ""
}

const overTwoHosts = " over two hosts"

// overHosts is what is added to the name of a row.
func (l *site) overHosts() string {
	if l.hosts != nil {
		return overTwoHosts
	}
	return ""
}
