package engine

import (
	"cmp"
	"context"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"kurabe"
	"kurabe/internal/proc"
)

// stub is a driver whose servers are programs of the system; what is not asked of it here
// it has not.
type stub struct {
	Driver
	argv         []string
	refused      error // by reload
	atReload     Applied
	unclonable   error
	away         error // the source
	unrewindable error
	unpromotable error
	unseen       error // a look; nil: it is not there yet
	waited       int
	promoted     int
	alone        int64 // transactions that the data has and its source has not
	uncounted    error
	counted      int
}

const script = "/bin/sh"

func (s *stub) Name() kurabe.EngineName     { return kurabe.Postgres }
func (s *stub) Demands() kurabe.Demands     { return nil }
func (s *stub) Preparations() []Preparation { return nil }
func (s *stub) StopSignal() int             { return int(syscall.SIGTERM) }
func (s *stub) KillSignal() int             { return int(syscall.SIGQUIT) }
func (s *stub) Command(Instance) Command {
	return Command{Argv: s.argv}
}

func (s *stub) Render(i Instance) map[string]string {
	return map[string]string{"server.conf": fmt.Sprintf("held: %v\n", i.ClientsKeptOut)}
}
func (s *stub) Reload(_ context.Context, i Instance) (err error) {
	s.atReload, err = readApplied(i.Home)
	return errors.Join(err, s.refused)
}

func (s *stub) IsFollower(h Home) bool { return exists(filepath.Join(h.DataDir(), "follows")) }

func (s *stub) Clone(_ context.Context, i Instance, _ string) error {
	err := errors.Join(os.Mkdir(i.Home.FreshDir(), 0o700), os.WriteFile(filepath.Join(i.Home.FreshDir(), "follows"), nil, 0o600))
	if err != nil || s.unclonable != nil {
		return errors.Join(err, s.unclonable)
	}
	return os.Rename(i.Home.FreshDir(), i.Home.DataDir())
}

func (s *stub) ProbeSource(context.Context, Instance, string) error { return s.away }

func (s *stub) Rejoin(_ context.Context, i Instance, _ string) error {
	if s.unrewindable != nil {
		return s.unrewindable
	}
	return os.WriteFile(filepath.Join(i.Home.DataDir(), "follows"), nil, 0o600)
}

func (s *stub) CommittedAlone(context.Context, Instance, string) (int64, error) {
	s.counted++
	return s.alone, s.uncounted
}

func (s *stub) Promote(context.Context, Instance) error   { s.promoted++; return s.unpromotable }
func (s *stub) Followers(context.Context, Instance) error { return nil }
func (s *stub) Waits(context.Context, Instance) error     { s.waited++; return nil }
func (s *stub) OpenWatch(context.Context, Instance) (Watcher, error) {
	return nil, cmp.Or(s.unseen, ErrNotReady)
}

func (s *stub) EaseStop(context.Context, Instance) error { return nil }
func (s *stub) LogEnd(context.Context, Instance) (int64, error) {
	return 0, errors.New("nobody can tell")
}

// place is one instance of a stub, with data.
type place struct {
	*stub
	t *testing.T
	l *Lifecycle
	a kurabe.Assignment
}

func newPlace(t *testing.T, role kurabe.Role) *place {
	s := &stub{argv: []string{"/bin/sleep", "60"}}
	p := &place{stub: s, t: t, a: member(role)}
	p.a.Version = "15.18"
	p.l = NewLifecycle(Config{Driver: s, Homes: t.TempDir(), Now: time.Now}, []kurabe.EngineVersion{{Engine: kurabe.Postgres, Version: "15.18", Family: "postgres15"}})
	if err := errors.Join(p.l.makeHome(p.instance()), os.Mkdir(p.home().DataDir(), 0o700)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := proc.KillSurvivors(context.Background(), p.home().DataDir()); err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Error(err)
		}
	})
	return p
}

func (p *place) home() Home { return p.l.Home(p.a.Instance) }

func (p *place) instance() Instance {
	p.t.Helper()
	i, err := p.l.instanceWithNotes(p.a)
	if err != nil {
		p.t.Fatal(err)
	}
	return i
}

func (p *place) do(step StepName) error { return p.l.do(p.t.Context(), step, p.a) }

func (p *place) must(steps ...StepName) {
	p.t.Helper()
	for _, s := range steps {
		if err := p.do(s); err != nil {
			p.t.Fatalf("%s: %v", s, err)
		}
	}
}

func (p *place) applied() Applied {
	p.t.Helper()
	n, err := readApplied(p.home())
	if err != nil {
		p.t.Fatal(err)
	}
	return n
}

func (p *place) note(change func(*Applied)) {
	p.t.Helper()
	if err := note(p.home(), change); err != nil {
		p.t.Fatal(err)
	}
}

func (p *place) settings() string {
	text, _ := os.ReadFile(filepath.Join(p.home().ConfDir(), "server.conf"))
	return strings.TrimSpace(string(text))
}

func (p *place) running() bool {
	_, alive, err := proc.Find(p.home().RecordFile())
	return alive && err == nil
}

var waiting = kurabe.Role{Duty: kurabe.DutyWrite, WaitFor: []kurabe.InstanceID{other}, StartSeq: 1}

// What a start must not forget is noted before there is a process.
func TestStartInGroup(t *testing.T) {
	p := newPlace(t, waiting)
	p.argv = []string{"/nonexistent/server"}
	if err := p.do(StepStart); err == nil {
		t.Fatal("it starts what is not there")
	}
	if n := p.applied(); n.Started != 0 {
		t.Errorf("a start that came to nothing has used up its order: %+v", n)
	}
	p.argv = []string{"/bin/sleep", "60"}
	i := p.instance()
	if _, err := p.l.beginInGroup(&i); err != nil { // and here the service dies
		t.Fatal(err)
	}
	if n := p.applied(); n.Started != 1 || !n.ClientsKeptOut || p.settings() != "held: true" {
		t.Errorf("%+v, settings %q", n, p.settings())
	}
	if err := p.do(StepStart); err == nil || p.running() {
		t.Fatalf("one order starts it twice: %v", err)
	}
	p.a.Role.StartSeq = 2
	p.must(StepStart)
	if n := p.applied(); !p.running() || n.Started != 2 || !n.ClientsKeptOut || n.Process == "" || p.settings() != "held: true" {
		t.Errorf("running %v, %+v, settings %q", p.running(), n, p.settings())
	}
	p.refused = errors.New("it does not listen")
	if err := p.do(StepRelease); err == nil {
		t.Error("it says nothing of the reload")
	}
	if p.applied().ClientsKeptOut || p.settings() != "held: false" {
		t.Errorf("what was decided is not noted: %+v, settings %q", p.applied(), p.settings())
	}
	p.must(StepStop)
	if n := p.applied(); n.Stopped {
		t.Errorf("a server that died of a signal is said to have stopped cleanly: %+v", n)
	}
}

func TestStartOfUnfinishedData(t *testing.T) {
	p := newPlace(t, kurabe.Role{Duty: kurabe.DutyWrite})
	p.note(func(n *Applied) { n.Rejoining = true })
	if err := p.do(StepStart); err == nil || p.running() {
		t.Errorf("it starts data that is between two states: %v", err)
	}
}

// obeying is a server that ends by itself when it is asked to.
func (p *place) obeying(exit int) {
	p.t.Helper()
	p.asked(fmt.Sprintf("exit %d", exit))
}

// asked is a server that does this when it is asked to end.
func (p *place) asked(does string) {
	p.t.Helper()
	ready := filepath.Join(p.home().Dir, "ready")
	p.argv = []string{script, "-c", fmt.Sprintf("trap '%s' TERM; : >%s; while :; do /bin/sleep 0.01; done", does, ready)}
	p.must(StepStart)
	for deadline := time.Now().Add(10 * time.Second); !exists(ready); {
		if time.Now().After(deadline) {
			p.t.Fatal("the server does not come up")
		}
		time.Sleep(time.Millisecond)
	}
}

func TestYield(t *testing.T) {
	role := kurabe.Role{Duty: kurabe.DutyWrite}
	for _, c := range []struct {
		name  string
		exit  int
		clean bool
	}{{"clean", 0, true}, {"not clean", 3, false}} {
		t.Run(c.name, func(t *testing.T) {
			p := newPlace(t, role)
			p.obeying(c.exit)
			p.a.Role.Duty = kurabe.DutyStepDown
			p.refused = errors.New("it does not listen") // which must not hold up anything
			p.note(func(n *Applied) { n.Loaded = "these" })
			err := p.do(StepStepDown)
			if n := p.atReload; n.Process == "" || n.Loaded != "" {
				t.Errorf("whoever dies in the reload leaves a server that keeps clients out: %+v", n)
			}
			if n := p.applied(); (err == nil) != c.clean || n.SteppedDown != c.clean || n.Stopped != c.clean || p.running() {
				t.Fatalf("%v, running %v, %+v", err, p.running(), n)
			}
			if !c.clean {
				return
			}
			p.must(StepStepDown)
			p.a.Role.Duty = kurabe.DutyWrite
			p.must(StepStart)
			if n := p.applied(); n.SteppedDown || n.Stopped {
				t.Errorf("%+v", n)
			}
		})
	}
}

// A stop that comes to no end is cut off, and is no clean one: what would be promised by that
// is not known to be true.
func TestYieldWithoutEnd(t *testing.T) {
	p := newPlace(t, kurabe.Role{Duty: kurabe.DutyWrite})
	p.asked("")
	p.a.Role.Duty = kurabe.DutyStepDown
	p.must(StepStepDown)
	if n := p.applied(); n.SteppedDown || n.Stopped || n.Crashes != 0 || p.running() || exists(p.home().RecordFile()) {
		t.Errorf("running %v, record %v, %+v", p.running(), exists(p.home().RecordFile()), n)
	}
}

// refuser is a stub whose server must part from its clients before it is told to stop.
type refuser struct {
	*stub
	heard []Applied
	alive bool
}

func (r *refuser) RefuseClients(_ context.Context, i Instance) error {
	n, err := readApplied(i.Home)
	_, r.alive, _ = proc.Find(i.Home.RecordFile())
	r.heard = append(r.heard, n)
	return errors.Join(err, errors.New("which must not hold up anything"))
}

// A primary parts from its clients first, and loads its settings again if it lives on.
func TestStopRefusesClients(t *testing.T) {
	for _, c := range []struct {
		name    string
		role    kurabe.Role
		step    StepName
		refuses bool
	}{
		{"a writer", kurabe.Role{Duty: kurabe.DutyWrite}, StepStop, true},
		{"one that yields", kurabe.Role{Duty: kurabe.DutyStepDown}, StepStepDown, true},
		{"a follower", following, StepStop, false},
		{"a fence", kurabe.Role{Duty: kurabe.DutyWrite}, StepFence, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := newPlace(t, kurabe.Role{Duty: kurabe.DutyWrite})
			r := &refuser{stub: p.stub}
			p.l.c.Driver = r
			p.obeying(0)
			p.note(func(n *Applied) { n.Loaded = "these" })
			p.a.Role = &c.role
			p.must(c.step)
			if !c.refuses {
				if len(r.heard) > 0 {
					t.Errorf("clients are refused: %+v", r.heard)
				}
				return
			}
			if len(r.heard) != 1 || r.heard[0].Loaded != "" || !r.alive || p.running() || !p.applied().Stopped {
				t.Errorf("%+v, alive %v, running %v, %+v", r.heard, r.alive, p.running(), p.applied())
			}
		})
	}
}

// One that is frozen ends, too, with all that it has begun.
func TestFence(t *testing.T) {
	p := newPlace(t, waiting)
	p.argv = []string{script, "-c", "/bin/sleep 60 & /bin/sleep 61"}
	p.must(StepStart)
	server, alive, err := proc.Find(p.home().RecordFile())
	if err != nil || !alive {
		t.Fatal(alive, err)
	}
	if err := server.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	p.must(StepFence)
	left, err := proc.Survivors(p.home().DataDir())
	if err != nil || len(left) > 0 || server.Alive() || exists(p.home().RecordFile()) {
		t.Errorf("left %v, alive %v, record %v, %v", left, server.Alive(), exists(p.home().RecordFile()), err)
	}
	if n := p.applied(); n.Crashes != 0 || n.Stopped {
		t.Errorf("%+v", n)
	}
	p.must(StepFence)
}

var following = kurabe.Role{Duty: kurabe.DutyFollow, Source: &kurabe.Source{ID: other}}

// An order to be made anew is noted before anything goes, and holds once.
// What is lost with a former primary's data is counted once for each time, also when making a
// follower of it takes several tries, and told also when nobody can count it.
// Where commits go on alone no more, no client comes in before they wait, and one that was
// stopped well may have had commits that nobody else has.
func TestBlockKeepsClientsOut(t *testing.T) {
	for _, blocks := range []bool{false, true} {
		role := kurabe.Role{Duty: kurabe.DutyWrite, WaitFor: []kurabe.InstanceID{other}, RequireStandby: blocks}
		p := newPlace(t, role)
		if err := p.do(StepPromote); err != nil {
			t.Fatal(err)
		}
		if n := p.applied(); n.ClientsKeptOut != blocks {
			t.Errorf("blocks %v: promoted, held %v", blocks, n.ClientsKeptOut)
		}
		if n := (Applied{Stopped: true}); n.holds(role) != blocks {
			t.Errorf("blocks %v: stopped well, held %v", blocks, n.holds(role))
		}
	}
}

// One that is told to wait for nobody, and for the same as before again, has to be made to.
func TestWaitsAreMadeAgain(t *testing.T) {
	p := newPlace(t, waiting)
	p.must(StepWaits)
	p.must(StepReload)
	if n := p.applied(); n.WaitsStale {
		t.Errorf("a reload that changes nothing: %+v", n)
	}
	p.a.Role = &kurabe.Role{Duty: kurabe.DutyWrite}
	p.refused = errors.New("no answer")
	if err := p.do(StepReload); err == nil {
		t.Fatal("no error")
	}
	if n := p.applied(); n.Loaded != "" {
		t.Errorf("who knows what it has loaded? %+v", n)
	}
	p.a.Role, p.refused = &waiting, nil
	p.must(StepReload)
	if n := p.applied(); !n.WaitsStale {
		t.Errorf("%+v", n)
	}
	p.must(StepWaits)
	if n := p.applied(); n.WaitsStale || !sameMembers(n.Waits, waiting.WaitFor) || p.waited != 2 {
		t.Errorf("%+v", n)
	}
}

func TestCertificateOfMember(t *testing.T) {
	ips := func(list ...string) (out []net.IP) {
		for _, ip := range list {
			out = append(out, net.ParseIP(ip))
		}
		return out
	}
	server, both := []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}, []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	single := kurabe.Assignment{Instance: "db-A", Name: "shop", Address: "127.66.0.1"}
	primary := having(single, func(a *kurabe.Assignment) { a.Role = &waiting })
	follower := kurabe.Assignment{Instance: other, Name: "shop", Address: "127.66.0.1", ListensAt: "127.66.0.2", Role: &following}
	for _, c := range []struct {
		name string
		a    kurabe.Assignment
		c    x509.Certificate
		want bool
	}{
		{"of one without a group", single, x509.Certificate{IPAddresses: ips("127.66.0.1"), ExtKeyUsage: server}, true},
		{"of another address", single, x509.Certificate{IPAddresses: ips("127.66.0.2"), ExtKeyUsage: server}, false},
		{"of the first writer", primary, x509.Certificate{Subject: pkix.Name{CommonName: "shop"}, IPAddresses: ips("127.66.0.1"), ExtKeyUsage: server}, true},
		{"of a follower", follower, x509.Certificate{Subject: pkix.Name{CommonName: "db-A~2"}, IPAddresses: ips("127.66.0.1", "127.66.0.2"), ExtKeyUsage: both}, true},
		{"of a follower, without its own address", follower, x509.Certificate{Subject: pkix.Name{CommonName: "db-A~2"}, IPAddresses: ips("127.66.0.1"), ExtKeyUsage: both}, false},
		{"of a follower, without the endpoint", follower, x509.Certificate{Subject: pkix.Name{CommonName: "db-A~2"}, IPAddresses: ips("127.66.0.2"), ExtKeyUsage: both}, false},
		{"of a follower, under the instance's name", follower, x509.Certificate{Subject: pkix.Name{CommonName: "shop"}, IPAddresses: ips("127.66.0.1", "127.66.0.2"), ExtKeyUsage: both}, false},
		{"of a follower, for servers only", follower, x509.Certificate{Subject: pkix.Name{CommonName: "db-A~2"}, IPAddresses: ips("127.66.0.1", "127.66.0.2"), ExtKeyUsage: server}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			if err := (Instance{Assignment: c.a}).fits(&c.c); (err == nil) != c.want {
				t.Error(err)
			}
		})
	}
	if got := (Instance{Assignment: single}).CertificateName() + " " + (Instance{Assignment: primary}).CertificateName() + " " + (Instance{Assignment: follower}).CertificateName(); got != "shop db-A db-A~2" {
		t.Error(got)
	}
}
