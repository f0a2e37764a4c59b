package postgres

import (
	"errors"
	"strings"
	"time"

	"kurabe/internal/proxy/pool"
	"kurabe/internal/wire/pg"
)

// broken is what a client knows of its transaction after its connection has ended: the proxy
// then stands for a server whose transaction has failed, until the client ends it. If it did
// not, the rest of the transaction would run as statements of their own.
type broken uint8

const (
	intact broken = iota
	untold        // the client has not been told
	told
)

const (
	codeConnectionFailure = "08006"
	codeUnknown           = "08007" // transaction_resolution_unknown
	codeAborted           = "25P02"
)

// status is what ReadyForQuery says while the client has no connection.
func (c *client) status() byte {
	if c.broken != intact {
		return 'E'
	}
	return 'I'
}

// lost is called when the client's connection has ended.
func (c *client) lost(s *server, err error) {
	f := c.f
	c.touched, c.touchedAll = nil, false
	switch {
	case c.phase == greeted:
		c.end(&pg.Failure{Severity: "FATAL", Code: codeConnectionFailure, Message: "the connection to the database ended during the login", Detail: err.Error()})
		return
	case s.passing > 0 && !s.hiding:
		// A part of a message has left: nothing can follow it.
		c.conn.Reset()
		return
	case c.due:
		// Nothing of the client's has been sent.
		c.due, c.restoring = false, false
		c.conn.Resume()
		return
	}
	failure := c.lossOf(s, err)
	if c.pin != "" {
		// What the session held is gone.
		failure.Severity = "FATAL"
		c.end(failure)
		return
	}
	if s.pending.length > 0 || s.status != 'I' {
		f.counters.TransactionsBroken++
	}
	if s.status != 'I' && !s.ending() {
		c.broken = untold
	}
	c.answerLost(s, failure)
	c.barrier, c.asked = false, time.Time{}
	c.conn.Resume()
}

// ending says that what is under way ends the transaction.
func (s *server) ending() bool {
	for i := range s.pending.length {
		if s.pending.at(i).ends {
			return true
		}
	}
	return false
}

// lossOf tells what is known of what was under way.
func (c *client) lossOf(s *server, err error) *pg.Failure {
	unknown := false
	for i := range s.pending.length {
		r := s.pending.at(i)
		unknown = unknown || r.kind != ours && (s.status == 'I' || r.commits)
	}
	if unknown {
		return &pg.Failure{Severity: "ERROR", Code: codeUnknown, Message: "the connection to the database ended before it answered",
			Detail: err.Error(), Hint: "The transaction may have been committed or not: look before you repeat it."}
	}
	return &pg.Failure{Severity: "ERROR", Code: codeConnectionFailure, Message: "the connection to the database ended, and the transaction with it",
		Detail: err.Error(), Hint: "Nothing of the transaction was committed: repeat it."}
}

// answerLost answers what the server owes: the first request with the reason, others that
// they failed with it.
func (c *client) answerLost(s *server, failure *pg.Failure) {
	var b []byte
	failed := false // in this series up to Sync
	again := &pg.Failure{Severity: "ERROR", Code: failure.Code, Message: failure.Message, Detail: failure.Detail, Hint: failure.Hint}
	for i := range s.pending.length {
		r := s.pending.at(i)
		switch r.kind {
		case ours, copyEnd:
		case query:
			if !failed {
				b = pg.AppendFailure(b, again)
			}
			b, failed = pg.AppendReady(b, c.status()), false
			c.tellBroken()
		case syncing:
			if !r.quiet {
				b, failed = pg.AppendReady(b, c.status()), false
			}
		default:
			if !failed && !r.quiet {
				b = pg.AppendFailure(b, again)
				c.tellBroken()
				failed = true
			}
		}
	}
	c.skipping = failed || s.skipping
	for i := range s.pending.length {
		s.dropped(s.pending.at(i))
	}
	c.conn.Write(b)
}

func (c *client) tellBroken() {
	if c.broken == untold {
		c.broken = told
	}
}

// emulate answers for a failed transaction whose connection has ended.
func (c *client) emulate(kind byte, size int, rest []byte) int {
	if kind == 'F' || len(rest) < size {
		c.abort(kind)
		return c.drop(size, rest)
	}
	b := c.f.scratch[:0]
	body := rest[pg.HeaderBytes:size]
	switch kind {
	case 'Q':
		e := pg.Scan(body[:max(0, len(body)-1)], false)
		switch {
		case e.Marks&pg.MarkEnd == 0 || e.Statements != 1:
			c.abort(kind)
			return size
		case c.broken == untold && e.Marks&pg.MarkCommit != 0:
			c.broken = intact
			b = pg.AppendFailure(b, brokenFailure())
		default:
			c.broken = intact
			b = pg.AppendText(b, 'C', "ROLLBACK")
		}
		b = pg.AppendReady(b, 'I')
	case 'P':
		if !c.emulateParse(body) {
			c.abort(kind)
			return size
		}
		b = append(b, '1', 0, 0, 0, 4)
	case 'B':
		_, after, _ := pg.Text(body)
		name, _, _ := pg.Text(after)
		c.bound = c.effectsOf(name).Marks
		if c.bound&pg.MarkEnd == 0 {
			c.abort(kind)
			return size
		}
		b = append(b, '2', 0, 0, 0, 4)
	case 'D':
		if body[0] == 'S' {
			b = append(b, 't', 0, 0, 0, 6, 0, 0)
		}
		b = append(b, 'n', 0, 0, 0, 4)
	case 'C':
		name, _, _ := pg.Text(body[1:])
		if body[0] == 'S' {
			c.unname(string(name))
		}
		b = append(b, '3', 0, 0, 0, 4)
	case 'E':
		if c.broken == untold && c.bound&pg.MarkCommit != 0 {
			c.broken, c.skipping = intact, true
			b = pg.AppendFailure(b, brokenFailure())
			break
		}
		c.broken = intact
		b = pg.AppendText(b, 'C', "ROLLBACK")
	}
	c.conn.Write(b)
	return size
}

// emulateParse takes the Parse of a statement that ends the transaction, and no other.
func (c *client) emulateParse(body []byte) bool {
	name, after, _ := pg.Text(body)
	text, _, ok := pg.Text(after)
	e := pg.Scan(text, false)
	if !ok || e.Marks&pg.MarkEnd == 0 || c.named[string(name)] != nil {
		return false
	}
	if len(name) > 0 {
		c.name(string(name), c.f.statementOf(after, "", false))
		return true
	}
	u := &c.unnamed
	u.effects, u.valid, u.body = e, true, append(u.body[:0], after...)
	u.version++
	return true
}

func (c *client) effectsOf(name []byte) pg.Effects {
	if st := c.named[string(name)]; st != nil {
		return st.effects
	}
	if len(name) == 0 && c.unnamed.valid {
		return c.unnamed.effects
	}
	return pg.Effects{}
}

func brokenFailure() *pg.Failure {
	return &pg.Failure{Severity: "ERROR", Code: codeConnectionFailure, Message: "the connection to the database ended, and the transaction with it",
		Hint: "Nothing of the transaction was committed: repeat it."}
}

func abortedFailure() *pg.Failure {
	return &pg.Failure{Severity: "ERROR", Code: codeAborted, Message: "current transaction is aborted, commands ignored until end of transaction block"}
}

// abort refuses a statement of a failed transaction.
func (c *client) abort(kind byte) {
	failure := brokenFailure()
	if c.broken == told {
		failure = abortedFailure()
	}
	c.broken = told
	c.refuseWith(kind, failure)
}

// refuse answers a statement for which no connection was to be had.
func (c *client) refuse(kind byte, size int, rest []byte) int {
	failure := c.failing
	c.failing = nil
	c.refuseWith(kind, failure)
	return c.drop(size, rest)
}

func (c *client) refuseWith(kind byte, failure *pg.Failure) {
	b := pg.AppendFailure(c.f.scratch[:0], failure)
	if kind == 'Q' || kind == 'F' {
		b = pg.AppendReady(b, c.status())
	} else {
		c.skipping = true
	}
	c.conn.Write(b)
	c.since = c.f.loop.Now()
}

// borrowFailure says why there is no connection.
func borrowFailure(err error) *pg.Failure {
	if refused := (*pool.Refused)(nil); errors.As(err, &refused) {
		if failure := (*pg.Failure)(nil); errors.As(err, &failure) {
			copied := *failure
			copied.Severity = "ERROR"
			return &copied
		}
	}
	if strings.HasPrefix(err.Error(), canceled) {
		return &pg.Failure{Severity: "ERROR", Code: "57014", Message: canceled}
	}
	return &pg.Failure{Severity: "ERROR", Code: "53300", Message: err.Error()}
}

const canceled = "canceling statement due to user request"
