package plan_test

import (
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
		"drain": func(t *rapid.T) {
			f.drain()
			if h := rapid.SampledFrom(append(f.w.Hosts, kurabe.HostReport{})).Draw(t, "host"); h.Host != "" {
				f.drain(h.Host)
			}
		},
		"lose": func(t *rapid.T) { f.lose(pick(t), rapid.Bool().Draw(t, "slot only")) },
		"time": func(t *rapid.T) {
			f.pass(time.Duration(rapid.IntRange(1, 2000).Draw(t, "ms")) * time.Millisecond)
		},
		"ask": func(t *rapid.T) {
			s := *f.w.Spec
			s.Revision++
			switch rapid.SampledFrom([]string{"failover", "reboot", "class", "zones", "stop", "start", "backups"}).Draw(t, "wish") {
			case "failover":
				s.FailoverSeq++
			case "reboot":
				s.RebootSeq++
			case "class":
				s.Now.Class = map[string]string{"db.t3.micro": "db.t3.small", "db.t3.small": "db.t3.micro"}[s.Now.Class]
			case "zones":
				s.Now.MultiAZ = !s.Now.MultiAZ
			case "backups":
				s.Now.RetentionDays = 1 - s.Now.RetentionDays
			case "stop":
				s.Power = kurabe.Power{Seq: s.Power.Seq + 1, Stopped: true, At: f.w.Now}
			case "start":
				s.Power = kurabe.Power{Seq: s.Power.Seq + 1, At: f.w.Now}
			}
			f.w.Spec = &s
		},
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
