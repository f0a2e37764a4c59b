package binlog

import (
	"bytes"
	"compress/zlib"
	"io"
	"strings"

	"kurabe/internal/engine/mariadb/sqltext"
)

// A replication thread makes every event of the scheduler that it creates or alters
// one that is disabled on a replica, whatever the statement says. Which are enabled
// is therefore read from the statements, and written when all is applied.

// scheduledChange is what one statement says of an event of the scheduler.
type scheduledChange struct {
	name    EventName
	renamed EventName // zero: it keeps its name
	created bool
	status  string // of mysql.event; "" when the statement does not say
}

type EventName struct{ Schema, Name string }

// Schedule is the status of each event.
type Schedule map[EventName]string

// Words of mysql.event.
const (
	statusEnabled  = "ENABLED"
	statusDisabled = "DISABLED"
	StatusReplica  = "SLAVESIDE_DISABLED"
)

// Follow does to the schedule what the statements did.
func (s Schedule) Follow(changes []scheduledChange) {
	for _, c := range changes {
		status, there := s[c.name]
		switch {
		case c.status != "":
			status = c.status
		case c.created || !there:
			status = statusEnabled
		}
		delete(s, c.name)
		if c.renamed != (EventName{}) {
			c.name = c.renamed
		}
		s[c.name] = status
	}
}

// scheduled reads an event of the log that is about an event of the scheduler.
func (e Event) scheduled() (scheduledChange, bool) {
	if e.Kind != queryEvent && e.Kind != queryCompressedEvent || len(e.body) < queryPostHeaderBytes {
		return scheduledChange{}, false
	}
	schema, text := e.schema(), e.query()
	if e.Kind == queryCompressedEvent {
		text = inflate(text)
	}
	return parseScheduled(schema, text)
}

// schema is the one that a statement was executed in.
func (e Event) schema() string {
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
	w := sqltext.Lexer{Rest: text}
	var c scheduledChange
	switch first := w.Next(); {
	case first.Is("CREATE"):
		c.created = true
	case !first.Is("ALTER"):
		return c, false
	}
	// [OR REPLACE] [DEFINER = …]: an EVENT comes before anything that another
	// statement has a name for.
	for n := 0; ; n++ {
		word := w.Next()
		if word.Is("EVENT") {
			break
		}
		if n == 12 || word.Text == "" || word.Is("TABLE", "PROCEDURE", "FUNCTION", "TRIGGER", "VIEW", "USER", "DATABASE", "SCHEMA") {
			return c, false
		}
	}
	word := w.Next()
	if word.Is("IF") {
		for !word.Is("EXISTS") && word.Text != "" {
			word = w.Next()
		}
		word = w.Next()
	}
	c.name, word = nameIn(&w, schema, word)
	for word.Text != "" && !word.Is("DO", "COMMENT") {
		switch {
		case word.Is("RENAME"):
			w.Next() // TO
			c.renamed, word = nameIn(&w, schema, w.Next())
			continue
		case word.Is("ENABLE"):
			c.status = statusEnabled
		case word.Is("DISABLE"):
			c.status = statusDisabled
			if word = w.Next(); word.Is("ON") {
				c.status = StatusReplica
				word = w.Next()
			} else {
				continue
			}
		}
		word = w.Next()
	}
	return c, c.name.Name != ""
}

// nameIn reads [schema.]name that begins with first, and the word after it.
func nameIn(w *sqltext.Lexer, schema string, first sqltext.Word) (EventName, sqltext.Word) {
	after := w.Next()
	if after.Text != "." || after.Quoted {
		return EventName{schema, strings.ToLower(first.Text)}, after
	}
	second := w.Next()
	return EventName{first.Text, strings.ToLower(second.Text)}, w.Next()
}
