package fake

import (
	"time"

	"kurabe"
)

// silentAfter is how long one end of a stream that hears nothing of the other keeps it.
const silentAfter = 3 * time.Second

// localTime is what it takes between servers of one host, in a network that takes time at all.
const localTime = time.Millisecond

// stream is what a follower's connection to its source is: of one process each.
type stream struct {
	source  *instance // nil: there is none
	between [2]string // the processes at its ends
	gotAt   time.Time // the follower's last word from the source
}

// heard is what a source knows of a follower, by its newest answer.
type heard struct {
	flushed int
	at      time.Time
	boot    int64 // the same, by the clock of the source's host
}

// sent is how far a log had come at a moment.
type sent struct {
	end int
	at  time.Time
}

// Reach says whether what one host sends arrives at another one, and after what time. It is
// called with the network's lock held.
type Reach func(from, to kurabe.HostID) (delay time.Duration, arrives bool)

// SetReach has the hosts of a network reach each other like that; nil: at once, and always.
func (e *Engine) SetReach(r Reach) {
	e.net.Lock()
	defer e.net.Unlock()
	e.net.flow()
	e.net.reach = r
}

func (n *network) reaches(from, to *instance) (time.Duration, bool) {
	switch {
	case n.reach == nil:
		return 0, true
	case from.on.Host == to.on.Host:
		return localTime, true
	}
	return n.reach(from.on.Host, to.on.Host)
}

// connected has a follower be connected to a source that it can follow, and says whether it is.
func (n *network) connected(i, s *instance) bool {
	between := [2]string{i.o.Process, s.o.Process}
	if i.stream.source == s && i.stream.between == between {
		return true
	}
	i.stream = stream{}
	_, there := n.reaches(i, s)
	_, back := n.reaches(s, i)
	if !there || !back || i.frozen != nil || s.frozen != nil {
		return false
	}
	now := time.Now()
	i.stream = stream{source: s, between: between, gotAt: now}
	s.answers[i.id] = heard{flushed: len(i.log), at: now, boot: s.on.boottime()}
	return true
}

// carry brings a follower what has arrived of its source's log, and the source the follower's
// answer. A stream that one end hears nothing of is over.
func (n *network) carry(i, s *instance, now time.Time) {
	still := i.frozen != nil || s.frozen != nil
	if delay, arrives := n.reaches(s, i); arrives && !still {
		i.stream.gotAt = now
		if !i.lags && !i.on.full() {
			i.take(s, s.endAt(now.Add(-delay)))
		}
	}
	if _, arrives := n.reaches(i, s); arrives && !still {
		a := heard{flushed: len(i.log), at: now, boot: s.on.boottime()}
		if n.flaws&Lies != 0 {
			a.flushed = len(s.log)
		}
		s.answers[i.id] = a
	}
	if now.Sub(i.stream.gotAt) > silentAfter || now.Sub(s.answers[i.id].at) > silentAfter {
		i.stream = stream{}
	}
}

// take copies a source's log up to an end. Theirs begins as ours.
func (i *instance) take(s *instance, end int) {
	if end > len(i.log) {
		i.log = append(i.log, s.log[len(i.log):end]...)
	}
}

// endAt is how far the log had come at a moment.
func (i *instance) endAt(at time.Time) int {
	end := len(i.log)
	for n := len(i.sent) - 1; n >= 0 && i.sent[n].at.After(at); n-- {
		end = i.sent[n].end - 1
	}
	return end
}

// sentMost bounds what is remembered of when something was written: more than arrives later
// than that at any delay is not.
const sentMost = 4096

// write appends to a writer's log.
func (i *instance) write(number int64) {
	i.log = append(i.log, number)
	if i.sent = append(i.sent, sent{len(i.log), time.Now()}); len(i.sent) > sentMost {
		i.sent = append(i.sent[:0], i.sent[sentMost/2:]...)
	}
}

func (e *Engine) boottime() int64 {
	if e.Boottime != nil {
		return e.Boottime()
	}
	return time.Now().UnixNano()
}

// drain gives the followers of a server that stops the rest of its log, and says whether those
// that are there have it.
func (n *network) drain(i *instance) bool {
	all := true
	for _, id := range i.slots {
		f := n.server(id)
		if f == nil || n.source(f) != i {
			continue
		}
		_, there := n.reaches(i, f)
		_, back := n.reaches(f, i)
		if !there || !back || f.frozen != nil || f.lags {
			all = false
			continue
		}
		f.take(i, len(i.log))
	}
	return all
}
