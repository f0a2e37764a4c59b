package dial

import (
	"context"
	"crypto/tls"
	"database/sql"
	"fmt"
	"net"
	"strconv"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5"

	"kurabe/lab/study"
)

// Timeout bounds opening a session.
const Timeout = 10 * time.Second

// Server is a database of a server, and how to enter it.
type Server struct {
	Engine   string // study.Postgres, ...
	Host     string
	Port     int
	User     string
	Password Secret
	Database string
	// TLS encrypts without asking who is there: the lab measures, and meets servers by
	// the address that it was given.
	TLS bool
	// Mark is for a database that is not the lab's, "" in one that is. Tables that the lab
	// makes there get it as their comment, and the lab removes no table without it.
	Mark string
}

// Secret prints as ***.
type Secret string

func (Secret) String() string               { return "***" }
func (Secret) GoString() string             { return "***" }
func (Secret) MarshalText() ([]byte, error) { return []byte("***"), nil }

// Address is HOST:PORT.
func (s Server) Address() string { return net.JoinHostPort(s.Host, strconv.Itoa(s.Port)) }

// PgxConfig is the session's configuration for pgx.
func (s Server) PgxConfig() (*pgx.ConnConfig, error) {
	c, err := pgx.ParseConfig("sslmode=disable")
	if err != nil {
		return nil, err
	}
	c.Host, c.Port, c.User, c.Password, c.Database = s.Host, uint16(s.Port), s.User, string(s.Password), s.Database
	c.ConnectTimeout = Timeout
	c.Fallbacks = nil
	// A database may be SQL_ASCII, whose sessions pgx would not send text to.
	c.RuntimeParams["client_encoding"] = "UTF8"
	if s.TLS {
		c.TLSConfig = &tls.Config{InsecureSkipVerify: true}
	}
	return c, nil
}

// MySQLConfig is the session's configuration for go-sql-driver/mysql.
func (s Server) MySQLConfig() *mysql.Config {
	c := mysql.NewConfig()
	c.Net, c.Addr, c.User, c.Passwd, c.DBName = "tcp", s.Address(), s.User, string(s.Password), s.Database
	c.Timeout = Timeout
	if s.TLS {
		c.TLS = &tls.Config{InsecureSkipVerify: true}
	}
	return c
}

// Session answers with rows as text. Not for use by more than one goroutine at a time.
type Session struct {
	pg *pgx.Conn
	my *sql.DB
}

// Open begins a session.
func Open(ctx context.Context, s Server) (*Session, error) {
	if s.Engine == study.Postgres {
		c, err := s.PgxConfig()
		if err != nil {
			return nil, err
		}
		c.DefaultQueryExecMode = pgx.QueryExecModeSimpleProtocol
		conn, err := pgx.ConnectConfig(ctx, c)
		if err != nil {
			return nil, fmt.Errorf("open a session of %s: %w", s.Address(), err)
		}
		return &Session{pg: conn}, nil
	}
	connector, err := mysql.NewConnector(s.MySQLConfig())
	if err != nil {
		return nil, err
	}
	db := sql.OpenDB(connector)
	db.SetMaxOpenConns(1)
	if err := db.PingContext(ctx); err != nil {
		db.Close() // it never was open
		return nil, fmt.Errorf("open a session of %s: %w", s.Address(), err)
	}
	return &Session{my: db}, nil
}

// Close ends the session.
func (s *Session) Close() {
	if s.pg != nil {
		ctx, cancel := context.WithTimeout(context.Background(), Timeout)
		defer cancel()
		_ = s.pg.Close(ctx) // the server sees the end of the connection in any case
		return
	}
	_ = s.my.Close() // as above
}

// Exec runs statements one after the other, each in a transaction of its own.
func (s *Session) Exec(ctx context.Context, statements ...string) error {
	for _, text := range statements {
		var err error
		if s.pg != nil {
			_, err = s.pg.Exec(ctx, text)
		} else {
			_, err = s.my.ExecContext(ctx, text)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", Brief(text), err)
		}
	}
	return nil
}

// Rows asks and gives every value as text, NULL as "".
func (s *Session) Rows(ctx context.Context, query string) ([][]string, error) {
	var all [][]string
	var err error
	if s.pg != nil {
		all, err = s.postgresRows(ctx, query)
	} else {
		all, err = s.mysqlRows(ctx, query)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", Brief(query), err)
	}
	return all, nil
}

func (s *Session) postgresRows(ctx context.Context, query string) ([][]string, error) {
	rows, err := s.pg.Query(ctx, query)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var all [][]string
	for rows.Next() {
		raw := rows.RawValues() // text, by the simple protocol
		row := make([]string, len(raw))
		for n, v := range raw {
			row[n] = string(v)
		}
		all = append(all, row)
	}
	return all, rows.Err()
}

func (s *Session) mysqlRows(ctx context.Context, query string) ([][]string, error) {
	rows, err := s.my.QueryContext(ctx, query)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	names, err := rows.Columns()
	if err != nil {
		return nil, err
	}
	var all [][]string
	for rows.Next() {
		values := make([]sql.NullString, len(names))
		into := make([]any, len(names))
		for n := range values {
			into[n] = &values[n]
		}
		if err := rows.Scan(into...); err != nil {
			return nil, err
		}
		row := make([]string, len(names))
		for n, v := range values {
			row[n] = v.String
		}
		all = append(all, row)
	}
	return all, rows.Err()
}

// Brief is a statement short enough for an error.
func Brief(text string) string {
	const most = 60
	if len(text) > most {
		return text[:most] + "…"
	}
	return text
}
