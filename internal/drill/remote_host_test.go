package drill

import (
	"context"
	"errors"
	"net/netip"
	"strings"
	"testing"
	"time"

	"kurabe"
)

// scripted is a service with servers on other hosts.
type scripted struct {
	Service
	refuse  error
	strikes chan Permit
	held    func(end bool) (Held, error)
}

func (s *scripted) Permit(_ context.Context, of Server, f Fault) (Permit, error) {
	return Permit{Fault: f, Key: "k" + string(of.ID), Server: of.ID, Host: of.Host, PID: of.PID}, s.refuse
}

func (s *scripted) Strike(ctx context.Context, p Permit) error {
	s.strikes <- p
	return errors.Join(s.refuse, ctx.Err())
}

func (s *scripted) Hold(_ context.Context, _ Permit, end bool) (Held, error) { return s.held(end) }

// elsewhere is a drill of a machine that has no server of the cluster.
func elsewhere(s *scripted, o Order) *run {
	o.Cluster = true
	return &run{Drill: &Drill{Order: o, Service: s, Host: "elsewhere", Say: func(string) {}}, watch: &watch{}, before: ring(), killed: map[victim]bool{}}
}

func wantNoted(t *testing.T, r *run, words ...string) {
	t.Helper()
	told := ""
	for _, e := range r.watch.timeline() {
		told += e.Text + "\n"
	}
	for _, want := range words {
		if !strings.Contains(told, want) {
			t.Errorf("%q is missing in\n%s", want, told)
		}
	}
}

// What is on another host is killed by that, and nothing else is done to it.
func TestKillFar(t *testing.T) {
	s := &scripted{strikes: make(chan Permit, 9)}
	r := elsewhere(s, Order{Action: Kill, Side: Both})
	list, err := r.targets(t.Context(), ring())
	if err != nil || len(list) != 2 || list[0].pid() != 10 || list[1].pid() != 11 {
		t.Fatalf("%+v, %v", list, err)
	}
	over, cancel := context.WithCancel(t.Context())
	cancel() // an interrupted drill still hears what became of it
	if err := r.strike(over, list); err != nil {
		t.Fatal(err)
	}
	got := map[kurabe.InstanceID]bool{(<-s.strikes).Server: true, (<-s.strikes).Server: true}
	if !got["db-A"] || !got["db-A~2"] || len(s.strikes) != 0 || !r.killed[victim{"db-A", 10}] || !r.killed[victim{"db-A~2", 11}] || len(r.struck) != 2 || r.fault.IsZero() {
		t.Errorf("%v, %+v", got, r)
	}
	wantNoted(t, r, "host h1 kills process 10: server 1, writer", "host h2 has killed process 11")
	s.refuse = errors.New("no such permit")
	if err := r.kill(t.Context(), list[:1]); err == nil || !strings.Contains(err.Error(), "have db-A killed by host h1: no such permit") {
		t.Error(err)
	}
}

// What another host freezes or cuts off is ended when its time is up, or as soon as one of
// several could not be begun; what it ended before is told.
func TestLastFar(t *testing.T) {
	gone := errors.New("the service does not answer")
	for name, c := range map[string]struct {
		order  Order
		refuse error
		held   func(tries int, end bool) (Held, error)
		says   string // of the error
		notes  []string
		struck int
	}{
		"frozen": {Order{Action: Freeze, Side: Reader, For: FreezeMin}, nil,
			func(_ int, end bool) (Held, error) { return Held{Over: end}, nil }, "",
			[]string{"host h2 freezes process 11", "host h2 has frozen process 11", "host h2 resumes process 11"}, 1},
		"killed while it was frozen": {Order{Action: Freeze, Side: Reader, For: time.Hour}, nil,
			func(int, bool) (Held, error) { return Held{Over: true, Ended: true}, nil }, "", []string{"process 11 was killed while it was frozen"}, 1},
		"a word is not heard": {Order{Action: Freeze, Side: Writer, For: FreezeMin}, nil,
			func(tries int, end bool) (Held, error) {
				if tries < 2 {
					return Held{}, gone
				}
				return Held{Over: end}, nil
			}, "", []string{"host h1 resumes process 10"}, 1},
		"it heard nothing": {Order{Action: Freeze, Side: Writer, For: FreezeMin}, nil,
			func(int, bool) (Held, error) { return Held{Over: true, Silent: true}, nil }, "", []string{"heard nothing of the drill"}, 1},
		"the agent was restarted": {Order{Action: Freeze, Side: Writer, For: FreezeMin}, nil,
			func(int, bool) (Held, error) { return Held{Over: true, Forgotten: true}, nil }, "", []string{"the agent of host h1 was restarted"}, 1},
		"it does not go on": {Order{Action: Freeze, Side: Writer, For: FreezeMin}, nil,
			func(int, bool) (Held, error) { return Held{Over: true, Failure: "kill -CONT 10"}, nil }, "host h1: kill -CONT 10", nil, 1},
		"it is refused": {Order{Action: Freeze, Side: Writer, For: time.Hour}, errors.New("over"),
			func(int, bool) (Held, error) { return Held{Over: true}, nil }, "have db-A frozen for 1h0m0s by host h1: over", nil, 1},
		"cut off": {Order{Action: Cut, Side: Reader, For: FreezeMin}, nil,
			func(_ int, end bool) (Held, error) { return Held{Over: end, Lost: 2}, nil }, "",
			[]string{"cuts off process 11 from the other servers: server 2, reader", "host h2 has cut process 11 off from 2 other servers", "host h3 has cut process 12 off from another server", "6 packets were dropped"}, 3},
		"nothing is lost": {Order{Action: Cut, Side: Reader, For: FreezeMin}, nil,
			func(_ int, end bool) (Held, error) { return Held{Over: end}, nil }, "had no effect", nil, 3},
	} {
		t.Run(name, func(t *testing.T) {
			tries := make(chan int, 1)
			tries <- 0
			s := &scripted{refuse: nil, strikes: make(chan Permit, 9), held: func(end bool) (Held, error) {
				n := <-tries
				tries <- n + 1
				return c.held(n, end)
			}}
			r := elsewhere(s, c.order)
			for n := range r.before.Servers {
				r.before.Servers[n].Address = netip.AddrFrom4([4]byte{10, 0, 0, byte(n + 1)})
			}
			list, err := r.targets(t.Context(), r.before)
			if err != nil {
				t.Fatal(err)
			}
			if s.refuse = c.refuse; c.refuse != nil && c.order.Action == Cut {
				t.Fatal("a cut asks for its permits last")
			}
			if err := r.strike(t.Context(), list); (err != nil) != (c.says != "") || err != nil && !strings.Contains(err.Error(), c.says) {
				t.Errorf("%v, want %q", err, c.says)
			}
			if len(s.strikes) != c.struck {
				t.Errorf("%d were struck", len(s.strikes))
			}
			wantNoted(t, r, c.notes...)
		})
	}
}

func TestFault(t *testing.T) {
	peer := netip.MustParseAddr("10.0.0.1")
	good := []Fault{{}, {Action: Kill}, {Action: Freeze, For: FreezeMin}, {Action: Cut, For: FreezeMax, Peers: []netip.Addr{peer}}}
	for n, f := range good {
		if err := f.Check(); err != nil {
			t.Errorf("%+v: %v", f, err)
		}
		for m, other := range good {
			if same := n == m || n < 2 && m < 2; f.Is(other) != same {
				t.Errorf("%+v is %+v: %v", f, other, !same)
			}
		}
	}
	for _, f := range []Fault{
		{Action: Failover}, {For: time.Second}, {Action: Freeze}, {Action: Freeze, For: FreezeMax + 1}, {Action: Freeze, For: time.Second, Peers: []netip.Addr{peer}},
		{Action: Cut, For: time.Second}, {Action: Cut, For: time.Second, Peers: make([]netip.Addr, peersMax+1)}, {Action: Cut, For: time.Second, Peers: []netip.Addr{netip.IPv6Loopback()}},
	} {
		if err := f.Check(); kurabe.CodeOf(err) != kurabe.CodeInvalidParameterValue {
			t.Errorf("%+v: %v", f, err)
		}
	}
}
