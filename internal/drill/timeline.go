package drill

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"kurabe"
)

// lookEvery is how often the service is asked, and so how late a change is seen at most,
// beside the time of an answer.
const lookEvery = 50 * time.Millisecond

// Source is whose word an entry of the timeline is.
type Source string

// The sources: what the drill did and what its client saw, what the planner decided, what
// the hosts told of their servers, what users were told.
const (
	FromDrill   Source = "drill"
	FromClient  Source = "client"
	FromPlanner Source = "planner"
	FromHost    Source = "host"
	FromStatus  Source = "status"
	FromEvent   Source = "event"
)

// Entry is one line of the timeline.
type Entry struct {
	At      time.Time `json:"at"`
	Seconds float64   `json:"seconds"` // after the fault
	Source  Source    `json:"source"`
	Text    string    `json:"text"`
}

// watch looks at the service all the time and notes what changes.
type watch struct {
	service Service

	mu      sync.Mutex // guards the rest
	look    Look
	asked   time.Time // when look was asked for; zero before the first
	failing bool
	entries []Entry
}

func (w *watch) note(at time.Time, from Source, format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.noteLocked(at, from, format, args...)
}

func (w *watch) noteLocked(at time.Time, from Source, format string, args ...any) {
	w.entries = append(w.entries, Entry{At: at, Source: from, Text: fmt.Sprintf(format, args...)})
}

func (w *watch) timeline() []Entry {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.entries)
}

// newest is the newest look, and when it was asked for.
func (w *watch) newest() (Look, time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.look, w.asked
}

// run looks until ctx ends.
func (w *watch) run(ctx context.Context) {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		asked := time.Now()
		look, err := w.service.Look(ctx)
		if ctx.Err() != nil {
			return
		}
		w.saw(asked, time.Now(), look, err)
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

func (w *watch) saw(asked, at time.Time, look Look, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if failing := err != nil; failing != w.failing {
		w.failing = failing
		if failing {
			w.noteLocked(at, FromDrill, "the service does not answer: %v", err)
		} else {
			w.noteLocked(at, FromDrill, "the service answers again")
		}
	}
	if err != nil {
		return
	}
	if !w.asked.IsZero() {
		w.entries = append(w.entries, changes(w.look, look, at)...)
	}
	w.look, w.asked = look, asked
}

// changes are what differs between two looks.
func changes(was, is Look, at time.Time) (list []Entry) {
	add := func(from Source, format string, args ...any) {
		list = append(list, Entry{At: at, Source: from, Text: fmt.Sprintf(format, args...)})
	}
	switch {
	case is.Electing && !was.Electing:
		add(FromPlanner, "epoch %d: no primary; the planner asks %s for their WAL positions", is.Epoch, names(is.SyncSet))
	case !is.Electing && (is.Epoch != was.Epoch || is.Writer != was.Writer || was.Electing):
		add(FromPlanner, "epoch %d: %s is the primary", is.Epoch, name(is.Writer))
	}
	if !slices.Equal(is.SyncSet, was.SyncSet) {
		add(FromPlanner, "%s", waits(is.SyncSet))
	}
	if is.Handover != was.Handover && is.Handover != "" {
		add(FromPlanner, "%s hands over to %s", name(is.Writer), name(is.Handover))
	}
	for _, s := range is.Servers {
		old, there := was.Server(s.ID)
		switch {
		case !there:
			add(FromPlanner, "%s is created in %s", name(s.ID), s.Zone)
		case s.Doing != old.Doing || s.PID != old.PID && s.PID != 0:
			add(FromHost, "%s: %s%s", name(s.ID), s.Doing, process(s, old))
		}
	}
	for _, s := range was.Servers {
		if _, there := is.Server(s.ID); !there {
			add(FromPlanner, "%s is removed", name(s.ID))
		}
	}
	if is.Status != was.Status {
		add(FromStatus, "%s", is.Status)
	}
	return list
}

// waits says who has every commit.
func waits(sync []kurabe.InstanceID) string {
	switch len(sync) {
	case 0:
		return "no standby has every commit any more: commits do not wait, and no standby can take over"
	case 1:
		return names(sync) + " has every commit: commits wait for it"
	}
	return "commits wait for either of " + names(sync) + ": one of them has every commit"
}

// process tells of another process than before.
func process(s, old Server) string {
	if s.PID == 0 || s.PID == old.PID {
		return ""
	}
	return fmt.Sprintf(" (process %d)", s.PID)
}

// wait looks at each new look until nothing is missing, and returns what was then.
func (w *watch) wait(ctx context.Context, missing func(l Look, asked time.Time) string) (Look, error) {
	tick := time.NewTicker(lookEvery / 2)
	defer tick.Stop()
	for {
		look, asked := w.newest()
		lacks := "the service has not answered"
		if !asked.IsZero() {
			lacks = missing(look, asked)
		}
		if lacks == "" {
			return look, nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return look, fmt.Errorf("%s (%w)", lacks, context.Cause(ctx))
		}
	}
}
