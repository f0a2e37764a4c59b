package drill

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"kurabe/internal/proc"
	"kurabe/internal/pulse"
)

// Schema is where the drill keeps what it writes. The name is the same for all drills, so
// that there is one at a time of a database: two would each take the other's fault for the
// service's.
const Schema = "kurabe_drill"

// table is that of the rows.
const table = Schema + ".row"

// dialect is what engines do not have in common. Of an engine without one there are no
// drills.
type dialect struct {
	// create makes the schema with a comment, all or nothing; table its table.
	create func(comment string) string
	table  string
	// comment reads that of the schema: no row when there is no schema.
	comment string
	drop    string
	// reads asks a server whether it is a reader: "true" of one that is.
	reads string
}

// dialects are the engines that drills are offered of.
var dialects = map[string]dialect{
	"postgres": {
		// Statements that are sent as one text are one transaction.
		create: func(comment string) string {
			return "CREATE SCHEMA " + Schema + "; COMMENT ON SCHEMA " + Schema + " IS '" + strings.ReplaceAll(comment, "'", "''") + "'"
		},
		table:   "CREATE TABLE " + table + " (n bigint)",
		comment: "SELECT coalesce(obj_description(oid, 'pg_namespace'), '') FROM pg_namespace WHERE nspname = '" + Schema + "'",
		drop:    "DROP SCHEMA " + Schema + " CASCADE",
		reads:   "SELECT pg_catalog.pg_is_in_recovery()::text",
	},
	"mariadb": {
		// A database keeps a comment since 10.5. Without the engine's name the table would be
		// of whatever the instance has for its default, which may not be crash-safe.
		create: func(comment string) string {
			return "CREATE DATABASE " + Schema + " COMMENT '" + strings.NewReplacer("'", "''", `\`, `\\`).Replace(comment) + "'"
		},
		table:   "CREATE TABLE " + table + " (n bigint) ENGINE=InnoDB",
		comment: "SELECT schema_comment FROM information_schema.schemata WHERE schema_name = '" + Schema + "'",
		drop:    "DROP DATABASE " + Schema,
		reads:   "SELECT IF(@@GLOBAL.read_only, 'true', 'false')",
	},
}

// Knows says whether drills are offered of an engine.
func Knows(engine string) bool { _, ok := dialects[engine]; return ok }

// Engines are those.
func Engines() []string { return slices.Sorted(maps.Keys(dialects)) }

// ownerMark begins the comment of a schema that is a drill's.
const ownerMark = "kurabe drill "

// owner is the drill that made a schema.
type owner struct {
	PID       int    `json:"pid"`
	StartTime uint64 `json:"start_time"`
	BootID    string `json:"boot_id"`
}

func newOwner() (owner, error) {
	self, err := proc.Self()
	if err != nil {
		return owner{}, err
	}
	boot, err := proc.BootID()
	return owner{self.PID, self.StartTime, boot}, err
}

func (o owner) comment() string {
	raw, _ := json.Marshal(o) // numbers and a word
	return ownerMark + string(raw)
}

// ownerOf reads a comment; ours is false for a schema that no drill made.
func ownerOf(comment string) (o owner, ours bool) {
	text, marked := strings.CutPrefix(comment, ownerMark)
	return o, marked && json.Unmarshal([]byte(text), &o) == nil
}

// runs says whether that drill still does. One of another boot, or of another machine, has
// the database's machine no more.
func (o owner) runs() (bool, error) {
	boot, err := proc.BootID()
	if err != nil || o.BootID != boot {
		return false, err
	}
	_, found, err := proc.Adopt(o.PID, o.StartTime)
	return found, err
}

// furnish makes schema and table, and first removes those of a drill that died. It says if
// it did.
func (d dialect) furnish(ctx context.Context, l pulse.Login) (removed bool, failure error) {
	s, err := pulse.Open(ctx, l)
	if err != nil {
		return false, fmt.Errorf("log in as %s: %w", l.User, err)
	}
	defer s.Close()
	have, err := s.Rows(ctx, d.comment)
	if err != nil {
		return false, err
	}
	if len(have) > 0 {
		if err := mayRemove(have[0]); err != nil {
			return false, err
		}
		if err := s.Exec(ctx, d.drop); err != nil {
			return false, fmt.Errorf("drop the schema %s of a drill that died: %w", Schema, err)
		}
		removed = true
	}
	o, err := newOwner()
	if err != nil {
		return removed, err
	}
	if err := s.Exec(ctx, d.create(o.comment())); err != nil {
		return removed, fmt.Errorf("make the schema %s: %w", Schema, err)
	}
	if err := s.Exec(ctx, d.table); err != nil {
		return removed, fmt.Errorf("make the table %s: %w", table, err)
	}
	return removed, nil
}

// mayRemove refuses what is not left by a drill that died.
func mayRemove(comment string) error {
	o, ours := ownerOf(comment)
	if !ours {
		return fmt.Errorf("there is a schema %s that no drill made; rename it, or name another database with --database", Schema)
	}
	runs, err := o.runs()
	if err != nil {
		return err
	}
	if runs {
		return fmt.Errorf("another drill of it runs, as process %d", o.PID)
	}
	return nil
}

// clear drops the schema, if it is there.
func (d dialect) clear(ctx context.Context, l pulse.Login) error {
	s, err := pulse.Open(ctx, l)
	if err != nil {
		return err
	}
	defer s.Close()
	have, err := s.Rows(ctx, d.comment)
	if err != nil || len(have) == 0 {
		return err
	}
	return s.Exec(ctx, d.drop)
}
