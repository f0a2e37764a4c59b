package mariadb

import (
	"bytes"
	"compress/zlib"
	"context"
	"io"
	"strings"
)

// A replication thread makes every event of the scheduler that it creates or alters
// one that is disabled on a replica, whatever the statement says. Which are enabled
// is therefore read from the statements, and written when all is applied.

// scheduledChange is what one statement says of an event of the scheduler.
type scheduledChange struct {
	name    scheduledName
	renamed scheduledName // zero: it keeps its name
	created bool
	status  string // of mysql.event; "" when the statement does not say
}

type scheduledName struct{ schema, name string }

// schedule is the status of each event.
type schedule map[scheduledName]string

// Words of mysql.event.
const (
	statusEnabled  = "ENABLED"
	statusDisabled = "DISABLED"
	statusReplica  = "SLAVESIDE_DISABLED"
)

// follow does to the schedule what the statements did.
func (s schedule) follow(changes []scheduledChange) {
	for _, c := range changes {
		status, there := s[c.name]
		switch {
		case c.status != "":
			status = c.status
		case c.created || !there:
			status = statusEnabled
		}
		delete(s, c.name)
		if c.renamed != (scheduledName{}) {
			c.name = c.renamed
		}
		s[c.name] = status
	}
}

func (s *privateServer) readSchedule(ctx context.Context) (schedule, error) {
	rows, err := s.rows(ctx, "SELECT db, name, status FROM mysql.event")
	all := schedule{}
	for _, r := range rows {
		all[scheduledName{r["db"], strings.ToLower(r["name"])}] = r["status"]
	}
	return all, err
}

// writeSchedule: names of events are the same in any case.
func (s *privateServer) writeSchedule(ctx context.Context, all schedule) error {
	have, err := s.readSchedule(ctx)
	if err != nil {
		return err
	}
	for name, status := range have {
		wanted, known := all[name]
		if status != statusReplica || !known || wanted == status {
			continue
		}
		_, err := s.db.ExecContext(ctx, "UPDATE mysql.event SET status = "+quoteLiteral(wanted)+
			" WHERE db = "+quoteLiteral(name.schema)+" AND LOWER(name) = "+quoteLiteral(name.name))
		if err != nil {
			return err
		}
	}
	return nil
}

// scheduled reads an event of the log that is about an event of the scheduler.
func (e event) scheduled() (scheduledChange, bool) {
	if e.kind != queryEvent && e.kind != queryCompressedEvent || len(e.body) < queryPostHeaderBytes {
		return scheduledChange{}, false
	}
	schema, text := e.schema(), e.query()
	if e.kind == queryCompressedEvent {
		text = inflate(text)
	}
	return parseScheduled(schema, text)
}

// schema is the one that a statement was executed in.
func (e event) schema() string {
	length := int(e.body[8])
	at := queryPostHeaderBytes + int(e.body[11]) + int(e.body[12])<<8
	if at+length > len(e.body) {
		return ""
	}
	return string(e.body[at : at+length])
}

// inflate unpacks the text of a compressed statement, or as much of it as there is:
// a byte whose low bits say how many follow with its length, those, and zlib.
func inflate(text string) string {
	if text == "" {
		return ""
	}
	at := 1 + int(text[0]&7)
	if at > len(text) {
		return ""
	}
	r, err := zlib.NewReader(strings.NewReader(text[at:]))
	if err != nil {
		return ""
	}
	var plain bytes.Buffer
	_, _ = io.Copy(&plain, io.LimitReader(r, bodyBytesKept)) // The beginning is enough.
	return plain.String()
}

// parseScheduled reads CREATE and ALTER EVENT up to the body. What DROP leaves needs no
// status.
func parseScheduled(schema, text string) (scheduledChange, bool) {
	w := words{rest: text}
	var c scheduledChange
	switch first := w.next(); {
	case first.is("CREATE"):
		c.created = true
	case !first.is("ALTER"):
		return c, false
	}
	// [OR REPLACE] [DEFINER = …]: an EVENT comes before anything that another
	// statement has a name for.
	for n := 0; ; n++ {
		word := w.next()
		if word.is("EVENT") {
			break
		}
		if n == 12 || word.text == "" || word.is("TABLE", "PROCEDURE", "FUNCTION", "TRIGGER", "VIEW", "USER", "DATABASE", "SCHEMA") {
			return c, false
		}
	}
	word := w.next()
	if word.is("IF") {
		for !word.is("EXISTS") && word.text != "" {
			word = w.next()
		}
		word = w.next()
	}
	c.name, word = w.name(schema, word)
	for word.text != "" && !word.is("DO", "COMMENT") {
		switch {
		case word.is("RENAME"):
			w.next() // TO
			c.renamed, word = w.name(schema, w.next())
			continue
		case word.is("ENABLE"):
			c.status = statusEnabled
		case word.is("DISABLE"):
			c.status = statusDisabled
			if word = w.next(); word.is("ON") {
				c.status = statusReplica
				word = w.next()
			} else {
				continue
			}
		}
		word = w.next()
	}
	return c, c.name.name != ""
}
