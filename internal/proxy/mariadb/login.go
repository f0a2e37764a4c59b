package mariadb

import (
	"crypto/tls"
	"fmt"
	"strings"

	"kurabe/internal/wire/my"
)

// defaultCollation is latin1_swedish_ci, which every server knows; the client chooses.
const defaultCollation = 8

// unknownVersion is told while no server has been reached.
const unknownVersion = "5.5.5-10.11.0-MariaDB"

// offered are the capabilities that clients may use, if the servers have them too.
const offered = optional | always | my.ConnectWithDB | my.Interactive | my.ConnectAttrs | my.LongPassword | my.SSL

// phase is how far a client has come.
type phase byte

const (
	ungreeted phase = iota // waits for the greeting
	greeted                // has to say who it is
	shakes                 // its TLS handshake is under way
	switched               // was asked for an answer by another plugin
	entering               // waits for its schema to be opened
	serving
)

// greet sends the first packet.
func (c *client) greet() {
	my.NewScramble(c.scramble[:])
	capabilities, version := offered&^my.LongPassword, c.f.version
	if version == "" {
		version = unknownVersion
	} else {
		capabilities &= c.f.capabilities | my.SSL
	}
	if c.f.settings.ClientTLS == nil {
		capabilities &^= my.SSL
	}
	c.offered = capabilities
	g := my.Greeting{
		Version: version, ThreadID: c.id, Scramble: c.scramble, Capabilities: capabilities,
		Collation: defaultCollation, Status: my.Autocommit, Plugin: my.NativePassword,
	}
	c.phase, c.since = greeted, c.f.loop.Now()
	c.conn.Write(my.AppendPacket(nil, 0, g.Append(nil)))
}

// loginData takes packets of the login.
func (c *client) loginData(data []byte) int {
	if c.phase == entering {
		c.conn.Pause(true)
		return 0
	}
	if len(data) < my.HeaderBytes {
		return 0
	}
	length, sequence := my.Header(data)
	if length > loginPacketMax {
		c.fatal(&my.Error{Number: 1043, State: "08S01", Message: "Bad handshake"})
		return 0
	}
	if len(data) < my.HeaderBytes+length {
		return 0
	}
	payload := data[my.HeaderBytes : my.HeaderBytes+length]
	c.sequence = sequence + 1
	switch c.phase {
	case greeted:
		return c.hello(payload, data[my.HeaderBytes+length:]) + my.HeaderBytes + length
	case switched:
		c.authenticated(my.Verify(c.plugin, c.challenge(), payload, c.password()), len(payload) > 0)
	default: // nothing is due from the client
		c.fatal(&my.Error{Number: 1043, State: "08S01", Message: "Bad handshake"})
	}
	return my.HeaderBytes + length
}

// hello takes the answer to the greeting, or the wish for TLS with what has arrived of its
// handshake, and says how much of that is done.
func (c *client) hello(payload, behind []byte) int {
	l, err := my.ReadLogin(payload)
	switch {
	case err != nil:
		c.fatal(&my.Error{Number: 1043, State: "08S01", Message: "Bad handshake"})
		return 0
	case l.WantsTLS && !c.tls && c.f.settings.ClientTLS != nil:
		c.phase = shakes
		c.conn.StartTLSAfter(behind, c.f.settings.ClientTLS, func(tls.ConnectionState) {
			c.phase, c.tls = greeted, true
		})
		return len(behind)
	case l.WantsTLS:
		c.fatal(&my.Error{Number: 1043, State: "08S01", Message: "Bad handshake"})
		return 0
	case !c.tls && c.f.settings.RequireTLS:
		c.fatal(&my.Error{Number: 3159, State: "HY000", Message: "Connections using insecure transport are prohibited: this proxy requires TLS"})
		return 0
	}
	c.identify(l)
	return 0
}

// identify begins to find out whether a client is who it says, at a login or a change of
// the user.
func (c *client) identify(l my.Login) {
	c.capabilities = l.Capabilities & c.offered
	c.wanted = login{user: string(l.User), database: string(l.Database), collation: l.Collation}
	c.plugin = string(l.Plugin)
	switch {
	case c.plugin == my.NativePassword, c.capabilities&my.PluginAuth == 0:
		c.plugin = my.NativePassword
		c.authenticated(my.Verify(c.plugin, c.scramble[:], l.Answer, c.password()), len(l.Answer) > 0)
		return
	case c.plugin != my.Ed25519:
		c.plugin = my.NativePassword
	}
	c.switching = new([my.Ed25519ScrambleBytes]byte)
	my.NewScramble(c.switching[:])
	c.phase = switched
	c.write(my.AppendAuthSwitch(nil, c.plugin, c.challenge()))
}

// challenge is what the answer of the plugin that was asked for signs.
func (c *client) challenge() []byte {
	if c.plugin == my.NativePassword {
		return c.switching[:my.ScrambleBytes]
	}
	return c.switching[:]
}

// password is that of the user, or one that nobody knows, so that an unknown user takes
// the same way and time.
func (c *client) password() string {
	if user, ok := c.f.settings.Users[c.wanted.user]; ok {
		return user.Password.Reveal()
	}
	return c.id64()
}

func (c *client) authenticated(ok, answered bool) {
	c.switching = nil
	w := c.wanted
	if _, known := c.f.settings.Users[w.user]; !ok || !known {
		c.f.counters.ClientsFailedAuth++
		using := "NO"
		if answered {
			using = "YES"
		}
		c.fatal(&my.Error{Number: 1045, State: "28000", Message: fmt.Sprintf("Access denied for user '%s'@'%s' (using password: %s)", w.user, c.from.Addr(), using)})
		return
	}
	if w.collation == 0 {
		w.collation = defaultCollation
	}
	c.key.Reads, c.key.User = c.f.settings.Reads, w.user
	c.collation = w.collation
	c.enter(&state{database: w.database})
	c.options()
	c.phase = entering
	if w.database == "" {
		c.opened()
		return
	}
	c.open()
}

// options sets what the client's connections have to be opened with.
func (c *client) options() {
	o := c.capabilities & optional
	if o&my.MultiStatements != 0 {
		o |= my.MultiResults
	}
	c.key.Options = o | uint64(c.collation)<<collationShift
}

// open makes sure that the client's schema can be used, as a login at a server does. It
// waits for no connection: a client that comes to KILL the query which keeps the last one
// has to get in.
func (c *client) open() {
	switch {
	case c.ready(c.state):
		c.release()
	case c.refusal != nil:
		c.fatal(c.refusal)
		return
	case c.waits():
		c.f.pool.Leave(&c.waiter)
	default:
		return
	}
	c.opened()
}

func (c *client) opened() {
	if !c.welcomed {
		c.welcomed = true
		c.f.counters.ClientsSucceeded++
	}
	c.phase = serving
	c.moved = c.f.loop.Now()
	ok := my.OK{Status: c.status}
	c.write(ok.Append(nil, c.capabilities&my.SessionTrack != 0))
	if c.conn.Paused() {
		c.conn.Resume()
	}
}

// id64 is a text that no client can guess.
func (c *client) id64() string {
	var b [32]byte
	my.NewScramble(b[:])
	return strings.ToUpper(string(b[:]))
}
