package mariadb

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"os"
	"regexp"
	"strconv"
	"time"

	"github.com/go-sql-driver/mysql"

	"kurabe/internal/engine"
	"kurabe/internal/logkey"
)

// probePrefix begins the names of the probe's users and schemas. The rest is
// random, so that no name of a user is ever taken for one.
const probePrefix = "rdsprobe_"

var probeForm = regexp.MustCompile(`^` + probePrefix + `[0-9a-f]{32}$`)

// probeCleanup bounds taking the user away when the caller's time is up.
const probeCleanup = 5 * time.Second

// Errors with which a server that is well turns clients away: as many are logged
// in as the group allows, or its init_connect fails for the login.
const (
	tooManyConnections = 1040
	abortedConnection  = 1184
)

// Probe implements engine.Driver: what a client does, all of it. One that our
// death leaves behind is taken away by the next. Only the agent probes, one at a
// time.
//
// The login has no right to come in where other clients may not: it could be
// taken over while it lives, and the right would come with it. A server that
// answers on its endpoint that it turns clients away, for what its group says,
// is up; that it writes, a session of the service's own then shows.
func (d *Driver) Probe(ctx context.Context, i engine.Instance, caFile string) (err error) {
	tlsConfig, err := tlsFor(i, caFile)
	if err != nil {
		return fmt.Errorf("probe: %w", err)
	}
	a, err := openAdmin(ctx, i)
	if err != nil {
		return fmt.Errorf("probe: %w", err)
	}
	defer a.close()
	if err := dropLeftProbes(ctx, a); err != nil {
		return fmt.Errorf("probe: clean up after an earlier one: %w", err)
	}
	name, password := probePrefix+randomHex(), logkey.Secret(randomHex())
	defer func() {
		late, cancel := context.WithTimeout(context.WithoutCancel(ctx), probeCleanup)
		defer cancel()
		err = errors.Join(err, dropProbe(late, a, name))
	}()
	if err := makeProbe(ctx, a, name, password); err != nil {
		return fmt.Errorf("probe: make a login: %w", err)
	}
	config := mysql.NewConfig()
	config.User, config.Passwd, config.DBName = name, password.Reveal(), name
	config.Net, config.Addr, config.TLS = "tcp", endpoint(i), tlsConfig
	config.Logger = silent{}
	err = write(ctx, config)
	if turnedAway(err) {
		err = writeInside(ctx, a, name)
	}
	if err != nil {
		return fmt.Errorf("probe: %w", err)
	}
	return nil
}

func turnedAway(err error) bool {
	var answer *mysql.MySQLError
	return errors.As(err, &answer) && (answer.Number == tooManyConnections || answer.Number == abortedConnection)
}

// silent takes what the client library would print to standard error.
type silent struct{}

// Print implements mysql.Logger.
func (silent) Print(...any) {}

func endpoint(i engine.Instance) string { return net.JoinHostPort(i.Address, strconv.Itoa(i.Port)) }

func tlsFor(i engine.Instance, caFile string) (*tls.Config, error) {
	text, err := os.ReadFile(caFile)
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("%s holds no certificate", caFile)
	}
	return &tls.Config{RootCAs: roots, ServerName: i.Address, MinVersion: tls.VersionTLS12}, nil
}

func randomHex() string {
	var b [16]byte
	rand.Read(b[:]) // never fails since Go 1.24
	return hex.EncodeToString(b[:])
}

func makeProbe(ctx context.Context, a *admin, name string, password logkey.Secret) error {
	verifier, err := Verifier(password)
	if err != nil {
		return err
	}
	return a.execAll(ctx,
		"CREATE DATABASE "+quoteName(name),
		"CREATE USER "+account(name)+" IDENTIFIED VIA "+nativePlugin+" USING "+quoteLiteral(verifier)+" REQUIRE SSL",
		"GRANT CREATE, INSERT, SELECT ON "+quoteName(likeEscapes.Replace(name))+".* TO "+account(name),
	)
}

func dropProbe(ctx context.Context, a *admin, name string) error {
	return a.execAll(ctx, "DROP USER IF EXISTS "+account(name), "DROP DATABASE IF EXISTS "+quoteName(name))
}

// dropLeftProbes looks for the forms of our own names only.
func dropLeftProbes(ctx context.Context, a *admin) error {
	pattern := quoteLiteral(likeEscapes.Replace(probePrefix) + "%")
	rows, err := a.query(ctx, "SELECT User FROM mysql.global_priv WHERE User LIKE "+pattern+
		" UNION SELECT SCHEMA_NAME FROM information_schema.SCHEMATA WHERE SCHEMA_NAME LIKE "+pattern)
	if err != nil {
		return err
	}
	for _, row := range rows {
		if !probeForm.MatchString(row[0]) {
			continue
		}
		if err := dropProbe(ctx, a, row[0]); err != nil {
			return err
		}
	}
	return nil
}

// probeSQL makes a table and commits a row.
var probeSQL = []string{"CREATE TABLE probe (n INT PRIMARY KEY) ENGINE=InnoDB", "INSERT INTO probe VALUES (1)"}

// writeInside does what write does, in a session of the service's own.
func writeInside(ctx context.Context, a *admin, schema string) error {
	if err := a.execAll(ctx, append([]string{"USE " + quoteName(schema)}, probeSQL...)...); err != nil {
		return fmt.Errorf("write: %w", err)
	}
	rows, err := a.query(ctx, "SELECT n FROM probe")
	if err == nil && len(rows) != 1 {
		err = fmt.Errorf("%d rows where one was written", len(rows))
	}
	if err != nil {
		return fmt.Errorf("read back: %w", err)
	}
	return nil
}

// write logs in, writes what probeSQL says and reads it back.
func write(ctx context.Context, config *mysql.Config) error {
	connector, err := mysql.NewConnector(config)
	if err != nil {
		return err
	}
	db := sql.OpenDB(connector)
	defer db.Close()
	conn, err := db.Conn(ctx)
	if err != nil {
		return fmt.Errorf("log in: %w", err)
	}
	defer conn.Close()
	for _, statement := range probeSQL {
		if _, err := conn.ExecContext(ctx, statement); err != nil {
			return fmt.Errorf("write: %w", err)
		}
	}
	var n int
	if err := conn.QueryRowContext(ctx, "SELECT n FROM probe").Scan(&n); err != nil {
		return fmt.Errorf("read back: %w", err)
	}
	return nil
}
