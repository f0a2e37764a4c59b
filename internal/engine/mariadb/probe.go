package mariadb

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"regexp"
	"time"

	"github.com/go-sql-driver/mysql"

	"kurabe/internal/engine"
	"kurabe/internal/engine/mariadb/conf"
	"kurabe/internal/engine/mariadb/door"
	"kurabe/internal/engine/mariadb/guard"
	"kurabe/internal/engine/mariadb/role"
	"kurabe/internal/engine/mariadb/sqltext"
	"kurabe/internal/logkey"
)

var probeForm = regexp.MustCompile(`^` + conf.ProbePrefix + `[0-9a-f]{32}$`)

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
	if role.Reads(i) {
		return d.probeRead(ctx, i, caFile)
	}
	tlsConfig, err := tlsFor(i, caFile)
	if err != nil {
		return fmt.Errorf("probe: %w", err)
	}
	a, err := guard.Open(ctx, i)
	if err != nil {
		return fmt.Errorf("probe: %w", err)
	}
	defer a.Close()
	if err := dropLeftProbes(ctx, a); err != nil {
		return fmt.Errorf("probe: clean up after an earlier one: %w", err)
	}
	p, err := newProbe(ctx, a)
	if err == nil {
		err = p.look(ctx, a, i, tlsConfig)
	}
	if answered(err) && p.standing {
		// A user's statements can break a table of the system schema, which is no reason to
		// say that nobody can write.
		err = p.elsewhere().look(ctx, a, i, tlsConfig)
	}
	if err != nil {
		return fmt.Errorf("probe: %w", err)
	}
	return nil
}

// look makes the login, writes with it, and takes it away.
func (p probe) look(ctx context.Context, a *guard.Session, i engine.Instance, tlsConfig *tls.Config) (err error) {
	password := logkey.Secret(door.RandomHex())
	defer func() {
		late, cancel := context.WithTimeout(context.WithoutCancel(ctx), probeCleanup)
		defer cancel()
		err = errors.Join(err, a.ExecAll(late, p.after()...))
	}()
	if err := makeProbe(ctx, a, p, password); err != nil {
		return fmt.Errorf("make a login: %w", err)
	}
	config := door.ClientConfig()
	config.User, config.Passwd = p.name, password.Reveal()
	config.Net, config.Addr, config.TLS = "tcp", door.Endpoint(i), tlsConfig
	err = write(ctx, config, p)
	if turnedAway(err) {
		err = writeInside(ctx, a, p)
	}
	return err
}

// answered says that a server has refused a statement, and not that none was reached.
func answered(err error) bool {
	var client *mysql.MySQLError
	var own *guard.Error
	return errors.As(err, &client) || errors.As(err, &own)
}

func turnedAway(err error) bool {
	var answer *mysql.MySQLError
	return errors.As(err, &answer) && (answer.Number == tooManyConnections || answer.Number == abortedConnection)
}

func tlsFor(i engine.Instance, caFile string) (*tls.Config, error) {
	return door.TLSConfig(i.Address, caFile)
}

// makeProbe makes the login, which may write to its table and nothing else.
func makeProbe(ctx context.Context, a *guard.Session, p probe, password logkey.Secret) error {
	verifier, err := door.Verifier(password)
	if err != nil {
		return err
	}
	login := "CREATE USER " + sqltext.Account(p.name) + " IDENTIFIED VIA " + door.NativePlugin + " USING " + sqltext.Literal(verifier) + " REQUIRE SSL"
	return a.ExecAll(ctx, append(p.before(), login, p.grant())...)
}

// dropUser and dropSchema take away what a probe made. A schema is dropped where one can
// be only: the statement is one that defines.
func dropUser(name string) string   { return "DROP USER IF EXISTS " + sqltext.Account(name) }
func dropSchema(name string) string { return "DROP DATABASE IF EXISTS " + sqltext.Name(name) }

// dropLeftProbes looks for the forms of our own names only.
func dropLeftProbes(ctx context.Context, a *guard.Session) error {
	pattern := sqltext.Literal(sqltext.LikeEscapes.Replace(conf.ProbePrefix) + "%")
	rows, err := a.Query(ctx, "SELECT User, 'user' FROM mysql.global_priv WHERE User LIKE "+pattern+
		" UNION SELECT SCHEMA_NAME, 'schema' FROM information_schema.SCHEMATA WHERE SCHEMA_NAME LIKE "+pattern)
	if err != nil {
		return err
	}
	for _, row := range rows {
		if !probeForm.MatchString(row[0]) {
			continue
		}
		drop := dropUser(row[0])
		if row[1] == "schema" {
			drop = dropSchema(row[0])
		}
		if err := a.Exec(ctx, drop); err != nil {
			return err
		}
	}
	return nil
}

// writeInside does what write does, in a session of the service's own.
func writeInside(ctx context.Context, a *guard.Session, p probe) error {
	if err := a.ExecAll(ctx, p.write()...); err != nil {
		return fmt.Errorf("write: %w", err)
	}
	rows, err := a.Query(ctx, p.read())
	if err == nil && (len(rows) != 1 || rows[0][0] != p.name) {
		err = errors.New("what was written is not there")
	}
	if err != nil {
		return fmt.Errorf("read back: %w", err)
	}
	return nil
}

// write logs in, commits a row and reads it back.
func write(ctx context.Context, config *mysql.Config, p probe) error {
	db, err := door.OpenPool(config)
	if err != nil {
		return err
	}
	defer db.Close()
	conn, err := db.Conn(ctx)
	if err != nil {
		return fmt.Errorf("log in: %w", err)
	}
	defer conn.Close()
	for _, statement := range p.write() {
		if _, err := conn.ExecContext(ctx, statement); err != nil {
			return fmt.Errorf("write: %w", err)
		}
	}
	var word string
	err = conn.QueryRowContext(ctx, p.read()).Scan(&word)
	if err == nil && word != p.name {
		err = errors.New("what was written is not there")
	}
	if err != nil {
		return fmt.Errorf("read back: %w", err)
	}
	return nil
}

// probeRead logs in over the endpoint as a client does, and reads. In a replica no login can
// be made for that: the account by which it comes to its source is in its data, too, and
// comes in by the certificate of this very server.
func (d *Driver) probeRead(ctx context.Context, i engine.Instance, caFile string) error {
	db, err := door.MemberPool(i, caFile, i.Listens(), i.Port)
	if err != nil {
		return fmt.Errorf("probe: %w", err)
	}
	defer db.Close()
	err = db.PingContext(ctx)
	if err == nil {
		_, err = db.ExecContext(ctx, "SELECT 1")
	}
	if turnedAway(err) {
		// It answers at its endpoint; that it can be read, a session of the service's shows.
		err = guard.With(ctx, i, func(a *guard.Session) error { return a.Exec(ctx, "SELECT 1") })
	}
	if err != nil {
		return fmt.Errorf("probe: %w", err)
	}
	return nil
}
