package guard

import (
	"context"
	"fmt"

	"kurabe/internal/engine/mariadb/sqltext"
)

// Upkeep makes true of a server what an earlier template or service left
// otherwise: the procedures are there and the service's, and nobody holds a
// right that the master user has no longer. Nothing is written when it is true.
//
// A server that still runs an earlier plugin is left as it is until it starts
// anew: the procedures would have nobody to ask.
func Upkeep(ctx context.Context, a *Session) error {
	const able = `SHOW GLOBAL VARIABLES LIKE 'kurabe\_guard\_buffer\_pool'`
	if rows, err := a.Query(ctx, able); err != nil || len(rows) == 0 {
		return err
	}
	if err := keepProcedures(ctx, a); err != nil {
		return fmt.Errorf("keep the procedures: %w", err)
	}
	if err := takeBack(ctx, a); err != nil {
		return fmt.Errorf("take back a right: %w", err)
	}
	return nil
}

func keepProcedures(ctx context.Context, a *Session) error {
	rows, err := a.Query(ctx, `SELECT name, CONCAT_WS('|', definer, security_type, param_list, body) FROM mysql.proc
 WHERE db = 'mysql' AND type = 'PROCEDURE' AND name LIKE 'rds\\_%'`)
	if err != nil {
		return err
	}
	there := map[string]string{}
	for _, row := range rows {
		there[row[0]] = row[1]
	}
	var statements []string
	for _, p := range Procedures {
		if there[p.name] != "mariadb.sys@localhost|DEFINER|"+p.parameters+"|"+p.body() {
			statements = append(statements, p.SQL())
		}
	}
	if len(statements) == 0 {
		return nil
	}
	return a.ExecAll(ctx, append(statements, OwnerSQL...)...)
}

// ConnectionAdmin is the bit of the right in mysql.global_priv.
const ConnectionAdmin = 1 << 32

// takeBack revokes CONNECTION ADMIN from the accounts and roles that have it.
// Sessions that are open keep it to their end.
func takeBack(ctx context.Context, a *Session) error {
	rows, err := a.Query(ctx, fmt.Sprintf("SELECT User, Host, JSON_VALUE(Priv, '$.is_role') FROM mysql.global_priv WHERE JSON_VALUE(Priv, '$.access') & %d <> 0", uint64(ConnectionAdmin)))
	if err != nil {
		return err
	}
	for _, row := range rows {
		if err := a.Exec(ctx, "REVOKE CONNECTION ADMIN ON *.* FROM "+holder(row[0], row[1], row[2] != "")); err != nil {
			return err
		}
	}
	return nil
}

// holder names an account or a role. PUBLIC is a word of the language, and no
// role's name.
func holder(user, host string, role bool) string {
	switch {
	case host == "" && user == "PUBLIC":
		return user
	case role:
		return sqltext.Name(user)
	}
	return sqltext.Literal(user) + "@" + sqltext.Literal(host)
}
