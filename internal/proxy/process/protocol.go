package process

import (
	"net"

	"kurabe"
	"kurabe/internal/proxy"
	"kurabe/internal/proxy/eventloop"
	"kurabe/internal/proxy/mariadb"
	"kurabe/internal/proxy/pool"
	"kurabe/internal/proxy/postgres"
)

// loginOpener is a pool's Opener by settings that change.
type loginOpener interface {
	pool.Opener
	Apply(*proxy.Settings)
}

// protocol is what an engine's clients and servers speak.
type protocol struct {
	opener   func(*proxy.Settings) loginOpener
	frontend func(*eventloop.Loop, *pool.Pool, *proxy.Settings) proxy.Frontend
	// database is one that every server has, for logins that are not for a client; goodbye
	// ends a session without a line in the server's log.
	database string
	goodbye  []byte
}

var protocols = map[kurabe.EngineName]protocol{
	kurabe.Postgres: {
		opener:   func(s *proxy.Settings) loginOpener { return postgres.NewOpener(s) },
		frontend: func(l *eventloop.Loop, p *pool.Pool, s *proxy.Settings) proxy.Frontend { return postgres.New(l, p, s) },
		database: "postgres", goodbye: []byte{'X', 0, 0, 0, 4},
	},
	kurabe.MariaDB: {
		opener:   func(s *proxy.Settings) loginOpener { return mariadb.NewOpener(s) },
		frontend: func(l *eventloop.Loop, p *pool.Pool, s *proxy.Settings) proxy.Frontend { return mariadb.New(l, p, s) },
		goodbye:  []byte{1, 0, 0, 0, 1}, // COM_QUIT
	},
}

// leave ends a session that nobody uses.
func (p protocol) leave(o *pool.Opened) {
	var session net.Conn = o.Dialed
	if o.Encrypted != nil {
		session = o.Encrypted
	}
	_, _ = session.Write(p.goodbye)
	_ = o.Dialed.Close()
}
