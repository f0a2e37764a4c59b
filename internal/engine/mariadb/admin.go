package mariadb

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"kurabe/internal/engine"
	"kurabe/internal/volume"
)

// The frames of kurabe_guard.c.
const (
	answerOK      = 'O'
	answerRows    = 'R'
	answerError   = 'E'
	frameBytesMax = 16<<20 + 16
	nullLength    = 0xFFFFFFFF
)

// adminTimeout bounds a statement when the caller's context does not.
const adminTimeout = time.Minute

// serverError is an error that the server answered with.
type serverError struct {
	Number  uint32
	Message string
}

func (e *serverError) Error() string { return fmt.Sprintf("error %d: %s", e.Number, e.Message) }

// admin is a session of the service's own: it belongs to no account, has all
// rights, and is not in the process list.
type admin struct {
	conn net.Conn
}

// preamble makes a session independent of what the parameter group says of new
// sessions. The numbers come first: a quoted string means different things under
// different modes.
var preamble = []string{
	"SET SESSION sql_mode = 0",
	"SET NAMES utf8mb4",
	"SET SESSION tx_read_only = 0, autocommit = 1, completion_type = 0, sql_select_limit = 18446744073709551615, sql_big_selects = 1",
	// A user may hold a lock for ever. The step that waits for it fails, says
	// so, and is tried again.
	"SET SESSION lock_wait_timeout = 10, innodb_lock_wait_timeout = 10, max_statement_time = 60",
	"SET SESSION sql_log_off = 1, slow_query_log = 0, sql_log_bin = 0",
}

// openAdmin opens a session.
func openAdmin(ctx context.Context, i engine.Instance) (*admin, error) {
	conn, err := volume.DialSocket(ctx, filepath.Join(i.Home.RunDir(), adminSocketName))
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ECONNREFUSED) {
		return nil, fmt.Errorf("%w: %w", engine.ErrNotReady, err)
	}
	if err != nil {
		return nil, err
	}
	a := &admin{conn}
	for _, statement := range preamble {
		if err := a.exec(ctx, statement); err != nil {
			return nil, errors.Join(err, a.close())
		}
	}
	return a, nil
}

// withAdmin runs f in a session of its own.
func withAdmin(ctx context.Context, i engine.Instance, f func(*admin) error) error {
	a, err := openAdmin(ctx, i)
	if err != nil {
		return err
	}
	err = f(a)
	return errors.Join(err, a.close())
}

func (a *admin) close() error { return a.conn.Close() }

// execAll runs statements in order until one fails.
func (a *admin) execAll(ctx context.Context, statements ...string) error {
	for _, s := range statements {
		if err := a.exec(ctx, s); err != nil {
			return err
		}
	}
	return nil
}

// exec runs one statement and forgets its rows. An error does not show the
// statement, which may hold a verifier.
func (a *admin) exec(ctx context.Context, statement string) error {
	_, err := a.query(ctx, statement)
	return err
}

// query runs one statement and returns its rows; a NULL is the empty string.
func (a *admin) query(ctx context.Context, statement string) ([][]string, error) {
	// The deadline of ctx is not the connection's: that could pass a moment earlier, and the
	// error would be a timeout's and not the cause of ctx.
	if err := a.conn.SetDeadline(time.Now().Add(adminTimeout)); err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { a.conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	rows, err := a.exchange(statement)
	if err != nil && ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return rows, err
}

func (a *admin) exchange(statement string) ([][]string, error) {
	request := binary.BigEndian.AppendUint32(nil, uint32(len(statement)))
	if _, err := a.conn.Write(append(request, statement...)); err != nil {
		return nil, err
	}
	var length [4]byte
	if _, err := io.ReadFull(a.conn, length[:]); err != nil {
		return nil, err
	}
	size := binary.BigEndian.Uint32(length[:])
	if size == 0 || size > frameBytesMax {
		return nil, fmt.Errorf("the guard answers with a frame of %d bytes", size)
	}
	body := make([]byte, size)
	if _, err := io.ReadFull(a.conn, body); err != nil {
		return nil, err
	}
	return decodeAnswer(body)
}
