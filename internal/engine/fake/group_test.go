package fake_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"kurabe"
	"kurabe/internal/engine"
	"kurabe/internal/engine/fake"
)

const (
	first  kurabe.InstanceID = "db-1"
	second kurabe.InstanceID = "db-1~2"
)

// pair is two servers on two hosts, and what each was told last.
type pair struct {
	*testing.T
	engines map[kurabe.InstanceID]*fake.Engine
	told    map[kurabe.InstanceID]kurabe.Assignment
}

func newPair(t *testing.T) *pair {
	e := fake.New()
	return &pair{t, map[kurabe.InstanceID]*fake.Engine{first: e, second: e.Beside()}, map[kurabe.InstanceID]kurabe.Assignment{}}
}

// look is what the agent makes of it.
func (p *pair) look(id kurabe.InstanceID) engine.Observation {
	p.Helper()
	a, e := p.told[id], p.engines[id]
	o, err := e.Observe(p.Context(), a)
	if err != nil {
		p.Fatal(err)
	}
	if !o.Running {
		return o
	}
	// A server that is frozen does not answer.
	ctx, cancel := context.WithTimeout(p.Context(), 20*time.Millisecond)
	defer cancel()
	if w, err := e.OpenWatch(ctx, a); err == nil {
		defer w.Close()
		if v, err := w.Look(ctx); err == nil {
			o.Role = &v
			for _, id := range o.WaitsFor() {
				if v.Followers[id].Flushed >= v.Inserted {
					o.Covered = append(o.Covered, id)
				}
			}
		}
	}
	return o
}

// obey does what a server is told, and says whether that is true then.
func (p *pair) obey(id kurabe.InstanceID, role kurabe.Role) bool {
	p.Helper()
	const most = 50
	p.told[id] = kurabe.Assignment{Instance: id, Goal: kurabe.GoalRunning, Boot: 1, Role: &role}
	for range most {
		o := p.look(id)
		steps := p.engines[id].Steps(p.told[id], o)
		if len(steps) == 0 {
			return engine.Done(p.told[id], o)
		}
		if err := steps[0].Do(p.Context()); err != nil {
			p.Logf("%s of %s: %v", steps[0].Name, id, err)
			return false
		}
	}
	p.Fatalf("%s never has done all: %+v", id, p.look(id))
	return false
}

func (p *pair) write(id kurabe.InstanceID, acked bool) int64 {
	p.Helper()
	n, got, err := p.engines[id].Write(id)
	if err != nil || got != acked {
		p.Fatalf("write of %s: acknowledged %v, %v", id, got, err)
	}
	return n
}

func (p *pair) has(id kurabe.InstanceID, n int64) bool {
	return slices.Contains(p.engines[id].Log(id), n)
}

func writes(epoch kurabe.Epoch, other kurabe.InstanceID, waits bool, start int64) kurabe.Role {
	role := kurabe.Role{Epoch: epoch, Duty: kurabe.DutyWrite, Followers: []kurabe.InstanceID{other}, StartSeq: start}
	if waits {
		role.WaitFor = role.Followers
	}
	return role
}

func follows(epoch kurabe.Epoch, source kurabe.InstanceID) kurabe.Role {
	return kurabe.Role{Epoch: epoch, Duty: kurabe.DutyFollow, Source: &kurabe.Source{ID: source}}
}

// begin has the second server follow, and the first wait for it.
func (p *pair) begin() {
	p.Helper()
	// The first one is made without a group, as any server.
	alone := kurabe.Assignment{Instance: first, Goal: kurabe.GoalRunning, Boot: 1}
	for range 20 {
		o, _ := p.engines[first].Observe(p.Context(), alone)
		steps := p.engines[first].Steps(alone, o)
		if len(steps) == 0 {
			break
		}
		if err := steps[0].Do(p.Context()); err != nil {
			p.Fatal(err)
		}
	}
	if !p.obey(first, writes(1, second, false, 0)) || !p.obey(second, follows(1, first)) || !p.obey(first, writes(1, second, true, 0)) {
		p.Fatalf("%+v %+v", p.look(first), p.look(second))
	}
}

func TestFailover(t *testing.T) {
	p := newPair(t)
	p.begin()
	kept := p.write(first, true)
	p.engines[second].Lag(second, true)
	lost := p.write(first, false)
	if p.has(second, lost) || !p.has(second, kept) {
		t.Error("the follower has what it lacks, or lacks what it has")
	}
	p.engines[first].Crash(first)
	if p.obey(first, writes(1, second, true, 0)) || p.engines[first].Starts(first) != 1 {
		t.Fatal("it was started without an order")
	}
	if !p.obey(second, writes(2, first, false, 0)) || !p.obey(first, follows(2, second)) || !p.obey(second, writes(2, first, true, 0)) {
		t.Fatalf("%+v %+v", p.look(first), p.look(second))
	}
	p.write(second, true)
	if p.has(first, lost) || !p.has(first, kept) || !slices.Equal(p.engines[first].Log(first), p.engines[second].Log(second)) {
		t.Error("the two are not the same")
	}
}

// A writer that died comes back by order, and lets clients in when the follower has all.
func TestHeld(t *testing.T) {
	p := newPair(t)
	p.begin()
	p.engines[second].Lag(second, true)
	seen := p.write(first, false)
	p.engines[first].Crash(first)
	if p.obey(first, writes(1, second, true, 1)) || !p.look(first).Applied.ClientsKeptOut {
		t.Fatal("it lets clients in")
	}
	if _, _, err := p.engines[first].Write(first); err == nil {
		t.Error("a client writes")
	}
	p.engines[second].Lag(second, false)
	if !p.obey(first, writes(1, second, true, 1)) || !p.has(second, seen) {
		t.Errorf("%+v", p.look(first))
	}
	p.write(first, true)
}

func TestYields(t *testing.T) {
	p := newPair(t)
	p.begin()
	n := p.write(first, true)
	if !p.obey(first, kurabe.Role{Epoch: 1, Duty: kurabe.DutyStepDown}) || !p.obey(second, writes(2, first, false, 0)) || !p.obey(first, follows(2, second)) {
		t.Fatalf("%+v %+v", p.look(first), p.look(second))
	}
	if !p.has(second, n) || !p.has(first, n) {
		t.Error("a write is gone")
	}
}

func TestUnplugged(t *testing.T) {
	p := newPair(t)
	p.begin()
	p.engines[second].Unplug(second, true)
	p.write(first, false)
	if v := p.look(first).Role; v.Followers[second].Streaming || p.look(second).Role.Following {
		t.Errorf("%+v", v)
	}
	if !p.obey(first, writes(1, second, false, 0)) {
		t.Errorf("%+v", p.look(first))
	}
	p.write(first, true)
	p.engines[second].Unplug(second, false)
	if !p.look(second).Role.Following {
		t.Error("it does not follow again")
	}
}

func TestSpoiltDataIsCloned(t *testing.T) {
	p := newPair(t)
	p.begin()
	p.engines[first].Crash(first)
	p.engines[first].Spoil(first)
	n := int64(0)
	if p.obey(second, writes(2, first, false, 0)) {
		n = p.write(second, true)
	}
	if !p.obey(first, follows(2, second)) || !p.has(first, n) {
		t.Errorf("%+v", p.look(first))
	}
}

func TestFrozen(t *testing.T) {
	p := newPair(t)
	p.begin()
	w, err := p.engines[first].OpenWatch(t.Context(), p.told[first])
	if err != nil {
		t.Fatal(err)
	}
	p.engines[first].Freeze(first)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Millisecond)
	defer cancel()
	if _, err := w.Look(ctx); err == nil {
		t.Error("it answers")
	}
	if !p.obey(first, kurabe.Role{Epoch: 2, Duty: kurabe.DutyFenced}) || p.engines[first].Running(first) {
		t.Error("it cannot be fenced")
	}
}
