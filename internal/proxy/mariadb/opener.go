package mariadb

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strings"
	"sync/atomic"
	"time"

	"kurabe/internal/proxy"
	"kurabe/internal/proxy/eventloop"
	"kurabe/internal/proxy/pool"
	"kurabe/internal/wire/my"
)

// The bits of pool.Key.Options: those capabilities that change what a server answers, and
// the collation of the login.
const (
	optional = my.FoundRows | my.NoSchema | my.ODBC | my.LocalFiles | my.IgnoreSpace | my.MultiStatements | my.MultiResults |
		my.PSMultiResults | my.DeprecateEOF | my.ExtendedMetadata
	always         = my.Protocol41 | my.LongFlag | my.Transactions | my.SecureConnection | my.PluginAuth | my.AuthLenenc | my.SessionTrack | my.BulkOperations
	collationShift = 56
)

// someDatabase is the pool's key of all connections that have a schema: they share, and
// change it.
const someDatabase = "*"

// loginPacketMax bounds a packet of a login, in bytes.
const loginPacketMax = 64 << 10

// Opener opens connections to servers, for a pool.
type Opener struct {
	settings atomic.Pointer[proxy.Settings]
}

// NewOpener logs in as the users of s.
func NewOpener(s *proxy.Settings) *Opener {
	o := &Opener{}
	o.Apply(s)
	return o
}

// Apply replaces the settings.
func (o *Opener) Apply(s *proxy.Settings) { o.settings.Store(s) }

// Open implements pool.Opener.
func (o *Opener) Open(key pool.Key, address netip.AddrPort, deadline time.Time) (*pool.Opened, error) {
	l, dialed, err := o.log(key, address, deadline)
	if err != nil {
		return nil, err
	}
	s := l.server
	return &pool.Opened{Dialed: dialed, Encrypted: l.encrypted, Session: s, Handler: func(p *pool.Server) eventloop.Handler {
		s.Server = p
		return s
	}}, nil
}

// log logs in.
func (o *Opener) log(key pool.Key, address netip.AddrPort, deadline time.Time) (*opening, *eventloop.Dialed, error) {
	settings := o.settings.Load()
	user, ok := settings.Users[key.User]
	if !ok {
		return nil, nil, &pool.Refused{Err: &my.Error{Number: 1045, State: "28000", Message: "the proxy knows no password of the user '" + key.User + "'"}}
	}
	dialer := net.Dialer{Deadline: deadline, KeepAlive: 30 * time.Second}
	raw, err := dialer.DialContext(context.Background(), "tcp", address.String())
	if err != nil {
		return nil, nil, fmt.Errorf("connect to the database: %w", err)
	}
	dialed := eventloop.NewDialed(raw.(*net.TCPConn))
	l := &opening{ReadWriter: dialed, settings: settings, user: user, key: key}
	if err = dialed.SetDeadline(deadline); err == nil {
		err = l.login(dialed)
	}
	if err != nil {
		_ = dialed.Close()
		return nil, nil, err
	}
	return l, dialed, nil
}

// opening is a login that is under way.
type opening struct {
	io.ReadWriter
	settings  *proxy.Settings
	user      proxy.User
	key       pool.Key
	encrypted *tls.Conn
	sequence  byte
	answer    answer
	server    *server
}

// read gives the payload of the next packet, and reads no byte beyond it.
func (l *opening) read() ([]byte, error) {
	var header [my.HeaderBytes]byte
	if _, err := io.ReadFull(l, header[:]); err != nil {
		return nil, fmt.Errorf("log in: %w", err)
	}
	length, sequence := my.Header(header[:])
	l.sequence = sequence + 1
	if length > loginPacketMax {
		return nil, errors.New("log in: the database sends a packet that is too long")
	}
	payload := make([]byte, length)
	if _, err := io.ReadFull(l, payload); err != nil {
		return nil, fmt.Errorf("log in: %w", err)
	}
	return payload, nil
}

func (l *opening) write(payload []byte) error {
	if _, err := l.Write(my.AppendPacket(nil, l.sequence, payload)); err != nil {
		return fmt.Errorf("log in: %w", err)
	}
	return nil
}

func (l *opening) login(dialed *eventloop.Dialed) error {
	first, err := l.read()
	if err != nil {
		return err
	}
	greeting, err := my.ReadGreeting(first)
	if err != nil {
		return fmt.Errorf("log in: %w", err)
	}
	if greeting.Capabilities&always&^my.BulkOperations != always&^my.BulkOperations {
		return errors.New("log in: the database lacks what the proxy needs (MariaDB 10.2 and later have it)")
	}
	login := my.Login{
		Capabilities: (always | l.key.Options&optional) & greeting.Capabilities, PacketMax: 1 << 30,
		Collation: cmp.Or(byte(l.key.Options>>collationShift), defaultCollation), User: []byte(l.user.Name), Plugin: []byte(greeting.Plugin),
	}
	if l.settings.ServerTLS != nil {
		if greeting.Capabilities&my.SSL == 0 {
			return errors.New("log in: the database does not speak TLS")
		}
		login.Capabilities |= my.SSL
		if err := l.write(login.AppendFixed(nil)); err != nil {
			return err
		}
		l.sequence++
		l.encrypted = tls.Client(dialed, l.settings.ServerTLSAt(dialed.RemoteAddr()))
		if err := l.encrypted.Handshake(); err != nil {
			return fmt.Errorf("TLS with the database: %w", err)
		}
		l.ReadWriter = l.encrypted
	}
	if login.Answer, err = my.Prove(greeting.Plugin, greeting.Scramble[:], l.user.Password.Reveal()); err != nil {
		// The server names the user's own plugin next.
		login.Plugin, login.Answer = []byte(my.NativePassword), nil
	}
	if err := l.write(login.Append(nil)); err != nil {
		return err
	}
	if err := l.authenticate(); err != nil {
		return err
	}
	l.server = &server{
		thread: greeting.ThreadID, version: greeting.Version, capabilities: greeting.Capabilities, state: &state{},
		statements: map[string]*prepared{}, initQuery: l.settings.InitQuery,
	}
	l.server.answer.deprecate = login.Capabilities&my.DeprecateEOF != 0
	l.answer.deprecate = l.server.answer.deprecate
	return l.initialize()
}

func (l *opening) authenticate() error {
	for range 4 {
		p, err := l.read()
		if err != nil {
			return err
		}
		switch {
		case len(p) == 0:
			return fmt.Errorf("log in: %w", my.ErrMalformed)
		case p[0] == my.MarkOK:
			return nil
		case p[0] == my.MarkError:
			return refusal(my.ReadError(p))
		}
		plugin, scramble, err := my.ReadAuthSwitch(p)
		if err != nil {
			return fmt.Errorf("log in: %w", err)
		}
		proof, err := my.Prove(plugin, scramble, l.user.Password.Reveal())
		if err != nil {
			return &pool.Refused{Err: fmt.Errorf("log in: %w", err)}
		}
		if err := l.write(proof); err != nil {
			return err
		}
	}
	return errors.New("log in: the database does not end the login")
}

// refusal says that trying again does not help, of errors for which that is so.
func refusal(err error) error {
	if e, ok := err.(*my.Error); ok {
		switch e.Number {
		case 1044, 1045, 1049, 1129, 1130, 1698, 1862, 4151:
			return &pool.Refused{Err: e}
		}
	}
	return fmt.Errorf("log in: %w", err)
}

// initialize makes the session one whose changes are reported, runs the init query, and
// notes what the variables of a new session are.
func (l *opening) initialize() error {
	for _, statement := range initial(l.settings.InitQuery) {
		if _, err := l.query(statement); err != nil {
			return err
		}
	}
	row, err := l.query(readTracked)
	if err != nil {
		return err
	}
	l.server.fresh, _, err = variablesOf(row)
	return err
}

// initial are the statements that a new session runs.
func initial(initQuery string) []string {
	all := []string{askReports}
	for _, statement := range strings.Split(initQuery, ";") {
		if strings.TrimSpace(statement) != "" {
			all = append(all, statement)
		}
	}
	return all
}

// readTracked asks for all tracked variables.
var readTracked = "SELECT @@" + strings.Join(tracked, ",@@") + ",DATABASE()"

// variablesOf reads the row of the answer.
func variablesOf(row []byte) (all map[string]string, database string, err error) {
	r := my.Reader{Rest: row}
	text := func() string {
		if len(r.Rest) > 0 && r.Rest[0] == my.MarkLocal { // NULL
			r.Byte()
			return ""
		}
		return string(r.Text())
	}
	all = make(map[string]string, len(tracked))
	for _, name := range tracked {
		all[name] = asReported(name, text())
	}
	if database = text(); r.Bad {
		return nil, "", fmt.Errorf("variables of the session: %w", my.ErrMalformed)
	}
	return all, database, nil
}

// asReported gives a value that was selected as a report has it.
func asReported(name, value string) string {
	if !numeric[name] && value == "1" {
		return "ON"
	}
	if !numeric[name] && value == "0" {
		return "OFF"
	}
	return value
}

// query runs a statement to its end and gives its last row.
func (l *opening) query(statement string) (row []byte, err error) {
	l.sequence = 0
	if err := l.write(append([]byte{my.ComQuery}, statement...)); err != nil {
		return nil, err
	}
	l.answer.begin(my.ComQuery)
	for {
		p, err := l.read()
		if err != nil {
			return nil, err
		}
		if len(p) > 0 && l.answer.passes(len(p), p[0]) {
			row = p
			l.answer.passed(len(p), 0)
			continue
		}
		switch event, err := l.answer.packet(p, 0); {
		case err != nil:
			return nil, fmt.Errorf("log in: %w", err)
		case event == ended:
			return row, nil
		case event == failed:
			return nil, &pool.Refused{Err: fmt.Errorf("a new connection's %q: %w", statement, &l.answer.failed)}
		case event == wantsFile:
			return nil, errors.New("log in: the database asks for a file")
		}
	}
}
