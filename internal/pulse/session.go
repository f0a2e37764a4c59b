package pulse

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"database/sql"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5"

	"kurabe/internal/ownconn"
)

// Login is how a client comes in.
type Login struct {
	Engine, Address, User, Password, Database string
	Port                                      int
	CAFile                                    string // verifies the server; "": no TLS
	// Hosts, HOST:PORT each, are tried in this order instead of Address and Port, until one
	// takes writes: the list that PostgreSQL's own client library knows, without TLS.
	Hosts []string
}

// String keeps the password out of what is printed.
func (l Login) String() string { return l.User + "@" + l.Host() + "/" + l.Database }

// GoString does so for %#v.
func (l Login) GoString() string { return l.String() }

// Session is one session of a client, of either engine.
type Session interface {
	Exec(ctx context.Context, statement string) error
	// Rows returns the first column, as text.
	Rows(ctx context.Context, statement string) ([]string, error)
	Close()
}

// LoginTime bounds a login.
const LoginTime = 5 * time.Second

// Open opens a session.
func Open(ctx context.Context, l Login) (Session, error) {
	ctx, cancel := context.WithTimeout(ctx, LoginTime)
	defer cancel()
	config, err := l.tls()
	if err != nil {
		return nil, err
	}
	if l.Engine == "mariadb" {
		return openMariaDB(ctx, l, config)
	}
	c, err := pgx.ParseConfig(l.url())
	if err != nil {
		return nil, errors.New("the login is not well formed") // the text would hold the password
	}
	c.TLSConfig, c.DialFunc = config, ownconn.Dial
	conn, err := pgx.ConnectConfig(ctx, c)
	if err != nil {
		return nil, err
	}
	return postgresSession{conn}, nil
}

// hostTimeout bounds the try of one host of several, in seconds. It is the least that
// libpq has, so what users have who want to be away from a host that hangs.
const hostTimeout = 2

// url is the login to PostgreSQL, with the password in it.
func (l Login) url() string {
	u := url.URL{Scheme: "postgres", User: url.UserPassword(l.User, l.Password), Host: l.Host(), Path: "/" + l.Database, RawQuery: "sslmode=disable"}
	if len(l.Hosts) > 0 {
		u.Host = strings.Join(l.Hosts, ",")
		u.RawQuery += "&target_session_attrs=read-write&connect_timeout=" + strconv.Itoa(hostTimeout)
	}
	return u.String()
}

// Host is HOST:PORT.
func (l Login) Host() string { return net.JoinHostPort(l.Address, strconv.Itoa(l.Port)) }

func (l Login) tls() (*tls.Config, error) {
	if l.CAFile == "" {
		return nil, nil
	}
	authority, err := os.ReadFile(l.CAFile)
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(authority) {
		return nil, errors.New("no certificate in " + l.CAFile)
	}
	return &tls.Config{RootCAs: roots, ServerName: l.Address}, nil
}

type postgresSession struct{ *pgx.Conn }

func (s postgresSession) Exec(ctx context.Context, statement string) error {
	_, err := s.Conn.Exec(ctx, statement, pgx.QueryExecModeSimpleProtocol)
	return err
}

func (s postgresSession) Rows(ctx context.Context, statement string) ([]string, error) {
	rows, err := s.Conn.Query(ctx, statement)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var list []string
	for rows.Next() {
		values, err := rows.Values()
		if err != nil {
			return nil, err
		}
		list = append(list, fmt.Sprint(values[0]))
	}
	return list, rows.Err()
}

func (s postgresSession) Close() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	s.Conn.Close(ctx) // an error leaves nothing to do
}

type mariaDBSession struct {
	db   *sql.DB
	conn *sql.Conn
}

func openMariaDB(ctx context.Context, l Login, config *tls.Config) (Session, error) {
	c := mysql.NewConfig()
	c.User, c.Passwd, c.Net, c.Addr, c.DBName, c.TLS = l.User, l.Password, "tcp", l.Host(), l.Database, config
	c.Timeout, c.Logger, c.DialFunc = LoginTime, &mysql.NopLogger{}, ownconn.Dial // the caller hears of it
	connector, err := mysql.NewConnector(c)
	if err != nil {
		return nil, err
	}
	db := sql.OpenDB(connector)
	conn, err := db.Conn(ctx)
	if err != nil {
		db.Close()
		return nil, err
	}
	return mariaDBSession{db, conn}, nil
}

func (s mariaDBSession) Exec(ctx context.Context, statement string) error {
	_, err := s.conn.ExecContext(ctx, statement)
	return err
}

func (s mariaDBSession) Rows(ctx context.Context, statement string) ([]string, error) {
	rows, err := s.conn.QueryContext(ctx, statement)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		return nil, err
	}
	var list []string
	for rows.Next() {
		values := make([]any, len(columns))
		for n := range values {
			values[n] = &sql.NullString{}
		}
		if err := rows.Scan(values...); err != nil {
			return nil, err
		}
		list = append(list, values[0].(*sql.NullString).String)
	}
	return list, rows.Err()
}

func (s mariaDBSession) Close() {
	s.conn.Close() // an error leaves nothing to do
	s.db.Close()
}
