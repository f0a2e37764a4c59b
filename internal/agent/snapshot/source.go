package snapshot

import "kurabe"

// writer is the assignment of the server of an instance that writes here, or of the only
// one: what is to be had of the instance as a whole, as a snapshot, is to be had of that
// one. false while none writes, as between two writers.
func (s *Set) writer(owner kurabe.InstanceID) (kurabe.Assignment, bool) {
	return writerOf(s.Members(owner))
}

func writerOf(members []kurabe.Assignment) (kurabe.Assignment, bool) {
	if len(members) == 1 {
		return members[0], true
	}
	var best *kurabe.Assignment
	for n, m := range members {
		if m.Writes() && (best == nil || newerWriter(m, *best)) {
			best = &members[n]
		}
	}
	if best == nil {
		return kurabe.Assignment{}, false
	}
	return *best, true
}

// newerWriter orders two that are both told to write, as while one of them has not heard of
// the other yet. One that is to go is none.
func newerWriter(a, b kurabe.Assignment) bool {
	if gone, other := a.Goal == kurabe.GoalAbsent, b.Goal == kurabe.GoalAbsent; gone != other {
		return other
	}
	return a.Role != nil && (b.Role == nil || a.Role.Epoch > b.Role.Epoch)
}
