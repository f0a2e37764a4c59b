package postgres

import (
	"crypto"
	_ "crypto/sha512" // certificates signed with SHA-384 and SHA-512
	"crypto/tls"
	"crypto/x509"
	"errors"
	"slices"
	"strings"

	"kurabe/internal/proxy"
	"kurabe/internal/wire/pg"
	"kurabe/internal/wire/pg/scram"
)

// login is what is needed of a client until it is served.
type login struct {
	startup  *pg.Startup
	exchange scram.Server
	known    bool // the user exists
	chosen   bool
	key      string // of the greeting
	asked    []pg.Setting
}

// greeting is what clients with the same startup parameters are told, and have set.
type greeting struct {
	parameters []byte // ParameterStatus messages
	settings   *settings
}

// enter takes what a client says before it is served.
func (c *client) enter(data []byte) int {
	switch c.phase {
	case starting:
		s, size, ok := pg.ReadStartup(data)
		switch {
		case !ok:
			c.violation("invalid startup packet")
			return 0
		case size == 0:
			return 0
		}
		c.begin(s, len(data) > size)
		return size
	case proving:
		if len(data) < pg.HeaderBytes {
			return 0
		}
		kind, size, ok := pg.Header(data)
		switch {
		case !ok || kind != 'p' || size > scram.MessageMax+100:
			c.violation("expected SASL response")
			return 0
		case len(data) < size:
			return 0
		}
		c.prove(data[pg.HeaderBytes:size])
		return size
	case shaking, cancelling:
		c.conn.Close() // bytes of before the handshake are nobody's word
	}
	return 0
}

// begin handles a first message. more says that bytes follow it.
func (c *client) begin(s *pg.Startup, more bool) {
	switch s.Kind {
	case pg.StartupSSL:
		switch {
		case more || c.tls:
			c.conn.Close()
		case c.f.settings.ClientTLS == nil:
			c.conn.Write([]byte{'N'})
		default:
			c.conn.Write([]byte{'S'})
			c.phase = shaking
			c.conn.StartTLS(c.f.settings.ClientTLS, func(tls.ConnectionState) {
				c.tls, c.phase = true, starting
			})
		}
	case pg.StartupGSS:
		c.conn.Write([]byte{'N'})
	case pg.StartupCancel:
		c.phase = cancelling
		c.f.cancel(s.Cancel, c)
	default:
		c.authenticate(s)
	}
}

// authenticate begins a login. What is refused here is refused to anybody, so that no name of
// a user can be found out.
func (c *client) authenticate(s *pg.Startup) {
	f := c.f
	c.login = &login{startup: s}
	c.of = poolKey(f.settings, s)
	switch replication := s.Get("replication"); {
	case len(f.clients) > f.settings.ClientsMax:
		c.fatal("53300", "sorry, too many clients already")
	case f.settings.RequireTLS && !c.tls:
		c.fatal("28000", "this proxy requires TLS connections")
	case c.of.User == "":
		c.fatal("28000", "no PostgreSQL user name specified in startup packet")
	case replication != "" && !slices.Contains([]string{"0", "off", "false", "no"}, strings.ToLower(replication)):
		c.fatal("0A000", "replication is not possible through a proxy: connect to the instance")
	default:
		if s.Minor > 0 || len(s.Unknown) > 0 {
			c.conn.Write(pg.AppendNegotiation(f.scratch[:0], s.Unknown))
		}
		c.phase = proving
		c.login.exchange.Keys, c.login.known = f.keysOf(c.of.User)
		mechanisms := []string{scram.Mechanism}
		if c.tls {
			if c.login.exchange.Binding = endPoint(f.settings.ClientTLS); c.login.exchange.Binding != nil {
				mechanisms = []string{scram.MechanismBinding, scram.Mechanism}
			}
		}
		c.conn.Write(pg.AppendMechanisms(f.scratch[:0], mechanisms...))
	}
}

// keysOf gives what a user's login is checked with, also for one who does not exist.
func (f *Frontend) keysOf(name string) (keys *scram.Keys, known bool) {
	if keys := f.verifiers[name]; keys != nil {
		return keys, true
	}
	if user, ok := f.settings.Users[name]; ok {
		if keys, err := scram.NewKeys(user.Password); err == nil {
			f.verifiers[name] = keys
			return keys, true
		}
	}
	return scram.Unknown(f.unknown, name), false
}

// endPoint is tls-server-end-point of RFC 5929, for a certificate that is always the same.
func endPoint(config *tls.Config) []byte {
	if len(config.Certificates) != 1 || config.GetCertificate != nil || config.GetConfigForClient != nil {
		return nil
	}
	leaf := config.Certificates[0].Leaf
	if leaf == nil {
		return nil
	}
	hash := crypto.SHA256
	switch leaf.SignatureAlgorithm {
	case x509.SHA384WithRSA, x509.ECDSAWithSHA384, x509.SHA384WithRSAPSS:
		hash = crypto.SHA384
	case x509.SHA512WithRSA, x509.ECDSAWithSHA512, x509.SHA512WithRSAPSS:
		hash = crypto.SHA512
	case x509.PureEd25519:
		return nil // the RFC does not say
	}
	h := hash.New()
	h.Write(leaf.Raw)
	return h.Sum(nil)
}

// prove takes the two messages of the client's side of SCRAM.
func (c *client) prove(body []byte) {
	l := c.login
	if !l.chosen {
		mechanism, data, ok := pg.Chosen(body)
		if !ok {
			c.violation("malformed SCRAM message")
			return
		}
		reply, err := l.exchange.First(mechanism, data)
		if err != nil {
			c.violation(err.Error())
			return
		}
		l.chosen = true
		c.conn.Write(pg.AppendAuthentication(c.f.scratch[:0], pg.AuthenticationContinue, reply))
		return
	}
	reply, err := l.exchange.Final(body)
	if err == nil && !l.known {
		err = scram.ErrRefused
	}
	if err != nil {
		c.f.counters.ClientsFailedAuth++
		if !errors.Is(err, scram.ErrRefused) {
			c.violation(err.Error())
			return
		}
		c.fatal("28P01", `password authentication failed for user "`+c.of.User+`"`)
		return
	}
	b := pg.AppendAuthentication(c.f.scratch[:0], pg.AuthenticationFinal, reply)
	c.conn.Write(pg.AppendAuthentication(b, pg.AuthenticationOk, nil))
	c.greet()
}

// greet tells what the server would. What it would is asked once for all clients with the same
// startup parameters.
func (c *client) greet() {
	l := c.login
	asked, ok := startupSettings(l.startup)
	if !ok {
		c.violation("invalid command-line argument in the startup parameter \"options\": only settings (-c name=value) are possible through a proxy")
		return
	}
	var key strings.Builder
	key.WriteString(c.of.Database + "\x00" + c.of.User)
	for _, s := range asked {
		key.WriteString("\x00" + s.Name + "\x00" + s.Value)
	}
	l.asked, l.key = asked, key.String()
	if g := c.f.greetings[l.key]; g != nil {
		c.welcome(g)
		return
	}
	c.phase = greeted
	c.acquire()
}

// welcome ends the login.
func (c *client) welcome(g *greeting) {
	f := c.f
	c.want, c.startup = g.settings, g.settings
	c.phase, c.login, c.since = serving, nil, f.loop.Now()
	f.counters.ClientsSucceeded++
	f.register(c)
	b := append(f.scratch[:0], g.parameters...)
	b = pg.AppendKey(b, c.key)
	b = pg.AppendReady(b, 'I')
	c.conn.Write(b)
	f.scratch = b[:0]
}

// introduce sets the client's startup parameters on a connection, to learn what the server
// makes of them.
func (c *client) introduce() {
	s := c.server
	want := &settings{values: map[string]string{}}
	for _, one := range c.login.asked {
		want.values[one.Name] = one.Value
	}
	text := s.difference(want)
	if text == "" {
		c.introduced(want)
		return
	}
	c.conn.Pause(true)
	s.run(text, &own{done: func(failure *pg.Failure) {
		if failure != nil {
			failure.Severity = "FATAL"
			s.doubtful = true
			c.f.counters.ClientsFailedAuth++
			c.end(failure)
			return
		}
		s.took(want)
		c.introduced(want)
	}})
}

// introduced remembers the greeting for the clients that come.
func (c *client) introduced(want *settings) {
	s, f := c.server, c.f
	g := &greeting{settings: want}
	for _, name := range s.reported {
		if _, ok := want.values[name]; ok {
			want.values[name] = s.parameters[name] // as the server spells it
			s.set[name] = s.parameters[name]
		}
		g.parameters = pg.AppendParameter(g.parameters, s.spelling(name), s.parameters[name])
	}
	if len(f.greetings) >= greetingsMax {
		clear(f.greetings)
	}
	f.greetings[c.login.key] = g
	s.applied = want
	c.welcome(g)
	s.rest()
	c.conn.Resume()
}

// startupSettings are the parameters of a session in a startup message.
func startupSettings(s *pg.Startup) ([]pg.Setting, bool) {
	var all []pg.Setting
	for _, p := range s.Parameters {
		switch p.Name {
		case "user", "database", "replication":
		case "options":
			options, ok := pg.Options(p.Value)
			if !ok {
				return nil, false
			}
			all = append(all, options...)
		default:
			all = append(all, p)
		}
	}
	for i := range all {
		all[i].Name = strings.ToLower(all[i].Name)
	}
	return all, true
}

func (f *Frontend) logPin(c *client) {
	f.settings.Log.Warn("The client session was pinned to the database connection [dbConnection="+decimal(c.server.id)+
		"] for the remainder of the session. The proxy can't reuse this connection until the session ends. Reason: "+c.pin.Words(),
		"proxyEndpoint", f.settings.Endpoint, "clientConnection", c.id)
}

var _ proxy.Frontend = (*Frontend)(nil)
