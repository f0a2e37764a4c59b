package mariadb

import (
	"encoding/binary"
	"strconv"
)

// gtid names a group of events: a transaction, or a statement that is one.
type gtid struct {
	domain, server uint32
	seq            uint64
}

// String is as the server writes it.
func (g gtid) String() string {
	return strconv.FormatUint(uint64(g.domain), 10) + "-" + strconv.FormatUint(uint64(g.server), 10) + "-" + strconv.FormatUint(g.seq, 10)
}

// group is one group in a file. seconds is when its last statement began.
type group struct {
	gtid    gtid
	end     int64
	seconds uint32
}

// grouper finds the groups among the events of a log, across its files.
type grouper struct {
	open       bool // within a group
	standalone bool
	current    group
}

// add takes the next event and says whether it is the last of a group.
func (g *grouper) add(e event) (group, bool) {
	switch {
	case e.startsServer():
		g.open = false // The server that began the group died within.
		return group{}, false
	case e.kind == gtidEvent && len(e.body) >= gtidBodyBytesLeast:
		g.open, g.standalone = true, e.body[gtidFlagsAt]&standaloneFlag != 0
		g.current = group{seconds: e.seconds, gtid: gtid{
			seq: binary.LittleEndian.Uint64(e.body), domain: binary.LittleEndian.Uint32(e.body[8:]), server: e.server,
		}}
		return group{}, false
	case !g.open || !(g.standalone && !auxiliary(e.kind) || g.endedBy(e)):
		return group{}, false
	}
	g.open = false
	g.current.end = e.end
	return g.current, true
}

// auxiliary events come before the one of a statement, and belong to it: INTVAR,
// RAND, USER_VAR, ANNOTATE_ROWS.
func auxiliary(kind byte) bool {
	const intVar, random, userVar, annotate = 5, 13, 14, 160
	return kind == intVar || kind == random || kind == userVar || kind == annotate
}

func (g *grouper) endedBy(e event) bool {
	switch e.kind {
	case xidEvent, xaPrepareEvent:
		return true
	case queryEvent:
		text := e.query()
		return text == "COMMIT" || text == "ROLLBACK"
	}
	return false
}

// query is the statement of an event.
func (e event) query() string {
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
func (e event) checkpoint() string {
	if e.kind != checkpointEvent || len(e.body) < checkpointNameBytes {
		return ""
	}
	length := binary.LittleEndian.Uint32(e.body)
	if int64(length) > int64(len(e.body)-checkpointNameBytes) || length > eventNameBytesMax {
		return ""
	}
	return string(e.body[checkpointNameBytes : checkpointNameBytes+int(length)])
}
