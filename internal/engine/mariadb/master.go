package mariadb

import (
	"context"
	"fmt"
	"strings"

	"kurabe/internal/engine"
	"kurabe/internal/engine/mariadb/door"
	"kurabe/internal/engine/mariadb/guard"
	"kurabe/internal/engine/mariadb/replica"
	"kurabe/internal/engine/mariadb/sqltext"
)

// masterRights are RDS's for the master user of MariaDB. SUPER, FILE and SHUTDOWN
// are not among them, nor what replication and the binary log are administered
// with, nor SET USER, nor CONNECTION ADMIN, which ends other sessions but also
// changes settings: that is what mysql.rds_kill is for. DELETE HISTORY is part of
// ALL on a schema and so what GRANT ALL needs.
var masterRights = strings.Join([]string{
	"SELECT", "INSERT", "UPDATE", "DELETE", "CREATE", "DROP", "RELOAD", "PROCESS", "REFERENCES", "INDEX", "ALTER",
	"SHOW DATABASES", "CREATE TEMPORARY TABLES", "LOCK TABLES", "EXECUTE", "REPLICATION SLAVE", "BINLOG MONITOR",
	"CREATE VIEW", "SHOW VIEW", "CREATE ROUTINE", "ALTER ROUTINE", "CREATE USER", "EVENT", "TRIGGER", "DELETE HISTORY",
	"SLAVE MONITOR",
}, ", ")

// EnsureMaster implements engine.Driver.
func (d *Driver) EnsureMaster(ctx context.Context, i engine.Instance) error {
	if i.Password.Inherited {
		return nil
	}
	err := guard.With(ctx, i, func(a *guard.Session) error {
		statements, err := masterSQL(i)
		if err != nil {
			return err
		}
		if i.DatabaseName != "" {
			statements = append(statements, "CREATE DATABASE IF NOT EXISTS "+sqltext.Name(i.DatabaseName))
		}
		return replica.ExecLogged(ctx, a, i, statements...)
	})
	if err != nil {
		return fmt.Errorf("make master user: %w", err)
	}
	return nil
}

// SetPassword implements engine.Driver. As on RDS it also gives back the rights
// that a master user has taken from itself, and the user if it is gone.
func (d *Driver) SetPassword(ctx context.Context, i engine.Instance) error {
	err := guard.With(ctx, i, func(a *guard.Session) error {
		rows, err := a.Query(ctx, passwordNoteSQL)
		if err != nil || len(rows) == 1 && rows[0][0] == i.Password.Note(i.Instance) {
			return err
		}
		statements, err := masterSQL(i)
		if err != nil {
			return err
		}
		if err := replica.ExecLogged(ctx, a, i, statements...); err != nil {
			return err
		}
		require, err := liftedRequire(ctx, a, i.MasterUsername)
		if err != nil {
			return err
		}
		open := "ALTER USER " + sqltext.Account(i.MasterUsername) + identified(i) + require + lifted
		if err := replica.ExecLogged(ctx, a, i, append([]string{open}, guard.OwnerSQL...)...); err != nil {
			return err
		}
		// The bounds that the server has counted by until now.
		if err := a.Exec(ctx, "FLUSH LOCAL PRIVILEGES"); err != nil {
			return err
		}
		// The note comes last: were it there without the password, nobody would set that.
		return replica.ExecLogged(ctx, a, i, notePasswordSQL(i))
	})
	if err != nil {
		return fmt.Errorf("set password: %w", err)
	}
	return nil
}

// lifted is what a master user may have done to itself, taken back.
const lifted = " WITH MAX_QUERIES_PER_HOUR 0 MAX_UPDATES_PER_HOUR 0 MAX_CONNECTIONS_PER_HOUR 0 MAX_USER_CONNECTIONS 0 MAX_STATEMENT_TIME 0" +
	" ACCOUNT UNLOCK PASSWORD EXPIRE DEFAULT"

// liftedRequire takes back the demand for a certificate of the client's, which nobody may have
// any more; that for TLS stays.
func liftedRequire(ctx context.Context, a *guard.Session, master string) (string, error) {
	const anyTLS = "1" // SSL_TYPE_ANY; 2 and 3 want a certificate, 0 nothing
	rows, err := a.Query(ctx, "SELECT IFNULL(JSON_VALUE(Priv, '$.ssl_type'), 0) FROM mysql.global_priv WHERE Host = '%' AND User = "+sqltext.Literal(master))
	if err != nil || len(rows) == 0 || rows[0][0] <= anyTLS {
		return "", err
	}
	return " REQUIRE SSL", nil
}

// NotePassword implements engine.Driver.
func (d *Driver) NotePassword(ctx context.Context, i engine.Instance) error {
	return guard.With(ctx, i, func(a *guard.Session) error { return replica.ExecLogged(ctx, a, i, notePasswordSQL(i)) })
}

// passwordNoteName is the routine whose comment names the newest master password that was set
// in this data (kurabe.Password.Note). It is in the binary log, and guarded, as the marker is.
const passwordNoteName = "rds_master_password"

const passwordNoteSQL = "SELECT comment FROM mysql.proc WHERE db = 'mysql' AND name = '" + passwordNoteName + "' AND type = 'PROCEDURE'"

func notePasswordSQL(i engine.Instance) string {
	return fmt.Sprintf("CREATE OR REPLACE DEFINER=`mariadb.sys`@`localhost` PROCEDURE mysql.%s() SQL SECURITY DEFINER COMMENT %s SELECT 1",
		passwordNoteName, sqltext.Literal(i.Password.Note(i.Instance)))
}

// masterSQL makes the user with its password unless it exists, and its rights.
func masterSQL(i engine.Instance) ([]string, error) {
	if !door.VerifierForm.MatchString(i.Password.Verifier) {
		return nil, fmt.Errorf("the verifier of %s is not one of %s", i.MasterUsername, door.NativePlugin)
	}
	return []string{
		"CREATE USER IF NOT EXISTS " + sqltext.Account(i.MasterUsername) + identified(i),
		"GRANT " + masterRights + " ON *.* TO " + sqltext.Account(i.MasterUsername) + " WITH GRANT OPTION",
	}, nil
}

func identified(i engine.Instance) string {
	return " IDENTIFIED VIA " + door.NativePlugin + " USING " + sqltext.Literal(i.Password.Verifier)
}
