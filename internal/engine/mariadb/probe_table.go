package mariadb

import (
	"context"
	"fmt"

	"kurabe/internal/engine/mariadb/conf"
	"kurabe/internal/engine/mariadb/door"
	"kurabe/internal/engine/mariadb/guard"
	"kurabe/internal/engine/mariadb/sqltext"
	"kurabe/internal/engine/mariadb/systemtables"
)

// probe is one look: a login, and the table that it may write to.
type probe struct {
	name     string // of the login, and what is written
	standing bool   // the instance has ProbeTable
}

// newProbe looks which table the instance has. One whose data is older than the table
// has none, and none can be made in the closed folder of the system schema: the probe
// makes a schema of its own there.
func newProbe(ctx context.Context, a *guard.Session) (probe, error) {
	rows, err := a.Query(ctx, "SELECT 1 FROM information_schema.TABLES WHERE TABLE_SCHEMA = 'mysql' AND TABLE_NAME = '"+conf.ProbeTable+"' AND ENGINE = 'InnoDB'")
	if err != nil {
		return probe{}, fmt.Errorf("look for mysql.%s: %w", conf.ProbeTable, err)
	}
	return probe{name: conf.ProbePrefix + door.RandomHex(), standing: len(rows) == 1}, nil
}

// elsewhere is a look that needs no table of the system schema.
func (p probe) elsewhere() probe { return probe{name: conf.ProbePrefix + door.RandomHex()} }

// table is its name in a statement.
func (p probe) table() string {
	if p.standing {
		return "mysql." + conf.ProbeTable
	}
	return sqltext.Name(p.name) + ".probe"
}

// before is what must be made before the login.
func (p probe) before() []string {
	if p.standing {
		return nil
	}
	return []string{"CREATE DATABASE " + sqltext.Name(p.name)}
}

// after is what must be taken away.
func (p probe) after() []string {
	if p.standing {
		return []string{dropUser(p.name)}
	}
	return []string{dropUser(p.name), dropSchema(p.name)}
}

func (p probe) grant() string {
	if p.standing {
		return "GRANT SELECT, INSERT, DELETE ON " + p.table() + " TO " + sqltext.Account(p.name)
	}
	return "GRANT CREATE, SELECT, INSERT, DELETE ON " + sqltext.Name(sqltext.LikeEscapes.Replace(p.name)) + ".* TO " + sqltext.Account(p.name)
}

// write commits a row.
func (p probe) write() []string {
	row := "REPLACE INTO " + p.table() + " (id, word) VALUES (1, " + sqltext.Literal(p.name) + ")"
	if p.standing {
		return []string{row}
	}
	return []string{"CREATE TABLE " + p.table() + systemtables.ProbeColumns, row}
}

func (p probe) read() string { return "SELECT word FROM " + p.table() + " WHERE id = 1" }
