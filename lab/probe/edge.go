package probe

import "time"

// lockCount counts waits for locks by samples: a session that waits now and did not a
// sample ago has begun a wait. A wait shorter than sampleEvery may be missed.
type lockCount struct {
	begun, seen int
	before      map[string]bool
}

func (c *lockCount) see(now map[string]bool) {
	for id := range now {
		c.seen++
		if !c.before[id] {
			c.begun++
		}
	}
	c.before = now
}

// edges turn what is seen in samples into events.
type edges struct {
	since  time.Time // of a checkpoint that was seen for the first time, zero without one
	told   bool      // its begin is an event
	vacuum map[string]string
}

// see gives the events of a moment. A checkpointer that is busy in one sample only is not
// taken for a checkpoint: it has small chores too.
func (e *edges) see(at time.Time, m moment) []Event {
	var events []Event
	switch {
	case !m.checkpoints:
	case !m.checkpointing:
		if e.told {
			events = append(events, Event{At: at, Kind: KindCheckpoint, Text: "end"})
		}
		e.since, e.told = time.Time{}, false
	case e.since.IsZero():
		e.since = at
	case !e.told:
		e.told = true
		events = append(events, Event{At: e.since, Kind: KindCheckpoint, Text: "begin"})
	}
	for worker, text := range m.vacuums {
		if e.vacuum[worker] != text {
			events = append(events, Event{At: at, Kind: KindAutovacuum, Text: text})
		}
	}
	e.vacuum = m.vacuums
	return events
}
