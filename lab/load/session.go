package load

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5/pgconn"

	"kurabe/lab/dial"
	"kurabe/lab/load/script"
	"kurabe/lab/study"
)

// Protocols of statements. Simple: text with the values in it. Extended: parsed for each
// execution, with parameters; MariaDB and MySQL prepare, execute and close for it.
// Prepared: prepared once in a session.
const (
	protocolSimple   = "simple"
	protocolExtended = "extended"
	protocolPrepared = "prepared"
)

// interruptMax bounds the parting from a server that may not answer.
const interruptMax = 2 * time.Second

// Codes of failures that no server sent.
const (
	codeConnection = "connection" // lost, refused, or broken off
	codeUnanswered = "unanswered" // no answer within drainMax after the load's end
)

// session is what a worker asks. One goroutine uses it, but for interrupt.
type session interface {
	// do sends one statement and reads its whole answer.
	do(s *script.Statement, vars []int64) error
	// rollback ends a transaction that failed.
	rollback() error
	// lost says that the connection is of no use any more.
	lost() bool
	// interrupt breaks the connection, whatever goes on in it.
	interrupt()
	// enter makes it a task's that runs; leave, which may come without it, ends this.
	enter(t *task) error
	leave()
	close()
}

// opener opens sessions of one server.
type opener func(ctx context.Context) (session, error)

// dialer is how a connection is made.
type dialer func(ctx context.Context, network, address string) (net.Conn, error)

// newOpener gives that of a real server. Patient sessions can enter tasks.
func newOpener(s dial.Server, protocol string, statements []*script.Statement, patient bool) (opener, error) {
	texts := make([]string, len(statements))
	for n, st := range statements {
		texts[n] = st.Parameterized(s.Engine)
	}
	if s.Engine == study.Postgres {
		config, err := s.PgxConfig()
		if err != nil {
			return nil, fmt.Errorf("address of the server: %w", err)
		}
		return func(ctx context.Context) (session, error) {
			return openPostgres(ctx, config.Config.Copy(), protocol, texts, patient)
		}, nil
	}
	return func(ctx context.Context) (session, error) {
		return openMySQL(ctx, s.MySQLConfig(), protocol, texts, patient)
	}, nil
}

// netConn is the connection of a session to the server, encrypted or not.
type netConn struct {
	plain net.Conn
	task  *taskConn // plain, if tasks can enter it
}

// dialVia gives a dialer that leaves what it made in c.
func (c *netConn) dialVia(dial dialer, patient bool) dialer {
	if !patient {
		return func(ctx context.Context, network, address string) (net.Conn, error) {
			conn, err := dial(ctx, network, address)
			*c = netConn{plain: conn}
			return conn, err
		}
	}
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dialTask(dial)(ctx, network, address)
		if err != nil {
			return nil, err
		}
		*c = netConn{plain: conn, task: conn}
		return conn, nil
	}
}

func (c *netConn) enter(t *task) error {
	if c.task == nil {
		return nil // it waits in the runtime's poller
	}
	return c.task.enter(t)
}

func (c *netConn) leave() {
	if c.task != nil {
		c.task.leave()
	}
}

// code names a failure: the SQLSTATE, or the number of MariaDB and MySQL.
func code(err error) string {
	var pg *pgconn.PgError
	var my *mysql.MySQLError
	switch {
	case errors.As(err, &pg):
		return pg.Code
	case errors.As(err, &my):
		return strconv.Itoa(int(my.Number))
	}
	return codeConnection
}
