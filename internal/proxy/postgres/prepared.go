package postgres

import (
	"sync/atomic"

	"kurabe/internal/wire/pg"
)

const (
	// preparedMax bounds the statements that a connection keeps: each costs the server a plan.
	preparedMax = 500

	// namedMax bounds the prepared statements of a client.
	namedMax = 10_000

	// namePrefix begins the names of statements on servers. No client can bind one by it.
	namePrefix = "kurabe_proxy_"
)

var names atomic.Uint64

// statement is a text with the types of its parameters, for all clients that prepare it with the
// same settings: literals are read when a statement is parsed.
type statement struct {
	of      *Frontend
	key     string // body and reading
	body    string // of Parse after the name
	reading string // the settings that decide what the text means
	name    string // on servers
	refs    int
	effects pg.Effects
}

// statementOf gives the statement for the body of a Parse, and holds it.
func (f *Frontend) statementOf(body []byte, reading string, backslash bool) *statement {
	key := append(append(f.scratch[:0], body...), reading...)
	f.scratch = key[:0]
	st := f.statements[string(key)]
	if st == nil {
		text, _, _ := pg.Text(body)
		st = &statement{of: f, key: string(key), reading: reading, name: namePrefix + decimal(names.Add(1)), effects: pg.Scan(text, backslash)}
		st.body = st.key[:len(body)]
		f.statements[st.key] = st
	}
	st.refs++
	return st
}

func (st *statement) release() {
	if st.refs--; st.refs == 0 {
		delete(st.of.statements, st.key)
	}
}

// appendParse adds the Parse of the statement.
func (st *statement) appendParse(b []byte) []byte {
	b = pg.AppendHeader(b, 'P', pg.HeaderBytes+len(st.name)+1+len(st.body))
	b = append(append(b, st.name...), 0)
	return append(b, st.body...)
}

// prepared are the statements that a connection has, those used last first.
type prepared struct {
	entries map[*statement]*preparedEntry
	newest  *preparedEntry
	oldest  *preparedEntry
}

type preparedEntry struct {
	statement    *statement
	confirmed    bool   // the server has answered
	series       uint64 // in which it was asked for
	newer, older *preparedEntry
}

// unsure says that a statement was asked for in a series before, without an answer yet. Should
// it fail, what is sent now would not fail with it.
func (s *server) unsure(st *statement) bool {
	e := s.prepared.entries[st]
	return e != nil && !e.confirmed && e.series != s.series
}

// confirm notes that the server has a statement.
func (p *prepared) confirm(st *statement) {
	if e := p.entries[st]; e != nil {
		e.confirmed = true
	}
}

// use says whether the connection has the statement, and notes that it is used.
func (p *prepared) use(st *statement) bool {
	e := p.entries[st]
	if e == nil {
		return false
	}
	if p.newest != e {
		p.unlink(e)
		p.link(e)
	}
	return true
}

// add notes a statement, and gives the one that has to make room for it, which the caller
// releases.
func (p *prepared) add(st *statement, series uint64) (evicted *statement) {
	if p.entries == nil {
		p.entries = map[*statement]*preparedEntry{}
	}
	if len(p.entries) >= preparedMax {
		evicted = p.oldest.statement
		p.unlink(p.oldest)
		delete(p.entries, evicted)
	}
	st.refs++
	e := &preparedEntry{statement: st, series: series}
	p.entries[st] = e
	p.link(e)
	return evicted
}

func (p *prepared) forget(st *statement) {
	if e := p.entries[st]; e != nil {
		p.unlink(e)
		delete(p.entries, st)
		st.release()
	}
}

func (p *prepared) clear() {
	for st := range p.entries {
		st.release()
	}
	*p = prepared{}
}

func (p *prepared) link(e *preparedEntry) {
	e.older, e.newer = p.newest, nil
	if p.newest != nil {
		p.newest.newer = e
	} else {
		p.oldest = e
	}
	p.newest = e
}

func (p *prepared) unlink(e *preparedEntry) {
	if e.newer != nil {
		e.newer.older = e.older
	} else {
		p.newest = e.older
	}
	if e.older != nil {
		e.older.newer = e.newer
	} else {
		p.oldest = e.newer
	}
}

// has makes sure that the connection has a statement when what is written next arrives. Its
// answers are hidden; with a simple query behind, it is a request of its own, so that its
// failure does not take the query along.
func (s *server) has(st *statement, alone bool) {
	if s.prepared.use(st) {
		return
	}
	if st.reading != s.reading && st != st.of.taken {
		s.doubtful = true // for others it would mean something else
	}
	b := st.of.scratch[:0]
	if evicted := s.prepared.add(st, s.series); evicted != nil {
		b = pg.AppendNamed(b, 'C', 'S', evicted.name)
		evicted.release()
		s.send(request{kind: closing, hidden: true})
	}
	b = st.appendParse(b)
	s.send(request{kind: parse, named: st, hidden: true, quiet: alone})
	if alone {
		b = pg.AppendHeader(b, 'S', pg.HeaderBytes)
		s.send(request{kind: syncing, quiet: true})
	}
	s.Conn.Write(b)
	st.of.scratch = b[:0]
}

// unnamed is a client's statement without a name.
type unnamed struct {
	body    []byte // of its Parse after the name
	version uint64
	valid   bool
	effects pg.Effects
}

// name gives a statement a name. The client holds it from then on.
func (c *client) name(name string, st *statement) {
	if c.named == nil {
		c.named = map[string]*statement{}
	}
	c.named[name] = st
}

// unname takes a name away.
func (c *client) unname(name string) {
	if st := c.named[name]; st != nil {
		delete(c.named, name)
		st.release()
	}
}

func (c *client) unnameAll() {
	for _, st := range c.named {
		st.release()
	}
	c.named = nil
	c.unnamed.valid = false
}

// forgotten is a statement that a query deallocates.
type forgotten struct {
	name      string
	statement *statement
}

// forgot is called when the query has been answered.
func (c *client) forgot(failed bool) {
	for _, x := range c.forgotten {
		if failed && c.named[x.name] == nil {
			c.name(x.name, x.statement)
		} else {
			x.statement.release()
		}
	}
	c.forgotten = nil
}
