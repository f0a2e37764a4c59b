package mariadb

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"kurabe"
	"kurabe/internal/engine"
	"kurabe/internal/engine/mariadb/binlog"
	"kurabe/internal/engine/mariadb/guard"
	"kurabe/internal/engine/mariadb/replica"
	"kurabe/internal/engine/mariadb/role"
	"kurabe/internal/proc"
	"kurabe/internal/volume"
)

// followerFreeze is how long a follower may stand still: less than it takes to be given up,
// which is 1.5 s without an answer, as commits wait for it meanwhile.
var followerFreeze = proc.FreezeLimits{Stop: 250 * time.Millisecond, Hold: 750 * time.Millisecond}

// caughtUpMost is how long a follower may take to apply what its writer had written. One of a
// group does so within a second.
const caughtUpMost = 30 * time.Second

// CopyFollower implements engine.Driver, where files can be cloned. The follower goes on
// to receive, and to answer, but for the instant; what it does not do is to apply. So the writer
// notices the instant, and nothing of what leads to it. Where files can only be copied the tool
// would need an account, which a follower cannot make.
func (d *Driver) CopyFollower(ctx context.Context, writer *engine.Instance, i engine.Instance, r engine.CopyRequest) (engine.Copied, error) {
	w, err := askedWriter(i, writer)
	if err != nil {
		return engine.Copied{}, err
	}
	defer w.close()
	c, files, err := (&cloning{i: i, writer: w}).of(ctx, r)
	if err != nil {
		return engine.Copied{}, err
	}
	copied := engine.Copied{Files: files, Method: engine.Method(true), TakenAt: c.takenAt, MarkedAt: c.markedAt}
	if i.Log {
		if copied.Position, err = w.behind(ctx, c.shows, c.applied); err != nil {
			err = errors.Join(err, volume.RemoveTree(filepath.Dir(r.Dir), r.Dir))
		}
	}
	return copied, err
}

// notClonedOfFollower is left out of the copy of one: what it has received is applied, and whom
// it follows is nothing to the copy.
func notClonedOfFollower(rel string) bool {
	return notCloned(rel) || strings.HasPrefix(rel, binlog.RelayLogName) || rel == replica.FollowFile || slices.Contains(replicationFiles, rel)
}

// followerSeconds is how long a follower may take to end what it applies: nobody waits for it
// meanwhile. One that is read makes its clients wait, too.
const (
	followerSeconds = 5
	readerSeconds   = 1
)

// errPrepared is a follower that is not at rest although it should be.
var errPrepared = errors.New("InnoDB has transactions that are prepared only")

// holdFollower takes a follower to a moment between two transactions, at which it has all that
// its writer had written just now. No backup stage would do: a follower applies several
// transactions side by side, in the writer's order, and those whose turn has not come give way
// to a stage when they are prepared, and have written to tables outside InnoDB already.
func (c *cloning) holdFollower(ctx context.Context) (*stage, error) {
	if err := c.awaitWriter(ctx); err != nil {
		return nil, err
	}
	a, err := guard.Open(ctx, c.i)
	if err != nil {
		return nil, err
	}
	s := &stage{admin: a, ends: "UNLOCK TABLES"}
	if err := c.rest(ctx, s); err != nil {
		return nil, errors.Join(err, s.close())
	}
	return s, nil
}

// rest has the server end what it applies and begin nothing, and close its tables. It goes on
// to receive, and to answer.
func (c *cloning) rest(ctx context.Context, s *stage) error {
	seconds := followerSeconds
	if role.Reads(c.i) {
		seconds = readerSeconds
	}
	err := s.admin.ExecAll(ctx,
		fmt.Sprintf("SET SESSION lock_wait_timeout = %d, max_statement_time = %d", seconds, seconds),
		"FLUSH TABLES WITH READ LOCK", "SET SESSION max_statement_time = 0")
	if err != nil {
		return fmt.Errorf("stop applying: %w", err)
	}
	if err := s.flush(ctx); err != nil {
		return fmt.Errorf("flush the redo log: %w", err)
	}
	if c.shows, err = ownNewest(ctx, s.admin); err != nil {
		return err
	}
	if c.writer.isFar() {
		if err := c.noteApplied(ctx, s.admin); err != nil {
			return err
		}
	}
	rows, err := s.admin.Query(ctx, "SHOW ENGINE INNODB STATUS")
	switch {
	case err != nil:
		return err
	case len(rows) != 1 || len(rows[0]) != 3:
		return errors.New("SHOW ENGINE INNODB STATUS answers in an unknown form")
	case strings.Contains(rows[0][2], "(PREPARED)"):
		// Without the binary log no server starts on that, or it has clients that use XA.
		return errPrepared
	}
	return nil
}

// awaitWriter returns when the follower has applied all that its writer has written by now.
func (c *cloning) awaitWriter(ctx context.Context) error {
	at := time.Now()
	want, err := c.writer.newest(ctx)
	if err != nil {
		return fmt.Errorf("read the primary's log position: %w", err)
	}
	limited, cancel := context.WithTimeoutCause(ctx, caughtUpMost, fmt.Errorf("it has not applied transaction %s within %s", want, caughtUpMost))
	defer cancel()
	err = guard.With(limited, c.i, func(a *guard.Session) error {
		for {
			have, err := replica.Applied(limited, a)
			if err != nil || uint64(have) >= want.Seq {
				return err
			}
			if err := guard.Pause(limited, replica.ApplyPoll); err != nil {
				return err
			}
		}
	})
	if err != nil && limited.Err() != nil {
		err = context.Cause(limited)
	}
	c.takenAt = at
	return err
}

// ownNewest is the newest transaction in a server's own log. A follower's has all that it has
// applied, and its note of how far it is follows a commit a little later.
func ownNewest(ctx context.Context, a *guard.Session) (binlog.GTID, error) {
	rows, err := a.Query(ctx, newestSQL)
	if err != nil {
		return binlog.GTID{}, err
	}
	return parseNewest(rows[0][0])
}

const newestSQL = "SELECT @@GLOBAL.gtid_binlog_pos"

func parseNewest(text string) (binlog.GTID, error) {
	list, err := binlog.ParseGTIDs(text)
	if err != nil {
		return binlog.GTID{}, err
	}
	g, ok := binlog.Newest(list)
	if !ok {
		return g, errors.New("its binary log has no transaction yet")
	}
	return g, nil
}

// behind is the place right behind a transaction in the log of a server.
func behind(ctx context.Context, dir string, want binlog.GTID) (kurabe.LogPosition, error) {
	at, err := findBehind(ctx, dir, want)
	if err != nil {
		return at, fmt.Errorf("find transaction %s in the writer's log: %w", want, err)
	}
	return at, nil
}

func findBehind(ctx context.Context, dir string, want binlog.GTID) (at kurabe.LogPosition, err error) {
	root, err := volume.OpenRoot(dir)
	if err != nil {
		return at, err
	}
	defer root.Close()
	names, err := binlog.List(dir)
	if err != nil {
		return at, err
	}
	for _, name := range slices.Backward(names) {
		p, found, err := searchBinlog(ctx, root, name, want)
		switch {
		case err != nil:
			return at, fmt.Errorf("%s: %w", filepath.Base(name), err)
		case found && p.Newest != want:
			return at, fmt.Errorf("%s has %s in its place", name, p.Newest)
		case found:
			return p.At, nil
		}
	}
	return at, engine.ErrLogGone
}

// searchBinlog reads a file up to the end of a transaction, or of what it begins with if that is
// the newest before it. It is not found in a file that begins behind it, or without a word of
// what was before, as one does whose server died when it had made it.
func searchBinlog(ctx context.Context, root *volume.Root, name string, want binlog.GTID) (binlog.Place, bool, error) {
	p := binlog.Place{At: kurabe.LogPosition{File: name}}
	file, size, err := binlog.Open(root, name)
	if err != nil {
		return p, false, err
	}
	defer file.Close()
	r := &binlog.Reader{Source: file, Until: size, CopyTo: io.Discard}
	first := true
	for err = r.ReadMagic(); err == nil; {
		if ctx.Err() != nil {
			return p, false, context.Cause(ctx)
		}
		var e binlog.Event
		if e, err = r.Next(); err != nil {
			break
		}
		p.Add(e)
		if !p.Known || p.Within() {
			continue
		}
		if p.Newest.Seq >= want.Seq {
			return p, !first || p.Newest == want, nil
		}
		first = false
	}
	if errors.Is(err, io.EOF) || errors.Is(err, binlog.ErrTorn) {
		err = nil
	}
	return p, false, err
}
