package plan_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"kurabe"
	"kurabe/internal/plan"
)

// server is one of a group: it obeys late, dies, hangs, is cut off, and is fenced only when
// it gets round to it.
type server struct {
	id       kurabe.InstanceID
	data     bool
	running  bool
	hung     bool
	apart    bool // it reaches no source
	behind   bool // it applies late
	follower bool
	held     bool // clients are kept out
	yielded  bool
	started  int64
	rebuilt  int64
	boot     int64
	version  string
	log      []int
	source   kurabe.InstanceID
	have     kurabe.Assignment // the newest that it knows of
	obeyed   kurabe.Assignment // that is true of it
	waits    []kurabe.InstanceID
	mark     int // end of the log when it began to wait
	// lost are followers whose slot here has lost its log, or is gone; of the second kind are
	// those who could follow nevertheless.
	lost, slotless map[kurabe.InstanceID]bool
	binlog         binlog
	failed         attempts
	full           bool  // its host's disk is
	ends           bool  // so does that disk, though nobody grows
	used           int64 // bytes
	outbox         *kurabe.InstanceReport
	// leased: a warden ends it at lease, or at vouched if that is later. Clients are kept
	// out until outlasts, for which outlasted is the epoch.
	leased                   bool
	lease, vouched, outlasts time.Time
	arrived                  time.Time // of the log by which a primary knew last that it follows
	asked                    time.Time // when it was asked last whether it does, in this run
	silent                   []kurabe.InstanceID
	silentAt                 int // its host's newest word when these had become silent
	outlasted, compared      kurabe.Epoch
}

// fleet is a group with a store that compares, and a client that remembers what was
// acknowledged.
type groupFleet struct {
	w       plan.World
	servers map[kurabe.InstanceID]*server
	cut     bool // servers do not reach each other
	lags    bool // followers apply nothing
	slow    bool // they are behind all the time
	acked   map[int]bool
	writes  int
	planned *plan.World
	// machines are the hosts where there are several, nil where there is one. revisions are
	// theirs as planned was read.
	machines map[kurabe.HostID]*machine
	readAt   map[kurabe.HostID]int
	seen     map[string]int
	events   []kurabe.Event
	// tooLarge: no server starts with the larger class. refused are the boots with which one
	// was seen not to start.
	tooLarge bool
	refused  map[int64]bool
	// fullHosts are those whose disk is full.
	fullHosts map[kurabe.HostID]bool
}

func newGroupFleet(engine kurabe.EngineName, cluster bool) *groupFleet {
	w := plan.World{Now: monday, Spec: spec(), Catalog: catalog(), Hosts: []kurabe.HostReport{host()}, Addresses: map[string]bool{}, Reserved: map[kurabe.HostID]int64{},
		Members: map[kurabe.InstanceID]*kurabe.Assignment{}, Reports: map[kurabe.InstanceID]*kurabe.InstanceReport{}}
	w.Spec.Engine, w.Spec.Now.MultiAZ, w.Spec.Cluster = engine, true, cluster
	if cluster {
		w.Hosts[0].Zones = append(w.Hosts[0].Zones, "us-east-1c")
	}
	w.Catalog.Engine, w.Catalog.Family = engine, familyOf(engine)
	f := &groupFleet{w: w, servers: map[kurabe.InstanceID]*server{}, acked: map[int]bool{}, seen: map[string]int{}, refused: map[int64]bool{}, fullHosts: map[kurabe.HostID]bool{}}
	f.offer(0, minors[0])
	return f
}

// wanted is how many standbys there are to be.
func (f *groupFleet) wanted() int {
	if f.w.Spec.Cluster {
		return 2
	}
	return 1
}

func (f *groupFleet) primary() kurabe.InstanceID {
	if f.w.Group != nil {
		return f.w.Group.Primary
	}
	return f.w.Spec.ID
}

// read takes what a decision will be made of; decide makes it, if nothing of what it
// comparesAgain has changed since.
func (f *groupFleet) read() {
	w := f.w
	w.Members, w.Reports = maps.Clone(f.w.Members), maps.Clone(f.w.Reports)
	w.Assignment, w.Report = w.Members[f.primary()], w.Reports[f.primary()]
	w.Lost, w.HeardAt = f.lost(), f.heard()
	f.planned, f.readAt = &w, f.revisions()
}

func (f *groupFleet) decide(t tester) {
	w := f.planned
	f.planned = nil
	if w == nil || w.Group != f.w.Group || w.Status != f.w.Status || !maps.Equal(w.Members, f.w.Members) {
		return
	}
	before, _ := json.Marshal(w)
	r := plan.Next(*w)
	if after, _ := json.Marshal(w); string(before) != string(after) {
		t.Fatalf("Next changed its input:\n%s\n%s", before, after)
	}
	for _, id := range r.RequireSilent {
		if f.machines[id].revision != f.readAt[id] {
			return // it was heard again meanwhile
		}
	}
	if g := r.Group; g != nil {
		f.checkGroup(t, g)
		f.w.Group = g
	}
	if r.GroupGone {
		f.w.Group = nil
	}
	if r.Status != nil {
		f.checkVersion(t, f.w.Status, r.Status)
		f.w.Status = r.Status
	}
	all := r.Members
	if r.Assignment != nil {
		all = append(all, *r.Assignment)
	}
	f.noteRefusals(w)
	for _, a := range all {
		f.checkRestart(t, w, a)
		if old := f.w.Members[a.Instance]; old != nil && a.Generation != old.Generation+1 {
			t.Fatalf("%s: generation %d after %d", a.Instance, a.Generation, old.Generation)
		}
		f.w.Members[a.Instance] = &a
		if f.servers[a.Instance] == nil {
			f.servers[a.Instance] = &server{id: a.Instance}
		}
	}
	for _, id := range r.MembersGone {
		delete(f.w.Members, id)
		delete(f.w.Reports, id)
		delete(f.servers, id)
	}
	f.events = append(f.events, r.Events...)
	for _, e := range r.Events {
		if e.ID == "KURABE-EVENT-0031" {
			f.seen["taken back"]++
		}
	}
}

// checkGroup holds a new record against the old one.
func (f *groupFleet) checkGroup(t tester, g *kurabe.Group) {
	old := f.w.Group
	if old == nil {
		return
	}
	switch {
	case g.Primary != old.Primary && (g.Epoch <= old.Epoch || !old.InSyncSet(g.Primary)):
		t.Fatalf("epoch %d, writer %s after epoch %d, writer %s, sync %v", g.Epoch, g.Primary, old.Epoch, old.Primary, old.SyncSet)
	case g.Primary == old.Primary && g.Epoch != old.Epoch && !g.Electing:
		t.Fatalf("epoch %d after %d for the same writer", g.Epoch, old.Epoch)
	case g.Electing && !old.Electing:
		f.seen["choices"]++
	case g.Epoch > old.Epoch:
		f.seen["takeovers"]++
		if len(old.SyncSet) > 1 {
			f.seen["chosen"]++
		}
		for id := range f.acked {
			if !slices.Contains(f.servers[g.Primary].log, id) {
				t.Fatalf("%s is to write without write %d, which was acknowledged", g.Primary, id)
			}
		}
	case len(g.SyncSet) > len(old.SyncSet):
		f.seen["joins"]++
	}
}

func (f *groupFleet) uncovered(s *server) []kurabe.InstanceID {
	return slices.DeleteFunc(slices.Clone(s.waits), func(id kurabe.InstanceID) bool { return f.has(s, id) >= s.mark })
}

// has is how much of a primary's log a follower of it has.
func (f *groupFleet) has(s *server, id kurabe.InstanceID) int {
	o := f.servers[id]
	if o == nil || !f.connected(o) || o.source != s.id {
		return -1
	}
	return len(o.log)
}

// connected says whether a follower's log comes in from its source.
func (f *groupFleet) connected(o *server) bool {
	from := f.servers[o.source]
	return !f.cut && !o.apart && o.running && !o.hung && o.follower && from != nil && from.running && !from.hung && !from.follower && !from.lost[o.id] &&
		isPrefix(o.log, from.log)
}

func isPrefix(log, of []int) bool { return len(log) <= len(of) && slices.Equal(log, of[:len(log)]) }

func (f *groupFleet) replicate(o *server, most int) {
	if f.connected(o) {
		from := f.servers[o.source]
		o.log = append(o.log[:len(o.log):len(o.log)], from.log[len(o.log):min(len(from.log), len(o.log)+most)]...)
	}
}

// append is a client's write.
func (f *groupFleet) append(s *server) {
	if f.opens(s) {
		f.writes++
		s.log = append(s.log, f.writes)
	}
}

// acknowledge tells the client of all that whoever is waited for has.
func (f *groupFleet) acknowledge(t tester, s *server) {
	if !f.opens(s) {
		return
	}
	have := len(s.log)
	if len(s.waits) > 0 {
		have = -1
	}
	for _, id := range s.waits {
		have = max(have, f.has(s, id))
	}
	for _, id := range s.log[:max(have, 0)] {
		if f.acked[id] {
			continue
		}
		f.acked[id] = true
		f.seen["acks"]++
		f.checkTwo(t, s, id)
		if w := f.servers[f.primary()]; !slices.Contains(w.log, id) {
			t.Fatalf("%s acknowledges write %d, which %s lacks, the writer of %+v", s.id, id, w.id, f.w.Group)
		}
	}
}

func (f *groupFleet) report(s *server) {
	a := s.obeyed
	if a.Instance == "" { // it has obeyed nothing, and says why
		if a = s.have; s.tried() == nil || a.Role == nil {
			return
		}
		role := *a.Role
		role.Epoch = 0
		a.Role = &role
	}
	done := s.have.Generation == a.Generation && (s.running && (s.follower || !s.held) || a.Goal != kurabe.GoalRunning)
	r := kurabe.InstanceReport{Host: a.Host, Instance: s.id, Generation: s.have.Generation, Done: done && !s.hung, Boot: s.boot, Running: s.running, EngineVersion: s.runs(),
		Serving: s.running && !s.hung && !s.held, Absent: a.Goal == kurabe.GoalAbsent}
	if a.Role != nil {
		role := &kurabe.RoleReport{Epoch: a.Role.Epoch, StartedSeq: s.started, RebuiltSeq: s.rebuilt, SteppedDown: s.yielded, Unresponsive: s.running && s.hung, Position: int64(len(s.log))}
		role.IsPrimary, role.Writing, role.Leased = s.running && !s.follower, f.opens(s), s.leased
		role.Following = f.connected(s)
		role.ApplyLags = s.running && s.follower && (s.behind || f.slow)
		role.Detached = a.Role.Duty == kurabe.DutyDetached && s.running && s.follower
		if role.IsPrimary {
			role.WaitsFor = s.waits
			for _, id := range a.Role.Followers {
				if s.lost[id] || s.slotless[id] {
					role.NeedRebuild = append(role.NeedRebuild, id)
				}
				switch n := f.has(s, id); {
				case n < 0:
					role.SilentFollowers = append(role.SilentFollowers, id)
				default:
					role.NearlyCaughtUp = append(role.NearlyCaughtUp, id)
				}
			}
			role.CutOff = f.unheard(s, role.SilentFollowers)
			lack := f.uncovered(s)
			role.CaughtUp = slices.DeleteFunc(slices.Clone(s.waits), func(id kurabe.InstanceID) bool { return slices.Contains(lack, id) })
			if !f.lags {
				role.Replayed = role.CaughtUp
			}
		}
		r.Role = role
	}
	if r.Failure = s.refusal(); r.Failure == nil {
		r.Failure = s.tried()
	}
	r.DiskExhausted = s.ends
	if r.UsedBytes = s.used; (s.full || f.fullHosts[a.Host]) && r.Failure == nil { // it stands beside Done
		r.Failure = &kurabe.Failure{Kind: kurabe.FailureStorage, Step: kurabe.StepKeepRoom, Message: "the disk is nearly full", Attempts: 1}
	}
	s.outbox = &r
}

func (f *groupFleet) deliver(s *server) {
	if f.machineOf(s).cut {
		return
	}
	if s.outbox != nil && f.w.Members[s.id] != nil {
		f.w.Reports[s.id] = s.outbox
	}
}

func (f *groupFleet) hear(s *server) {
	if a := f.w.Members[s.id]; a != nil && !f.machineOf(s).cut && !f.machineOf(s).deaf {
		s.have = *a
	}
}

func (f *groupFleet) ids() []kurabe.InstanceID { return slices.Sorted(maps.Keys(f.servers)) }

// calm is a stretch in which all goes well, so that there is something to lose.
func (f *groupFleet) calm(t tester) {
	f.cut = false
	for range 12 {
		for _, id := range slices.Sorted(maps.Keys(f.machines)) {
			m := f.machines[id]
			m.cut, m.deaf, m.sent = false, false, time.Time{}
			f.send(m)
			f.arrive(m)
			f.answer(m)
			f.judge(m)
			f.note(m)
		}
		f.pass(400 * time.Millisecond)
		if f.machines != nil {
			f.checkOne(t)
		}
		f.read()
		f.decide(t)
		for _, id := range f.ids() {
			s := f.servers[id]
			if s == nil {
				continue
			}
			s.hung, s.apart, s.behind = false, false, false
			f.hear(s)
			f.obey(s)
			f.append(s)
			f.replicate(s, 1000)
			f.acknowledge(t, s)
			f.report(s)
			f.deliver(s)
		}
	}
}

// TestGroupLosesNothing: whatever is late, dies, hangs, comes back or is cut off, and
// whatever the user asks for meanwhile, no primary begins without all that was
// acknowledged, nobody who was deposed acknowledges anything, and when all goes well again
// the group is whole again.
func TestGroupLosesNothing(t *testing.T) {
	seen := map[string]int{}
	rapid.Check(t, func(t *rapid.T) {
		f := newGroupFleet(rapid.SampledFrom([]kurabe.EngineName{kurabe.Postgres, kurabe.MariaDB}).Draw(t, "engine"), rapid.Bool().Draw(t, "cluster"))
		f.policy(rapid.SampledFrom(policies).Draw(t, "policy"))
		f.calm(t)
		t.Repeat(groupActions(f))
		f.recovers(t)
		for what, n := range f.seen {
			seen[what] += n
		}
	})
	t.Log(fmt.Sprint(seen))
	for _, what := range []string{"acks", "takeovers", "joins", "rebuilds", "choices", "chosen", "acks of two", "held promotions", "upgrades", "refusals", "taken back"} {
		if seen[what] == 0 {
			t.Errorf("no run had any %s, so this proves nothing", what)
		}
	}
}

// recovers demands that the group becomes what the user wants when nothing fails any more.
func (f *groupFleet) recovers(t tester) {
	s := *f.w.Spec
	s.Revision++
	s.Power = kurabe.Power{Seq: s.Power.Seq + 1, At: f.w.Now}
	f.w.Spec = &s
	f.drain()
	f.upToDate()
	f.fit()
	clear(f.fullHosts)
	whole := func() bool {
		return f.usable() && (!s.Now.MultiAZ || f.w.Group != nil && len(f.w.Group.SyncSet) == f.wanted())
	}
	for n := 0; n < 4 || n < 12 && !whole(); n++ { // an order to start may wait for startPauseMax
		f.calm(t)
	}
	f.reboot(t)
	s = *f.w.Spec
	state, _ := json.Marshal(map[string]any{"group": f.w.Group, "status": f.w.Status, "members": f.w.Members, "reports": f.w.Reports})
	if !f.usable() {
		t.Fatalf("it stays %s: %s", f.w.Status.State, state)
	}
	if s.Now.MultiAZ && (f.w.Group == nil || len(f.w.Group.SyncSet) != f.wanted() || f.w.Status.SecondZone == "" || f.w.Status.SecondZone == f.w.Status.Zone) {
		t.Fatalf("no standby has every commit: %s", state)
	}
	if !s.Now.MultiAZ && len(f.servers) != 1 {
		t.Fatalf("%d servers for one zone: %s", len(f.servers), state)
	}
	w := f.servers[f.primary()]
	if w.boot != f.w.Members[w.id].Boot || w.held || !w.running {
		t.Fatalf("the writer is not what it was told to be: %s", state)
	}
	f.checkTold(t)
	f.checkBinlog(t, w)
	f.checkVersions(t)
	for id := range f.acked {
		if !slices.Contains(w.log, id) {
			t.Fatalf("write %d is gone: %s", id, state)
		}
	}
}
