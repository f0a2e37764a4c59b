package agent

import (
	"context"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"

	"kurabe"
	"kurabe/internal/engine"
	"kurabe/internal/engine/fake"
)

const (
	second = kurabe.InstanceID("db-1~2")
	third  = kurabe.InstanceID("db-1~3")
)

// member is an assignment of a server of instance db-1, which listens at 127.66.9.NUMBER
// unless it is the first. The first two follow each other.
func member(number int, duty kurabe.Duty, epoch kurabe.Epoch) kurabe.Assignment {
	a := wanted(1)
	a.Instance = a.Instance.Member(number)
	a.Role = &kurabe.Role{Epoch: epoch, Duty: duty}
	if number > 1 {
		a.ListensAt = netip.AddrFrom4([4]byte{127, 66, 9, byte(number)}).String()
	}
	if duty == kurabe.DutyFollow {
		a.Role.Source = &kurabe.Source{ID: a.Instance.Member(3 - min(number, 2)), Address: a.Address, Port: a.Port}
	}
	return a
}

// elsewhere has a server listen at an address of its own.
func elsewhere(a kurabe.Assignment) kurabe.Assignment {
	a.ListensAt = netip.AddrFrom4([4]byte{127, 66, 9, byte(a.Instance.Number())}).String()
	return a
}

func ids(list ...kurabe.InstanceID) []kurabe.InstanceID { return list }

// watchedEngine is a fake engine whose servers can be looked at. What they say is up to the
// test.
type watchedEngine struct {
	*fake.Engine

	mu      sync.Mutex // guards the rest
	told    map[kurabe.InstanceID]kurabe.Assignment
	says    map[kurabe.InstanceID]func(context.Context) (engine.RoleView, error)
	looks   int
	open    int // sessions
	stopped []kurabe.InstanceID
	logOf   []kurabe.InstanceID // whose log was opened
	held    []heldLog           // that standbys were told
	dropped []kurabe.InstanceID // that hold none
}

// inGroup is inBubble with servers that can be looked at.
func inGroup(t *testing.T, test func(*bed)) {
	t.Helper()
	inBubble(t, func(b *bed) {
		b.group = &watchedEngine{
			Engine: b.engine, told: map[kurabe.InstanceID]kurabe.Assignment{},
			says: map[kurabe.InstanceID]func(context.Context) (engine.RoleView, error){},
		}
		test(b)
	})
}

// say has a server answer looks in this way from now on; nil: as one does that obeys.
func (e *watchedEngine) say(id kurabe.InstanceID, what func(context.Context) (engine.RoleView, error)) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.says[id] = what
}

// hangs is a server that does not answer.
func hangs(ctx context.Context) (engine.RoleView, error) {
	<-ctx.Done()
	return engine.RoleView{}, ctx.Err()
}

// refuses is one that answers, but not what it is asked.
func refuses(context.Context) (engine.RoleView, error) { return engine.RoleView{}, errTest }

// sessions counts those that are open.
func (e *watchedEngine) sessions() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.open
}

func (e *watchedEngine) OpenWatch(_ context.Context, a kurabe.Assignment) (engine.Watcher, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.open++
	return &watchedSession{e: e, id: a.Instance}, nil
}

// Steps notes what a server was told.
func (e *watchedEngine) Steps(a kurabe.Assignment, o engine.Observation) []engine.Step {
	e.mu.Lock()
	e.told[a.Instance] = a
	e.mu.Unlock()
	return e.Engine.Steps(a, o)
}

// Stop notes who is stopped.
func (e *watchedEngine) Stop(ctx context.Context, a kurabe.Assignment) error {
	e.mu.Lock()
	e.stopped = append(e.stopped, a.Instance)
	e.mu.Unlock()
	return e.Engine.Stop(ctx, a)
}

type watchedSession struct {
	e  *watchedEngine
	id kurabe.InstanceID
}

func (s *watchedSession) Look(ctx context.Context) (engine.RoleView, error) {
	s.e.mu.Lock()
	what, a := s.e.says[s.id], s.e.told[s.id]
	s.e.looks++
	position := int64(1000 + s.e.looks)
	s.e.mu.Unlock()
	if what != nil {
		return what(ctx)
	}
	return obeys(a, position), nil
}

// obeys is the answer of a server that does what it was told, and whose followers have all.
func obeys(a kurabe.Assignment, position int64) engine.RoleView {
	if a.Role == nil {
		return engine.RoleView{}
	}
	v := engine.RoleView{
		Writing: a.Role.Duty == kurabe.DutyWrite, Following: a.Role.Duty == kurabe.DutyFollow,
		Position: position, Inserted: position, WaitsFor: a.Role.WaitFor, Followers: map[kurabe.InstanceID]engine.FollowerView{},
	}
	for _, id := range a.Role.Followers {
		v.Followers[id] = engine.FollowerView{Streaming: true, Flushed: position}
	}
	return v
}

func (s *watchedSession) Close() {
	s.e.mu.Lock()
	defer s.e.mu.Unlock()
	s.e.open--
}

// primary is an assignment of the first server to write, with a follower whom commits wait
// for.
func primary(generation kurabe.Generation, startSeq int64) kurabe.Assignment {
	a := member(1, kurabe.DutyWrite, 1)
	a.Generation = generation
	a.Role.Followers, a.Role.WaitFor, a.Role.StartSeq = ids(second), ids(second), startSeq
	return a
}

// follows is an assignment of the second server to follow the first.
func follows(generation kurabe.Generation) kurabe.Assignment {
	a := member(2, kurabe.DutyFollow, 1)
	a.Generation = generation
	return a
}

// of changes the generation and the role of an assignment.
func of(a kurabe.Assignment, generation kurabe.Generation, role kurabe.Role) kurabe.Assignment {
	a.Generation, a.Role = generation, &role
	return a
}

// lastOf is the newest report of one server.
func (b *bed) lastMember(id kurabe.InstanceID) kurabe.InstanceReport {
	b.Helper()
	for _, r := range slices.Backward(b.heard()) {
		if r.Instance == id {
			if r.Role == nil {
				b.Fatalf("%s is reported without a role: %+v", id, r)
			}
			return r
		}
	}
	b.Fatalf("nothing was reported of %s", id)
	return kurabe.InstanceReport{}
}

// didStep says whether a step was begun, under any generation.
func (b *bed) didStep(step engine.StepName) bool {
	return slices.ContainsFunc(b.steps(), func(s string) bool { return strings.HasPrefix(s, string(step)+"@") })
}

// startWriter has the first server serve, first alone and then with a follower.
func (b *bed) startWriter() {
	b.Helper()
	b.start()
	b.send(wanted(1))
	b.send(primary(2, 0))
	if r := b.lastMember("db-1"); !r.Done || !r.Running || !r.Role.Writing || r.Generation != 2 || len(r.Role.CaughtUp) != 1 || b.engine.Starts("db-1") != 1 {
		b.Fatalf("%d starts, %+v, %+v", b.engine.Starts("db-1"), r, r.Role)
	}
}
