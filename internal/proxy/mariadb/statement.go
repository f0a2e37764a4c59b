package mariadb

import (
	"bytes"

	"kurabe/internal/proxy"
	"kurabe/internal/wire/my"
)

// lookedAtMax is how much of a statement is looked at, in bytes; more pins. RDS's bound is
// 16 KiB.
const lookedAtMax = 47 << 10

// meaning is what the proxy has to know of a statement.
type meaning struct {
	pin      proxy.PinReason
	reads    bool // a SELECT
	ends     bool // a transaction, maybe: then an answer that is lost is unknown
	plain    bool // changes rows or reads them, and no settings unless by a routine
	oneShot  bool // SET TRANSACTION, for the next one
	askID    bool // of LAST_INSERT_ID()
	askLast  bool // of what the statement before left
	warnings bool // SHOW WARNINGS and no more
	leaves   bool // something for the next statement: SQL_CALC_FOUND_ROWS
	tracking bool // names session_track_ variables
	reread   bool // what the server reports is not what lasts
	call     bool // of a routine, which may do anything
	kill     bool // is KILL
	use      bool // is USE
	routine  bool // makes one, whose words are not run now
}

// look finds out what a statement means.
func look(text []byte, noEscapes bool) meaning {
	var m meaning
	if len(text) > lookedAtMax {
		m.pin = proxy.PinTooLong
		text = text[:lookedAtMax]
	}
	x := my.Lexer{Rest: text, NoEscapes: noEscapes}
	first, count := true, 0
	var verb, second my.Word
	for {
		w := x.Next()
		switch {
		case w.Kind == my.End:
			m.finish(verb, count)
			return m
		case w.Sign(';'):
			first = true
			continue
		case first && w.Sign('('):
			continue
		case first:
			verb, second, first = w, my.Word{}, false
			count++
			m.begin(w)
			continue
		case w.Kind == my.UserVariable && !m.routine:
			m.pins(proxy.PinUserVariable)
		case w.Kind == my.SystemVariable:
			m.asks(w)
		case w.Kind == my.Name:
			m.word(verb, second, w, &x)
		}
		if second.Kind == my.End {
			second = w
		}
	}
}

func (m *meaning) pins(reason proxy.PinReason) {
	if m.pin == "" {
		m.pin = reason
	}
}

// begin looks at the first word of a statement.
func (m *meaning) begin(w my.Word) {
	plain := false
	switch {
	case w.Is("SELECT"), w.Is("WITH"), w.Is("VALUES"), w.Is("TABLE"):
		plain, m.reads = true, true
	case w.Is("INSERT"), w.Is("UPDATE"), w.Is("DELETE"), w.Is("REPLACE"), w.Is("BEGIN"), w.Is("START"):
		plain = true
	case w.Is("COMMIT"):
		plain, m.ends = true, true
	case w.Is("ROLLBACK"), w.Is("SAVEPOINT"), w.Is("RELEASE"):
		plain = true
	case w.Is("SHOW"), w.Is("EXPLAIN"), w.Is("DESCRIBE"), w.Is("DESC"):
		plain = true
	case w.Is("CALL"):
		m.call, m.reread = true, true
	case w.Is("PREPARE"), w.Is("EXECUTE"), w.Is("DEALLOCATE"):
		m.pins(proxy.PinSQLPrepare)
	case w.Is("LOCK"), w.Is("BACKUP"):
		m.pins(proxy.PinTableLock)
	case w.Is("HANDLER"):
		m.pins(proxy.PinCursor)
	case w.Is("XA"):
		m.pins(proxy.PinTableLock)
	case w.Is("KILL"):
		m.kill = true
	case w.Is("USE"):
		m.use = true
	case w.Is("GET"):
		m.askLast = true
	}
	m.ends = m.ends || !plain
	m.plain = plain
}

// finish is about statements that hold several.
func (m *meaning) finish(verb my.Word, count int) {
	if count > 1 {
		m.plain, m.reads, m.warnings, m.ends, m.reread, m.kill = false, false, false, true, true, false
	}
	if verb.Kind == my.End {
		m.plain = true
	}
}

// word looks at the others.
func (m *meaning) word(verb, second, w my.Word, x *my.Lexer) {
	switch {
	case verb.Is("CREATE") && (w.Is("PROCEDURE") || w.Is("FUNCTION") || w.Is("TRIGGER") || w.Is("EVENT")):
		m.routine = true
	case m.routine:
	case w.Is("GET_LOCK"):
		m.pins(proxy.PinAdvisoryLock)
	case w.Is("LAST_INSERT_ID"):
		m.askID = true
	case w.Is("ROW_COUNT"), w.Is("FOUND_ROWS"), w.Is("LASTVAL"), w.Is("PREVIOUS"):
		m.askLast = true
	case w.Is("SQL_CALC_FOUND_ROWS"):
		m.leaves = true
	case w.Is("TEMPORARY") && (verb.Is("CREATE")):
		m.pins(proxy.PinTemporaryTable)
	case verb.Is("FLUSH") && (w.Is("READ") || w.Is("EXPORT")):
		m.pins(proxy.PinTableLock)
	case verb.Is("SHOW") && (w.Is("WARNINGS") || w.Is("ERRORS")):
		m.askLast = true
		m.warnings = second.Kind == my.End && w.Is("WARNINGS") && len(bytes.TrimRight(x.Rest, " \t\r\n;")) == 0
	case verb.Is("SHOW") && second.Kind == my.End && (w.Is("PROFILE") || w.Is("PROFILES")):
		m.askLast = true
	case verb.Is("SET"):
		m.set(second, w)
	}
}

func (m *meaning) set(second, w my.Word) {
	first := second.Kind == my.End
	switch {
	case first && w.Is("TRANSACTION"):
		m.oneShot = true
	case first && w.Is("STATEMENT"):
		m.reread = true
	case first && w.Is("ROLE"):
		m.pins(proxy.PinSetting)
	}
	m.asks(w)
}

// asks looks at the name of a system variable.
func (m *meaning) asks(w my.Word) {
	switch name := bytes.ToLower(w.Text); {
	case bytes.HasPrefix(name, []byte(trackingPrefix)):
		m.tracking = true
	case string(name) == "identity", string(name) == "last_insert_id":
		m.askID = true
	case string(name) == "warning_count", string(name) == "error_count":
		m.askLast = true
	}
}
