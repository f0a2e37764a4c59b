package plan_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"kurabe"
)

// machine is one host of a fleet: its agent says that it is there, and may serve for a while
// when that was answered. Each of the three ways of a word can be late, or cut.
type machine struct {
	id       kurabe.HostID
	cut      bool                               // it and the service do not reach each other
	deaf     bool                               // what it says is heard, and it hears nothing
	words    int                                // that it has said
	answered int                                // the newest of them that was answered
	sent     time.Time                          // of the word under way, zero: none
	asks     map[kurabe.InstanceID]kurabe.Epoch // the writers that it names
	granted  []kurabe.InstanceID                // the word has arrived, and the answer gives these a lease
	last     time.Time                          // the newest word that the service has
	lost     bool                               // decided, whether or not it is written
	said     time.Time                          // since when it is written to be lost, zero: it is not
	revision int                                // of what is written
}

// spread makes the fleet one of several hosts, each in a zone of its own.
func (f *groupFleet) spread(hosts int) {
	f.w.Hosts, f.machines = nil, map[kurabe.HostID]*machine{}
	for n, zone := range []string{"us-east-1a", "us-east-1b", "us-east-1c"}[:hosts] {
		id := kurabe.HostID(fmt.Sprintf("h%d", n+1))
		f.w.Hosts = append(f.w.Hosts, far(id, zone, fmt.Sprintf("10.0.0.%d/27", 32*(n+1))))
		f.offer(n, minors[0])
		f.machines[id] = &machine{id: id, last: f.w.Now}
	}
}

func (f *groupFleet) machineOf(s *server) *machine {
	if a := f.w.Members[s.id]; a != nil && f.machines[a.Host] != nil {
		return f.machines[a.Host]
	}
	return &machine{}
}

// send, arrive and answer are the ways of a word.
func (f *groupFleet) send(m *machine) {
	if !m.sent.IsZero() || m.cut {
		return
	}
	m.words++
	m.sent, m.granted, m.asks = f.w.Now, nil, map[kurabe.InstanceID]kurabe.Epoch{}
	for id, s := range f.servers {
		if role := s.have.Role; f.machineOf(s) == m && role != nil && role.Leased {
			m.asks[id] = role.Epoch
		}
	}
}

func (f *groupFleet) arrive(m *machine) {
	if m.sent.IsZero() || m.cut {
		return
	}
	m.last, m.granted = f.w.Now, []kurabe.InstanceID{}
	for id, epoch := range m.asks {
		if g := f.w.Group; !m.lost && g != nil && g.Primary == id && g.Epoch == epoch {
			m.granted = append(m.granted, id)
		}
	}
}

func (f *groupFleet) answer(m *machine) {
	if m.deaf || m.cut {
		m.sent, m.granted = time.Time{}, nil
		return
	}
	if m.granted != nil {
		m.answered = m.words
	}
	for _, id := range m.granted {
		if s := f.servers[id]; s != nil && s.have.Role != nil && s.have.Role.Epoch == m.asks[id] {
			s.lease = later(s.lease, m.sent.Add(kurabe.LeaseTime))
		}
	}
	m.sent, m.granted = time.Time{}, nil
}

// judge is the service's look at who is heard; write has the outcome stored.
func (f *groupFleet) judge(m *machine) {
	if f.w.Now.Sub(m.last) > kurabe.HostLostAfter {
		m.lost = true
	}
}

func (f *groupFleet) note(m *machine) {
	back := m.lost && f.w.Now.Sub(m.last) <= kurabe.HostLostAfter
	switch {
	case back: // also when it was not written: it may have been, for all that is known
		m.said, m.lost = time.Time{}, false
		m.revision++
	case m.lost && m.said.IsZero() && !back:
		m.said = m.last
		m.revision++
		f.seen["losses"]++
	}
}

// lost is what is written of all hosts.
func (f *groupFleet) lost() map[kurabe.HostID]time.Time {
	out := map[kurabe.HostID]time.Time{}
	for id, m := range f.machines {
		if !m.said.IsZero() {
			out[id] = m.said
		}
	}
	return out
}

// heard is the newest word of each host.
func (f *groupFleet) heard() map[kurabe.HostID]time.Time {
	out := map[kurabe.HostID]time.Time{}
	for id, m := range f.machines {
		out[id] = m.last
	}
	return out
}

func (f *groupFleet) revisions() map[kurabe.HostID]int {
	out := map[kurabe.HostID]int{}
	for id, m := range f.machines {
		out[id] = m.revision
	}
	return out
}

// vouch: a primary has seen that one of those whom it waits for follows it.
func (f *groupFleet) vouch(s *server) {
	follows := func(id kurabe.InstanceID) bool { return f.has(s, id) >= 0 }
	if !s.running || s.hung || s.follower || !slices.ContainsFunc(s.waits, follows) {
		return
	}
	s.vouched = later(s.vouched, f.w.Now.Add(kurabe.StandbyLeaseTime))
	f.seen["vouches"]++
	for _, id := range s.waits {
		if follows(id) {
			f.servers[id].arrived, f.servers[id].asked = f.w.Now, f.w.Now
		}
	}
}

// lastWord is from when the one who is promoted counts what the primary before it may still
// serve. PostgreSQL counts from when its log came in last: what a primary goes by is a record
// in that, and who is promoted has as much of the log as any other. It does so as early as it
// may, which is when the record came. MariaDB counts from when it was asked last, which it knows
// of itself and of this run.
func (f *groupFleet) lastWord(s *server, role kurabe.Role) time.Time {
	if f.w.Spec.Engine != kurabe.Postgres {
		members := slices.DeleteFunc(slices.Clone(role.Followers), func(id kurabe.InstanceID) bool { return id.Owner() != s.id.Owner() })
		if s.asked.IsZero() || f.w.Spec.Cluster || len(members) > 1 {
			return f.w.Now
		}
		f.seen["asked"]++
		return s.asked
	}
	var last time.Time
	for _, s := range f.servers {
		last = later(last, s.arrived)
	}
	return last
}

// unheard says whether a primary's host has heard nothing from the service since these are silent.
func (f *groupFleet) unheard(s *server, silent []kurabe.InstanceID) bool {
	m := f.machineOf(s)
	if !slices.Equal(s.silent, silent) {
		s.silent, s.silentAt = silent, m.words
	}
	return s.leased && len(silent) > 0 && m.answered <= s.silentAt
}

// pass lets time go by: wardens end what has no lease.
func (f *groupFleet) pass(d time.Duration) {
	f.w.Now = f.w.Now.Add(d)
	for _, s := range f.servers {
		if s.leased && s.running && !s.follower && !f.w.Now.Before(later(s.vouched, s.lease)) {
			s.die()
			f.seen["expiries"]++
		}
	}
}

// opens says whether a server serves clients.
func (f *groupFleet) opens(s *server) bool {
	return s.running && !s.hung && !s.follower && !s.held && !f.w.Now.Before(s.outlasts)
}

// checkOne demands that no two servers on different hosts serve, ever.
func (f *groupFleet) checkOne(t tester) {
	var open *server
	for _, id := range f.ids() {
		s := f.servers[id]
		if !f.opens(s) {
			continue
		}
		if open != nil && f.machineOf(open) != f.machineOf(s) {
			t.Fatalf("%s and %s serve at the same time: %+v, %+v, %+v", open.id, s.id, f.w.Group, open, s)
		}
		open = s
	}
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// hostActions are what can happen to hosts, beside what can happen to servers.
func hostActions(f *groupFleet) map[string]func(*rapid.T) {
	ids := slices.Sorted(maps.Keys(f.machines))
	pick := func(t *rapid.T) *machine { return f.machines[rapid.SampledFrom(ids).Draw(t, "host")] }
	return map[string]func(*rapid.T){
		"cut":    func(t *rapid.T) { m := pick(t); m.cut = !m.cut },
		"send":   func(t *rapid.T) { f.send(pick(t)) },
		"arrive": func(t *rapid.T) { f.arrive(pick(t)) },
		"answer": func(t *rapid.T) { f.answer(pick(t)) },
		"judge":  func(t *rapid.T) { f.judge(pick(t)) },
		"note":   func(t *rapid.T) { f.note(pick(t)) },
		"vouch": func(t *rapid.T) {
			for _, s := range f.servers {
				f.vouch(s)
			}
		},
		// A stretch in which one host hears nobody, and the others go on.
		"silence": func(t *rapid.T) {
			m, links, deaf := pick(t), rapid.Bool().Draw(t, "links"), rapid.Bool().Draw(t, "one way")
			was := f.cut
			m.cut, m.deaf, f.cut = !deaf, deaf, links
			for range rapid.IntRange(1, 16).Draw(t, "half seconds") {
				f.pass(500 * time.Millisecond)
				f.work(t, m)
				f.checkOne(t)
			}
			m.deaf, f.cut = false, was
			f.seen["silences"]++
		},
		// A primary that its standby alone vouches for loses the standby and finds the service, at
		// about the moment at which it is decided about.
		"swap": func(t *rapid.T) {
			w := f.servers[f.primary()]
			if w == nil {
				t.Skip("no servers yet")
			}
			m := f.machineOf(w)
			m.cut, f.cut = true, false
			for range 12 {
				f.pass(500 * time.Millisecond)
				f.work(t, nil)
			}
			m.cut, f.cut = false, true
			f.seen["swaps"]++
			for _, which := range rapid.SliceOfN(rapid.IntRange(0, 8), 4, 12).Draw(t, "moments") {
				f.moment(t, m, which)
				f.checkOne(t)
			}
			for _, which := range slices.Repeat([]int{8, 4, 5, 8, 6}, 5) {
				f.moment(t, m, which)
				f.checkOne(t)
			}
		},
	}
}

// moment is one of those things that nobody keeps in order.
func (f *groupFleet) moment(t tester, m *machine, which int) {
	switch which {
	case 0:
		f.send(m)
	case 1:
		f.arrive(m)
	case 2:
		f.answer(m)
	case 3:
		f.judge(m)
		f.note(m)
	case 4:
		f.read()
	case 5:
		f.decide(t)
	case 6:
		f.pass(700 * time.Millisecond)
	default:
		for _, id := range f.ids() {
			if s := f.servers[id]; f.machineOf(s) != m {
				f.hear(s)
				f.obey(s)
				f.report(s)
				f.deliver(s)
			}
		}
	}
}

// work is half a second of everything but of one host.
func (f *groupFleet) work(t tester, but *machine) {
	for _, id := range slices.Sorted(maps.Keys(f.machines)) {
		m := f.machines[id]
		f.send(m)
		f.arrive(m)
		f.answer(m)
		f.judge(m)
		f.note(m)
	}
	f.read()
	f.decide(t)
	for _, id := range f.ids() {
		s := f.servers[id]
		if s == nil || f.machineOf(s) == but {
			continue
		}
		f.vouch(s)
		f.hear(s)
		f.obey(s)
		f.report(s)
		f.deliver(s)
	}
}

// TestGroupOverHosts: as TestGroupLosesNothing, and hosts are cut off from the service, from
// each other or from both, words are late, and leases end. No two servers serve.
func TestGroupOverHosts(t *testing.T) {
	seen := map[string]int{}
	rapid.Check(t, func(t *rapid.T) {
		cluster := rapid.Bool().Draw(t, "cluster")
		f := newGroupFleet(rapid.SampledFrom([]kurabe.EngineName{kurabe.Postgres, kurabe.MariaDB}).Draw(t, "engine"), cluster)
		least := map[bool]int{true: 3, false: 2}[cluster] // each server has a zone of its own
		f.spread(rapid.IntRange(least, 3).Draw(t, "hosts"))
		f.policy(rapid.SampledFrom(policies).Draw(t, "policy"))
		f.calm(t)
		actions := groupActions(f)
		maps.Copy(actions, hostActions(f))
		actions[""] = func(t *rapid.T) { f.checkOne(t) }
		t.Repeat(actions)
		f.recovers(t)
		for what, n := range f.seen {
			seen[what] += n
		}
	})
	t.Log(fmt.Sprint(seen))
	for _, what := range []string{"acks", "takeovers", "joins", "losses", "vouches", "expiries", "outlasted", "swaps", "choices", "chosen", "acks of two", "held promotions", "upgrades", "refusals", "taken back", "silences", "asked"} {
		if seen[what] == 0 {
			t.Errorf("no run had any %s, so this proves nothing", what)
		}
	}
}

// TestWriterThatHearsNobody: its host is heard and hears neither the service nor the standby, so
// its lease ends. Nobody lets it go on alone before, who could not tell it so: the standby has
// every commit, and takes over. A standby that is gone keeps no primary from going on alone.
func TestWriterThatHearsNobody(t *testing.T) {
	for _, engine := range []kurabe.EngineName{kurabe.Postgres, kurabe.MariaDB} {
		for _, cluster := range []bool{false, true} {
			f := newGroupFleet(engine, cluster)
			f.spread(3)
			f.calm(t)
			old := f.w.Group.Primary
			m := f.machineOf(f.servers[old])
			m.deaf = true
			for _, id := range f.ids() {
				f.servers[id].apart = id != old
			}
			began := f.w.Now
			serves := func() bool { return f.w.Group.Primary != old && f.opens(f.servers[f.w.Group.Primary]) }
			for !serves() && f.w.Now.Sub(began) < 10*time.Second {
				// Its words end when it takes the link for broken.
				m.cut = f.w.Now.Sub(began) > 1500*time.Millisecond
				f.pass(250 * time.Millisecond)
				f.work(t, nil)
				f.checkOne(t)
			}
			if !serves() {
				t.Errorf("%s, cluster %v: nobody serves: %+v", engine, cluster, f.w.Group)
			}
			m.cut, m.deaf = false, false
			f.recovers(t)
			for _, id := range f.ids() {
				f.servers[id].apart = id != f.primary()
			}
			for range 4 {
				f.pass(500 * time.Millisecond)
				f.work(t, nil)
			}
			if len(f.w.Group.SyncSet) > 0 {
				t.Errorf("%s, cluster %v: commits wait: %+v", engine, cluster, f.w.Group)
			}
		}
	}
}

// TestNoFailoverInOrderToAHostThatIsSilent: the primary would stop for nobody, start again, and so
// on without a pause.
func TestNoFailoverInOrderToAHostThatIsSilent(t *testing.T) {
	f := newGroupFleet(kurabe.Postgres, false)
	f.spread(2)
	f.calm(t)
	epoch := f.w.Group.Epoch
	f.w.Now = f.w.Now.Add(3 * time.Second) // nobody is lost yet
	f.ask(func(s *kurabe.InstanceSpec) { s.FailoverSeq++ })
	f.read()
	f.decide(t)
	if f.w.Group.HandoverTo != "" {
		t.Fatalf("it hands over to %s", f.w.Group.HandoverTo)
	}
	f.calm(t)
	if f.w.Group.Epoch == epoch {
		t.Errorf("it never does: %+v", f.w.Group)
	}
}
