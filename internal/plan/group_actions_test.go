package plan_test

import (
	"slices"
	"time"

	"pgregory.net/rapid"

	"kurabe"
)

// groupActions are all that can happen to a group.
func groupActions(f *groupFleet) map[string]func(*rapid.T) {
	pick := func(t *rapid.T) *server {
		ids := f.ids()
		if len(ids) == 0 {
			t.Skip("no servers yet")
		}
		return f.servers[rapid.SampledFrom(ids).Draw(t, "member")]
	}
	return map[string]func(*rapid.T){
		"calm":        func(t *rapid.T) { f.calm(t) },
		"write":       func(t *rapid.T) { f.append(pick(t)) },
		"replicate":   func(t *rapid.T) { f.replicate(pick(t), rapid.IntRange(0, 3).Draw(t, "most")) },
		"acknowledge": func(t *rapid.T) { f.acknowledge(t, pick(t)) },
		"hear":        func(t *rapid.T) { f.hear(pick(t)) },
		"obey":        func(t *rapid.T) { f.obey(pick(t)) },
		"report":      func(t *rapid.T) { f.report(pick(t)) },
		"deliver":     func(t *rapid.T) { f.deliver(pick(t)) },
		"read":        func(*rapid.T) { f.read() },
		"decide":      func(t *rapid.T) { f.decide(t) },
		"die":         func(t *rapid.T) { pick(t).die() },
		"hang":        func(t *rapid.T) { s := pick(t); s.hung = s.running },
		"wake":        func(t *rapid.T) { pick(t).hung = false },
		"network":     func(*rapid.T) { f.cut = !f.cut },
		"apart":       func(t *rapid.T) { s := pick(t); s.apart = !s.apart },
		"behind":      func(t *rapid.T) { s := pick(t); s.behind = !s.behind },
		"sides":       func(t *rapid.T) { f.sides(t) },
		"drain": func(t *rapid.T) {
			f.drain()
			if h := rapid.SampledFrom(append(f.w.Hosts, kurabe.HostReport{})).Draw(t, "host"); h.Host != "" {
				f.drain(h.Host)
			}
		},
		"lose": func(t *rapid.T) { f.lose(pick(t), rapid.Bool().Draw(t, "slot only")) },
		"time": func(t *rapid.T) { f.pass(time.Duration(rapid.IntRange(1, 2000).Draw(t, "ms")) * time.Millisecond) },
		"ask": func(t *rapid.T) {
			s := *f.w.Spec
			s.Revision++
			switch rapid.SampledFrom([]string{"failover", "reboot", "class", "zones", "stop", "start", "backups"}).Draw(t, "wish") {
			case "failover":
				s.FailoverSeq++
				s.FailoverTo = rapid.SampledFrom(append(f.ids(), "")).Draw(t, "to")
			case "reboot":
				s.RebootSeq++
			case "class":
				s.Now.Class = map[string]string{"db.t3.micro": "db.t3.small", "db.t3.small": "db.t3.micro"}[s.Now.Class]
			case "zones":
				s.Now.MultiAZ = !s.Now.MultiAZ || s.Cluster
			case "backups":
				s.Now.RetentionDays = 1 - s.Now.RetentionDays
			case "stop":
				s.Power = kurabe.Power{Seq: s.Power.Seq + 1, Stopped: true, At: f.w.Now}
			case "start":
				s.Power = kurabe.Power{Seq: s.Power.Seq + 1, At: f.w.Now}
			}
			f.w.Spec = &s
		},
		"disk":     func(t *rapid.T) { f.fillDisks(t) },
		"packages": func(t *rapid.T) { f.packages(t) },
		"window":   func(t *rapid.T) { f.window(rapid.Bool().Draw(t, "open")) },
		"upgrade": func(t *rapid.T) {
			f.packages(t)
			f.upToDate()
			f.window(true)
			f.calm(t)
		},
		"unfit":      func(t *rapid.T) { f.drawUnfit(t) },
		"impossible": func(t *rapid.T) { f.askImpossible(t) },
		"policy":     func(t *rapid.T) { f.policy(rapid.SampledFrom(policies).Draw(t, "to")) },
	}
}

// lose has a follower's source give up log that it lacks, or its slot alone.
func (f *groupFleet) lose(o *server, slotOnly bool) {
	from := f.servers[o.source]
	switch {
	case from == nil || !o.follower || from.follower || !from.running:
	case slotOnly:
		from.slotless = with(from.slotless, o.id)
	case !f.connected(o) && len(o.log) < len(from.log):
		from.lost = with(from.lost, o.id)
	}
}

func with(set map[kurabe.InstanceID]bool, id kurabe.InstanceID) map[kurabe.InstanceID]bool {
	if set == nil {
		set = map[kurabe.InstanceID]bool{}
	}
	set[id] = true
	return set
}

// sides: of two standbys one is cut off, and then the other one, while the primary goes on and
// at last dies. Most steps may be left out, so that what is known is of any time.
func (f *groupFleet) sides(t *rapid.T) {
	w := f.servers[f.primary()]
	if w == nil || len(f.servers) < 3 {
		t.Skip("no two standbys")
	}
	others := slices.DeleteFunc(f.ids(), func(id kurabe.InstanceID) bool { return id == w.id })
	first := rapid.IntRange(0, 1).Draw(t, "first")
	x, y := f.servers[others[first]], f.servers[others[1-first]]
	tell := func(s *server) { f.hear(s); f.obey(s); f.report(s); f.deliver(s) }
	think := func() { f.read(); f.decide(t) }
	now := func() {
		for range rapid.IntRange(1, 4).Draw(t, "rows") {
			f.append(w)
		}
		which := rapid.IntRange(0, 3).Draw(t, "who gets it")
		if which != 1 {
			f.replicate(x, 4)
		}
		if which != 2 {
			f.replicate(y, 1)
		}
		f.acknowledge(t, w)
	}
	steps := []func(){
		now, func() { x.apart = true }, now, func() { f.report(w); f.deliver(w) }, think, func() { tell(w) }, now, func() { f.report(w); f.deliver(w) }, think, think,
		func() { x.apart, y.apart = false, true }, now, now, func() { f.report(w); f.deliver(w) }, think, func() { tell(w) }, now,
		func() { w.die() }, func() { tell(w) }, func() { y.apart = false }, think, func() { tell(y) }, func() { tell(x) }, think, func() { tell(x) }, func() { tell(y) }, think, think,
	}
	f.seen["sides"]++
	skipped := rapid.SliceOfN(rapid.IntRange(0, 4), len(steps), len(steps)).Draw(t, "skipped")
	for n, step := range steps {
		if skipped[n] > 0 {
			step()
		}
		f.checkOne(t)
	}
}
