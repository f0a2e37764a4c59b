package mariadb

import (
	"fmt"
	"net/netip"
	"strconv"
	"time"

	"kurabe/internal/proxy/pool"
	"kurabe/internal/wire/my"
)

// killing is what a client wants to be killed.
type killing struct {
	id    uint64
	query bool // and not the whole connection
	bad   bool
}

// readKill reads KILL [HARD|SOFT] [CONNECTION|QUERY] id.
func readKill(text []byte) killing {
	x := my.Lexer{Rest: text}
	var k killing
	for w := x.Next(); w.Kind != my.End; w = x.Next() {
		switch {
		case w.Is("KILL"), w.Is("HARD"), w.Is("SOFT"), w.Is("CONNECTION"), w.Sign(';'):
		case w.Is("QUERY"):
			k.query = true
		case w.Kind == my.Number && k.id == 0:
			id, err := strconv.ParseUint(string(w.Text), 10, 64)
			k.id, k.bad = id, k.bad || err != nil
		default:
			k.bad = true
		}
	}
	k.bad = k.bad || k.id == 0
	return k
}

// kill ends a client of the proxy, or its query. The ids are those that the proxy gave:
// a server's own are refused, because the connection behind one serves others too.
func (c *client) kill(p part, k killing) int {
	victim := c.f.byID[uint32(k.id)]
	switch {
	case k.bad:
		return c.fails(p, 1235, "42000", "Through the proxy, KILL takes the number of a client's connection and nothing else")
	case k.id >= 1<<32 || victim == nil || victim.phase != serving:
		return c.fails(p, 1094, "HY000", fmt.Sprintf("Unknown thread id: %d. Through the proxy, the ids are those that it gave to its clients", k.id))
	case victim.key.User != c.key.User:
		return c.fails(p, 1095, "HY000", fmt.Sprintf("You are not owner of thread %d", k.id))
	case victim == c && k.query:
		return c.fails(p, 1317, "70100", "Query execution was interrupted")
	case c.f.kills >= killsMax:
		return c.fails(p, 1040, "08004", "Too many KILLs at once")
	}
	s := victim.server
	if s == nil || !victim.busy {
		if !k.query {
			victim.fatal(&my.Error{Number: 1927, State: "70100", Message: "Connection was killed"})
		}
		c.writeOK()
		return len(p.data)
	}
	c.busy = true
	c.f.kills++
	s.kills++
	f := c.f
	go func() {
		err := f.opener.kill(s.Key, s.Address, s.thread, k.query)
		f.loop.Do(func() {
			f.kills--
			s.killed()
			if !k.query && !victim.conn.Closed() {
				victim.fatal(&my.Error{Number: 1927, State: "70100", Message: "Connection was killed"})
			}
			if c.conn.Closed() {
				return
			}
			c.busy = false
			if err != nil {
				c.write(refused(err).Append(nil))
			} else {
				c.writeOK()
			}
			if c.conn.Paused() {
				c.conn.Resume()
			}
		})
	}()
	return len(p.data)
}

// killTime bounds a KILL, with the login for it.
const killTime = 10 * time.Second

// kill runs KILL on a connection of its own: those of the pool may all be lent, the victim's
// among them.
func (o *Opener) kill(key pool.Key, address netip.AddrPort, thread uint32, query bool) error {
	key.Database = ""
	l, dialed, err := o.log(key, address, time.Now().Add(killTime))
	if err != nil {
		return err
	}
	defer dialed.Close()
	what := "CONNECTION"
	if query {
		what = "QUERY"
	}
	_, err = l.query(fmt.Sprintf("KILL %s %d", what, thread))
	return err
}
