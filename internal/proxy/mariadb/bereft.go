package mariadb

import "kurabe/internal/wire/my"

// What a client is told when its connection to the server has ended. The states are those of
// SQL for a transaction that was rolled back, and for one whose end is not known.
var (
	rolledBack  = my.Error{Number: 1927, State: "40001", Message: "The connection to the database was lost and the transaction was rolled back: try it again"}
	unfinished  = my.Error{Number: 1927, State: "40001", Message: "The connection to the database was lost before the answer: try the statement again"}
	unknown     = my.Error{Number: 1927, State: "08007", Message: "The connection to the database was lost before the answer: it is unknown whether the statement took effect"}
	sessionLost = my.Error{Number: 1927, State: "08S01", Message: "The connection to the database was lost, and with it what the session had left on it"}
)

// bereft is called when the client's connection to the server has ended. A client with
// nothing on it goes on; others get one error.
func (c *client) bereft(s *server, err error) {
	c.server = nil
	inTransaction := c.status&my.InTransaction != 0
	if inTransaction {
		c.f.counters.TransactionsBroken++
	}
	if c.phase == entering {
		c.open()
		return
	}
	failure := unfinished
	switch {
	case c.busy && inTransaction && !c.meaning.ends:
		failure = rolledBack
	case c.busy && !c.meaning.reads:
		failure = unknown
	case !c.busy && inTransaction:
		failure = rolledBack
	}
	pinned := c.pin != "" || c.holding > 0
	c.status &^= my.InTransaction
	c.oneShot, c.reread = false, false
	c.log().Info("a client has lost its connection to the database", "busy", c.busy, "transaction", inTransaction, "pinned", pinned, "error", err)
	a := &s.answer
	switch {
	case c.busy && a.stage == atNothing:
		// The answer was whole; only what the proxy asked of its own is missing.
		c.lose(pinned, inTransaction, rolledBack)
	case c.busy && (a.partial > 0 || a.long || c.left > 0 || c.continued || c.file):
		c.conn.Reset() // in the midst of a packet there is no place for an error
	case c.busy:
		c.sequence = a.sequence + 1
		c.write(failure.Append(nil))
		c.lose(pinned, false, failure)
	default:
		c.lose(pinned, inTransaction, failure)
	}
}

// lose goes on with a new connection, unless the old one held what cannot be had again. A
// transaction's end that the client does not know of is the answer to its next command.
func (c *client) lose(pinned, owed bool, failure my.Error) {
	c.busy, c.statement = false, nil
	switch {
	case pinned:
		c.sequence = 0
		c.fatal(&sessionLost)
		return
	case owed:
		c.broken = &failure
	}
	c.meaning = meaning{}
	c.clean = false
	if c.conn.Paused() {
		c.conn.Resume()
	}
}
