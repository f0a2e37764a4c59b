package postgres

import (
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"kurabe/internal/proxy"
	"kurabe/internal/proxy/eventloop"
	"kurabe/internal/proxy/pool"
	"kurabe/internal/wire/pg"
	"kurabe/internal/wire/pg/scram"
)

// Opener opens connections to servers, for a pool.
type Opener struct {
	settings atomic.Pointer[proxy.Settings]
	keys     sync.Map // derived of (password, salt, iterations): *scram.Keys
	ids      atomic.Uint64
}

// NewOpener logs in as the users of s.
func NewOpener(s *proxy.Settings) *Opener {
	o := &Opener{}
	o.Apply(s)
	return o
}

// Apply replaces the settings.
func (o *Opener) Apply(s *proxy.Settings) {
	o.settings.Store(s)
	o.keys.Clear()
}

// loginMessageMax bounds what a server sends at a login, in bytes.
const loginMessageMax = 64 << 10

// opening is a login that is under way.
type opening struct {
	io.ReadWriter
	o        *Opener
	user     proxy.User
	settings *proxy.Settings
	tls      bool
	server   *server
}

// Open implements pool.Opener.
func (o *Opener) Open(key pool.Key, address netip.AddrPort, deadline time.Time) (*pool.Opened, error) {
	settings := o.settings.Load()
	user, ok := settings.Users[key.User]
	if !ok {
		return nil, &pool.Refused{Err: &pg.Failure{Severity: "FATAL", Code: "28000", Message: `the proxy knows no password of the user "` + key.User + `"`}}
	}
	dialer := net.Dialer{Deadline: deadline, KeepAlive: 30 * time.Second}
	raw, err := dialer.DialContext(context.Background(), "tcp", address.String())
	if err != nil {
		return nil, fmt.Errorf("connect to the database: %w", err)
	}
	dialed := eventloop.NewDialed(raw.(*net.TCPConn))
	opened, err := o.login(dialed, settings, user, key.Database, deadline)
	if err != nil {
		_ = dialed.Close()
		return nil, err
	}
	return opened, nil
}

func (o *Opener) login(dialed *eventloop.Dialed, settings *proxy.Settings, user proxy.User, database string, deadline time.Time) (*pool.Opened, error) {
	if err := dialed.SetDeadline(deadline); err != nil {
		return nil, err
	}
	l := &opening{ReadWriter: dialed, o: o, user: user, settings: settings, server: &server{
		id: o.ids.Add(1), status: 'I', parameters: map[string]string{}, spellings: map[string]string{}, set: map[string]string{},
	}}
	var encrypted *tls.Conn
	if settings.ServerTLS != nil {
		if _, err := dialed.Write(pg.AppendSSLRequest(nil)); err != nil {
			return nil, fmt.Errorf("ask for TLS: %w", err)
		}
		var answer [1]byte
		if _, err := io.ReadFull(dialed, answer[:]); err != nil {
			return nil, fmt.Errorf("ask for TLS: %w", err)
		}
		if answer[0] != 'S' {
			return nil, errors.New("the database does not speak TLS")
		}
		encrypted = tls.Client(dialed, settings.ServerTLSAt(dialed.RemoteAddr()))
		if err := encrypted.Handshake(); err != nil {
			return nil, fmt.Errorf("TLS with the database: %w", err)
		}
		l.ReadWriter, l.tls = encrypted, true
	}
	if _, err := l.Write(pg.AppendStartup(nil, pg.Setting{Name: "user", Value: user.Name}, pg.Setting{Name: "database", Value: database})); err != nil {
		return nil, fmt.Errorf("log in: %w", err)
	}
	if err := l.authenticate(); err != nil {
		return nil, err
	}
	if err := l.greeted(); err != nil {
		return nil, err
	}
	if err := l.initialize(); err != nil {
		return nil, err
	}
	s := l.server
	s.base = maps.Clone(s.parameters)
	return &pool.Opened{Dialed: dialed, Encrypted: encrypted, Session: s, Handler: func(p *pool.Server) eventloop.Handler {
		s.Server = p
		return s
	}}, nil
}

// read gives the next message, which is not a notice. It reads no byte beyond it.
func (l *opening) read() (kind byte, body []byte, err error) {
	for {
		var header [pg.HeaderBytes]byte
		if _, err := io.ReadFull(l, header[:]); err != nil {
			return 0, nil, fmt.Errorf("log in: %w", err)
		}
		kind, size, ok := pg.Header(header[:])
		if !ok || size > loginMessageMax {
			return 0, nil, errors.New("log in: the server sent a message of an impossible length")
		}
		body := make([]byte, size-pg.HeaderBytes)
		if _, err := io.ReadFull(l, body); err != nil {
			return 0, nil, fmt.Errorf("log in: %w", err)
		}
		switch kind {
		case 'N':
		case 'E':
			return 0, nil, refusal(pg.ReadFailure(body))
		default:
			return kind, body, nil
		}
	}
}

// refusal tells refusals, which the next attempt would meet again, from what passes.
func refusal(f *pg.Failure) error {
	if strings.HasPrefix(f.Code, "57P") || strings.HasPrefix(f.Code, "53") {
		return f // starting, shutting down, full
	}
	return &pool.Refused{Err: f}
}

func (l *opening) authenticate() error {
	client := scram.Client{Derive: l.derive}
	for {
		kind, body, err := l.read()
		if err != nil {
			return err
		}
		if kind != 'R' || len(body) < 4 {
			return fmt.Errorf("log in: unexpected message %q", kind)
		}
		var reply []byte
		switch method, data := binary.BigEndian.Uint32(body), body[4:]; method {
		case pg.AuthenticationOk:
			return nil
		case pg.AuthenticationPassword:
			if !l.tls {
				return errors.New("log in: the database asks for the password in clear, without TLS")
			}
			reply = pg.AppendText(nil, 'p', l.user.Password.Reveal())
		case pg.AuthenticationSASL:
			if !strings.Contains("\x00"+string(data), "\x00"+scram.Mechanism+"\x00") {
				return errors.New("log in: the database does not offer SCRAM-SHA-256")
			}
			reply = pg.AppendChosen(nil, scram.Mechanism, client.First())
		case pg.AuthenticationContinue:
			final, err := client.Final(data)
			if err != nil {
				return fmt.Errorf("log in: %w", err)
			}
			reply = append(pg.AppendHeader(nil, 'p', pg.HeaderBytes+len(final)), final...)
		case pg.AuthenticationFinal:
			if err := client.Verify(data); err != nil {
				return fmt.Errorf("log in: the database does not know the password itself: %w", err)
			}
			continue
		default:
			return fmt.Errorf("log in: the database asks for authentication %d, which is not SCRAM", method)
		}
		if _, err := l.Write(reply); err != nil {
			return fmt.Errorf("log in: %w", err)
		}
	}
}

// derive keeps what takes a millisecond to compute.
func (l *opening) derive(salt []byte, iterations int) (*scram.Keys, error) {
	key := fmt.Sprintf("%s %x %d", l.user.Name, salt, iterations)
	if keys, ok := l.o.keys.Load(key); ok {
		return keys.(*scram.Keys), nil
	}
	keys, err := scram.Derive(l.user.Password, salt, iterations)
	if err == nil {
		l.o.keys.Store(key, keys)
	}
	return keys, err
}

// greeted reads up to the end of the login.
func (l *opening) greeted() error {
	for {
		kind, body, err := l.read()
		if err != nil {
			return err
		}
		switch kind {
		case 'S':
			l.server.reports(body)
		case 'K':
			if len(body) != 8 {
				return errors.New("log in: a key of an unknown form")
			}
			l.server.key = binary.BigEndian.Uint64(body)
		case 'Z':
			return nil
		}
	}
}

// initialize runs InitQuery. What it sets is what clients begin with.
func (l *opening) initialize() error {
	if l.settings.InitQuery == "" {
		return nil
	}
	if _, err := l.Write(pg.AppendText(nil, 'Q', l.settings.InitQuery)); err != nil {
		return fmt.Errorf("initialization query: %w", err)
	}
	for {
		kind, body, err := l.read()
		if err != nil {
			return fmt.Errorf("initialization query: %w", err)
		}
		switch kind {
		case 'S':
			l.server.reports(body)
		case 'G':
			return errors.New("initialization query: COPY FROM STDIN")
		case 'Z':
			if len(body) != 1 || body[0] != 'I' {
				return errors.New("initialization query: it leaves a transaction open")
			}
			return nil
		}
	}
}
