package mariadb

import (
	"errors"
	"fmt"

	"kurabe/internal/proxy/eventloop"
	"kurabe/internal/proxy/pool"
	"kurabe/internal/wire/my"
)

const (
	// wholeBytes is the longest packet that is passed on only when it is whole, so that an
	// answer can be ended behind it.
	wholeBytes = 32 << 10

	// lookedAtBytes bounds a packet that has to be looked at.
	lookedAtBytes = 64 << 10

	// capturedMax bounds an answer that the proxy asked for, in bytes.
	capturedMax = 64 << 10
)

// server is the session of a connection to a server, and the connection's handler.
type server struct {
	*pool.Server
	thread       uint32
	version      string
	capabilities uint64
	initQuery    string
	fresh        map[string]string // the tracked variables of a new session; not changed

	state      *state
	status     uint16 // of the newest answer
	statements map[string]*prepared
	uses       uint64 // orders the statements' use
	answer     answer
	client     *client // who has borrowed it
	own        *own    // the proxy's command that is under way
	spoiled    bool    // holds something that no other client may see
	lost       bool    // must be closed instead of being returned
	kills      int     // KILLs of it that are under way
	paused     bool    // because the client is full

	last *client // whose statement was the newest
	// inserts is who may have a LAST_INSERT_ID() here that is known nowhere else: it is
	// certainly that client's if sure, and otherwise if it is not the number before.
	inserts *client
	sure    bool
	before  uint64 // LAST_INSERT_ID() when it was known last
	again   bool   // an answer has had that number since
	// warned is who has warnings here.
	warned *client
}

// prepared is a statement of a server's connection.
type prepared struct {
	id    uint32
	used  uint64
	types []byte     // that the server remembers of its newest execution; not changed
	owner *statement // has a cursor or long data open
}

// own is a command of the proxy itself.
type own struct {
	captured []byte // the whole answer, if it is wanted
	capture  bool
	row      []byte // the last of its rows
	then     func(failure *my.Error)
}

// run sends a command of the proxy. then is called at the answer's end, unless the
// connection ends before.
func (s *server) run(capture bool, then func(failure *my.Error), command byte, text ...[]byte) {
	s.own = &own{capture: capture, then: then}
	s.answer.begin(command)
	s.Conn.Write(my.AppendPacket(nil, 0, append([][]byte{{command}}, text...)...))
}

// query runs a statement.
func (s *server) query(text string, then func(failure *my.Error)) {
	s.run(false, then, my.ComQuery, []byte(text))
}

// Data implements eventloop.Handler.
func (s *server) Data(conn *eventloop.Conn, data []byte) int {
	used, from := 0, 0 // what is done, and what of it has not been passed on
	for used < len(data) && !conn.Closed() {
		if c := s.client; s.own == nil && c != nil && c.conn.Full() {
			s.paused = true
			conn.Pause(false)
			break
		}
		a, rest := &s.answer, data[used:]
		if a.partial > 0 {
			n := min(a.partial, len(rest))
			a.partial -= n
			used += n
			continue
		}
		if len(rest) < my.HeaderBytes+1 && !(len(rest) == my.HeaderBytes && rest[0]|rest[1]|rest[2] == 0) {
			break
		}
		length, sequence := my.Header(rest)
		size, mark := my.HeaderBytes+length, byte(0)
		if length > 0 {
			mark = rest[my.HeaderBytes]
		}
		if a.passes(length, mark) && s.own == nil {
			if len(rest) < size && size <= wholeBytes {
				break
			}
			a.passed(length, sequence)
			n := min(size, len(rest))
			a.partial = size - n
			used += n
			continue
		}
		if size > lookedAtBytes {
			s.broken(errors.New("the database sends a packet that is too long"))
			break
		}
		if len(rest) < size {
			break
		}
		s.pass(data[from:used])
		used += size
		from = used
		s.packet(rest[:size], sequence)
	}
	s.pass(data[from:used])
	return used
}

// pass sends what need not be looked at to the client.
func (s *server) pass(p []byte) {
	if len(p) > 0 && s.own == nil && s.client != nil {
		s.client.conn.Write(p)
	}
}

// packet handles one that is whole.
func (s *server) packet(p []byte, sequence byte) {
	payload := p[my.HeaderBytes:]
	a := &s.answer
	if s.own == nil && s.client == nil {
		// What a server says unasked is that it ends.
		s.broken(errors.New("the database ends the connection"))
		return
	}
	var what event
	var err error
	if len(payload) > 0 && a.passes(len(payload), payload[0]) { // of the proxy's own command
		a.passed(len(payload), sequence)
		s.own.row = append(s.own.row[:0], payload...)
	} else if what, err = a.packet(payload, sequence); err != nil {
		s.broken(fmt.Errorf("the database: %w", err))
		return
	}
	if a.isEnd {
		s.status = a.ok.Status
	}
	if o := s.own; o != nil {
		s.ownPacket(o, p, what)
		return
	}
	s.client.answered(s, p, what)
}

func (s *server) ownPacket(o *own, p []byte, what event) {
	if o.capture && len(o.captured)+len(p) <= capturedMax {
		o.captured = append(o.captured, p...)
	}
	switch what {
	case ended:
		s.own = nil
		o.then(nil)
	case failed:
		s.own = nil
		failure := s.answer.failed
		o.then(&failure)
	case wantsFile:
		s.broken(errors.New("the database asks the proxy for a file"))
	}
}

// broken ends the connection.
func (s *server) broken(err error) {
	if c := s.client; c != nil {
		c.log().Warn("the connection to the database has broken", "error", err)
	}
	s.Conn.Reset()
}

// Drained implements eventloop.Handler.
func (s *server) Drained(*eventloop.Conn) {
	if c := s.client; c != nil {
		c.conn.Resume()
	}
}

// Closed implements eventloop.Handler.
func (s *server) Closed(_ *eventloop.Conn, err error) {
	c := s.client
	s.client, s.own = nil, nil
	s.Pool().Gone(s.Server)
	if c != nil {
		c.bereft(s, err)
	}
}

// giveBack ends the loan. The connection is first reset if it has to be.
func (s *server) giveBack() {
	c := s.client
	s.client = nil
	c.server, c.lastServer = nil, s.Server
	switch {
	case s.lost, s.answer.stage != atNothing, s.own != nil:
		s.Pool().Discard(s.Server)
	case s.kills > 0:
		// Goes back when it is known that the KILL hits nobody else.
	case s.spoiled:
		s.reset(func() { s.Pool().Return(s.Server) })
	default:
		s.Pool().Return(s.Server)
	}
}

// reset makes the session a new one.
func (s *server) reset(then func()) {
	s.last, s.inserts, s.warned, s.before, s.again = nil, nil, nil, 0, false
	statements := initial(s.initQuery)
	var next func(*my.Error)
	next = func(failure *my.Error) {
		switch {
		case failure != nil:
			s.Conn.Close()
		case len(statements) > 0:
			text := statements[0]
			statements = statements[1:]
			s.query(text, next)
		default:
			s.spoiled = false
			s.state = &state{database: s.state.database}
			clear(s.statements)
			then()
		}
	}
	s.run(false, next, my.ComResetConnection)
}

// killed is called when a KILL of the connection has been answered. One that came too late
// would end the next statement, hence the reset.
func (s *server) killed() {
	s.kills--
	if s.kills > 0 || s.client != nil || s.Gone() || s.Conn.Closed() || s.own != nil {
		s.spoiled = true
		return
	}
	s.reset(func() { s.Pool().Return(s.Server) })
}
