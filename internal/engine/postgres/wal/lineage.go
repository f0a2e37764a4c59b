package wal

import (
	"fmt"
	"strconv"
	"strings"
)

// Lineage is the timelines that led to one, oldest first. A promoted server writes a new
// timeline, whose first segment begins with what the old one has in it up to the switch.
type Lineage []Stretch

// Text is the history file of the last timeline.
func (l Lineage) Text() string {
	var b strings.Builder
	for _, e := range l[:len(l)-1] {
		fmt.Fprintf(&b, "%d\t%s\tby its own log\n", e.Timeline, e.End)
	}
	return b.String()
}

// Find is a timeline's number in it, -1 for none.
func (l Lineage) Find(timeline uint32) int {
	for n, e := range l {
		if e.Timeline == timeline {
			return n
		}
	}
	return -1
}

// At is the timeline whose segment a recovery reads at a place: the newest one that has begun
// by that segment's end.
func (l Lineage) At(s Segments, place LSN) uint32 {
	n := len(l) - 1
	for n > 0 && s.Begin(l[n-1].End) > s.Begin(place) {
		n--
	}
	return l[n].Timeline
}

// Stretch is what a server has of one timeline: from the end of the one before it to its
// own end, which is endless for the one that is written now.
type Stretch struct {
	Timeline uint32
	End      LSN
}

const Endless = ^LSN(0)

// HistoryBytesMost bounds what is read of a history: a line for each promotion.
const HistoryBytesMost = 1 << 20

// ParseHistory reads a timeline's history file: lines of a timeline, the place at which it
// was left, and the reason (PostgreSQL manual, "Timelines"; timeline.c).
func ParseHistory(text string, timeline uint32) ([]Stretch, error) {
	var list []Stretch
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if len(fields) == 0 || strings.HasPrefix(fields[0], "#") {
			continue
		}
		if len(fields) < 2 {
			return nil, fmt.Errorf("invalid line %.80q in a timeline history", line)
		}
		t, err := strconv.ParseUint(fields[0], 10, 32)
		if err != nil {
			return nil, fmt.Errorf("invalid timeline %.80q", fields[0])
		}
		at, err := ParseLSN(fields[1])
		if err != nil {
			return nil, err
		}
		if n := len(list); n > 0 && (uint32(t) <= list[n-1].Timeline || at < list[n-1].End) {
			return nil, fmt.Errorf("a timeline's history goes back at %.80q", line)
		}
		list = append(list, Stretch{uint32(t), at})
	}
	if n := len(list); n > 0 && list[n-1].Timeline >= timeline {
		return nil, fmt.Errorf("timeline %d cannot come from timeline %d", timeline, list[n-1].Timeline)
	}
	return append(list, Stretch{timeline, Endless}), nil
}

func HistoryFile(timeline uint32) string { return fmt.Sprintf("%s/%08X.history", Dir, timeline) }

// FirstTimeline has no history.
const FirstTimeline = 1
