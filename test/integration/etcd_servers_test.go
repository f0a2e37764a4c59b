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

	"kurabe/internal/harness"
)

// TestServersOnAnEtcd: of two servers over an etcd of others either is lost, and the other one
// goes on; one that was removed or given up ends, and is not let in again.
func TestServersOnAnEtcd(t *testing.T) {
	needRoot(t)
	b := &serversBed{network: harness.NewNetwork(t)}
	b.etcd = harness.StartEtcd(t, 3, harness.Here)
	b.begin(t, 2)
	b.refusedOnEtcd(t)
	var on []*harness.Instance
	var pulses []*harness.Pulse
	for i := range b.servers {
		on = append(on, b.create(t, fmt.Sprintf("on-%d", i), i, 1-i))
		pulses = append(pulses, on[i].Pulse(t))
		pulses[i].WaitMore(t, beatsBefore)
	}
	from := time.Now()
	uncut := func(what string, but int) {
		t.Helper()
		for i, p := range pulses {
			p.WaitMore(t, beatsAfter)
			if n, err := p.Errors(from); i != but && n > 0 {
				t.Errorf("%s: the client of instance %d has met %d errors, the last was %v", what, i, n, err)
			}
		}
		t.Logf("%s: %s", what, time.Since(from))
		from = time.Now()
	}
	killed := b.planner(t, 0)
	b.loseOneOfTwo(t, killed, "killed", b.servers[killed].Kill, func(t testing.TB) { b.servers[killed].Start(t) })
	uncut("the planner is killed", -1)
	cut := b.planner(t, killed)
	b.loseOneOfTwo(t, cut, "cut-off", func(t testing.TB) { b.machines[cut].Plug(t, false) }, func(t testing.TB) { b.machines[cut].Plug(t, true) })
	uncut("the next planner is cut off", cut)
	b.etcd.Leader(t).Kill(t)
	b.etcd.WaitHealthy(t) // a write that is under way when its leader dies may fail
	b.create(t, "without-one", 0, 1).Delete(t)
	uncut("etcd's leader is killed", -1)
	for i, p := range pulses {
		p.Verify(t)
		p.Stop()
		on[i].Delete(t)
	}
	b.takeAway(t)
}

// loseOneOfTwo is loseOne where there is no third.
func (b *serversBed) loseOneOfTwo(t *testing.T, i int, name string, lose, back func(testing.TB)) {
	t.Helper()
	lose(t)
	began, other := time.Now(), 1-i
	harness.Wait(t, lossTime, "the other one plans", func() string {
		if now := b.planner(t, other); now == i {
			return b.hosts(t, other)
		}
		return ""
	})
	elected := time.Since(began)
	made := b.create(t, name, other, other)
	t.Logf("%s: the other one plans after %s, an instance is available after %s", name, elected, time.Since(began))
	back(t)
	b.waitServer(t, i, other, "ready")
	made.Delete(t)
}

// refusedOnEtcd tries to join with another state than the service's.
func (b *serversBed) refusedOnEtcd(t *testing.T) {
	t.Helper()
	third := b.network.Machine(t)
	token := strings.TrimSpace(b.hosts(t, 1, "token", "--server", "--only"))
	for what, args := range map[string][]string{
		"none":           nil,
		"another prefix": append(b.etcd.Args(), "--etcd-prefix", "/another"),
	} {
		cmd := exec.Command(harness.Binary(t), append([]string{"server", "--data", filepath.Join(harness.Folder(t, false), "data"), "--listen", third.Address + ":0",
			"--address-pool", third.Pool, "--host-listen", third.Address + ":7381", "--zone", serverZones[2], "--join", b.link(0)}, args...)...)
		cmd.Env = append(os.Environ(), "KURABE_JOIN_TOKEN="+token)
		var out strings.Builder
		cmd.Stdout, cmd.Stderr = &out, &out
		if err := third.Start(t, cmd); err != nil {
			t.Fatal(err)
		}
		if err := cmd.Wait(); err == nil || !strings.Contains(out.String(), "with the prefix /kurabe/") {
			t.Errorf("%s: %v\n%s", what, err, out.String())
		}
	}
}

// takeAway removes one server and gives another one up.
func (b *serversBed) takeAway(t *testing.T) {
	t.Helper()
	gone := b.servers[1]
	ends := func(says string) {
		t.Helper()
		if err := gone.WaitEnd(t, hostTime); err == nil || !strings.Contains(gone.Log.String(), says) {
			t.Errorf("it ended with %v; it wants %q", err, says)
		}
	}
	id := gone.HostID()
	if out := b.hosts(t, 0, "drain", id); !strings.Contains(out, id) {
		t.Fatal(out)
	}
	harness.Wait(t, hostTime, "it can be removed", func() string {
		if out := b.hosts(t, 0, "remove", id); strings.Contains(out, id) {
			return out
		}
		return ""
	})
	ends("was removed from the service")
	mark := gone.Log.Mark()
	gone.Launch(t)
	ends("was removed from the service; to join again")
	if strings.Contains(gone.Log.Since(mark), "elected planner") {
		t.Error("a server that was removed has planned")
	}
	b.servers[1] = harness.New(t, harness.Options{Machine: b.machines[1], Args: b.args(1),
		Env: []string{"KURABE_JOIN_TOKEN=" + strings.TrimSpace(b.hosts(t, 0, "token", "--server", "--only"))}})
	gone = b.servers[1]
	gone.Start(t, "--join", b.link(0))
	b.waitServer(t, 1, 0, "ready")
	gone.Kill(t)
	b.waitServer(t, 1, 0, "lost")
	if out := b.hosts(t, 0, "give-up", gone.HostID(), "--yes"); !strings.Contains(out, "given up") {
		t.Fatal(out)
	}
	gone.Launch(t)
	ends("was declared lost")
}

// TestPairWithoutEtcd: the writer of a pair over two machines goes on while etcd is away, by
// the word of its standby; a writer that dies meanwhile is replaced when etcd is back.
func TestPairWithoutEtcd(t *testing.T) {
	needRoot(t)
	b := &serversBed{network: harness.NewNetwork(t)}
	b.etcd = harness.StartEtcd(t, 1, harness.Here)
	b.begin(t, 2)
	b.servers[0].EachEngine(t, func(t *testing.T, engine string) {
		i := b.servers[0].MustCreate(t, harness.MultiAZRequest("pair-"+engine, engine))
		i.WaitLike(t, "is whole", wholePair)
		pulse := i.Pulse(t)
		pulse.WaitMore(t, beatsBefore)
		from := time.Now()
		marks := []int{b.servers[0].Log.Mark(), b.servers[1].Log.Mark()}
		says := func(words string) {
			t.Helper()
			for at, s := range b.servers {
				harness.Wait(t, hostTime, "each server says: "+words, func() string {
					if out := s.Log.Since(marks[at]); !strings.Contains(out, words) {
						return out[max(0, len(out)-1000):]
					}
					return ""
				})
			}
		}
		b.etcd.Members[0].Kill(t)
		says("state store does not answer")
		// Longer than any lease that the service has given.
		pulse.WaitMore(t, 10*beatsAfter)
		harness.After(t, 10*time.Second-time.Since(from))
		pulse.WaitMore(t, beatsAfter)
		if n, err := pulse.Errors(from); n > 0 {
			t.Errorf("etcd is away: the client has met %d errors, the last was %v", n, err)
		}
		b.etcd.Members[0].Start(t)
		says("state store answers again")
		i.WaitLike(t, "is whole", wholePair)
		pulse.WaitMore(t, beatsAfter)
		if n, err := pulse.Errors(from); n > 0 {
			t.Errorf("etcd is back: the client has met %d errors, the last was %v", n, err)
		}
		t.Logf("etcd was away and is back: %s", time.Since(from))
		pulse.Verify(t)
		i.Delete(t)
	})
}
