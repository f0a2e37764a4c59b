package mariadb

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"kurabe/internal/proxy"
	"kurabe/internal/wire/my"
)

const (
	// statementsMax bounds the statements of a client: the server's own bound for all.
	statementsMax = 16382

	// cachedMax bounds the statements that are prepared on a server's connection.
	cachedMax = 200

	// newestID names the statement that was prepared last.
	newestID = 1<<32 - 1

	executeFixedBytes = 10 // before the NULL bits
	bulkFixedBytes    = 7  // before the types
	bulkSendsTypes    = 1 << 7
)

// statement is one that a client has prepared.
type statement struct {
	id         uint32
	text       []byte
	key        string // of what is prepared on a server's connection: the text and what it depends on
	meaning    meaning
	state      *state // in which it was prepared
	parameters int
	types      []byte // of the parameters, as the client told them last; not changed
	cursor     bool   // is open on the client's connection
	long       bool   // parts of parameters have been sent
	fixed      bool   // is on the connection that the client is pinned to, and nowhere else
}

// depends are the variables that a statement's text is understood by.
var depends = []string{"character_set_client", "character_set_connection", "collation_connection", "sql_mode"}

// keyOf tells apart what is prepared on a server's connection.
func keyOf(text []byte, s *state) string {
	var b bytes.Buffer
	b.Write(text)
	b.WriteByte(0)
	b.WriteString(s.database)
	for _, name := range depends {
		b.WriteByte(0)
		b.WriteString(s.value(name, nil))
	}
	return b.String()
}

// inStateOf gives the state in which a statement has to be prepared once more.
func (st *statement) inStateOf(s *server, now *state) *state {
	then := now.in(st.state.database)
	for _, name := range depends {
		if value := st.state.value(name, s.fresh); value != then.value(name, s.fresh) {
			then = then.with(name, value, s.fresh)
		}
	}
	if then.same(now) {
		return now
	}
	return then
}

// prepare has a server prepare a statement, so that the client learns what is true now.
func (c *client) prepare(p part, text []byte) int {
	if len(c.statements) >= statementsMax {
		return c.fails(p, 1461, "42000", "Can't create more than max_prepared_stmt_count statements")
	}
	c.meaning = meaning{plain: true}
	if !c.ready(c.state) {
		return 0
	}
	if c.statements == nil {
		c.statements = map[uint32]*statement{}
	}
	id := c.newest + 1
	for id == 0 || id == newestID || c.statements[id] != nil {
		id++
	}
	c.logStatement(text)
	st := &statement{id: id, meaning: look(text, c.noEscapes()), state: c.state, fixed: !p.whole}
	if st.fixed {
		c.pins(proxy.PinTooLong)
		st.key = fmt.Sprintf("\x00%d of %d", id, c.id)
	} else {
		st.text = bytes.Clone(text)
		st.key = keyOf(text, c.state)
	}
	c.statement = st
	c.start(p)
	c.server.Conn.Write(p.data)
	return len(p.data)
}

// keep takes note of what has been prepared on a server's connection.
func (s *server) keep(key string, id uint32) *prepared {
	if old := s.statements[key]; old != nil {
		s.closePrepared(key, old)
	}
	if len(s.statements) >= cachedMax {
		s.forgetOldest()
	}
	p := &prepared{id: id}
	s.statements[key] = p
	s.use(p)
	return p
}

func (s *server) use(p *prepared) {
	s.uses++
	p.used = s.uses
}

func (s *server) closePrepared(key string, p *prepared) {
	delete(s.statements, key)
	s.Conn.Write(my.AppendPacket(nil, 0, binary.LittleEndian.AppendUint32([]byte{my.ComStmtClose}, p.id)))
}

func (s *server) forgetOldest() {
	oldest := ""
	for key, p := range s.statements {
		if p.owner == nil && (oldest == "" || p.used < s.statements[oldest].used) {
			oldest = key
		}
	}
	if oldest != "" {
		s.closePrepared(oldest, s.statements[oldest])
	}
}

// endStatement takes note of what an answer has changed of a statement.
func (c *client) endStatement(failed bool) {
	st, s := c.statement, c.server
	c.statement = nil
	if st == nil {
		return
	}
	status := s.answer.ok.Status
	switch c.command {
	case my.ComStmtPrepare:
		if !failed {
			st.parameters = int(s.answer.parameters)
			c.statements[st.id], c.newest = st, st.id
			s.keep(st.key, s.answer.id)
		}
	case my.ComStmtExecute, my.ComStmtBulkExecute:
		c.hold(st, false, !failed && status&my.CursorExists != 0 && status&my.LastRowSent == 0)
	case my.ComStmtFetch:
		c.hold(st, st.long, st.cursor && !failed && status&my.LastRowSent == 0)
	case my.ComStmtReset:
		c.hold(st, false, false)
	}
}

// hold says what of a statement is on the connection, which stays while there is anything.
func (c *client) hold(st *statement, long, cursor bool) {
	before, after := st.long || st.cursor, long || cursor
	st.long, st.cursor = long, cursor
	switch {
	case after && !before:
		c.holding++
	case before && !after:
		c.holding--
	}
	if s := c.server; s != nil {
		if p := s.statements[st.key]; p != nil {
			p.owner = nil
			if after {
				p.owner = st
			}
		}
	}
}

// find gives the statement that a command names.
func (c *client) find(payload []byte) (*statement, uint32) {
	r := my.Reader{Rest: payload[1:]}
	id := r.Uint32()
	if r.Bad {
		return nil, 0
	}
	if id == newestID {
		return c.statements[c.newest], id
	}
	return c.statements[id], id
}

func (c *client) unknown(p part, id uint32, command string) int {
	return c.fails(p, 1243, "HY000", fmt.Sprintf("Unknown prepared statement handler (%d) given to %s", id, command))
}

// onServer gives the statement on the client's connection, which is prepared there first if
// it is not.
func (c *client) onServer(st *statement) *prepared {
	if c.server == nil && !c.ready(c.state) {
		return nil
	}
	s := c.server
	if s.own != nil {
		c.conn.Pause(true)
		return nil
	}
	p := s.statements[st.key]
	if p != nil && p.owner != nil && p.owner != st {
		// Another statement of the same text has something open: this one needs its own.
		st.key = fmt.Sprintf("%s\x00%d of %d", st.key, st.id, c.id)
		p = s.statements[st.key]
	}
	if p == nil {
		if st.fixed {
			c.refusal = &my.Error{Number: 1243, State: "HY000", Message: "The prepared statement has gone with its connection"}
			return nil
		}
		if !c.ready(st.inStateOf(s, c.state)) {
			return nil
		}
		s.run(false, func(failure *my.Error) {
			switch {
			case failure != nil:
				c.refuse(failure)
				return
			case int(s.answer.parameters) != st.parameters:
				c.refuse(&my.Error{Number: 1615, State: "HY000", Message: "Prepared statement needs to be re-prepared"})
				return
			}
			s.keep(st.key, s.answer.id)
			c.proceed()
		}, my.ComStmtPrepare, st.text)
		c.conn.Pause(true)
		return nil
	}
	if !c.ready(c.state) {
		return nil
	}
	s.use(p)
	return p
}

// execute handles both kinds of execution.
func (c *client) execute(p part, command byte) int {
	payload := p.payload()
	st, id := c.find(payload)
	if st == nil {
		return c.unknown(p, id, "mysqld_stmt_execute")
	}
	c.meaning = st.meaning
	if !c.prepareFor(&c.meaning) {
		return 0
	}
	on := c.onServer(st)
	if on == nil {
		return 0
	}
	at, sends, ok := typesOf(payload, command, st.parameters)
	switch {
	case !ok:
		return c.fails(p, 1835, "HY000", "Malformed communication packet")
	case sends && !bytes.Equal(st.types, payload[at:at+2*st.parameters]):
		st.types = bytes.Clone(payload[at : at+2*st.parameters])
	case !sends && st.parameters > 0 && st.types == nil:
		return c.fails(p, 1210, "HY000", "Incorrect arguments to mysqld_stmt_execute")
	}
	insert := !sends && st.parameters > 0 && !bytes.Equal(on.types, st.types)
	if insert && p.size+len(st.types) >= my.PayloadMax {
		return c.fails(p, 1153, "08S01", "An execution of 16 MB that does not repeat the types of its parameters cannot change its connection")
	}
	on.types = st.types
	c.pins(c.meaning.pin)
	c.statement = st
	c.start(p)
	binary.LittleEndian.PutUint32(payload[1:], on.id)
	if insert {
		c.writeWithTypes(p, command, at, st.types)
	} else {
		c.server.Conn.Write(p.data)
	}
	return len(p.data)
}

// typesOf says where the types of the parameters are or belong, and whether they are there.
func typesOf(payload []byte, command byte, parameters int) (at int, sends, ok bool) {
	if command == my.ComStmtBulkExecute {
		if len(payload) < bulkFixedBytes {
			return 0, false, false
		}
		sends = payload[5]&bulkSendsTypes != 0
		at = bulkFixedBytes
	} else {
		at = executeFixedBytes + (parameters+7)/8 + 1
		if parameters == 0 {
			return 0, false, len(payload) >= executeFixedBytes
		}
		if len(payload) < at {
			return 0, false, false
		}
		sends = payload[at-1] == 1
	}
	return at, sends, !sends || len(payload) >= at+2*parameters
}

// writeWithTypes sends an execution with the types that the server does not remember.
func (c *client) writeWithTypes(p part, command byte, at int, types []byte) {
	payload := p.payload()
	if command == my.ComStmtBulkExecute {
		payload[5] |= bulkSendsTypes
	} else {
		payload[at-1] = 1
	}
	var header [my.HeaderBytes]byte
	my.SetHeader(header[:], p.size-my.HeaderBytes+len(types), 0)
	to := c.server.Conn
	to.Write(header[:])
	to.Write(payload[:at])
	to.Write(types)
	to.Write(payload[at:])
}

// continueStatement handles what belongs to an execution: rows of its cursor, parts of its
// parameters, and the end of both.
func (c *client) continueStatement(p part, command byte) int {
	st, id := c.find(p.payload())
	switch {
	case st == nil && command == my.ComStmtLongData:
		c.drop(p) // as a server does; the execution will fail
		return len(p.data)
	case st == nil && command == my.ComStmtFetch:
		return c.unknown(p, id, "mysqld_stmt_fetch")
	case st == nil:
		return c.unknown(p, id, "mysqld_stmt_reset")
	case command == my.ComStmtReset && !st.cursor && !st.long:
		c.writeOK()
		return len(p.data)
	case command == my.ComStmtFetch && !st.cursor:
		return c.fails(p, 1421, "HY000", fmt.Sprintf("The statement (%d) has no open cursor", id))
	}
	c.meaning = meaning{plain: true}
	on := c.onServer(st)
	if on == nil {
		return 0
	}
	binary.LittleEndian.PutUint32(p.payload()[1:], on.id)
	if command == my.ComStmtLongData {
		c.hold(st, true, st.cursor)
		c.left, c.continued = p.size-len(p.data), p.size == my.HeaderBytes+my.PayloadMax
	} else {
		c.statement = st
		c.start(p)
	}
	c.server.Conn.Write(p.data)
	return len(p.data)
}

// closeStatement forgets one. It stays prepared on the servers' connections.
func (c *client) closeStatement(p part) int {
	st, _ := c.find(p.payload())
	c.drop(p)
	if st == nil {
		return len(p.data)
	}
	delete(c.statements, st.id)
	if s := c.server; s != nil && (st.cursor || st.long || st.fixed) {
		if on := s.statements[st.key]; on != nil {
			s.closePrepared(st.key, on)
		}
		c.hold(st, false, false)
		c.release()
	}
	return len(p.data)
}
