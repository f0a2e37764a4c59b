package postgres

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"kurabe/internal/engine"
	"kurabe/internal/proc"
	"kurabe/internal/volume"
)

const (
	// heapAllIndexedBytesMax: up to this size of the data each row is also looked for
	// in the indexes, which reads every table once more for each of them.
	heapAllIndexedBytesMax = 4 << 30
	// amcheckMajorMin is the first version that can check tables.
	amcheckMajorMin = 14
	// Bounds of what is reported: the first damage says enough.
	problemsMax     = 50
	problemBytesMax = 500
)

// Check implements engine.Logger. The tables and indexes are checked by the running
// server (amcheck), then every page by its checksum (pg_checksums).
func (d *Driver) Check(ctx context.Context, i engine.Instance, dataDir string, r engine.CheckRequest) (engine.Checked, error) {
	c := &checking{}
	err := c.run(ctx, d, i, dataDir, r)
	// What could not be done because of damage is part of the finding, not a failure
	// of ours; what has another cause is one.
	if said := (*recoveryError)(nil); errors.As(err, &said) && ctx.Err() == nil {
		c.add(said.words)
		err = nil
	}
	if err != nil {
		return engine.Checked{}, fmt.Errorf("check: %w", err)
	}
	if len(c.problems) == 0 && c.marker.Before(r.Marker) {
		c.add(fmt.Sprintf("the marker row is of %s, and must not be older than %s", spell(c.marker), spell(r.Marker)))
	}
	return engine.Checked{Marker: c.marker, Problems: c.problems, Notes: c.notes()}, nil
}

func spell(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }

// checking is one check under way.
type checking struct {
	marker   time.Time
	problems []string
	alone    []string // indexes of which only the structure was checked
	foreign  []string // indexes that were not checked
}

func (c *checking) add(words string) {
	for text := range strings.Lines(words) {
		text = strings.TrimRight(text, "\n")
		if strings.TrimSpace(text) != "" && len(c.problems) < problemsMax {
			c.problems = append(c.problems, text[:min(len(text), problemBytesMax)])
		}
	}
}

func (c *checking) run(ctx context.Context, d *Driver, i engine.Instance, dataDir string, r engine.CheckRequest) (err error) {
	if majorOf(i.Version) < amcheckMajorMin {
		return fmt.Errorf("PostgreSQL %s is older than %d", i.Version.Version, amcheckMajorMin)
	}
	bytes, err := volume.UsedBytes(dataDir)
	if err != nil {
		return err
	}
	var visited error
	visit := func(ctx context.Context, p *private, conn *pgx.Conn) error {
		// Damage that keeps the tool from its work is found by the checksums, too.
		visited = c.visit(ctx, p, conn, bytes <= heapAllIndexedBytesMax)
		return ctx.Err()
	}
	if r.Replay != nil {
		err = d.replay(ctx, i, dataDir, *r.Replay, visit)
	} else {
		err = d.recoverSnapshot(ctx, i, dataDir, visit)
	}
	if err != nil {
		return err
	}
	p, err := d.openPrivate(ctx, i, dataDir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.close()) }()
	if err := c.sums(ctx, p); err != nil {
		return err
	}
	if visited != nil && len(c.problems) > 0 {
		c.add(visited.Error())
		return nil
	}
	return visited
}

// recoverSnapshot is what a start of an instance on the folder does, for a look.
func (d *Driver) recoverSnapshot(ctx context.Context, i engine.Instance, dataDir string, visit visitor) (err error) {
	p, err := d.openPrivate(ctx, i, dataDir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.close()) }()
	p.copied = true
	return p.run(ctx, nil, visit)
}

// visit asks the running server.
func (c *checking) visit(ctx context.Context, p *private, conn *pgx.Conn, thorough bool) error {
	err := c.tables(ctx, p, conn, thorough)
	var markerErr error
	if c.marker, markerErr = readMarker(ctx, conn); markerErr != nil {
		c.add(markerErr.Error())
	}
	return err
}

// sums runs pg_checksums on the stopped cluster.
func (c *checking) sums(ctx context.Context, p *private) error {
	if !p.control.checksums {
		return nil
	}
	_, err := p.tool(ctx, "pg_checksums", "--check", "--pgdata="+p.Seen(p.data))
	var failed *proc.ToolError
	if errors.As(err, &failed) && failed.Exit.Signal == 0 && strings.Contains(failed.Stderr, "checksum verification failed") {
		c.add(failed.Stderr)
		return nil
	}
	return err
}

// Tables and B-tree indexes are checked by amcheck's C functions, declared anew under names of
// ours: what a tenant has under the names of amcheck's own extension is not looked at, and
// nothing of it has to be there or be taken away.
//
// Nothing that a tenant wrote is evaluated. The structure of an index is checked by the
// comparisons of its operator classes, which a superuser makes alone; one that calls
// functions of anybody else is not checked. To find each row of the table in an index, its
// expressions are evaluated; that is left out where they are not the engine's own, or a function
// that fails or never ends would be taken for damage. amcheck itself would call them as the
// owner of the table, within a security-restricted operation (since 14.3); that is not relied on.

// checkers declares the functions in a schema.
func checkers(schema string) []string {
	return []string{
		"CREATE SCHEMA " + schema,
		"CREATE FUNCTION " + schema + ".index(pg_catalog.regclass, pg_catalog.bool) RETURNS pg_catalog.void LANGUAGE c STRICT AS '$libdir/amcheck', 'bt_index_check'",
		"CREATE FUNCTION " + schema + `.heap(pg_catalog.regclass, on_error_stop pg_catalog.bool, check_toast pg_catalog.bool, skip pg_catalog.text,
			startblock pg_catalog.int8, endblock pg_catalog.int8, OUT blkno pg_catalog.int8, OUT offnum pg_catalog.int4, OUT attnum pg_catalog.int4, OUT msg pg_catalog.text)
			RETURNS SETOF pg_catalog.record LANGUAGE c AS '$libdir/amcheck', 'verify_heapam'`,
	}
}

// The bootstrap superuser is 10, and heap and btree are 2 and 403 (pg_am.dat); languages 12 and
// 13 are internal and C. initdb's own functions, operators and types have no row in pg_depend.
const (
	ownFunction = "f.proowner = 10"
	// foreignClass is an operator class of index x that is not a superuser's, or calls what is not.
	foreignClass = `EXISTS (SELECT FROM pg_catalog.pg_opclass o WHERE o.oid = ANY (x.indclass) AND (o.opcowner <> 10
		OR EXISTS (SELECT FROM pg_catalog.pg_amproc a JOIN pg_catalog.pg_proc f ON f.oid = a.amproc WHERE a.amprocfamily = o.opcfamily AND NOT (` + ownFunction + `))
		OR EXISTS (SELECT FROM pg_catalog.pg_amop a JOIN pg_catalog.pg_operator r ON r.oid = a.amopopr JOIN pg_catalog.pg_proc f ON f.oid = r.oprcode
			WHERE a.amopfamily = o.opcfamily AND NOT (` + ownFunction + `))))`
	// ownCode is a function that looks up no names: compiled, and a superuser's.
	ownCode = ownFunction + " AND f.prolang IN (12, 13)"
	// foreignExpression is an expression or a condition of index x which calls what has a name
	// to look up or is not a superuser's. A type may be one with a check.
	foreignExpression = `(x.indexprs IS NOT NULL OR x.indpred IS NOT NULL) AND EXISTS (SELECT FROM pg_catalog.pg_depend d
		WHERE d.classid = 'pg_catalog.pg_class'::pg_catalog.regclass AND d.objid = c.oid AND CASE d.refclassid
			WHEN 'pg_catalog.pg_proc'::pg_catalog.regclass THEN NOT EXISTS (SELECT FROM pg_catalog.pg_proc f WHERE f.oid = d.refobjid AND ` + ownCode + `)
			WHEN 'pg_catalog.pg_operator'::pg_catalog.regclass THEN NOT EXISTS (
				SELECT FROM pg_catalog.pg_operator r JOIN pg_catalog.pg_proc f ON f.oid = r.oprcode WHERE r.oid = d.refobjid AND ` + ownCode + `)
			WHEN 'pg_catalog.pg_type'::pg_catalog.regclass THEN NOT EXISTS (SELECT FROM pg_catalog.pg_type y WHERE y.oid = d.refobjid AND (y.typtype = 'e' OR y.typtype = 'b' AND y.typowner = 10))
			ELSE false END)`

	relationsSQL = `SELECT c.oid, n.nspname::text, c.relname::text, c.relkind = 'i', COALESCE(` + foreignClass + `, false), COALESCE(` + foreignExpression + `, false)
		FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace LEFT JOIN pg_catalog.pg_index x ON x.indexrelid = c.oid
		WHERE c.relpersistence <> 't' AND (c.relkind IN ('r', 'm', 't') AND c.relam = 2
			OR c.relkind = 'i' AND c.relam = 403 AND x.indisready AND x.indisvalid AND x.indislive)
		ORDER BY c.oid`
)

// relation is a table or an index of one database.
type relation struct {
	oid          uint32
	schema, name string
	index        bool
	// foreignClass and foreignExpression are code in an index that is not to be called.
	foreignClass, foreignExpression bool
}

// tables checks all databases of the running server.
func (c *checking) tables(ctx context.Context, p *private, conn *pgx.Conn, thorough bool) error {
	databases, err := p.bare(ctx, conn)
	if err != nil {
		return c.broken("the databases", err)
	}
	for _, name := range databases {
		if err := c.broken(fmt.Sprintf("database %q", name), c.database(ctx, p, name, thorough)); err != nil {
			return err
		}
	}
	return nil
}

func (c *checking) database(ctx context.Context, p *private, name string, thorough bool) error {
	conn, err := p.databaseConn(ctx, name)
	if err != nil {
		return err
	}
	defer closeConn(ctx, conn)
	var random [8]byte
	rand.Read(random[:]) // never fails since Go 1.24
	room := "kurabe_check_" + hex.EncodeToString(random[:])
	if err := execAll(ctx, conn, checkers(room)); err != nil {
		return err
	}
	rows, err := conn.Query(ctx, relationsSQL)
	if err != nil {
		return err
	}
	relations, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (r relation, err error) {
		err = row.Scan(&r.oid, &r.schema, &r.name, &r.index, &r.foreignClass, &r.foreignExpression)
		return r, err
	})
	if err != nil {
		return err
	}
	for _, r := range relations {
		full := name + "." + r.schema + "." + r.name
		if r.index {
			err = c.index(ctx, conn, room, full, r, thorough)
		} else {
			err = c.heap(ctx, conn, room, full, r)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// index has one checked. An error is that of a server that cannot go on.
func (c *checking) index(ctx context.Context, conn *pgx.Conn, room, full string, r relation, thorough bool) error {
	if r.foreignClass {
		c.foreign = append(c.foreign, full)
		return nil
	}
	if thorough && r.foreignExpression {
		c.alone = append(c.alone, full)
		thorough = false
	}
	_, err := conn.Exec(ctx, fmt.Sprintf("SELECT %s.index('%d'::pg_catalog.regclass, %t)", room, r.oid, thorough))
	return c.damage(fmt.Sprintf("btree index %q", full), err)
}

// heap has one checked, and notes what it is told, as pg_amcheck says it.
func (c *checking) heap(ctx context.Context, conn *pgx.Conn, room, full string, r relation) error {
	rows, err := conn.Query(ctx, fmt.Sprintf("SELECT blkno, offnum, attnum, msg FROM %s.heap('%d'::pg_catalog.regclass, false, true, 'none', NULL, NULL) LIMIT %d", room, r.oid, problemsMax))
	if err != nil {
		return c.damage(fmt.Sprintf("heap table %q", full), err)
	}
	var block *int64
	var offset, attribute *int32
	var message string
	_, err = pgx.ForEachRow(rows, []any{&block, &offset, &attribute, &message}, func() error {
		at := fmt.Sprintf("heap table %q", full)
		if block != nil {
			at += fmt.Sprintf(", block %d", *block)
		}
		if offset != nil {
			at += fmt.Sprintf(", offset %d", *offset)
		}
		if attribute != nil {
			at += fmt.Sprintf(", attribute %d", *attribute)
		}
		c.add(at + ":\n    " + message)
		return nil
	})
	return c.damage(fmt.Sprintf("heap table %q", full), err)
}

// damage notes an answer of the server that is about its data, and returns any other one: of a
// server that has no room or is told to end, and of a session that broke off.
func (c *checking) damage(what string, err error) error {
	const noRoom, intervention = "53", "57"
	answer := answered(err)
	if answer == nil || strings.HasPrefix(answer.Code, noRoom) || strings.HasPrefix(answer.Code, intervention) {
		return err
	}
	text := what + ":\n" + answer.Severity + ": " + answer.Message
	if answer.Detail != "" {
		text += "\nDETAIL: " + answer.Detail
	}
	c.add(text)
	return nil
}

// broken is damage of what comes before the check of a table. Only what the server itself calls
// corrupt, or cannot be, counts: a library that is not installed is no damage.
func (c *checking) broken(what string, err error) error {
	const corrupt = "XX"
	if answer := answered(err); answer == nil || !strings.HasPrefix(answer.Code, corrupt) {
		return err
	}
	return c.damage(what, err)
}

// notes tell what was left out.
func (c *checking) notes() []string {
	var notes []string
	for _, n := range []struct {
		indexes []string
		words   string
	}{
		{c.alone, "not compared with its table, since its expression or condition calls functions that are not the engine's own; its structure was checked"},
		{c.foreign, "not checked, since its operator class calls functions that are not a superuser's"},
	} {
		for k, full := range n.indexes {
			if k == notesMost {
				notes = append(notes, fmt.Sprintf("%d more indexes likewise", len(n.indexes)-k))
				break
			}
			notes = append(notes, fmt.Sprintf("btree index %q: %s", full, n.words))
		}
	}
	return notes
}

// notesMost indexes of a kind are named.
const notesMost = 8

// answered is the server's answer in an error, nil for none: then the session or the server is
// gone.
func answered(err error) *pgconn.PgError {
	var answer *pgconn.PgError
	if errors.As(err, &answer) && answer.Severity != "FATAL" && answer.Severity != "PANIC" {
		return answer
	}
	return nil
}
