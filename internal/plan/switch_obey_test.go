package plan_test

import (
	"slices"
	"time"

	"pgregory.net/rapid"

	"kurabe"
)

// switchServer is the server of an instance: it obeys late, dies, hangs and is cut off.
type switchServer struct {
	id             kurabe.InstanceID
	data, running  bool
	hung, follower bool
	yielded        bool
	end            int64
	log            []int
	source         kurabe.InstanceID
	compared       kurabe.Epoch
	boot           int64
	have, obeyed   kurabe.Assignment // the newest that it knows of, and what is true of it
	outbox         *kurabe.InstanceReport
}

// open says whether clients can write.
func (s *switchServer) open() bool { return s.running && !s.hung && !s.follower }

func (s *switchServer) die() { s.running, s.hung = false, false }

// switchActions are all that can happen.
func switchActions(f *switchFleet) map[string]func(*rapid.T) {
	pick := func(t *rapid.T) *switchServer {
		return f.servers[rapid.SampledFrom(switchIDs).Draw(t, "instance")]
	}
	return map[string]func(*rapid.T){
		"calm":      func(t *rapid.T) { f.calm(t) },
		"ask":       func(t *rapid.T) { f.ask(pick(t).id) },
		"hear":      func(t *rapid.T) { f.hear(pick(t)) },
		"obey":      func(t *rapid.T) { f.obey(pick(t), rapid.IntRange(0, 3).Draw(t, "most")) },
		"write":     func(t *rapid.T) { f.write(t, pick(t)) },
		"replicate": func(t *rapid.T) { f.replicate(pick(t), rapid.IntRange(0, 3).Draw(t, "most")) },
		"tell":      func(t *rapid.T) { f.tell(pick(t)) },
		"deliver":   func(t *rapid.T) { f.deliver(pick(t)) },
		"look":      func(t *rapid.T) { f.look(pick(t).id) },
		"decide":    func(t *rapid.T) { f.decide(t, pick(t).id) },
		"die":       func(t *rapid.T) { pick(t).die() },
		"hang":      func(t *rapid.T) { s := pick(t); s.hung = s.running },
		"network":   func(*rapid.T) { f.cut = !f.cut },
		"time": func(t *rapid.T) {
			f.now = f.now.Add(time.Duration(rapid.IntRange(1, 40).Draw(t, "seconds")) * time.Second)
		},
		"switch": func(t *rapid.T) { f.switches(t, pick(t)) },
		"": func(t *rapid.T) {
			f.checkOne(t)
		},
	}
}

// switches goes through a switchover, of which any step may be left out, late or repeated.
func (f *switchFleet) switches(t *rapid.T, to *switchServer) {
	from := f.servers[f.source()]
	if from == to {
		t.Skip("it is the source")
	}
	tell := func(s *switchServer) func() {
		return func() { f.hear(s); f.obey(s, rapid.IntRange(0, 4).Draw(t, "most")); f.tell(s); f.deliver(s) }
	}
	think := func(s *switchServer) func() { return func() { f.look(s.id); f.decide(t, s.id) } }
	steps := []func(){
		func() { f.ask(to.id) }, think(from), tell(from), func() { f.write(t, from) }, think(to), tell(to), func() { f.look(from.id) }, func() { f.look(to.id) },
		func() { f.now = f.now.Add(time.Minute) }, think(from), tell(from), func() { f.write(t, from) }, func() { f.decide(t, to.id) }, func() { f.decide(t, from.id) },
		tell(from), tell(to), think(to), tell(to), func() { f.write(t, to) }, think(from), tell(from),
	}
	if rapid.Bool().Draw(t, "again") { // the first one is called off when all but its end is there
		late := []func(){
			func() { f.ask(to.id) }, think(from), tell(from), think(to), tell(to), func() { f.now = f.now.Add(time.Minute) }, think(from), tell(from),
			func() { f.write(t, from) }, tell(to),
		}
		steps = append(late, steps...)
	}
	skipped := rapid.SliceOfN(rapid.IntRange(0, 4), len(steps), len(steps)).Draw(t, "skipped")
	for n, step := range steps {
		if skipped[n] > 0 {
			step()
		}
		f.checkOne(t)
	}
}

func (f *switchFleet) hear(s *switchServer) {
	if a := f.store[s.id].order; a != nil {
		s.have = *a
	}
}

// obey makes one step towards the newest assignment; most is what a server that yields gets
// through to each follower before it ends.
func (f *switchFleet) obey(s *switchServer, most int) {
	a := s.have
	duty := kurabe.DutyWrite
	if a.Role != nil {
		duty = a.Role.Duty
	}
	switch {
	case a.Instance == "" || s.hung:
		return
	case duty == kurabe.DutyStepDown:
		if s.running && !s.follower {
			for _, id := range switchIDs {
				f.replicate(f.servers[id], most)
			}
			s.running, s.yielded, s.end = false, true, int64(len(s.log))
		}
	case duty == kurabe.DutyFollow:
		if !f.follow(s, a) {
			return
		}
	case !s.data && s.id != switchIDs[0]:
		return
	default:
		s.data, s.running, s.follower, s.yielded, s.boot = true, true, false, false, a.Boot
	}
	s.obeyed = a
}

func (f *switchFleet) follow(s *switchServer, a kurabe.Assignment) bool {
	if s.running && !s.follower {
		s.die()
	}
	from := f.servers[a.Role.Source.ID]
	there := !f.cut && from.running && !from.hung && from.data
	if !s.data || !s.follower || s.compared != a.Role.Epoch && there && !isPrefix(s.log, from.log) {
		if !there || from.follower {
			return false
		}
		same := 0
		for same < len(s.log) && same < len(from.log) && s.log[same] == from.log[same] {
			same++
		}
		if s.data {
			f.seen["rejoined"]++
		}
		s.data, s.follower, s.log = true, true, s.log[:same:same]
	}
	if there {
		s.compared = a.Role.Epoch
	}
	s.source, s.running, s.yielded, s.boot = a.Role.Source.ID, true, false, a.Boot
	return true
}

// write is a client's, which is told at once: nobody waits for a read replica. Whoever takes
// it has all that was acknowledged before.
func (f *switchFleet) write(t tester, s *switchServer) {
	if !s.open() {
		return
	}
	for n := range f.acked {
		if !slices.Contains(s.log, n) {
			t.Fatalf("%s takes a write and lacks write %d: %s", s.id, n, f.text())
		}
	}
	f.writes++
	s.log = append(s.log[:len(s.log):len(s.log)], f.writes)
	f.acked[f.writes] = true
	f.seen["acks"]++
	f.checkOne(t)
}

func (f *switchFleet) connected(s *switchServer) bool {
	from := f.servers[s.source]
	return !f.cut && s.running && !s.hung && s.follower && from != nil && from.running && !from.hung && isPrefix(s.log, from.log)
}

func (f *switchFleet) replicate(s *switchServer, most int) {
	if f.connected(s) {
		from := f.servers[s.source]
		s.log = append(s.log[:len(s.log):len(s.log)], from.log[len(s.log):min(len(from.log), len(s.log)+most)]...)
	}
}

// tell makes a report, which is delivered later.
func (f *switchFleet) tell(s *switchServer) {
	a := s.obeyed
	if a.Instance == "" || s.hung {
		return
	}
	yields := a.Role != nil && a.Role.Duty == kurabe.DutyStepDown
	r := kurabe.InstanceReport{Host: a.Host, Instance: s.id, Generation: s.have.Generation, Boot: s.boot, Running: s.running, Serving: s.running,
		Done: s.have.Generation == a.Generation && s.running != yields && (!yields || s.yielded)}
	if role := s.have.Role; role != nil {
		r.Role = &kurabe.RoleReport{Epoch: epochOf(a), Writing: s.open(), Following: f.connected(s), SteppedDown: s.yielded && !s.running, Position: int64(len(s.log)),
			HasSourceEnd: role.SourceEnd > 0 && s.running && s.follower && int64(len(s.log)) >= role.SourceEnd}
		if r.Role.SteppedDown {
			r.Role.Position = s.end
		}
		for _, id := range role.Followers {
			if o := f.servers[id]; s.open() && o.source == s.id && f.connected(o) {
				r.Role.NearlyCaughtUp = append(r.Role.NearlyCaughtUp, id)
			} else {
				r.Role.SilentFollowers = append(r.Role.SilentFollowers, id)
			}
		}
	}
	s.outbox = &r
}

func (f *switchFleet) deliver(s *switchServer) {
	if s.outbox != nil {
		r := f.store[s.id]
		r.report = s.outbox
		f.store[s.id] = r
	}
}

func epochOf(a kurabe.Assignment) kurabe.Epoch {
	if a.Role == nil {
		return 0
	}
	return a.Role.Epoch
}
