package plan

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"kurabe"
)

// simNode is a server that obeys late, dies, is cut off, and is never fenced.
type simNode struct {
	id        kurabe.MemberID
	alive     bool
	connected bool // with the control plane
	log       []int
	order     kurabe.MemberOrder // that it obeys
	writing   bool
	heard     map[kurabe.MemberID]time.Time
	flushed   map[kurabe.MemberID]int
	outbox    *kurabe.MemberReport
}

// groupSim is a group with a store that compares, and a client that remembers what was
// acknowledged. Every delay is possible: orders, reports and decisions arrive late, and
// whoever lost the right to write goes on for as long as it likes.
type groupSim struct {
	now     time.Time
	group   kurabe.Group
	orders  map[kurabe.MemberID]kurabe.MemberOrder
	reports map[kurabe.MemberID]kurabe.MemberReport
	lease   kurabe.Lease
	nodes   map[kurabe.MemberID]*simNode
	cut     map[[2]kurabe.MemberID]bool
	begun   map[kurabe.Epoch]kurabe.MemberID // who has written under an epoch
	acked   map[int]bool
	writes  int
	planned *GroupWorld // read, and not yet decided on

	acks, takeovers, joins int // what a run has seen
}

func newGroupSim(members int) *groupSim {
	s := &groupSim{
		now: time.Unix(1_800_000_000, 0), orders: map[kurabe.MemberID]kurabe.MemberOrder{}, reports: map[kurabe.MemberID]kurabe.MemberReport{},
		nodes: map[kurabe.MemberID]*simNode{}, cut: map[[2]kurabe.MemberID]bool{}, begun: map[kurabe.Epoch]kurabe.MemberID{}, acked: map[int]bool{},
	}
	for n := range members {
		id := kurabe.MemberID(rune('a' + n))
		s.group.Members = append(s.group.Members, kurabe.Member{ID: id})
		s.nodes[id] = &simNode{id: id, alive: true, connected: true, heard: map[kurabe.MemberID]time.Time{}, flushed: map[kurabe.MemberID]int{}}
	}
	s.group.Epoch, s.group.Writer, s.group.Policy = 1, "a", kurabe.Degrade
	return s
}

func (s *groupSim) ids() []kurabe.MemberID { return slices.Sorted(maps.Keys(s.nodes)) }

// read takes what a decision will be made of; decide makes it, if nothing of what it
// compares has changed since.
func (s *groupSim) read() {
	w := GroupWorld{Now: s.now, Group: s.group, Orders: maps.Clone(s.orders), Reports: maps.Clone(s.reports), Lease: s.lease}
	w.Group.Sync = slices.Clone(s.group.Sync)
	s.planned = &w
}

func (s *groupSim) decide() {
	w := s.planned
	s.planned = nil
	if w == nil || w.Lease != s.lease || w.Group.Epoch != s.group.Epoch || w.Group.Writer != s.group.Writer || !slices.Equal(w.Group.Sync, s.group.Sync) ||
		!maps.EqualFunc(w.Orders, s.orders, func(a, b kurabe.MemberOrder) bool { return a.Generation == b.Generation }) {
		return
	}
	r := NextGroup(*w)
	if r.Group != nil {
		if r.Group.Epoch > s.group.Epoch {
			s.takeovers++
		}
		if len(r.Group.Sync) > len(s.group.Sync) {
			s.joins++
		}
		s.group = *r.Group
	}
	maps.Copy(s.orders, r.Orders)
}

// obey makes the newest order true, when the right to write can be had that it needs.
func (s *groupSim) obey(t *rapid.T, n *simNode) {
	order, ok := s.orders[n.id]
	if !ok || !n.alive || !n.connected || order.Generation <= n.order.Generation && (n.writing || !order.Writer) {
		return
	}
	if !order.Writer {
		n.order, n.writing = order, false
		return
	}
	mine := kurabe.Lease{Member: n.id, Epoch: order.Epoch}
	if s.lease != mine {
		if (s.lease != kurabe.Lease{}) || s.group.Writer != n.id || s.group.Epoch != order.Epoch {
			return
		}
		s.lease = mine
	}
	if !n.writing || n.order.Epoch != order.Epoch {
		if other, had := s.begun[order.Epoch]; had && other != n.id {
			t.Fatalf("%s and %s write under epoch %d", other, n.id, order.Epoch)
		}
		s.begun[order.Epoch] = n.id
		for id := range s.acked {
			if !slices.Contains(n.log, id) {
				t.Fatalf("%s begins to write under epoch %d without write %d, which was acknowledged", n.id, order.Epoch, id)
			}
		}
		clear(n.heard)
		clear(n.flushed)
	}
	n.order, n.writing = order, true
}

// replicate brings a follower some of what it lacks. What the one it follows does not
// have is taken back first.
func (s *groupSim) replicate(n *simNode, most int) {
	from := s.nodes[n.order.Follow]
	if !n.alive || n.writing || from == nil || !from.alive || !from.writing || s.cut[pair(n.id, from.id)] {
		return
	}
	same := 0
	for same < len(n.log) && same < len(from.log) && n.log[same] == from.log[same] {
		same++
	}
	n.log = append(n.log[:same:same], from.log[same:min(len(from.log), same+most)]...)
	from.heard[n.id], from.flushed[n.id] = s.now, len(n.log)
}

// acknowledge tells the client of all that whoever is waited for has.
func (s *groupSim) acknowledge(t *rapid.T, n *simNode) {
	if !n.alive || !n.writing {
		return
	}
	have := len(n.log)
	for _, id := range n.order.WaitFor {
		have = min(have, n.flushed[id])
	}
	for _, id := range n.log[:have] {
		if s.acked[id] {
			continue
		}
		s.acked[id] = true
		s.acks++
		for epoch, writer := range s.begun {
			if epoch > n.order.Epoch && !slices.Contains(s.nodes[writer].log, id) {
				t.Fatalf("%s acknowledges write %d under epoch %d, and %s writes under epoch %d without it", n.id, id, n.order.Epoch, writer, epoch)
			}
		}
	}
}

func (s *groupSim) report(n *simNode) {
	if !n.alive {
		return
	}
	r := kurabe.MemberReport{Member: n.id, At: s.now, Generation: n.order.Generation, Writing: n.writing, Following: !n.writing,
		Written: kurabe.Position(len(n.log)), WaitsFor: n.order.WaitFor, Heard: maps.Clone(n.heard), Flushed: map[kurabe.MemberID]kurabe.Position{}}
	for id, have := range n.flushed {
		r.Flushed[id] = kurabe.Position(have)
	}
	n.outbox = &r
}

// calm is a stretch in which all goes well, so that there is something to lose.
func (s *groupSim) calm(t *rapid.T) {
	for range 3 {
		for _, id := range s.ids() {
			n := s.nodes[id]
			s.obey(t, n)
			s.replicate(n, 1000)
			s.acknowledge(t, n)
		}
		for _, id := range s.ids() {
			s.report(s.nodes[id])
			if n := s.nodes[id]; n.connected && n.outbox != nil {
				s.reports[id] = *n.outbox
			}
		}
		s.read()
		s.decide()
	}
}

// die ends a server at once. Its agent lives, and gives the right to write back if it can.
func (s *groupSim) die(n *simNode) {
	n.alive, n.writing, n.outbox = false, false, nil
	n.order = kurabe.MemberOrder{}
	if n.connected && s.lease.Member == n.id {
		s.lease = kurabe.Lease{}
	}
}

func pair(a, b kurabe.MemberID) [2]kurabe.MemberID { return [2]kurabe.MemberID{min(a, b), max(a, b)} }

// TestGroupLosesNothing: whatever is late, dies, comes back or is cut off, and without any
// fence, no writer begins without all that was acknowledged, and nobody who was deposed
// acknowledges anything.
func TestGroupLosesNothing(t *testing.T) {
	seen := map[string]int{}
	rapid.Check(t, func(t *rapid.T) {
		s := newGroupSim(rapid.IntRange(2, 3).Draw(t, "members"))
		s.group.Policy = rapid.SampledFrom([]kurabe.Degradation{kurabe.Degrade, kurabe.Block}).Draw(t, "policy")
		pick := func(t *rapid.T) *simNode { return s.nodes[rapid.SampledFrom(s.ids()).Draw(t, "member")] }
		t.Repeat(map[string]func(*rapid.T){
			"calm": s.calm,
			"write": func(t *rapid.T) {
				if n := pick(t); n.alive && n.writing {
					s.writes++
					n.log = append(n.log, s.writes)
				}
			},
			"replicate":   func(t *rapid.T) { s.replicate(pick(t), rapid.IntRange(0, 3).Draw(t, "most")) },
			"acknowledge": func(t *rapid.T) { s.acknowledge(t, pick(t)) },
			"obey":        func(t *rapid.T) { s.obey(t, pick(t)) },
			"report":      func(t *rapid.T) { s.report(pick(t)) },
			"deliver": func(t *rapid.T) {
				if n := pick(t); n.connected && n.outbox != nil {
					s.reports[n.id] = *n.outbox
				}
			},
			"read":   func(*rapid.T) { s.read() },
			"decide": func(*rapid.T) { s.decide() },
			"die":    func(t *rapid.T) { s.die(pick(t)) },
			"start":  func(t *rapid.T) { pick(t).alive = true },
			"lease ends": func(t *rapid.T) {
				if n := s.nodes[s.lease.Member]; n != nil && (!n.alive || !n.connected) {
					s.lease = kurabe.Lease{}
				}
			},
			"control": func(t *rapid.T) { n := pick(t); n.connected = !n.connected },
			"network": func(t *rapid.T) {
				if a, b := pick(t), pick(t); a != b {
					s.cut[pair(a.id, b.id)] = !s.cut[pair(a.id, b.id)]
				}
			},
			"time": func(t *rapid.T) {
				s.now = s.now.Add(time.Duration(rapid.IntRange(1, 2000).Draw(t, "ms")) * time.Millisecond)
			},
		})
		seen["acks"] += s.acks
		seen["takeovers"] += s.takeovers
		seen["joins"] += s.joins
	})
	t.Log(fmt.Sprint(seen))
	for _, what := range []string{"acks", "takeovers", "joins"} {
		if seen[what] == 0 {
			t.Errorf("no run had any %s, so this proves nothing", what)
		}
	}
}
