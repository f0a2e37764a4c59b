package mariadb

import (
	"bytes"
	"encoding/binary"
	"time"

	"kurabe/internal/proxy"
	"kurabe/internal/wire/my"
)

const (
	// gatheredMax is the longest command that is sent only when it is whole: until then it
	// takes no connection. Of a longer one the head is gathered.
	gatheredMax = 48 << 10
	headBytes   = lookedAtMax + 1<<10
)

// part is what has arrived of a command.
type part struct {
	data  []byte // header and payload
	size  int    // of both, of the first packet
	whole bool
}

func (p part) payload() []byte { return p.data[my.HeaderBytes:] }

// take handles a command, or leaves it for later and says 0.
func (c *client) take(data []byte) int {
	if len(data) < my.HeaderBytes {
		return 0
	}
	length, sequence := my.Header(data)
	if length == 0 || sequence != 0 {
		c.sequence = sequence + 1
		c.fatal(&my.Error{Number: 1156, State: "08S01", Message: "Got packets out of order"})
		return 0
	}
	p := part{size: my.HeaderBytes + length}
	p.whole = len(data) >= p.size && length < my.PayloadMax
	if !p.whole && (p.size <= gatheredMax || len(data) < headBytes) {
		return 0
	}
	p.data = data[:min(p.size, len(data))]
	c.sequence = 1
	command := p.payload()[0]
	if c.broken != nil && command != my.ComQuit {
		if !silent(command) {
			c.refusal, c.broken = c.broken, nil
		}
	}
	if c.refusal != nil {
		return c.refuseNow(p, command)
	}
	if c.began.IsZero() {
		c.began = c.f.loop.Now()
	}
	c.command = command
	n := c.dispatch(p, command)
	if n == 0 && c.refusal != nil && !c.conn.Paused() {
		return c.refuseNow(p, command)
	}
	return n
}

// silent says whether a command has no answer.
func silent(command byte) bool {
	return command == my.ComStmtLongData || command == my.ComStmtClose || command == my.ComQuit
}

// refuseNow answers a command without a server.
func (c *client) refuseNow(p part, command byte) int {
	failure := c.refusal
	c.refusal = nil
	if command == my.ComStmtLongData {
		c.conn.Reset() // there is no answer that could tell
		return 0
	}
	if command == my.ComStmtClose || command == my.ComQuit {
		return c.dispatch(p, command)
	}
	c.write(failure.Append(nil))
	c.clean = false
	c.drop(p)
	c.began = time.Time{}
	return len(p.data)
}

// drop leaves the rest of a command out.
func (c *client) drop(p part) {
	c.left = p.size - len(p.data)
	c.continued = p.size == my.HeaderBytes+my.PayloadMax
	c.dropping = c.left > 0 || c.continued
}

func (c *client) fails(p part, number uint16, state, message string) int {
	c.write((&my.Error{Number: number, State: state, Message: message}).Append(nil))
	c.drop(p)
	return len(p.data)
}

// dispatch handles a command by its kind.
func (c *client) dispatch(p part, command byte) int {
	payload := p.payload()
	switch command {
	case my.ComQuit:
		c.conn.Close()
		return len(p.data)
	case my.ComQuery:
		return c.query(p, payload[1:])
	case my.ComInitDB:
		c.meaning = meaning{}
		c.widen()
		return c.forward(p)
	case my.ComPing, my.ComStatistics, my.ComFieldList, my.ComProcessInfo, my.ComRefresh, my.ComCreateDB, my.ComDropDB:
		c.meaning = meaning{plain: true}
		return c.forward(p)
	case my.ComStmtPrepare:
		return c.prepare(p, payload[1:])
	case my.ComStmtExecute, my.ComStmtBulkExecute:
		return c.execute(p, command)
	case my.ComStmtFetch, my.ComStmtReset, my.ComStmtLongData:
		return c.continueStatement(p, command)
	case my.ComStmtClose:
		return c.closeStatement(p)
	case my.ComSetOption:
		return c.setOption(p, payload[1:])
	case my.ComResetConnection:
		return c.resetSession(p, func() { c.writeOK() })
	case my.ComChangeUser:
		return c.changeUser(p, payload[1:])
	case my.ComProcessKill:
		r := my.Reader{Rest: payload[1:]}
		return c.kill(p, killing{id: uint64(r.Uint32())})
	case my.ComBinlogDump, my.ComBinlogDumpGTID, my.ComRegisterSlave, my.ComTableDump:
		return c.fails(p, 1235, "42000", "This version of the proxy doesn't yet support 'replication'")
	}
	return c.fails(p, 1047, "08S01", "Unknown command")
}

// widen lets a client without a schema have a connection whose schema can be changed.
func (c *client) widen() {
	if c.server == nil && c.key.Database == "" {
		c.key.Database = someDatabase
	}
}

// enter changes the state of the session, and the kind of connections that go with it.
func (c *client) enter(s *state) {
	c.state = s
	c.key.Database = someDatabase
	if s.database == "" {
		c.key.Database = ""
	}
}

func (c *client) noEscapes() bool {
	for _, v := range c.state.variables {
		if v.name == "sql_mode" {
			return bytes.Contains([]byte(v.value), []byte("NO_BACKSLASH_ESCAPES"))
		}
	}
	return false
}

// query handles a statement in text.
func (c *client) query(p part, text []byte) int {
	c.meaning = look(text, c.noEscapes())
	m := &c.meaning
	if m.kill {
		return c.kill(p, readKill(text))
	}
	if m.use {
		c.widen()
	}
	if m.warnings && c.server == nil && c.warnings != nil {
		c.conn.Write(c.warnings)
		return len(p.data)
	}
	if m.warnings && c.clean && (c.server == nil || c.server.last != c) {
		// There are none, but another client's may be where the statement goes.
		m.askLast = false
		none := my.AppendPacket(nil, 0, []byte{my.ComQuery}, []byte("SHOW WARNINGS LIMIT 0"))
		if c.forward(part{data: none, size: len(none), whole: true}) == 0 {
			return 0
		}
		return len(p.data)
	}
	if !c.prepareFor(m) {
		return 0
	}
	return c.forward(p)
}

// prepareFor makes sure that a statement sees what its client's earlier ones left in the
// session, and never what another's did.
func (c *client) prepareFor(m *meaning) bool {
	if !m.askID && !m.askLast {
		return true
	}
	if !c.ready(c.state) {
		return false
	}
	s := c.server
	switch {
	case m.askLast && s.last != c, m.askID && c.insertsAt != nil && c.insertsAt.inserts != c, m.askID && c.insertsAt != nil && c.insertsAt != s:
		c.insertsAt = nil
		c.pins(proxy.PinLastResult)
		c.refusal = &my.Error{Number: 1105, State: "HY000", Message: "What the statement before left in the session is gone: the proxy gave the connection to another client. From now on this session keeps its connection; a transaction does so too"}
		return false
	case m.askID && s.inserts != c:
		value := c.inserted
		if value == "" {
			value = "0"
		}
		s.query("SET LAST_INSERT_ID="+value, func(failure *my.Error) {
			if failure != nil {
				c.refuse(failure)
				return
			}
			c.leftInsertID(s)
			c.proceed()
		})
		c.conn.Pause(true)
		return false
	}
	return true
}

// forward sends a command to a server, once one is ready.
func (c *client) forward(p part) int {
	if !c.ready(c.state) {
		return 0
	}
	c.pins(c.meaning.pin)
	c.start(p)
	c.server.Conn.Write(p.data)
	return len(p.data)
}

// start takes note that a command is sent.
func (c *client) start(p part) {
	s := c.server
	c.busy, c.sent = true, c.f.loop.Now()
	c.left, c.continued = p.size-len(p.data), p.size == my.HeaderBytes+my.PayloadMax
	s.answer.begin(c.command)
	s.last = c
	if !c.meaning.warnings {
		c.leftWarnings(nil)
		c.warnings = nil
	}
}

// leftInsertID says where the client's LAST_INSERT_ID() is, if it is not saved.
func (c *client) leftInsertID(s *server) {
	if at := c.insertsAt; at != nil && at.inserts == c {
		at.inserts = nil
	}
	if c.insertsAt = s; s != nil {
		s.inserts = c
	}
}

// leftWarnings says where those of the newest statement are.
func (c *client) leftWarnings(s *server) {
	if at := c.warnedAt; at != nil && at.warned == c {
		at.warned = nil
	}
	if c.warnedAt = s; s != nil {
		s.warned = c
	}
}

// answered handles a packet of a server's answer that had to be looked at.
func (c *client) answered(s *server, p []byte, what event) {
	a := &s.answer
	if a.isOK {
		p = c.report(s, p)
	}
	if c.command == my.ComStmtPrepare && c.statement != nil && what != failed && a.sequence == 1 {
		binary.LittleEndian.PutUint32(p[my.HeaderBytes+1:], c.statement.id)
	}
	c.conn.Write(p)
	if a.isEnd {
		c.status = my.OfSession(a.ok.Status)
		if a.ok.InsertID != 0 || c.meaning.askID {
			c.leftInsertID(s)
		}
		if c.clean = a.ok.Warnings == 0; !c.clean {
			c.leftWarnings(s)
		}
	}
	switch what {
	case wantsFile:
		c.file = true
		if c.conn.Paused() {
			c.conn.Resume()
		}
	case failed:
		c.clean = false
		c.leftWarnings(s)
		c.reread = c.reread || !c.meaning.plain
		c.end(true)
	case ended:
		c.reread = c.reread || c.meaning.reread
		c.end(false)
	}
}

// end is the end of an answer: the connection goes back when nothing holds it.
func (c *client) end(failed bool) {
	s, f := c.server, c.f
	now := f.loop.Now()
	c.queries++
	f.counters.Queries++
	if c.tls {
		f.counters.QueriesTLS++
	}
	f.counters.ResponseTime += now.Sub(c.began)
	f.counters.DatabaseTime += now.Sub(c.sent)
	c.file = false
	if c.left > 0 || c.continued { // the server does not want the rest
		s.lost = true
		c.dropping = true
	}
	c.endStatement(failed)
	if c.meaning.oneShot && !failed {
		c.oneShot = true
	} else if c.oneShot && c.status&my.InTransaction == 0 {
		c.oneShot = false
	}
	c.settle()
}

// settle learns what an answer did not tell, then ends the command.
func (c *client) settle() {
	s := c.server
	switch {
	case c.meaning.tracking:
		c.meaning.tracking = false
		s.query(askReports, func(failure *my.Error) {
			if failure != nil {
				s.Conn.Reset()
				return
			}
			c.settle()
		})
		return
	case c.reread:
		c.reread = false
		s.query(readTracked, nil)
		o := s.own
		o.then = func(failure *my.Error) { c.readAgain(s, o.row, failure) }
		return
	}
	c.busy = false
	c.began = time.Time{}
	c.release()
	if c.conn.Paused() {
		c.conn.Resume()
	}
}

// readAgain takes the variables of a session from the server.
func (c *client) readAgain(s *server, row []byte, failure *my.Error) {
	all, database, err := variablesOf(row)
	if failure != nil || err != nil {
		s.Conn.Reset()
		return
	}
	next := &state{database: database}
	for _, name := range tracked {
		if all[name] != s.fresh[name] {
			next.variables = append(next.variables, variable{name, all[name]})
		}
	}
	s.state = next
	c.enter(next)
	c.settle()
}

// report takes what a server says of the session, and gives the packet as the client wants
// it.
func (c *client) report(s *server, p []byte) []byte {
	ok := &s.answer.ok
	variables, unexplained := false, false
	changes := my.ReadChanges(ok.Changes)
	for {
		kind, name, value, more := changes.Next()
		if !more {
			break
		}
		switch kind {
		case my.ChangedVariable:
			variables = true
			c.changed(s, string(name), string(value))
		case my.ChangedSchema:
			variables = true
			if database := string(value); database != c.state.database {
				c.enter(c.state.in(database))
			}
		case my.ChangedState:
			unexplained = true
		}
	}
	if unexplained && (!variables || c.meaning.call) && !c.meaning.tracking {
		c.pins(proxy.PinSetting)
	}
	s.state = c.state
	if c.capabilities&my.SessionTrack != 0 || len(ok.Info) == 0 && ok.Status&my.StateChanged == 0 {
		return p
	}
	c.f.scratch = append(c.f.scratch[:0], 0, 0, 0, 0)
	c.f.scratch = ok.Append(c.f.scratch, false)
	my.SetHeader(c.f.scratch, len(c.f.scratch)-my.HeaderBytes, s.answer.sequence)
	return c.f.scratch
}

// changed takes note of one variable.
func (c *client) changed(s *server, name, value string) {
	switch {
	case name == "last_insert_id":
		c.leftInsertID(s)
	case c.meaning.reread, len(name) > len(trackingPrefix) && name[:len(trackingPrefix)] == trackingPrefix:
	case isTracked(name):
		if name == "character_set_connection" || name == "collation_connection" {
			c.reread = true // each changes the other without a word
		}
		c.enter(c.state.with(name, value, s.fresh))
	case c.f.settings.ExcludeVariableSets:
		s.spoiled = true
	default:
		c.pins(proxy.PinSetting)
	}
}

func (c *client) setOption(p part, payload []byte) int {
	r := my.Reader{Rest: payload}
	switch option := r.Uint16(); {
	case r.Bad || option > 1:
		return c.fails(p, 1047, "08S01", "Unknown command")
	case option == 0:
		c.capabilities |= my.MultiStatements
	default:
		c.capabilities &^= my.MultiStatements
	}
	c.options()
	if s := c.server; s != nil {
		s.lost = true // it was opened for another kind of client
		c.meaning = meaning{plain: true}
		return c.forward(p)
	}
	if c.capabilities&my.DeprecateEOF != 0 {
		ok := my.OK{Mark: my.MarkEOF, Status: c.status}
		c.write(ok.Append(nil, c.capabilities&my.SessionTrack != 0))
	} else {
		c.write(my.AppendEOF(nil, 0, c.status))
	}
	return len(p.data)
}

// resetSession makes the session a new one. A connection that the client holds is reset
// first, so that its locks and its transaction are gone when the client is told.
func (c *client) resetSession(p part, then func()) int {
	done := func() {
		c.statements, c.newest, c.holding = nil, 0, 0
		c.leftInsertID(nil)
		c.leftWarnings(nil)
		c.pin, c.oneShot, c.inserted, c.warnings, c.clean, c.status = "", false, "", nil, true, my.Autocommit
		c.enter(&state{database: c.state.database})
		then()
	}
	s := c.server
	if s == nil {
		done()
		return len(p.data)
	}
	if s.own != nil {
		c.conn.Pause(true)
		return 0
	}
	c.busy = true
	s.reset(func() {
		c.meaning = meaning{}
		c.busy = false
		done()
		c.release()
		if c.conn.Paused() {
			c.conn.Resume()
		}
	})
	return len(p.data)
}

func (c *client) changeUser(p part, payload []byte) int {
	l, err := my.ReadChangeUser(payload, c.capabilities)
	if err != nil || !p.whole {
		return c.fails(p, 1047, "08S01", "Unknown command")
	}
	// The packet is gone when the session has been reset.
	l.User, l.Answer, l.Database, l.Plugin = bytes.Clone(l.User), bytes.Clone(l.Answer), bytes.Clone(l.Database), bytes.Clone(l.Plugin)
	return c.resetSession(p, func() {
		c.phase, c.since = greeted, c.f.loop.Now()
		if s := c.server; s != nil {
			s.giveBack()
		}
		c.identify(l)
	})
}
