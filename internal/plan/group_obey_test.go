package plan_test

import (
	"slices"

	"kurabe"
)

// obey makes one step towards the newest assignment.
func (f *groupFleet) obey(s *server) {
	a := s.have
	switch {
	case a.Instance == "":
		return
	case a.Goal == kurabe.GoalAbsent:
		*s = server{id: s.id, have: a, obeyed: a}
		return
	case a.Goal == kurabe.GoalStopped:
		s.stop()
	case a.Role == nil:
		f.write(s, a)
	case a.Role.Duty == kurabe.DutyFenced:
		f.rest(s)
	case a.Role.Duty == kurabe.DutyStepDown:
		f.yield(s)
	case a.Role.Duty == kurabe.DutyDetached:
		if !s.running || !s.follower || s.hung {
			return
		}
		s.source = ""
	case a.Role.Duty == kurabe.DutyFollow:
		if !f.follow(s, a) {
			return
		}
	default:
		if !f.write(s, a) {
			return
		}
	}
	s.obeyed = a
}

func (f *groupFleet) rest(s *server) {
	if s.running && !s.follower {
		s.die()
	}
}

// yield: what it has goes to those who are connected, then it ends.
func (f *groupFleet) yield(s *server) {
	if !s.running || s.hung {
		return
	}
	s.held = true
	for _, id := range s.obeyed.Role.Followers {
		if other := f.servers[id]; other != nil {
			f.replicate(other, len(s.log))
		}
	}
	s.stop()
	s.yielded = true
}

func (f *groupFleet) follow(s *server, a kurabe.Assignment) bool {
	if s.running && !s.follower {
		s.die()
	}
	if s.running && s.boot < a.Boot {
		s.stop()
	}
	from := f.servers[a.Role.Source.ID]
	if s.follower && s.data && s.compared != a.Role.Epoch && !f.cut && !s.apart && from != nil && from.running && !from.hung && !from.follower {
		s.compared = a.Role.Epoch
		if !isPrefix(s.log, from.log) {
			s.running, s.hung, s.follower = false, false, false // it is rewound
		}
	}
	if a.Role.RebuildSeq > s.rebuilt && (s.data || s.running) {
		f.seen["rebuilds"]++
		s.running, s.hung, s.data, s.follower, s.log = false, false, false, false, nil
		return false
	}
	if !s.data || !s.follower {
		if from == nil || !from.running || from.hung || from.follower || !from.binlog.runs || f.cut || s.apart {
			return false
		}
		if (!s.data || from.lost[s.id]) && !a.Engine.CopiesWhileCommitsWait() && f.waiting(from) {
			return false
		}
		same := 0
		if from.lost[s.id] {
			s.log = nil // it cannot be rewound
		}
		for same < len(s.log) && same < len(from.log) && s.log[same] == from.log[same] {
			same++
		}
		s.data, s.follower, s.log, s.lost, s.slotless, s.binlog.torn = true, true, s.log[:same:same], nil, nil, false
		s.rebuilt = max(s.rebuilt, a.Role.RebuildSeq)
		delete(from.lost, s.id)
		delete(from.slotless, s.id)
	}
	s.source = a.Role.Source.ID
	if !s.running && f.starts(s, a, a.Role.StartSeq) && s.binlog.start(a) {
		f.begin(s, a, a.Role.StartSeq)
	}
	return s.running
}

func (f *groupFleet) write(s *server, a kurabe.Assignment) bool {
	switch leased := a.Role != nil && a.Role.Leased; {
	case leased && !f.w.Now.Before(later(s.vouched, s.lease)):
		if s.leased {
			s.die()
		}
		return false // until there is a lease, neither a warden nor a server is begun
	case leased && s.running && s.hung && !s.follower:
		s.die() // its agent ends it
		return false
	default:
		s.leased = leased
	}
	s.data = true
	var waits []kurabe.InstanceID
	seq := int64(0)
	if a.Role != nil {
		waits, seq = a.Role.WaitFor, a.Role.StartSeq
	}
	if s.running && s.boot < a.Boot && !s.hung {
		s.stop()
	}
	if !s.running {
		if len(waits) > 0 && seq <= s.started {
			s.failed.tries = 0 // it waits for an order
			return false
		}
		if !f.starts(s, a, seq) {
			return false
		}
		if !s.binlog.start(a) {
			return false
		}
		f.begin(s, a, seq)
		s.held = len(waits) > 0
	}
	if s.hung {
		return false
	}
	if s.follower && a.Role != nil && a.Role.WaitForOldLease && s.outlasted != a.Role.Epoch {
		s.outlasts, s.outlasted = f.lastWord(s, *a.Role).Add(kurabe.OldLeaseWait), a.Role.Epoch
		f.seen["outlasted"]++
	}
	if s.follower && a.Role != nil && a.Role.RequireStandby {
		s.held = true
		f.seen["held promotions"]++
	}
	s.follower = false
	if !slices.Equal(s.waits, waits) {
		s.waits, s.mark = slices.Clone(waits), len(s.log)
	}
	if opens := a.Role != nil && a.Role.AllowUnprotectedClients; s.held && (opens || len(f.uncovered(s)) < max(1, len(s.waits))) { // one of them is enough
		s.held = false
	}
	return !f.w.Now.Before(s.outlasts)
}

// waiting says whether clients of a server wait for a commit, and nobody answers.
func (f *groupFleet) waiting(s *server) bool {
	answers := func(id kurabe.InstanceID) bool { return f.has(s, id) >= 0 }
	return f.opens(s) && len(s.waits) > 0 && !slices.ContainsFunc(s.waits, answers) && slices.ContainsFunc(s.log, func(id int) bool { return !f.acked[id] })
}
