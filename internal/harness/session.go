package harness

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
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5"
)

// Login is how a client comes in.
type Login struct {
	Engine, Address, User, Password, Database string
	Port                                      int
	CAFile                                    string // verifies the server; "": no TLS
}

// Session is one session of a client, of either engine.
type Session interface {
	Exec(ctx context.Context, statement string) error
	// Rows returns the first column, as text.
	Rows(ctx context.Context, statement string) ([]string, error)
	Close()
}

// Login is the master user's, over TLS, by the endpoint that the API advertises.
func (i *Instance) Login(t testing.TB) Login {
	t.Helper()
	d := i.Describe(t)
	if d.Endpoint == nil {
		t.Fatalf("%s has no endpoint; it is %s", i.Name, aws.ToString(d.DBInstanceStatus))
	}
	return Login{
		Engine: i.Engine, Address: aws.ToString(d.Endpoint.Address), Port: int(aws.ToInt32(d.Endpoint.Port)),
		User: i.User, Password: i.Password, Database: i.Database, CAFile: filepath.Join(i.Service.Data, "ca.pem"),
	}
}

// Open opens a session as the master user; it ends with the test.
func (i *Instance) Open(t testing.TB) Session {
	t.Helper()
	s, err := Open(t.Context(), i.Login(t))
	if err != nil {
		t.Fatalf("log in to %s: %v", i.Name, err)
	}
	t.Cleanup(s.Close)
	return s
}

// Query runs one statement in a session of its own and returns its first value.
func (i *Instance) Query(t testing.TB, statement string) string {
	t.Helper()
	s, err := Open(t.Context(), i.Login(t))
	if err != nil {
		t.Fatalf("log in to %s: %v", i.Name, err)
	}
	defer s.Close()
	rows, err := s.Rows(t.Context(), statement)
	if err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
	if len(rows) == 0 {
		return ""
	}
	return rows[0]
}

// BackendSQL asks a session which backend serves it.
func BackendSQL(engine string) string {
	if engine == "mariadb" {
		return "SELECT connection_id()"
	}
	return "SELECT pg_backend_pid()"
}

// openTime bounds a login.
const openTime = 5 * time.Second

// Open opens a session.
func Open(ctx context.Context, l Login) (Session, error) {
	ctx, cancel := context.WithTimeout(ctx, openTime)
	defer cancel()
	config, err := l.tls()
	if err != nil {
		return nil, err
	}
	if l.Engine == "mariadb" {
		return openMariaDB(ctx, l, config)
	}
	u := url.URL{Scheme: "postgres", User: url.UserPassword(l.User, l.Password), Host: l.host(), Path: "/" + l.Database, RawQuery: "sslmode=disable"}
	c, err := pgx.ParseConfig(u.String())
	if err != nil {
		return nil, errors.New("the login is not well formed") // the text would hold the password
	}
	c.TLSConfig = config
	conn, err := pgx.ConnectConfig(ctx, c)
	if err != nil {
		return nil, err
	}
	return postgresSession{conn}, nil
}

func (l Login) host() string { return net.JoinHostPort(l.Address, strconv.Itoa(l.Port)) }

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
	c.User, c.Passwd, c.Net, c.Addr, c.DBName, c.TLS = l.User, l.Password, "tcp", l.host(), l.Database, config
	c.Timeout = openTime
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
