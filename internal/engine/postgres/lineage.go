package postgres

import (
	"fmt"
	"strconv"
	"strings"
)

// lineage is the timelines that led to one, oldest first. A promoted server writes a new
// timeline, whose first segment begins with what the old one has in it up to the switch.
type lineage []stretch

// text is the history file of the last timeline.
func (l lineage) text() string {
	var b strings.Builder
	for _, e := range l[:len(l)-1] {
		fmt.Fprintf(&b, "%d\t%s\tby its own log\n", e.timeline, e.end)
	}
	return b.String()
}

// find is a timeline's number in it, -1 for none.
func (l lineage) find(timeline uint32) int {
	for n, e := range l {
		if e.timeline == timeline {
			return n
		}
	}
	return -1
}

// at is the timeline whose segment a recovery reads at a place: the newest one that has begun
// by that segment's end.
func (l lineage) at(s segments, place lsn) uint32 {
	n := len(l) - 1
	for n > 0 && s.begin(l[n-1].end) > s.begin(place) {
		n--
	}
	return l[n].timeline
}

// stretch is what a server has of one timeline: from the end of the one before it to its
// own end, which is endless for the one that is written now.
type stretch struct {
	timeline uint32
	end      lsn
}

const endless = ^lsn(0)

// historyBytesMost bounds what is read of a history: a line for each promotion.
const historyBytesMost = 1 << 20

// parseHistory reads a timeline's history file: lines of a timeline, the place at which it
// was left, and the reason (PostgreSQL manual, "Timelines"; timeline.c).
func parseHistory(text string, timeline uint32) ([]stretch, error) {
	var list []stretch
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
		at, err := parseLSN(fields[1])
		if err != nil {
			return nil, err
		}
		if n := len(list); n > 0 && (uint32(t) <= list[n-1].timeline || at < list[n-1].end) {
			return nil, fmt.Errorf("a timeline's history goes back at %.80q", line)
		}
		list = append(list, stretch{uint32(t), at})
	}
	if n := len(list); n > 0 && list[n-1].timeline >= timeline {
		return nil, fmt.Errorf("timeline %d cannot come from timeline %d", timeline, list[n-1].timeline)
	}
	return append(list, stretch{timeline, endless}), nil
}

func historyFile(timeline uint32) string { return fmt.Sprintf("%s/%08X.history", walDir, timeline) }

// firstTimeline has no history.
const firstTimeline = 1
