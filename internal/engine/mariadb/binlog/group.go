package binlog

import (
	"encoding/binary"
)

// group is one group in a file. seconds is when its last statement began.
type group struct {
	gtid    GTID
	End     int64
	seconds uint32
}

// Grouper finds the groups among the events of a log, across its files.
type Grouper struct {
	open       bool // within a group
	standalone bool
	current    group
}

// Add takes the next event and says whether it is the last of a group.
func (g *Grouper) Add(e Event) (group, bool) {
	switch {
	case e.startsServer():
		g.open = false // The server that began the group died within.
		return group{}, false
	case e.Kind == GTIDEvent && len(e.body) >= GTIDBodyBytesLeast:
		g.open, g.standalone = true, e.body[gtidFlagsAt]&standaloneFlag != 0
		g.current = group{seconds: e.seconds, gtid: GTID{
			Seq: binary.LittleEndian.Uint64(e.body), domain: binary.LittleEndian.Uint32(e.body[8:]), Server: e.server,
		}}
		return group{}, false
	case !g.open || !(g.standalone && !auxiliary(e.Kind) || g.endedBy(e)):
		return group{}, false
	}
	g.open = false
	g.current.End = e.end
	return g.current, true
}

// auxiliary events come before the one of a statement, and belong to it: INTVAR,
// RAND, USER_VAR, ANNOTATE_ROWS.
func auxiliary(kind byte) bool {
	const intVar, random, userVar, annotate = 5, 13, 14, 160
	return kind == intVar || kind == random || kind == userVar || kind == annotate
}

func (g *Grouper) endedBy(e Event) bool {
	switch e.Kind {
	case XIDEvent, xaPrepareEvent:
		return true
	case queryEvent:
		text := e.query()
		return text == "COMMIT" || text == "ROLLBACK"
	}
	return false
}

// query is the statement of an event.
func (e Event) query() string {
	if len(e.body) < queryPostHeaderBytes {
		return ""
	}
	schema := int(e.body[8])
	status := int(binary.LittleEndian.Uint16(e.body[11:]))
	at := queryPostHeaderBytes + status + schema + 1
	if at > len(e.body) {
		return ""
	}
	return string(e.body[at:])
}

// checkpoint is the file that a recovery after a crash begins with, "" when the event
// says nothing of it.
func (e Event) checkpoint() string {
	if e.Kind != checkpointEvent || len(e.body) < checkpointNameBytes {
		return ""
	}
	length := binary.LittleEndian.Uint32(e.body)
	if int64(length) > int64(len(e.body)-checkpointNameBytes) || length > eventNameBytesMax {
		return ""
	}
	return string(e.body[checkpointNameBytes : checkpointNameBytes+int(length)])
}
