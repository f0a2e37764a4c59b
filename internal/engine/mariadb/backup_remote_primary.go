package mariadb

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"kurabe"
	"kurabe/internal/engine"
	"kurabe/internal/engine/mariadb/binlog"
	"kurabe/internal/engine/mariadb/door"
	"kurabe/internal/engine/mariadb/guard"
	"kurabe/internal/engine/mariadb/replica"
	"kurabe/internal/engine/mariadb/sqltext"
)

// followed is the writer of a follower that is copied: on this host, or on another one, where
// it is the follower's source and is asked as a member may.
type followed struct {
	here *engine.Instance // nil: on another host
	far  *sql.DB
}

// writerAnswer bounds a question to a writer on another host: it can be copied itself.
const writerAnswer = 10 * time.Second

// askedWriter opens nothing yet.
func askedWriter(i engine.Instance, here *engine.Instance) (*followed, error) {
	if here != nil {
		return &followed{here: here}, nil
	}
	db, err := door.SourcePool(i, filepath.Join(i.Home.TLSDir(), door.AuthorityFile))
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1)
	return &followed{far: db}, nil
}

func (w *followed) close() {
	if w.far != nil {
		_ = w.far.Close()
	}
}

func (w *followed) isFar() bool { return w != nil && w.here == nil }

// newest is the newest transaction that the writer has written.
func (w *followed) newest(ctx context.Context) (g binlog.GTID, err error) {
	if !w.isFar() {
		err = guard.With(ctx, *w.here, func(a *guard.Session) (err error) {
			g, err = ownNewest(ctx, a)
			return err
		})
		return g, err
	}
	text, err := w.ask(ctx, newestSQL)
	if err != nil {
		return g, err
	}
	return parseNewest(text)
}

// ask returns the one value of the one row of an answer.
func (w *followed) ask(ctx context.Context, statement string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, writerAnswer)
	defer cancel()
	var text sql.NullString
	err := w.far.QueryRowContext(ctx, statement).Scan(&text)
	return text.String, err
}

// behind is the place right behind a transaction in the writer's log. That of another host
// cannot be read here: the follower says where it has applied that log to, and the writer which
// transaction it has there.
func (w *followed) behind(ctx context.Context, want binlog.GTID, said kurabe.LogPosition) (kurabe.LogPosition, error) {
	if !w.isFar() {
		return behind(ctx, w.here.Home.DataDir(), want)
	}
	text, err := w.ask(ctx, fmt.Sprintf("SELECT BINLOG_GTID_POS(%s, %d)", sqltext.Literal(said.File), said.Offset))
	if err != nil {
		return said, fmt.Errorf("read the primary's log at %s: %w", said, err)
	}
	if have, err := parseNewest(text); err != nil || have != want {
		return said, fmt.Errorf("the primary's log has %q at %s, but the copy ends with %s", text, said, want)
	}
	return said, nil
}

// mark has the writer write the marker. On another host nobody but the service there may: then
// the one that the follower has is what the copy is known to have.
func (c *cloning) mark(ctx context.Context) error {
	switch {
	case c.writer.isFar():
		return nil
	case c.writer != nil:
		return mark(ctx, *c.writer.here, time.Now())
	}
	return mark(ctx, c.i, time.Now())
}

// noteMost is how long a follower at rest may take to write down how far it is: that follows a
// commit a little later.
const noteMost = time.Second

// noteApplied asks a follower at rest where it is in its writer's log, and for its marker.
func (c *cloning) noteApplied(ctx context.Context, a *guard.Session) error {
	ctx, cancel := context.WithTimeoutCause(ctx, noteMost, fmt.Errorf("its records do not contain transaction %s", c.shows))
	defer cancel()
	for {
		have, err := replica.Applied(ctx, a)
		if err == nil && uint64(have) >= c.shows.Seq {
			break
		}
		if err == nil {
			err = guard.Pause(ctx, replica.ApplyPoll)
		}
		if err != nil {
			return errors.Join(err, context.Cause(ctx))
		}
	}
	s, err := replica.AskSlave(ctx, a)
	if err != nil {
		return err
	}
	if s == nil {
		return errors.New("it no longer follows a source")
	}
	c.applied = kurabe.LogPosition{File: s.AppliedFile, Offset: s.AppliedAt}
	rows, err := a.Query(ctx, markerSQL)
	if err != nil || len(rows) != 1 {
		return err // it has none yet
	}
	c.markedAt, err = parseMarker(rows[0][0])
	return err
}
