package mariadb

import (
	"fmt"

	"kurabe/internal/wire/my"
)

// stage is what a server's next packet is.
type stage byte

const (
	atNothing    stage = iota // no answer is due
	atFirst                   // of an answer with or without rows
	atColumns                 // which describe rows
	atColumnsEnd              // if there is one
	atRows                    // or their end
	atFile                    // the client sends a file; then the end
	atPrepared                // the first of a prepared statement
	atParameters              // which it describes
	atParametersEnd
	atPreparedColumns
	atPreparedColumnsEnd
	atFields // of a table, or their end
	atText   // one packet that is a text
	atEnd    // OK or an error
)

// event is what a packet means for its answer.
type event byte

const (
	goesOn event = iota
	ended
	failed
	wantsFile
)

// answer follows a server's answer from packet to packet.
type answer struct {
	stage     stage
	deprecate bool   // no packet ends the columns, and OK ends the rows
	columns   uint64 // that are still to come
	later     uint64 // the columns behind the parameters
	sequence  byte   // of the newest packet
	partial   int    // bytes of the newest packet that have not been passed on
	long      bool   // the newest packet is continued in the next

	rows   uint64
	ok     my.OK // of the newest end of a result; its texts are gone with the packet
	isOK   bool  // the newest packet is one, which tells of changes
	isEnd  bool  // the newest packet ends a result
	failed my.Error
	// of a prepared statement
	id                    uint32
	parameters, described uint16
}

// begin awaits the answer to a command.
func (a *answer) begin(command byte) {
	*a = answer{stage: atFirst, deprecate: a.deprecate}
	switch command {
	case my.ComStmtPrepare:
		a.stage = atPrepared
	case my.ComStmtFetch:
		a.stage = atRows
	case my.ComFieldList:
		a.stage = atFields
	case my.ComStatistics:
		a.stage = atText
	case my.ComQuery, my.ComStmtExecute, my.ComStmtBulkExecute, my.ComProcessInfo:
	default:
		a.stage = atEnd
	}
}

// passes says whether a packet is one that nobody needs to look at, from its length and its
// first byte.
func (a *answer) passes(length int, mark byte) bool {
	if a.long {
		return true
	}
	if a.stage != atRows {
		return false
	}
	switch mark {
	case my.MarkError:
		return false
	case my.MarkEOF:
		return length == my.PayloadMax || !a.deprecate && length >= 9
	}
	return true
}

// passed takes note of such a packet.
func (a *answer) passed(length int, sequence byte) {
	if !a.long && a.stage == atRows {
		a.rows++
	}
	a.long = length == my.PayloadMax
	a.sequence = sequence
}

// packet looks at a whole packet.
func (a *answer) packet(p []byte, sequence byte) (event, error) {
	a.sequence, a.isOK, a.isEnd = sequence, false, false
	if len(p) == 0 || a.stage == atNothing {
		return goesOn, fmt.Errorf("a packet that nobody asked for: %w", my.ErrMalformed)
	}
	if p[0] == my.MarkError && a.stage != atText {
		return a.error(p)
	}
	switch a.stage {
	case atFirst, atFile, atEnd:
		return a.first(p)
	case atColumns, atParameters, atPreparedColumns:
		return a.column()
	case atColumnsEnd, atParametersEnd, atPreparedColumnsEnd:
		if _, status, err := my.ReadEOF(p); err != nil {
			return goesOn, err
		} else if a.stage == atColumnsEnd && status&my.CursorExists != 0 {
			return a.end(p)
		}
		return a.columnsEnd(), nil
	case atRows:
		return a.end(p)
	case atFields:
		if p[0] == my.MarkEOF {
			return a.end(p)
		}
		return goesOn, nil
	case atPrepared:
		return a.prepared(p)
	}
	a.stage = atNothing // a text
	return ended, nil
}

func (a *answer) error(p []byte) (event, error) {
	a.stage = atNothing
	e, ok := my.ReadError(p).(*my.Error)
	if !ok {
		return goesOn, my.ErrMalformed
	}
	a.failed = *e
	return failed, nil
}

// first is a packet that ends an answer without rows, asks for a file, or begins rows.
func (a *answer) first(p []byte) (event, error) {
	switch {
	case p[0] == my.MarkOK, p[0] == my.MarkEOF && len(p) < 9 && a.stage == atEnd:
		return a.end(p)
	case a.stage != atFirst:
		return goesOn, fmt.Errorf("no end of an answer: %w", my.ErrMalformed)
	case p[0] == my.MarkLocal:
		a.stage = atFile
		return wantsFile, nil
	}
	r := my.Reader{Rest: p}
	a.columns = r.Lenenc()
	if r.Bad || a.columns == 0 {
		return goesOn, fmt.Errorf("number of columns: %w", my.ErrMalformed)
	}
	a.stage, a.rows = atColumns, 0
	return goesOn, nil
}

func (a *answer) column() (event, error) {
	a.columns--
	if a.columns > 0 {
		return goesOn, nil
	}
	a.stage++ // to the packet that ends them
	if a.deprecate {
		return a.columnsEnd(), nil
	}
	return goesOn, nil
}

// columnsEnd goes to the stage behind the columns.
func (a *answer) columnsEnd() event {
	switch {
	case a.stage == atColumnsEnd:
		a.stage = atRows
	case a.stage == atParametersEnd && a.later > 0:
		a.stage, a.columns = atPreparedColumns, a.later
	default:
		a.stage = atNothing
		return ended
	}
	return goesOn
}

// end ends a result, and the answer unless more results follow.
func (a *answer) end(p []byte) (event, error) {
	if p[0] == my.MarkEOF && (!a.deprecate || len(p) < 7) {
		warnings, status, err := my.ReadEOF(p)
		if err != nil {
			return goesOn, err
		}
		a.ok = my.OK{Mark: my.MarkEOF, Warnings: warnings, Status: status}
	} else {
		ok, err := my.ReadOK(p, true)
		if err != nil {
			return goesOn, err
		}
		a.ok, a.isOK = ok, true
	}
	a.isEnd = true
	if a.ok.Status&my.MoreResults != 0 {
		a.stage = atFirst
		return goesOn, nil
	}
	a.stage = atNothing
	return ended, nil
}

func (a *answer) prepared(p []byte) (event, error) {
	r := my.Reader{Rest: p}
	mark, id, columns, parameters := r.Byte(), r.Uint32(), r.Uint16(), r.Uint16()
	if r.Bad || mark != my.MarkOK {
		return goesOn, fmt.Errorf("prepared statement: %w", my.ErrMalformed)
	}
	a.id, a.parameters, a.described = id, parameters, columns
	switch {
	case parameters > 0:
		a.stage, a.columns, a.later = atParameters, uint64(parameters), uint64(columns)
	case columns > 0:
		a.stage, a.columns = atPreparedColumns, uint64(columns)
	default:
		a.stage = atNothing
		return ended, nil
	}
	return goesOn, nil
}
