package guard

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

	"golang.org/x/sys/unix"

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

// Error is an error that the server answered with.
type Error struct {
	Number  uint32
	Message string
}

func (e *Error) Error() string { return fmt.Sprintf("error %d: %s", e.Number, e.Message) }

// Session is a session of the service's own: it belongs to no account, has all
// rights, and is not in the process list.
type Session struct {
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

// Open opens a session.
func Open(ctx context.Context, i engine.Instance) (*Session, error) {
	conn, err := volume.DialSocket(ctx, filepath.Join(i.Home.RunDir(), SocketName))
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ECONNREFUSED) {
		return nil, fmt.Errorf("%w: %w", engine.ErrNotReady, err)
	}
	if err != nil {
		return nil, err
	}
	a := &Session{conn}
	for _, statement := range preamble {
		if err := a.Exec(ctx, statement); err != nil {
			return nil, errors.Join(err, a.Close())
		}
	}
	return a, nil
}

// With runs f in a session of its own.
func With(ctx context.Context, i engine.Instance, f func(*Session) error) error {
	a, err := Open(ctx, i)
	if err != nil {
		return err
	}
	err = f(a)
	return errors.Join(err, a.Close())
}

// PID is the process that serves the session.
func (a *Session) PID() (int, error) {
	raw, err := a.conn.(syscall.Conn).SyscallConn()
	if err != nil {
		return 0, err
	}
	var peer *unix.Ucred
	failed := raw.Control(func(fd uintptr) { peer, err = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) })
	if err := errors.Join(failed, err); err != nil {
		return 0, fmt.Errorf("find the process of the server: %w", err)
	}
	return int(peer.Pid), nil
}

func (a *Session) Close() error { return a.conn.Close() }

// ExecAll runs statements in order until one fails.
func (a *Session) ExecAll(ctx context.Context, statements ...string) error {
	for _, s := range statements {
		if err := a.Exec(ctx, s); err != nil {
			return err
		}
	}
	return nil
}

// Exec runs one statement and forgets its rows. An error does not show the
// statement, which may hold a verifier.
func (a *Session) Exec(ctx context.Context, statement string) error {
	_, err := a.Query(ctx, statement)
	return err
}

// Query runs one statement and returns its rows; a NULL is the empty string.
func (a *Session) Query(ctx context.Context, statement string) ([][]string, error) {
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

func (a *Session) exchange(statement string) ([][]string, error) {
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

// SocketSetting is relative to the data folder, where the server works. An
// absolute path would meet the 107 bytes that a socket address can hold.
const (
	SocketName    = "admin.sock"
	SocketSetting = "../run/" + SocketName
)
