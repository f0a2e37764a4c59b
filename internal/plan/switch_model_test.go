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

// record is what the store has of one instance: the pointer changes with each write, so two
// of them are the same exactly when nothing was written between.
type record struct {
	spec   *kurabe.InstanceSpec
	status *kurabe.InstanceStatus
	group  *kurabe.Group
	order  *kurabe.Assignment
	report *kurabe.InstanceReport
}

// switchFleet is a source with two read replicas, a store that compares, and a client that
// writes to whoever takes it and remembers what was acknowledged.
type switchFleet struct {
	now     time.Time
	store   map[kurabe.InstanceID]record
	servers map[kurabe.InstanceID]*switchServer
	// read is what the next decision about each instance is made of: a planner that was deposed
	// may decide of one what the next one has decided otherwise.
	read   map[kurabe.InstanceID]map[kurabe.InstanceID]record
	cut    bool // servers do not reach each other
	writes int
	acked  map[int]bool
	seen   map[string]int
}

var switchIDs = []kurabe.InstanceID{"db-A", "db-B", "db-C"}

func newSwitchFleet(engine kurabe.EngineName) *switchFleet {
	f := &switchFleet{now: monday, store: map[kurabe.InstanceID]record{}, read: map[kurabe.InstanceID]map[kurabe.InstanceID]record{}, servers: map[kurabe.InstanceID]*switchServer{}, acked: map[int]bool{}, seen: map[string]int{}}
	for _, id := range switchIDs {
		s := spec()
		s.ID, s.Name, s.Engine, s.Now.RetentionDays = id, string(id), engine, 1
		if id != switchIDs[0] {
			s.Source = switchIDs[0]
		}
		f.store[id] = record{spec: s}
		f.servers[id] = &switchServer{id: id}
	}
	return f
}

// world is what the planner knows of one instance, from what it has read of all.
func switchWorld(all map[kurabe.InstanceID]record, id kurabe.InstanceID, now time.Time) plan.World {
	r := all[id]
	w := plan.World{Now: now, Spec: r.spec, Status: r.status, Group: r.group, Assignment: r.order, Report: r.report, Catalog: catalog(), Hosts: []kurabe.HostReport{host()},
		Addresses: map[string]bool{}, Reserved: map[kurabe.HostID]int64{}, Members: map[kurabe.InstanceID]*kurabe.Assignment{}, Reports: map[kurabe.InstanceID]*kurabe.InstanceReport{}}
	if r.order != nil {
		w.Members[id] = r.order
	}
	if r.report != nil {
		w.Reports[id] = r.report
	}
	for _, other := range switchIDs {
		if followed(all, other) == id {
			w.Replicas = append(w.Replicas, other)
		}
		if o := all[other].order; o != nil && other != id {
			w.Addresses[o.Address] = true
		}
	}
	if source := followed(all, id); source != "" {
		w.Source = switchUpstream(all, source)
	}
	heir := pendingHeir(r)
	if r.group != nil && r.group.SwitchoverTo != "" {
		heir = r.group.SwitchoverTo
	}
	if heir != "" {
		w.SwitchoverTarget = switchUpstream(all, heir)
	}
	return w
}

func followed(all map[kurabe.InstanceID]record, id kurabe.InstanceID) kurabe.InstanceID {
	return kurabe.Followed(*all[id].spec, all[id].status)
}

func pendingHeir(r record) kurabe.InstanceID {
	if wish := r.spec.Switchover; wish != nil && (r.status == nil || wish.Seq > r.status.SwitchSeq) {
		return wish.To
	}
	return ""
}

func switchUpstream(all map[kurabe.InstanceID]record, id kurabe.InstanceID) *plan.Upstream {
	r := all[id]
	up := &plan.Upstream{Assignment: r.order, Report: r.report, Status: r.status, Asked: pendingHeir(r), Siblings: map[kurabe.InstanceID]*kurabe.InstanceStatus{}}
	switch {
	case r.group != nil:
		up.Epoch, up.Switch = r.group.Epoch, r.group.SwitchoverTo
	case r.order != nil && r.order.Role != nil:
		up.Epoch = r.order.Role.Epoch
	}
	for _, other := range switchIDs {
		if followed(all, other) == id && all[other].status != nil {
			up.Siblings[other] = all[other].status
		}
	}
	return up
}

func (f *switchFleet) look(id kurabe.InstanceID) { f.read[id] = maps.Clone(f.store) }

// decide plans from what was read, and writes it if nothing of what it compares has changed.
func (f *switchFleet) decide(t tester, id kurabe.InstanceID) {
	all, has := f.read[id]
	delete(f.read, id)
	if !has {
		return
	}
	r := plan.Next(switchWorld(all, id, f.now))
	was, is := all[id], f.store[id]
	conflict := was.spec != is.spec || was.status != is.status || was.group != is.group || was.order != is.order
	for _, s := range r.Followers {
		conflict = conflict || all[s.ID].status != f.store[s.ID].status || all[s.ID].group != f.store[s.ID].group
	}
	if conflict {
		f.seen["conflicts"]++
		return
	}
	f.count(r, is)
	if r.Status != nil {
		is.status = r.Status
	}
	if r.Group != nil {
		is.group = r.Group
	}
	if r.GroupGone {
		is.group = nil
	}
	if r.Assignment != nil {
		is.order = r.Assignment
	}
	f.store[id] = is
	for _, s := range r.Followers {
		other := f.store[s.ID]
		other.status, other.group = &s, nil
		f.store[s.ID] = other
	}
	f.checkOne(t)
}

func (f *switchFleet) count(r plan.Result, was record) {
	switch {
	case len(r.Followers) > 0:
		f.seen["taken over"]++
	case r.Group != nil && r.Group.SwitchoverTo != "" && was.group.SwitchoverTo == "":
		f.seen["begun"]++
	case r.Group != nil && was.group != nil && was.group.SwitchoverTo != "" && r.Group.SwitchoverTo == "":
		f.seen["called off"]++
	}
}

// source is the instance that follows nobody.
func (f *switchFleet) source() kurabe.InstanceID {
	for _, id := range switchIDs {
		if followed(f.store, id) == "" {
			return id
		}
	}
	return ""
}

// ask is the user's wish that a replica takes the place of its source.
func (f *switchFleet) ask(to kurabe.InstanceID) {
	from := f.source()
	if to == from || followed(f.store, to) != from {
		return
	}
	source, heir := f.store[from], f.store[to]
	s, h := *source.spec, *heir.spec
	wish := kurabe.Switchover{Seq: 1, To: to}
	if s.Switchover != nil {
		wish.Seq += s.Switchover.Seq
	}
	s.Switchover, s.Revision, h.Password, h.Revision = &wish, s.Revision+1, s.Password, h.Revision+1
	source.spec, heir.spec = &s, &h
	f.store[from], f.store[to] = source, heir
}

// checkOne demands that at most one server lets clients write.
func (f *switchFleet) checkOne(t tester) {
	var open []kurabe.InstanceID
	for _, id := range switchIDs {
		if f.servers[id].open() {
			open = append(open, id)
		}
	}
	if len(open) > 1 {
		t.Fatalf("%v take writes: %s", open, f.text())
	}
}

func (f *switchFleet) text() string {
	groups := map[kurabe.InstanceID]any{}
	for id, r := range f.store {
		groups[id] = map[string]any{"status": r.status, "group": r.group, "order": r.order, "report": r.report}
	}
	text, _ := json.Marshal(groups)
	return string(text)
}

// calm is a stretch in which all goes well.
func (f *switchFleet) calm(t tester) {
	f.cut = false
	for range 20 {
		f.now = f.now.Add(100 * time.Millisecond)
		for _, id := range switchIDs {
			f.look(id)
			f.decide(t, id)
			s := f.servers[id]
			s.hung = false
			f.hear(s)
			f.obey(s, 1000)
			f.write(t, s)
			f.replicate(s, 1000)
			f.tell(s)
			f.deliver(s)
			f.checkOne(t)
		}
	}
}

// TestSwitchoverLosesNothing: whatever is late, dies, hangs or is cut off while roles are
// changed, at most one server takes writes, each of which has all that was acknowledged
// before, and when all goes well again one is the source and all others follow it.
func TestSwitchoverLosesNothing(t *testing.T) {
	seen := map[string]int{}
	rapid.Check(t, func(t *rapid.T) {
		f := newSwitchFleet(rapid.SampledFrom([]kurabe.EngineName{kurabe.Postgres, kurabe.MariaDB}).Draw(t, "engine"))
		f.calm(t)
		f.calm(t)
		t.Repeat(switchActions(f))
		f.recovers(t)
		for what, n := range f.seen {
			seen[what] += n
		}
	})
	t.Log(fmt.Sprint(seen))
	for _, what := range []string{"acks", "begun", "taken over", "called off", "conflicts", "rejoined"} {
		if seen[what] == 0 {
			t.Errorf("no run had any %s, so this proves nothing", what)
		}
	}
}

func (f *switchFleet) recovers(t tester) {
	f.now = f.now.Add(2 * time.Minute)
	for range 4 {
		f.calm(t)
		f.now = f.now.Add(10 * time.Second)
	}
	source := f.source()
	w := f.servers[source]
	if !w.open() {
		t.Fatalf("%s is the source and takes no writes: %s", source, f.text())
	}
	for _, id := range switchIDs {
		s, st := f.servers[id], f.store[id].status
		if st.State != kurabe.StateAvailable && st.State != kurabe.StateBackingUp || !st.SwitchBy.IsZero() {
			t.Fatalf("%s stays %s: %s", id, st.State, f.text())
		}
		if id != source && (st.Source != source || s.source != source || !s.follower || !s.running || !isPrefix(s.log, w.log) || st.Replication != kurabe.ReplicationRunning) {
			t.Fatalf("%s does not follow %s: %s", id, source, f.text())
		}
	}
	for n := range f.acked {
		if !slices.Contains(w.log, n) {
			t.Fatalf("write %d is gone: %s", n, f.text())
		}
	}
}
