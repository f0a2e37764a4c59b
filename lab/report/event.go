package report

import (
	"fmt"
	"math"
	"strings"

	"kurabe/lab/result"
)

const maxBandEvent = 400 // events drawn in one plot

// stretch is a named stretch of time, s; of an instant both ends are the same. What began
// before the window is drawn from its begin, what went on after it to its end.
type stretch struct {
	from, to      float64
	text          string
	before, after bool
}

// Texts of events that last, and what the stretch of a change is called.
const (
	eventBegin = "begin"
	eventEnd   = "end"
	changing   = "change"
)

func eventWords(kind string) string { return strings.ReplaceAll(kind, "_", " ") }

// eventsOf are a trial's events within the window from start, ms, that lasts so many
// seconds; begin and end of one that lasts become one stretch. Checkpoints are often
// longer than a trial: one of which only an end is known had begun before, one of which
// only a begin is known went on.
func (v *view) eventsOf(t *result.Trial, start, seconds float64) []stretch {
	var out []stretch
	add := func(from, to float64, text string) {
		m := stretch{from, to, text, from < 0, to > seconds}
		if m.to < 0 || m.from > seconds || len(out) == maxBandEvent {
			return
		}
		m.from, m.to = max(m.from, 0), min(m.to, seconds)
		out = append(out, m)
	}
	begun, seen := map[string]float64{}, map[string]bool{}
	for n := range v.file.Events {
		e := &v.file.Events[n]
		if !e.Of(t) {
			continue
		}
		at := (e.AtMs - start) / 1000
		kind, begins, ends := eventKind(e)
		begin, open := begun[kind]
		switch {
		case begins:
			begun[kind] = at
		case ends && open:
			add(begin, at, kind)
			delete(begun, kind)
		case ends && !seen[kind]:
			add(math.Inf(-1), at, kind)
		case !ends:
			add(at, at, kind)
		}
		seen[kind] = seen[kind] || begins || ends
	}
	for _, kind := range sortedKeys(begun) {
		add(begun[kind], math.Inf(1), kind)
	}
	return out
}

// eventKind is what an event is called, and whether it begins or ends something.
func eventKind(e *result.Event) (kind string, begins, ends bool) {
	switch {
	case e.Kind == result.EventChangeBegin:
		return changing, true, false
	case e.Kind == result.EventChangeEnd:
		return changing, false, true
	case e.Kind == result.EventStep:
		return label(e.Text), false, false
	}
	return eventWords(label(e.Kind)), e.Text == eventBegin, e.Text == eventEnd
}

// words name a stretch; a triangle stands where it goes on beyond what is drawn.
func (m stretch) words() string {
	text := m.text
	if m.before {
		text = "◂ " + text
	}
	if m.after {
		text += " ▸"
	}
	return text
}

// hint says from when to when.
func (m stretch) hint() string {
	from, to := num(m.from)+" s", num(m.to)+" s"
	if m.before {
		from = "before the measuring"
	}
	if m.after {
		to = "after its end"
	}
	return fmt.Sprintf("%s, %s to %s", m.text, from, to)
}

// stretches marks changes as bands and events as lines, each named where there is room.
func (d *drawing) stretches(line timeline, x axis, top, bottom float64) {
	for _, p := range line.phases[min(1, len(line.phases)):] {
		d.line(x.at(p.from), top, x.at(p.from), bottom, "block")
	}
	for _, m := range line.marks {
		from, to := x.at(m.from), x.at(m.to)
		d.hint("pt", m.hint())
		if m.text == changing {
			d.rect(from, top, max(to-from, 1), bottom-top, "changing")
		} else {
			d.span(m, from, to, top, bottom)
		}
		d.endGroup()
		at := (from + to) / 2
		for _, y := range []float64{top - 20, top - 37} {
			if d.claim(at, y, atMiddle, m.words(), textSize) {
				d.text(at, y, atMiddle, "tick", m.words())
				break
			}
		}
	}
}

// span is an event: a line down at each end that was seen, joined on top.
func (d *drawing) span(m stretch, from, to, top, bottom float64) {
	if !m.before {
		d.line(from, top, from, bottom, "event")
	}
	if to > from {
		d.line(from, top-1, to, top-1, "event")
		if !m.after {
			d.line(to, top, to, bottom, "event")
		}
	}
}
