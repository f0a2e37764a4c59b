package postgres

import (
	"bytes"
	"errors"
	"fmt"

	"kurabe/internal/proxy/eventloop"
	"kurabe/internal/proxy/pool"
	"kurabe/internal/wire/pg"
)

// wholeMax bounds a message of the server that reaches the client as a whole or not at all.
const wholeMax = 16 << 10

// pendingMax bounds what a client may ask for without reading the answers.
const pendingMax = 100_000

// server is what is known of a connection to a server.
type server struct {
	*pool.Server
	id     uint64
	client *client // that has it
	key    uint64  // for cancellations
	status byte    // of the last ReadyForQuery

	pending  pending
	skipping bool // after an error, the server drops everything until Sync
	copying  bool // the front of pending is a COPY FROM STDIN
	synced   int  // Syncs within a COPY, which the server ignores
	doubtful bool // to be closed instead of lent
	cancels  int  // cancellations on their way
	held     bool // is lent again when they have arrived
	passing  int  // bytes of a message that flow to the client
	hiding   bool // they do not
	muted    bool // nothing reaches the client until ReadyForQuery
	dying    *pg.Failure

	base       map[string]string // parameters at the login
	parameters map[string]string // as last reported, names in lower case
	spellings  map[string]string
	reported   []string // names in the order of the login
	set        map[string]string
	applied    *settings // that set is known to be equal to
	discarded  bool      // DISCARD ALL is being answered

	prepared prepared
	reading  string  // the settings that decide what a text means
	series   uint64  // of requests up to a Sync or query
	instead  []byte  // of a message that is not forwarded
	unnamed  *client // whose unnamed statement it has
	version  uint64  // of it
}

// send adds what the server will owe, for a message that is written next.
func (s *server) send(r request) {
	if s.pending.length >= pendingMax {
		s.Conn.Reset()
		return
	}
	if r.kind == query || r.kind == syncing || r.kind == ours {
		s.series++
	}
	s.pending.push(r)
}

// run asks a query of our own.
func (s *server) run(text string, o *own) {
	s.unnamed = nil // the server forgets its unnamed statement at every simple query
	s.send(request{kind: ours, own: o})
	s.Conn.Write(pg.AppendText(nil, 'Q', text))
}

func (s *server) owns() bool {
	front := s.pending.front()
	return front != nil && front.kind == ours
}

// Drained implements eventloop.Handler: the server reads again.
func (s *server) Drained(*eventloop.Conn) {
	if s.client != nil && !s.client.restoring && !s.client.barrier {
		s.client.conn.Resume()
	}
}

// Data implements eventloop.Handler. What goes to the client is written in as few pieces as
// possible: data[from:used] is.
func (s *server) Data(_ *eventloop.Conn, data []byte) int {
	used, from := 0, 0
	for !s.Conn.Closed() {
		rest := data[used:]
		if s.passing > 0 {
			n := min(s.passing, len(rest))
			s.passing -= n
			used += n
			if s.hiding {
				from = used
			}
			if s.passing > 0 {
				break
			}
			continue
		}
		if len(rest) < pg.HeaderBytes {
			break
		}
		kind, size, ok := pg.Header(rest)
		if !ok {
			s.desynchronized("a message of an impossible length")
			return used
		}
		if len(rest) < size && (size <= wholeMax || len(rest) < wholeMax) {
			break
		}
		n := min(size, len(rest))
		forward, after := s.answer(kind, rest[pg.HeaderBytes:n])
		forward = forward && (!s.muted || kind == 'Z')
		s.passing, s.hiding = size-n, !forward
		if !forward {
			s.give(data[from:used])
			s.give(s.instead)
			s.instead, from = nil, used+n
		}
		used += n
		if after {
			s.give(data[from:used])
			from = used
			s.settle(kind == 'Z')
		}
	}
	s.give(data[from:used])
	if c := s.client; c != nil && c.conn.Full() {
		s.Conn.Pause(false)
	}
	return used
}

func (s *server) give(part []byte) {
	if s.client != nil {
		s.client.conn.Write(part)
	}
}

// answer looks at a message. forward says that it is the client's; after, that a request has
// been answered by it.
func (s *server) answer(kind byte, body []byte) (forward, after bool) {
	switch kind {
	case 'S':
		s.reports(body)
		if s.instead != nil {
			return false, false
		}
		return s.client != nil && s.client.phase == serving && !s.owns(), false
	case 'N', 'A':
		return s.client != nil && s.client.phase == serving && !s.owns(), false
	case 'E':
		return s.failed(body), true
	}
	front := s.pending.front()
	if front == nil && !(kind == 'Z' && s.skipping) {
		s.desynchronized(fmt.Sprintf("message %q, which nobody asked for", kind))
		return false, false
	}
	if front != nil && front.kind == ours {
		return false, s.answerOurs(front.own, kind, body)
	}
	forward = true
	expected := true
	switch kind {
	case 'D', 'd', 'c', 't', 'V', 'H', 'W':
		return true, false
	case 'T', 'n':
		if front.kind == query {
			return true, false
		}
		expected = front.kind == describe
	case '1':
		expected = front.kind == parse
		s.prepared.confirm(front.named)
		forward = !front.quiet && !front.hidden
	case '2':
		expected = front.kind == bind
	case '3':
		expected = front.kind == closing
		forward = !front.hidden
	case 'G':
		s.copyIn()
		return true, false
	case 'C':
		s.completed(body)
		fallthrough
	case 'I', 's':
		s.copying = false
		if front.kind == query {
			return true, false
		}
		expected = front.kind == execute
	case 'Z':
		return s.ready(front, body)
	default:
		expected = false
	}
	if !expected {
		s.desynchronized(fmt.Sprintf("message %q, which answers no request of kind %d", kind, front.kind))
		return false, false
	}
	s.pending.pop()
	return forward, true
}

// ready takes a ReadyForQuery.
func (s *server) ready(front *request, body []byte) (forward, after bool) {
	if len(body) != 1 || front != nil && front.kind != query && front.kind != syncing {
		s.desynchronized("ReadyForQuery before the answers")
		return false, false
	}
	s.status, s.skipping, s.copying, s.muted = body[0], false, false, false
	hidden := front != nil && front.quiet
	if front != nil {
		if front.alters && s.client != nil {
			s.client.forgot(front.failed)
		}
		s.pending.pop()
	}
	return !hidden, true
}

// answerOurs takes an answer to a query of ours.
func (s *server) answerOurs(o *own, kind byte, body []byte) (after bool) {
	switch kind {
	case 'D':
		if o.row != nil {
			o.row(body)
		}
	case 'Z':
		s.status = body[0]
		s.pending.pop()
		if o.done != nil {
			o.done(o.failure)
		}
		return true
	}
	return false
}

// failed takes an ErrorResponse.
func (s *server) failed(body []byte) (forward bool) {
	front := s.pending.front()
	if len(body) > 0 && isFatal(body) {
		// The connection ends, and the client is told once, when it has.
		s.dying = pg.ReadFailure(body)
		return false
	}
	switch {
	case front == nil:
		return s.client != nil && s.client.phase == serving
	case front.kind == ours:
		front.own.failure = pg.ReadFailure(body)
		return false
	}
	if s.copying && s.synced > 0 {
		s.doubtful = true // a Sync may have been seen after the error
	}
	s.copying = false
	forward = !front.quiet
	if s.client != nil && bytes.Contains(body, []byte(namePrefix)) {
		s.instead, forward = s.rename(body, front), false
	}
	if front.alters {
		s.doubtful, front.failed = true, true
	}
	if front.kind == query {
		return forward
	}
	if front.named != nil && front.kind != parse && s.lost(body) {
		s.doubtful = true
	}
	for front = s.pending.front(); front != nil && front.kind != syncing; front = s.pending.front() {
		s.dropped(front)
		s.pending.pop()
	}
	s.skipping = front == nil
	return forward
}

// rename gives an ErrorResponse with the client's name of a prepared statement.
func (s *server) rename(body []byte, r *request) []byte {
	quoted := func(name string) []byte { return []byte(`"` + name + `"`) }
	if r.taken != nil {
		body = bytes.ReplaceAll(body, quoted(r.taken.name), quoted(r.name))
	}
	for name, st := range s.client.named {
		body = bytes.ReplaceAll(body, quoted(st.name), quoted(name))
	}
	for _, x := range s.client.forgotten {
		body = bytes.ReplaceAll(body, quoted(x.statement.name), quoted(x.name))
	}
	return append(pg.AppendHeader(nil, 'E', pg.HeaderBytes+len(body)), body...)
}

// lost says that the server does not know a prepared statement that it should.
func (s *server) lost(body []byte) bool { return pg.ReadFailure(body).Code == "26000" }

func isFatal(body []byte) bool {
	f := pg.ReadFailure(body)
	return f.Fatal()
}

// dropped undoes what was expected of a request that the server did not look at.
func (s *server) dropped(r *request) {
	c := s.client
	switch {
	case r.kind == parse && r.named != nil:
		s.prepared.forget(r.named)
		if !r.hidden && !r.quiet && c != nil && r.name != "" {
			c.unname(r.name)
		}
	case r.kind == given && r.answer == '1' && r.name != "" && c != nil:
		c.unname(r.name)
	case r.kind == given && r.answer == '3' && r.named != nil:
		if c != nil && c.named[r.name] == nil {
			c.name(r.name, r.named)
		} else {
			r.named.release()
		}
	}
}

// copyIn begins a COPY FROM STDIN. The server ignores the Syncs that it meets until its end.
func (s *server) copyIn() {
	s.copying = true
	for s.pending.length > 1 && s.pending.at(1).kind == syncing {
		s.pending.remove(1)
		s.synced++
	}
}

// completed looks at a CommandComplete.
func (s *server) completed(body []byte) {
	if len(body) == 0 || body[0] != 'D' {
		return
	}
	switch string(body[:len(body)-1]) {
	case "DISCARD ALL":
		s.prepared.clear()
		s.unnamed = nil
		s.set, s.applied, s.discarded = map[string]string{}, nil, true
		if s.client != nil {
			s.client.discarded()
		}
	case "DEALLOCATE ALL":
		s.prepared.clear()
		if s.client != nil {
			s.client.unnameAll()
		}
	}
}

// settle goes on after an answer: it answers what we answer for, and gives the connection back
// when nothing is left of the transaction.
func (s *server) settle(ready bool) {
	for front := s.pending.front(); front != nil && (front.kind == copyEnd || front.kind == given); front = s.pending.front() {
		switch {
		case front.kind != given || s.client == nil:
		case front.answer == '1' && s.status == 'E' && !front.ends:
			// The server would not parse in a transaction that has failed.
			s.give(pg.AppendFailure(nil, abortedFailure()))
			s.muted = true
			s.dropped(front)
		default:
			s.client.conn.Write([]byte{front.answer, 0, 0, 0, 4})
			if front.answer == '3' && front.named != nil {
				front.named.release()
			}
		}
		s.pending.pop()
	}
	c := s.client
	if c != nil && c.barrier && s.pending.length == 0 {
		c.barrier = false
		c.conn.Resume()
	}
	if !ready || c == nil {
		return
	}
	if s.pending.length == 0 {
		c.answered()
	}
	if s.discarded {
		s.discarded = false
		c.tell()
	}
	s.rest()
}

// rest gives the connection back, if the client needs it no more.
func (s *server) rest() {
	c := s.client
	if c == nil || s.pending.length > 0 || s.status != 'I' || s.skipping || c.passing > 0 || c.due || s.Conn.Closed() {
		return
	}
	if (c.touchedAll || len(c.touched) > 0 && c.pin == "") && c.phase == serving {
		c.read()
		return
	}
	if c.pin != "" {
		return
	}
	c.server, s.client, s.synced = nil, nil, 0
	s.lend()
	if c.f.stopping {
		c.fatal("57P01", "terminating connection due to administrator command")
	}
}

// lend gives the connection to the next client.
func (s *server) lend() {
	switch {
	case s.doubtful:
		s.Pool().Discard(s.Server)
	case s.cancels > 0:
		s.held = true
	default:
		s.Pool().Return(s.Server)
	}
}

// abandoned is called when the client has gone. What it has left in the session is nobody's.
func (s *server) abandoned() {
	s.client = nil
	switch {
	case s.Conn.Closed():
	case s.status == 'I' && s.pending.length == 0 && !s.doubtful && !s.skipping:
		s.set, s.applied = map[string]string{}, nil
		s.prepared.clear()
		s.unnamed = nil
		s.run("DISCARD ALL", &own{done: func(failure *pg.Failure) {
			s.doubtful = s.doubtful || failure != nil
			s.lend()
		}})
	default:
		if s.pending.length > 0 {
			s.cancelRunning()
		}
		s.Conn.Reset()
	}
}

// desynchronized ends a connection whose answers are not understood.
func (s *server) desynchronized(what string) {
	if c := s.client; c != nil {
		c.f.settings.Log.Error("the server's answers are not understood", "reason", what, "clientConnection", c.id)
	}
	s.Conn.Reset()
}

// Closed implements eventloop.Handler.
func (s *server) Closed(_ *eventloop.Conn, err error) {
	s.Pool().Gone(s.Server)
	s.prepared.clear()
	c := s.client
	if c == nil {
		return
	}
	s.client, c.server = nil, nil
	if s.dying != nil {
		err = s.dying
	} else if err == nil {
		err = errors.New("the connection was reset")
	}
	c.lost(s, err)
}
