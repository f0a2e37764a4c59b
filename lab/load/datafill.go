package load

import (
	"context"
	"fmt"
	"io"

	"github.com/jackc/pgx/v5/pgconn"

	"kurabe/lab/dial"
	"kurabe/lab/study"
)

const (
	// copyChunk is how much is made before it is sent.
	copyChunk = 64 << 10
	// insertMaxBytes of one INSERT stays below the smallest max_allowed_packet in use,
	// MySQL 5.6's 4 MiB, and insertsPerCommit of them below what the redo log holds.
	insertMaxBytes   = 1 << 20
	insertsPerCommit = 16
)

// ensureTables makes the tables unless all are there with the right number of rows.
func ensureTables(ctx context.Context, s dial.Server, tables []table) error {
	if len(tables) == 0 {
		return nil
	}
	session, err := dial.Open(ctx, s)
	if err != nil {
		return err
	}
	defer session.Close()
	there, err := clearTables(ctx, session, s, tables)
	if err != nil || there {
		return err
	}
	return makeTables(ctx, s, session, tables)
}

func makeTables(ctx context.Context, s dial.Server, session *dial.Session, tables []table) error {
	for _, t := range tables {
		if err := session.Exec(ctx, t.createMarked(s)); err != nil {
			return err
		}
		if t.rows > 0 {
			fill := fillMySQL
			if s.Engine == study.Postgres {
				fill = fillPostgres
			}
			if err := fill(ctx, s, session, t); err != nil {
				return fmt.Errorf("fill %s: %w", t.name, err)
			}
		}
		if err := session.Exec(ctx, t.finish(s.Engine)...); err != nil {
			return err
		}
	}
	return nil
}

// copyReader makes the rows of a COPY as they are read.
type copyReader struct {
	table
	row  *row
	n    int64
	rest []byte
}

func (c *copyReader) Read(to []byte) (int, error) {
	if len(c.rest) == 0 {
		c.row.buffer = c.row.buffer[:0]
		for ; c.n < c.rows && len(c.row.buffer) < copyChunk; c.n++ {
			c.row.begin()
			c.fill(c.row, c.n)
			c.row.end()
		}
		c.rest = c.row.buffer
	}
	if len(c.rest) == 0 {
		return 0, io.EOF
	}
	n := copy(to, c.rest)
	c.rest = c.rest[n:]
	return n, nil
}

func fillPostgres(ctx context.Context, s dial.Server, _ *dial.Session, t table) error {
	config, err := s.PgxConfig()
	if err != nil {
		return err
	}
	conn, err := pgconn.ConnectConfig(ctx, &config.Config)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(ctx) }() // what counts is what CopyFrom said
	_, err = conn.CopyFrom(ctx, &copyReader{table: t, row: newRow(s.Engine)}, "COPY "+t.name+" FROM STDIN")
	return err
}

// fillMySQL inserts many rows with a statement and many statements with a commit.
func fillMySQL(ctx context.Context, s dial.Server, session *dial.Session, t table) error {
	r := newRow(s.Engine)
	inserts := 0
	if err := session.Exec(ctx, "START TRANSACTION"); err != nil {
		return err
	}
	for n := range t.rows {
		r.begin()
		t.fill(r, n)
		r.end()
		if len(r.buffer) < insertMaxBytes && n+1 < t.rows {
			continue
		}
		if err := session.Exec(ctx, "INSERT INTO "+t.name+" VALUES "+string(r.buffer)); err != nil {
			return err
		}
		r.buffer = r.buffer[:0]
		if inserts++; inserts%insertsPerCommit == 0 {
			if err := session.Exec(ctx, "COMMIT", "START TRANSACTION"); err != nil {
				return err
			}
		}
	}
	return session.Exec(ctx, "COMMIT")
}
