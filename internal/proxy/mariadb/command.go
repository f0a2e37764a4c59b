package mariadb

import (
	"bytes"
	"strconv"
	"time"

	"kurabe/internal/proxy"
	"kurabe/internal/tokenize"
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

func (c *client) logStatement(text []byte) {
	c.f.settings.LogStatement(uint64(c.id), text, tokenize.Dialect{MySQL: true, Backslash: !c.noEscapes()})
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
	c.logStatement(text)
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
	if m.warnings && c.warnings != nil { // saved only now
		c.release()
		c.conn.Write(c.warnings)
		return len(p.data)
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
	case m.warnings && c.warnings != nil:
	case m.askLast && s.last != c, m.askID && c.insertsAt != nil && c.insertsAt.inserts != c, m.askID && c.insertsAt != nil && c.insertsAt != s:
		c.insertsAt = nil
		c.pins(proxy.PinLastResult)
		c.refusal = &my.Error{Number: 1105, State: "HY000", Message: "What the statement before left in the session is gone: the proxy gave the connection to another client. From now on this session keeps its connection; a transaction does so too"}
		return false
	case m.askID && s.inserts == c && !s.sure:
		s.saveInsertID()
		c.conn.Pause(true)
		return false
	case m.askID && s.inserts != c:
		value := c.inserted
		s.query("SET LAST_INSERT_ID="+strconv.FormatUint(value, 10), func(failure *my.Error) {
			if failure != nil {
				c.refuse(failure)
				return
			}
			s.before, s.again = value, false
			c.leftInsertID(s, true)
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
