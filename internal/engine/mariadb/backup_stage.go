package mariadb

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"kurabe"
	"kurabe/internal/engine"
	"kurabe/internal/engine/mariadb/guard"
	"kurabe/internal/engine/mariadb/sqltext"
)

const (
	// stageSeconds is how long either of the last two stages may wait for statements
	// of clients, and so make others wait behind it.
	stageSeconds = 0.5
	// stageLock is the same bound, in whole seconds, where the one above does not count.
	stageLock = 1
	// stageEnd bounds letting the server go.
	stageEnd = 5 * time.Second
)

// Errors of a server that was not left alone for long enough.
const (
	errLockWait         = 1205
	errStatementTimeout = 1969
)

// stage is a server in which nothing commits: InnoDB works on, every other engine's
// tables are closed, no DDL goes on. It ends with its session, so also with us.
type stage struct {
	admin    *guard.Session
	takenAt  time.Time          // everything acknowledged before is in the files
	position kurabe.LogPosition // of the binary log, zero of a server that writes none
	ends     string             // the statement that does
}

// openStage takes the server there. Clients wait for it as long as they do for the
// tool's own copy, and less than two seconds if somebody is in the way.
func openStage(ctx context.Context, i engine.Instance) (*stage, error) {
	a, err := guard.Open(ctx, i)
	if err != nil {
		return nil, err
	}
	s := &stage{admin: a, ends: "BACKUP STAGE END"}
	if err := s.enter(ctx); err != nil {
		return nil, errors.Join(err, s.close())
	}
	return s, nil
}

func (s *stage) enter(ctx context.Context) error {
	// The first two close tables that nobody uses, and let everybody work.
	if err := s.admin.ExecAll(ctx, "BACKUP STAGE START", "BACKUP STAGE FLUSH"); err != nil {
		return fmt.Errorf("begin a backup stage: %w", err)
	}
	err := s.admin.ExecAll(ctx,
		fmt.Sprintf("SET SESSION lock_wait_timeout = %d, max_statement_time = %g", stageLock, stageSeconds),
		"BACKUP STAGE BLOCK_DDL", "BACKUP STAGE BLOCK_COMMIT", "SET SESSION max_statement_time = 0")
	if err != nil {
		return fmt.Errorf("hold commits: %w", err)
	}
	s.takenAt = time.Now()
	if err := s.flush(ctx); err != nil {
		return fmt.Errorf("flush the redo log: %w", err)
	}
	if s.position, err = s.logPosition(ctx); err != nil {
		return fmt.Errorf("find the end of the binary log: %w", err)
	}
	return nil
}

// flush brings what was committed into the redo log's file. Of the group commit with a
// binary log the last word is not there yet, and the binary log, which would make up
// for that, stays out of a copy. With innodb_flush_log_at_trx_commit=0 nothing is there,
// and the server takes FLUSH for what the setting says; so it is set for the moment. If
// we die meanwhile, commits are safer than they were meant to be until the next reload.
func (s *stage) flush(ctx context.Context) (err error) {
	const setting = "@@GLOBAL.innodb_flush_log_at_trx_commit"
	rows, err := s.admin.Query(ctx, "SELECT "+setting)
	if err != nil {
		return err
	}
	need, err := s.lsn(ctx, "Innodb_lsn_current")
	if err != nil {
		return err
	}
	if usual := rows[0][0]; usual == "0" || usual == "2" {
		if err := s.admin.Exec(ctx, "SET "+setting+" = 1"); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, s.admin.Exec(ctx, "SET "+setting+" = "+usual)) }()
	}
	if err := s.admin.Exec(ctx, "FLUSH NO_WRITE_TO_BINLOG ENGINE LOGS"); err != nil {
		return err
	}
	have, err := s.lsn(ctx, "Innodb_lsn_flushed")
	if err == nil && have < need {
		err = fmt.Errorf("it is written up to %d, not to %d", have, need)
	}
	return err
}

func (s *stage) lsn(ctx context.Context, name string) (uint64, error) {
	rows, err := s.admin.Query(ctx, "SHOW GLOBAL STATUS LIKE "+sqltext.Literal(name))
	if err != nil {
		return 0, err
	}
	if len(rows) != 1 || len(rows[0]) != 2 {
		return 0, fmt.Errorf("the server has no status variable %s", name)
	}
	return strconv.ParseUint(rows[0][1], 10, 64)
}

// logPosition asks for the position of a server that has one only: of another, SHOW
// MASTER STATUS leaves a row without content in a session of the service's, which the
// server stumbles over (10.11.19).
func (s *stage) logPosition(ctx context.Context) (kurabe.LogPosition, error) {
	rows, err := s.admin.Query(ctx, "SELECT @@GLOBAL.log_bin")
	if err != nil || rows[0][0] != "1" {
		return kurabe.LogPosition{}, err
	}
	return (&binaryLog{admin: s.admin}).position(ctx)
}

// close lets the server go, whatever the caller's time. An error says that the session
// may have ended before, and with it the stage.
func (s *stage) close() error {
	ctx, cancel := context.WithTimeout(context.Background(), stageEnd)
	defer cancel()
	err := s.admin.Exec(ctx, s.ends)
	return errors.Join(err, s.admin.Close())
}

// inTheWay says of an error that clients have kept the server busy.
func inTheWay(err error) bool {
	var said *guard.Error
	return errors.As(err, &said) && (said.Number == errLockWait || said.Number == errStatementTimeout)
}
