package mariadb

import (
	"bytes"

	"kurabe/internal/wire/my"
)

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
		c.leftInsertID(nil, false)
		c.leftWarnings(nil)
		c.pin, c.oneShot, c.inserted, c.warnings, c.clean, c.status = "", false, 0, nil, true, my.Autocommit
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
