package mariadb

import (
	"encoding/binary"
	"time"

	"kurabe/internal/proxy"
	"kurabe/internal/wire/my"
)

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
func (c *client) leftInsertID(s *server, sure bool) {
	if at := c.insertsAt; at != nil && at.inserts == c {
		sure = sure || at == s && at.sure
		at.inserts = nil
	}
	if c.insertsAt = s; s != nil {
		s.inserts, s.sure = c, sure
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
			s.again = s.again || a.ok.InsertID == s.before
			c.leftInsertID(s, c.meaning.askID)
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
		c.leftInsertID(s, true)
	case name == "last_gtid": // of each write where there is a binary log; nobody sets it
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
