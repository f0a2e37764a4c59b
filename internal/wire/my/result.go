package my

import (
	"encoding/binary"
	"fmt"
)

// The first bytes of answers.
const (
	MarkOK    byte = 0x00
	MarkLocal byte = 0xfb // asks for a file
	MarkEOF   byte = 0xfe
	MarkError byte = 0xff
)

// OK ends an answer well. Its texts are part of the packet.
type OK struct {
	Mark         byte // MarkOK, or MarkEOF behind rows
	AffectedRows uint64
	InsertID     uint64
	Status       uint16
	Warnings     uint16
	Info         []byte
	Changes      []byte // of the session, as ReadChanges takes them
}

// ReadOK reads the payload from a server that tracks the session or not.
func ReadOK(p []byte, tracks bool) (OK, error) {
	r := Reader{Rest: p}
	ok := OK{Mark: r.Byte(), AffectedRows: r.Lenenc(), InsertID: r.Lenenc(), Status: r.Uint16(), Warnings: r.Uint16()}
	switch {
	case tracks && len(r.Rest) > 0:
		ok.Info = r.Text()
		if ok.Status&StateChanged != 0 {
			ok.Changes = r.Text()
		}
	default:
		ok.Info = r.Rest
	}
	if r.Bad || (ok.Mark != MarkOK && ok.Mark != MarkEOF) {
		return OK{}, fmt.Errorf("end of an answer: %w", ErrMalformed)
	}
	return ok, nil
}

// Append appends the payload for a client that tracks the session or not.
func (ok *OK) Append(to []byte, tracks bool) []byte {
	status := ok.Status
	if !tracks || len(ok.Changes) == 0 {
		status &^= StateChanged
	}
	to = append(to, ok.Mark)
	to = AppendLenenc(AppendLenenc(to, ok.AffectedRows), ok.InsertID)
	to = binary.LittleEndian.AppendUint16(to, status)
	to = binary.LittleEndian.AppendUint16(to, ok.Warnings)
	switch {
	case !tracks:
		return append(to, ok.Info...)
	case status&StateChanged != 0:
		return AppendText(AppendText(to, ok.Info), ok.Changes)
	case len(ok.Info) > 0:
		return AppendText(to, ok.Info)
	}
	return to
}

// AppendEOF appends the payload of the older packet that ends columns and rows.
func AppendEOF(to []byte, warnings, status uint16) []byte {
	to = binary.LittleEndian.AppendUint16(append(to, MarkEOF), warnings)
	return binary.LittleEndian.AppendUint16(to, status)
}

// ReadEOF reads it.
func ReadEOF(p []byte) (warnings, status uint16, err error) {
	r := Reader{Rest: p}
	mark := r.Byte()
	warnings, status = r.Uint16(), r.Uint16()
	if r.Bad || mark != MarkEOF {
		return 0, 0, fmt.Errorf("end of rows: %w", ErrMalformed)
	}
	return warnings, status, nil
}

// Error is what a server says of a command that failed.
type Error struct {
	Number  uint16
	State   string // five characters
	Message string
}

func (e *Error) Error() string { return fmt.Sprintf("%s (%d, %s)", e.Message, e.Number, e.State) }

// Append appends the payload.
func (e *Error) Append(to []byte) []byte {
	to = binary.LittleEndian.AppendUint16(append(to, MarkError), e.Number)
	return append(append(append(to, '#'), e.State...), e.Message...)
}

// ReadError reads the payload into an *Error, or says why it cannot.
func ReadError(p []byte) error {
	r := Reader{Rest: p}
	mark, number := r.Byte(), r.Uint16()
	if r.Bad || mark != MarkError {
		return fmt.Errorf("error: %w", ErrMalformed)
	}
	e := &Error{Number: number, State: "HY000"}
	if len(r.Rest) >= 6 && r.Rest[0] == '#' {
		e.State = string(r.Rest[1:6])
		r.Rest = r.Rest[6:]
	}
	e.Message = string(r.Rest)
	return e
}

// ChangeKind is what of a session a server reports.
type ChangeKind byte

// The kinds.
const (
	ChangedVariable ChangeKind = 0
	ChangedSchema   ChangeKind = 1
	ChangedState    ChangeKind = 2
)

// Changes reads the reports of an OK one by one.
type Changes struct {
	rest      Reader
	variables Reader // of the report that is being read
}

// ReadChanges begins with what OK.Changes holds.
func ReadChanges(changes []byte) Changes { return Changes{rest: Reader{Rest: changes}} }

// Next gives the next: the name and the value of a variable, the name of the schema as its
// value, or the kind alone. It says false at the end, and when the rest is malformed.
func (c *Changes) Next() (kind ChangeKind, name, value []byte, ok bool) {
	for {
		if len(c.variables.Rest) > 0 {
			name, value = c.variables.Text(), c.variables.Text()
			if c.variables.Bad {
				c.rest.Bad = true
				return 0, nil, nil, false
			}
			return ChangedVariable, name, value, true
		}
		if len(c.rest.Rest) == 0 {
			return 0, nil, nil, false
		}
		kind = ChangeKind(c.rest.Byte())
		data := Reader{Rest: c.rest.Text()}
		if c.rest.Bad {
			return 0, nil, nil, false
		}
		switch kind {
		case ChangedVariable:
			c.variables = data
		case ChangedSchema:
			value = data.Text()
			return kind, nil, value, !data.Bad
		default:
			return kind, nil, nil, true
		}
	}
}

// Bad says whether the reports were malformed.
func (c *Changes) Bad() bool { return c.rest.Bad }
