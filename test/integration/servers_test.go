//go:build integration

package integration

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"kurabe/internal/harness"
)

// serversBed is a service of three servers, each on a machine and in a zone of its own.
type serversBed struct {
	network  *harness.Network
	machines []*harness.Machine
	servers  []*harness.Service
	used     string        // a token that was
	etcd     *harness.Etcd // of others, nil where the servers have the state
}

// lossTime bounds how long the others may need until an instance can be made again, its own
// time included: an election of etcd's and one of ours, 7 s, and what a busy machine adds.
const lossTime = 40 * time.Second

var serverZones = []string{"us-east-1a", "us-east-1b", "us-east-1c"}

func newServersBed(t *testing.T, n int) *serversBed {
	t.Helper()
	b := &serversBed{network: harness.NewNetwork(t)}
	b.begin(t, n)
	return b
}

// begin starts the servers, one of which the others join.
func (b *serversBed) begin(t *testing.T, n int) {
	t.Helper()
	for range n {
		b.machines = append(b.machines, b.network.Machine(t))
	}
	began := time.Now()
	b.servers = append(b.servers, harness.Start(t, harness.Options{Machine: b.machines[0], Args: b.args(0)}))
	for i := 1; i < n; i++ { // at once: the store takes one after the other
		b.servers = append(b.servers, b.join(t, i, 0))
	}
	for _, s := range b.servers[1:] {
		s.WaitReady(t)
	}
	for i := range b.servers {
		b.waitServer(t, i, 0, "ready")
	}
	t.Logf("%d servers after %s", n, time.Since(began))
}

func (b *serversBed) args(i int) []string {
	args := []string{"--zone", serverZones[i], "--address-pool", b.machines[i].Pool, "--host-listen", b.link(i)}
	if b.etcd != nil {
		args = append(args, b.etcd.Args()...)
	}
	return args
}

func (b *serversBed) link(i int) string { return b.machines[i].Address + ":7381" }

// hosts is what kurabe hosts says to a server.
func (b *serversBed) hosts(t testing.TB, at int, args ...string) string {
	t.Helper()
	out, err := kurabeCommand(b.servers[at], harness.Binary(t), append([]string{"hosts"}, args...)...)
	if err != nil {
		out += err.Error()
	}
	return out
}

// join has a new server join on a machine, by one that there is, and does not wait for it.
func (b *serversBed) join(t *testing.T, i, by int) *harness.Service {
	t.Helper()
	b.used = strings.TrimSpace(b.hosts(t, by, "token", "--server", "--only"))
	s := harness.New(t, harness.Options{Machine: b.machines[i], Args: b.args(i), Env: []string{"KURABE_JOIN_TOKEN=" + b.used}})
	s.Launch(t, "--join", b.link(by))
	return s
}

// waitServer waits until a server says such a status of another one's host.
func (b *serversBed) waitServer(t testing.TB, of, at int, status string) {
	t.Helper()
	id := b.servers[of].HostID()
	harness.Wait(t, hostTime, fmt.Sprintf("server %d, %s, is %s", of, id, status), func() string {
		out := b.hosts(t, at)
		for line := range strings.Lines(out) {
			if rest, ok := strings.CutPrefix(line, id); ok && strings.HasPrefix(strings.TrimSpace(rest), status) {
				return ""
			}
		}
		return out
	})
}

// create makes an instance through one server on the machine of another one.
func (b *serversBed) create(t *testing.T, name string, on, by int) *harness.Instance {
	t.Helper()
	in := harness.Request(name, "postgres")
	in.AvailabilityZone = aws.String(serverZones[on])
	return b.servers[by].MustCreate(t, in)
}

// TestServers loses each of three servers in turn: the others go on, and so do the clients
// of all databases.
func TestServers(t *testing.T) {
	needRoot(t)
	b := newServersBed(t, 3)
	from := time.Now()
	b.refused(t)
	t.Logf("refused: %s", time.Since(from))
	var on []*harness.Instance
	var pulses []*harness.Pulse
	for i := range b.servers {
		on = append(on, b.create(t, fmt.Sprintf("on-%d", i), i, (i+1)%3))
	}
	for _, i := range on {
		pulses = append(pulses, i.Pulse(t))
	}
	for _, p := range pulses {
		p.WaitMore(t, beatsBefore)
	}
	uncut := func(what string, but int, from time.Time) {
		t.Helper()
		for i, p := range pulses {
			if n, err := p.Errors(from); i != but && n > 0 {
				t.Errorf("%s: the client of instance %d has met %d errors, the last was %v", what, i, n, err)
			}
		}
		t.Logf("%s: %s", what, time.Since(from))
	}
	from = time.Now()
	for i := range b.servers { // as an upgrade does
		b.servers[i].Terminate(t)
		b.servers[i].Start(t)
	}
	for _, p := range pulses {
		p.WaitMore(t, beatsAfter)
	}
	uncut("started again in turn", -1, from)
	from = time.Now()
	killed := b.planner(t, 0)
	b.loseOne(t, killed, "killed", b.servers[killed].Kill, func(t testing.TB) { b.servers[killed].Start(t) })
	uncut("the planner is killed", -1, from)
	from = time.Now()
	cut := b.planner(t, killed)
	b.loseOne(t, cut, "cut-off", func(t testing.TB) { b.machines[cut].Plug(t, false) }, func(t testing.TB) { b.machines[cut].Plug(t, true) })
	uncut("the next planner is cut off", cut, from)
	for _, p := range pulses {
		p.WaitMore(t, beatsAfter)
		p.Verify(t)
		p.Stop()
	}
	from = time.Now()
	third := 3 - killed - cut
	b.replace(t, third, killed, on[third])
	t.Logf("replaced: %s", time.Since(from))
}

// planner is the server that plans.
func (b *serversBed) planner(t *testing.T, at int) int {
	t.Helper()
	found := -1
	harness.Wait(t, hostTime, "a server plans", func() string {
		out := b.hosts(t, at)
		for i, s := range b.servers {
			for line := range strings.Lines(out) {
				if strings.HasPrefix(line, s.HostID()) && strings.Contains(line, "plans") {
					found = i
					return ""
				}
			}
		}
		return out
	})
	return found
}

// loseOne demands that the others can make an instance while the planner is away, and that
// it is let in again.
func (b *serversBed) loseOne(t *testing.T, i int, name string, lose, back func(testing.TB)) {
	t.Helper()
	lose(t)
	began, other, third := time.Now(), (i+1)%3, (i+2)%3
	// Not before: a request that nobody can decide on may be stored much later.
	harness.Wait(t, lossTime, "another one plans", func() string {
		if now := b.planner(t, other); now == i {
			return b.hosts(t, other)
		}
		return ""
	})
	elected := time.Since(began)
	made := b.create(t, name, third, other)
	took := time.Since(began)
	t.Logf("%s: another one plans after %s, an instance is available after %s", name, elected, took)
	if took > lossTime {
		t.Errorf("%s: an instance is available after %s", name, took)
	}
	back(t)
	b.waitServer(t, i, other, "ready")
	made.Delete(t)
}

// refused tries what lets nobody in.
func (b *serversBed) refused(t *testing.T) {
	t.Helper()
	fourth := b.network.Machine(t)
	attempt := func(what, says, token, data string, args ...string) {
		t.Helper()
		if data == "" {
			data = filepath.Join(harness.Folder(t, false), "data")
		}
		cmd := exec.Command(harness.Binary(t), append([]string{"server", "--data", data, "--listen", fourth.Address + ":0", "--address-pool", fourth.Pool,
			"--host-listen", fourth.Address + ":7381", "--zone", serverZones[0]}, args...)...)
		cmd.Env = append(os.Environ(), "KURABE_JOIN_TOKEN="+token)
		var out strings.Builder
		cmd.Stdout, cmd.Stderr = &out, &out
		if err := fourth.Start(t, cmd); err != nil {
			t.Fatal(err)
		}
		if err := cmd.Wait(); err == nil || !strings.Contains(out.String(), says) {
			t.Errorf("%s: %v; it wants %q:\n%s", what, err, says, out.String())
		}
	}
	join := []string{"--join", b.link(0)}
	good := strings.TrimSpace(b.hosts(t, 1, "token", "--server", "--only"))
	attempt("a used token", "was used", b.used, "", join...)
	attempt("an agent's token", "is for an agent", strings.TrimSpace(b.hosts(t, 1, "token", "--only")), "", join...)
	attempt("no address", "--host-listen", good, "", append(join, "--host-listen", "")...)
	attempt("every address", "all of its own", good, "", append(join, "--host-listen", "0.0.0.0:7381")...)
	attempt("no such zone", "there is no zone", good, "", append(join, "--zone", "us-east-1z")...)
	b.servers[2].Terminate(t)
	attempt("a folder that has joined", "has joined a service already", good, b.servers[2].Data, join...)
	b.servers[2].Start(t)
	b.waitServer(t, 2, 0, "ready")
}

// replace loses one server for good, another one takes its place, by the word of a third.
func (b *serversBed) replace(t *testing.T, i, by int, lost *harness.Instance) {
	t.Helper()
	old := b.servers[i]
	id := old.HostID()
	old.Kill(t)
	if err := old.EndDatabases(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.machines[i].Forget(t)
	b.waitServer(t, i, by, "lost")
	if out := b.hosts(t, by, "give-up", id, "--yes"); !strings.Contains(out, "given up") {
		t.Fatal(out)
	}
	b.servers[i] = b.join(t, i, 3-i-by)
	b.servers[i].WaitReady(t)
	b.waitServer(t, i, by, "ready")
	lost.Service = b.servers[i]
	lost.WaitStatus(t, "failed")
	lost.Delete(t)
	if out := b.hosts(t, i, "remove", id); strings.Contains(out, id) {
		t.Errorf("not removed: %s", out)
	}
	b.waitServer(t, i, by, "ready")
	if out := b.hosts(t, by, "remove", b.servers[i].HostID()); !strings.Contains(out, "drain it first") {
		t.Error(out)
	}
}
