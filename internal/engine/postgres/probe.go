package postgres

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"kurabe/internal/engine"
	"kurabe/internal/logkey"
	"kurabe/internal/wire/pg/scram"
)

const (
	probeRolePrefix = "rdsprobe_"
	probeTable      = probeSchema + ".probe"
	// probeLife ends a login that our death left behind, whatever else happens.
	probeLife = 10 * time.Minute
	// probeCleanup bounds taking the role away when the caller's time is up.
	probeCleanup = 5 * time.Second
)

// probeLogin is a throw-away login. The password exists in this process only.
type probeLogin struct {
	role     string
	Password logkey.Secret
}

// Probe implements engine.Driver: what a client does, all of it. The role is
// noted in the table in the transaction that makes it, so one that our death
// leaves behind is known to the next probe, and no role of a user is ever taken
// for one. Only the agent probes, one at a time.
func (d *Driver) Probe(ctx context.Context, i engine.Instance, caFile string) (err error) {
	if reads(i) {
		return d.probeRead(ctx, i, caFile)
	}
	tlsConfig, err := tlsFor(i, caFile)
	if err != nil {
		return fmt.Errorf("probe: %w", err)
	}
	admin, err := d.adminConn(ctx, i)
	if err != nil {
		return fmt.Errorf("probe: %w", err)
	}
	defer closeConn(ctx, admin)
	if err := dropLeftProbes(ctx, admin); err != nil {
		return fmt.Errorf("probe: clean up after an earlier one: %w", err)
	}
	login := newProbeLogin()
	if err := makeProbe(ctx, admin, i, login); err != nil {
		return fmt.Errorf("probe: make a login: %w", err)
	}
	defer func() {
		late, cancel := context.WithTimeout(context.WithoutCancel(ctx), probeCleanup)
		defer cancel()
		err = errors.Join(err, dropProbe(late, admin, login.role))
	}()
	config, err := sessionConfig(i.Address, i.Port, login.role)
	if err != nil {
		return fmt.Errorf("probe: %w", err)
	}
	config.Password, config.TLSConfig = login.Password.Reveal(), tlsConfig
	err = writeAsClient(ctx, i, config)
	if turnedAway(err) {
		// Clients have all the places that are theirs: it answers at its endpoint, and that it
		// writes, a session of the service's own shows.
		err = writeInside(ctx, admin, login.role)
	}
	if err != nil {
		return fmt.Errorf("probe %s: %w", endpoint(i), err)
	}
	return nil
}

func newProbeLogin() probeLogin {
	var name [8]byte
	var password [24]byte
	rand.Read(name[:]) // never fails since Go 1.24
	rand.Read(password[:])
	return probeLogin{
		role:     probeRolePrefix + hex.EncodeToString(name[:]),
		Password: logkey.Secret(base64.RawURLEncoding.EncodeToString(password[:])),
	}
}

func makeProbe(ctx context.Context, admin *pgx.Conn, i engine.Instance, login probeLogin) error {
	verifier, err := scram.Verifier(login.Password)
	if err != nil {
		return err
	}
	return inTransaction(ctx, admin, []string{
		fmt.Sprintf("CREATE ROLE %s LOGIN NOINHERIT CONNECTION LIMIT 1 PASSWORD %s VALID UNTIL %s", login.role,
			quoteLiteral(verifier), quoteLiteral(time.Now().Add(probeLife).UTC().Format(time.RFC3339))),
		fmt.Sprintf("GRANT CONNECT ON DATABASE %s TO %s", adminDatabase, login.role),
		fmt.Sprintf("GRANT USAGE ON SCHEMA %s TO %s", probeSchema, login.role),
		fmt.Sprintf("GRANT SELECT (role), UPDATE (wrote_at) ON %s TO %s", probeTable, login.role),
		fmt.Sprintf("INSERT INTO %s (role) VALUES (%s)", probeTable, quoteLiteral(login.role)),
	})
}

// writeAsClient logs in over the endpoint and has a write acknowledged.
func writeAsClient(ctx context.Context, i engine.Instance, config *pgx.ConnConfig) error {
	conn, err := enter(ctx, i, config, asClient)
	if err != nil {
		return fmt.Errorf("log in: %w", err)
	}
	defer closeConn(ctx, conn)
	tag, err := conn.Exec(ctx, "UPDATE "+probeTable+" SET wrote_at = pg_catalog.clock_timestamp() WHERE role = current_user")
	if err != nil {
		return fmt.Errorf("write: %w", err)
	}
	if tag.RowsAffected() != 1 {
		return errors.New("write: the row is missing")
	}
	return nil
}

// tooManyConnections is the SQLSTATE with which a server that is well turns clients away.
const tooManyConnections = "53300"

func turnedAway(err error) bool {
	var answer *pgconn.PgError
	return errors.As(err, &answer) && answer.Code == tooManyConnections
}

// writeInside does what writeAsClient does, in a session of the service's own.
func writeInside(ctx context.Context, admin *pgx.Conn, role string) error {
	tag, err := admin.Exec(ctx, "UPDATE "+probeTable+" SET wrote_at = pg_catalog.clock_timestamp() WHERE role = $1", role)
	if err == nil && tag.RowsAffected() != 1 {
		err = errors.New("the row is missing")
	}
	if err != nil {
		return fmt.Errorf("write: %w", err)
	}
	return nil
}

// dropProbe may meet a role that is gone, or one that a user with CREATEROLE has
// meanwhile granted something in another database; then it keeps no way in.
func dropProbe(ctx context.Context, admin *pgx.Conn, role string) error {
	found, err := exists(ctx, admin, "SELECT FROM pg_catalog.pg_roles WHERE rolname = $1", role)
	if err != nil {
		return fmt.Errorf("drop probe login: %w", err)
	}
	forget := fmt.Sprintf("DELETE FROM %s WHERE role = %s", probeTable, quoteLiteral(role))
	if !found {
		_, err = admin.Exec(ctx, forget)
		return err
	}
	name := quoteName(role)
	dropErr := inTransaction(ctx, admin, []string{"DROP OWNED BY " + name, "DROP ROLE " + name, forget})
	if dropErr == nil {
		return nil
	}
	err = inTransaction(ctx, admin, []string{"ALTER ROLE " + name + " NOLOGIN PASSWORD NULL", "DROP OWNED BY " + name, forget})
	if err != nil {
		return fmt.Errorf("drop probe login: %w", errors.Join(dropErr, err))
	}
	return nil
}

func dropLeftProbes(ctx context.Context, admin *pgx.Conn) error {
	rows, err := admin.Query(ctx, "SELECT role::text FROM "+probeTable)
	if err != nil {
		return err
	}
	roles, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return err
	}
	for _, role := range roles {
		// A probe's role can write into this table; only our own names count.
		if !strings.HasPrefix(role, probeRolePrefix) {
			continue
		}
		if err := dropProbe(ctx, admin, role); err != nil {
			return err
		}
	}
	return nil
}

// inTransaction does all or nothing.
func inTransaction(ctx context.Context, conn *pgx.Conn, statements []string) error {
	return pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error { return execAll(ctx, tx.Conn(), statements) })
}
