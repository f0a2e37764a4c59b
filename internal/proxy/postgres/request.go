package postgres

import (
	"bytes"
	"time"

	"kurabe/internal/proxy"
	"kurabe/internal/tokenize"
	"kurabe/internal/wire/pg"
)

// message takes a message of the client, of which rest is the beginning or all. It returns how
// much it has taken: 0 when it waits for more, or for a server.
func (c *client) message(kind byte, size int, rest []byte) int {
	whole := len(rest) >= size
	switch kind {
	case 'X':
		c.conn.Close()
		return 0
	case 'd':
		return c.start(size, rest)
	case 'Q', 'P', 'B':
		if !whole && size <= gatherMax {
			return 0
		}
	case 'F':
	case 'D', 'C', 'E', 'c', 'f', 'S', 'H':
		switch {
		case size > smallMax:
			c.violation("invalid message length")
			return 0
		case !whole:
			return 0
		}
	default:
		c.violation("invalid frontend message type " + decimal(uint64(kind)))
		return 0
	}
	switch {
	case kind != 'S' && (c.skipping || c.server != nil && c.server.skipping):
		return c.drop(size, rest)
	case c.server == nil && (kind == 'c' || kind == 'f' || kind == 'H'):
		return c.drop(size, rest) // no COPY is under way, and nothing to syncing
	case c.server == nil && kind == 'S':
		c.skipping = false
		c.conn.Write(pg.AppendReady(c.f.scratch[:0], c.status()))
		return size
	case c.server == nil && c.broken != intact:
		return c.emulate(kind, size, rest)
	case c.server == nil && c.failing != nil:
		return c.refuse(kind, size, rest)
	case !c.acquire():
		return 0
	}
	c.due = false
	if kind == 'Q' {
		return c.query(size, rest, whole)
	}
	return c.extended(kind, size, rest, whole)
}

// smallMax bounds messages that hold no text or values, as the server does.
const smallMax = 10_000

// extended takes a message for the connection that the client has.
func (c *client) extended(kind byte, size int, rest []byte, whole bool) int {
	s := c.server
	switch kind {
	case 'P':
		return c.parse(size, rest, whole)
	case 'B':
		return c.bindTo(size, rest)
	case 'D', 'C':
		return c.describeOrClose(kind, size, rest, whole)
	case 'E':
		c.asks()
		s.send(request{kind: execute, commits: c.bound&pg.MarkCommit != 0, ends: c.bound&pg.MarkEnd != 0})
	case 'F':
		s.send(request{kind: query})
	case 'c', 'f':
		s.send(request{kind: copyEnd})
		if s.pending.length == 1 {
			s.pending.pop() // no COPY is under way: the server ignores it
		}
	case 'S':
		if s.copying && s.pending.length == 1 {
			s.synced++
			break
		}
		c.clock()
		s.send(request{kind: syncing})
	}
	return c.start(size, rest)
}

// asks counts a statement.
func (c *client) asks() {
	c.queries++
	c.f.counters.Queries++
	if c.tls {
		c.f.counters.QueriesTLS++
	}
}

// clock notes when the server was asked, if it has answered everything before.
func (c *client) clock() {
	if c.asked.IsZero() {
		c.asked = c.f.loop.Now()
		if c.arrived.IsZero() {
			c.arrived = c.asked
		}
	}
}

// answered is called when the server has answered everything.
func (c *client) answered() {
	now := c.f.loop.Now()
	c.since = now
	if !c.asked.IsZero() {
		c.f.counters.ResponseTime += now.Sub(c.arrived)
		c.f.counters.DatabaseTime += now.Sub(c.asked)
		c.asked, c.arrived = time.Time{}, time.Time{}
	}
}

// query takes a simple query.
func (c *client) query(size int, rest []byte, whole bool) int {
	s := c.server
	c.clock()
	c.asks()
	c.unnamed.valid, s.unnamed = false, nil
	c.logStatement(rest[pg.HeaderBytes:min(size, len(rest))])
	if !whole {
		// The text is read while it flows. What it does to the session is known at its end.
		c.scanning = &pg.Scanner{}
		c.scanning.Reset(s.backslash())
		c.scanning.Feed(rest[pg.HeaderBytes:])
		s.send(request{kind: query, commits: true})
		return c.start(size, rest)
	}
	text, after, ok := pg.Text(rest[pg.HeaderBytes:size])
	if !ok || len(after) > 0 {
		c.violation("invalid message format")
		return 0
	}
	c.f.scanner.Reset(s.backslash())
	c.f.scanner.Feed(text)
	effects := c.f.scanner.End()
	r := request{kind: query, commits: effects.Marks&pg.MarkCommit != 0, ends: effects.Marks&pg.MarkEnd != 0}
	if !effects.Nothing() {
		c.effect(effects)
		if renamed := c.rename(text, effects, true); renamed != nil {
			r.alters = true
			s.send(r)
			s.Conn.Write(pg.AppendText(c.f.scratch[:0], 'Q', string(renamed)))
			return size
		}
	}
	s.send(r)
	s.Conn.Write(rest[:size])
	if effects.Marks&pg.MarkDiscard != 0 {
		c.barrier = true
		c.conn.Pause(false)
	}
	return size
}

// logStatement is given a text that ends with a zero byte, or the beginning of one.
func (c *client) logStatement(text []byte) {
	if c.f.settings.DebugLogging {
		text, _, _ = bytes.Cut(text, []byte{0})
		c.f.settings.LogStatement(c.id, text, tokenize.Dialect{Backslash: c.server.backslash()})
	}
}

func (s *server) backslash() bool { return s.parameters["standard_conforming_strings"] == "off" }

// reasons are why a client keeps its connection, for what a text does.
var reasons = [...]struct {
	mark   pg.Marks
	reason proxy.PinReason
}{
	{pg.MarkTemporary, proxy.PinTemporaryTable}, {pg.MarkHold, proxy.PinCursor}, {pg.MarkListen, proxy.PinListen}, {pg.MarkLoad, proxy.PinLoad},
	{pg.MarkSequence | pg.MarkSequenceRead, proxy.PinSequence}, {pg.MarkLock, proxy.PinAdvisoryLock}, {pg.MarkPrepare, proxy.PinSQLPrepare},
	{pg.MarkUntracked, proxy.PinSetting},
}

// effect notes what a text does to the session.
func (c *client) effect(e pg.Effects) {
	for _, r := range reasons {
		if e.Marks&r.mark != 0 {
			c.pinned(r.reason)
			break
		}
	}
	c.touched = append(c.touched, e.Settings...)
	if e.Marks&pg.MarkAllSettings != 0 || len(c.touched) > touchedMax {
		c.touchedAll = true
	}
}

// touchedMax bounds the settings that are asked for one by one.
const touchedMax = 100

// rename gives the text with the names of the client's prepared statements replaced by those
// on servers, or nil when it has none. alone says that it is a simple query.
func (c *client) rename(text []byte, e pg.Effects, alone bool) []byte {
	var renamed []byte
	done := 0
	for _, span := range e.Prepared {
		name := string(bytes.ReplaceAll(bytes.Trim(text[span.Start:span.End], `"`), []byte(`""`), []byte(`"`)))
		if text[span.Start] != '"' {
			name = string(bytes.ToLower([]byte(name)))
		}
		st := c.named[name]
		if st == nil {
			continue
		}
		c.server.has(st, alone)
		renamed = append(append(renamed, text[done:span.Start]...), st.name...)
		done = span.End
		if e.Marks&pg.MarkDeallocate != 0 {
			c.server.prepared.forget(st)
			delete(c.named, name)
			c.forgotten = append(c.forgotten, forgotten{name, st})
		}
	}
	if renamed == nil {
		return nil
	}
	return append(renamed, text[done:]...)
}

// parse takes a Parse.
func (c *client) parse(size int, rest []byte, whole bool) int {
	s := c.server
	name, body, ok := pg.Text(rest[pg.HeaderBytes:min(size, len(rest))])
	c.logStatement(body)
	switch {
	case !ok:
		c.violation("invalid message format")
		return 0
	case !whole:
		// Too large to be kept for another connection.
		c.pinned(proxy.PinTooLong)
		s.send(request{kind: parse})
		return c.start(size, rest)
	case len(name) == 0:
		c.parseUnnamed(body, rest[:size])
		return size
	}
	c.clock()
	if c.named[string(name)] != nil {
		return c.parseTaken(size, string(name), body)
	}
	if len(c.named) >= namedMax {
		c.fatal("53200", "too many prepared statements")
		return 0
	}
	st := c.f.statementOf(body, c.reading(), s.backslash())
	if s.unsure(st) {
		st.release()
		return c.await()
	}
	if st.effects.Prepared != nil {
		// Its text names others, which have other names on servers.
		st.release()
		c.pinned(proxy.PinSQLPrepare)
		s.send(request{kind: parse})
		s.Conn.Write(rest[:size])
		return size
	}
	c.name(string(name), st)
	if s.prepared.use(st) {
		c.provide('1', request{name: string(name), ends: st.effects.Marks&pg.MarkEnd != 0 || st.effects.Statements == 0})
		return size
	}
	if evicted := s.prepared.add(st, s.series); evicted != nil {
		s.send(request{kind: closing, hidden: true})
		s.Conn.Write(pg.AppendNamed(c.f.scratch[:0], 'C', 'S', evicted.name))
		evicted.release()
	}
	s.send(request{kind: parse, named: st, name: string(name)})
	s.Conn.Write(st.appendParse(c.f.scratch[:0]))
	return size
}

// parseTaken has the server refuse a name that is taken, for whatever reason comes first there:
// the statement is parsed under a name that the connection has.
func (c *client) parseTaken(size int, name string, body []byte) int {
	s, taken := c.server, c.f.taken
	if s.unsure(taken) {
		return c.await()
	}
	s.has(taken, false)
	s.send(request{kind: parse, taken: taken, name: name})
	b := pg.AppendHeader(c.f.scratch[:0], 'P', pg.HeaderBytes+len(taken.name)+1+len(body))
	s.Conn.Write(append(append(append(b, taken.name...), 0), body...))
	return size
}

// await leaves the message until the server has answered everything before it.
func (c *client) await() int {
	c.barrier = true
	c.conn.Pause(false)
	c.server.Conn.Write(pg.AppendHeader(c.f.scratch[:0], 'H', pg.HeaderBytes))
	return 0
}

// parseUnnamed sends the statement as it is, and keeps it for another connection.
func (c *client) parseUnnamed(body, message []byte) {
	s, u := c.server, &c.unnamed
	c.clock()
	text, types, ok := pg.Text(body)
	if !ok {
		c.violation("invalid message format")
		return
	}
	c.f.scanner.Reset(s.backslash())
	c.f.scanner.Feed(text)
	u.effects = c.f.scanner.End()
	u.body, u.valid = append(u.body[:0], body...), true
	u.version++
	s.unnamed, s.version = c, u.version
	if renamed := c.rename(text, u.effects, false); renamed != nil {
		u.body = append(append(append(u.body[:0], renamed...), 0), types...)
		c.forgot(false)
		s.send(request{kind: parse, alters: true})
		s.Conn.Write(c.appendUnnamed(c.f.scratch[:0]))
		return
	}
	s.send(request{kind: parse})
	s.Conn.Write(message)
}

func (c *client) appendUnnamed(b []byte) []byte {
	b = pg.AppendHeader(b, 'P', pg.HeaderBytes+1+len(c.unnamed.body))
	return append(append(b, 0), c.unnamed.body...)
}

// provide answers for the server, at once or when it has answered what comes before.
func (c *client) provide(answer byte, r request) {
	r.kind, r.answer = given, answer
	c.server.send(r)
	c.server.settle(false)
}

// use makes sure that the server has the statement of a Bind or Describe, and gives its name
// there.
func (c *client) use(name []byte) (there string, st *statement, e *pg.Effects) {
	s := c.server
	if len(name) == 0 {
		u := &c.unnamed
		if u.valid && (s.unnamed != c || s.version != u.version) {
			s.unnamed, s.version = c, u.version
			s.send(request{kind: parse, hidden: true})
			s.Conn.Write(c.appendUnnamed(c.f.scratch[:0]))
		}
		return "", nil, &u.effects
	}
	if st := c.named[string(name)]; st != nil {
		s.has(st, false)
		return st.name, st, &st.effects
	}
	if bytes.HasPrefix(name, []byte(namePrefix)) {
		return "?" + string(name), nil, nil
	}
	return string(name), nil, nil // prepared by SQL, or unknown
}

// bindTo takes a Bind.
func (c *client) bindTo(size int, rest []byte) int {
	portal, after, ok := pg.Text(rest[pg.HeaderBytes:min(size, len(rest))])
	if !ok {
		c.violation("invalid message format")
		return 0
	}
	name, values, ok := pg.Text(after)
	if !ok {
		c.violation("invalid message format")
		return 0
	}
	c.clock()
	if st := c.named[string(name)]; st != nil && c.server.unsure(st) {
		return c.await()
	}
	there, st, e := c.use(name)
	c.bound = 0
	if e != nil {
		c.bound = e.Marks
		if !e.Nothing() {
			c.effect(*e)
		}
	}
	s := c.server
	s.send(request{kind: bind, named: st})
	if len(name) == 0 {
		return c.start(size, rest)
	}
	longer := len(there) - len(name)
	b := pg.AppendHeader(c.f.scratch[:0], 'B', size+longer)
	b = append(append(b, portal...), 0)
	b = append(append(b, there...), 0)
	s.Conn.Write(b)
	c.f.scratch = b[:0]
	s.Conn.Write(values)
	c.passing = size - min(size, len(rest))
	return min(size, len(rest))
}

// describeOrClose takes a Describe or Close.
func (c *client) describeOrClose(kind byte, size int, rest []byte, whole bool) int {
	s := c.server
	var name []byte
	ok := false
	if whole && size > pg.HeaderBytes+1 {
		name, _, ok = pg.Text(rest[pg.HeaderBytes+1 : size])
	}
	if !ok {
		c.violation("invalid message format")
		return 0
	}
	what := rest[pg.HeaderBytes]
	st := c.named[string(name)]
	switch {
	case kind == 'C' && what == 'S' && len(name) > 0 && st != nil:
		delete(c.named, string(name))
		c.provide('3', request{named: st, name: string(name)})
		return size
	case kind == 'C' && what == 'S' && len(name) == 0:
		c.unnamed.valid, s.unnamed = false, nil
		s.send(request{kind: closing})
	case kind == 'C':
		s.send(request{kind: closing})
	case what == 'S' && st != nil && s.unsure(st):
		return c.await()
	case what == 'S':
		there, st, _ := c.use(name)
		s.send(request{kind: describe, named: st})
		s.Conn.Write(pg.AppendNamed(c.f.scratch[:0], 'D', 'S', there))
		return size
	default:
		s.send(request{kind: describe})
	}
	return c.start(size, rest)
}

// discarded is called when the server has done DISCARD ALL: nothing of the session is left,
// but what the startup message asked for.
func (c *client) discarded() {
	c.unnameAll()
	c.want, c.pin, c.touched, c.touchedAll = c.startup, "", nil, false
}
