package load

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"net"

	"github.com/go-sql-driver/mysql"

	"kurabe/lab/dial"
	"kurabe/lab/load/script"
)

// mysqlSession is the driver without database/sql, whose pool has a cost of its own.
// About contexts see postgresSession.
type mysqlSession struct {
	netConn
	conn     driver.Conn
	protocol string
	texts    []string
	prepared []driver.Stmt // by statement; nil for one that goes as text
	asText   []bool        // by statement: the server prepares no such
	buffer   []byte
	values   []driver.NamedValue
	broken   bool
}

func openMySQL(ctx context.Context, c *mysql.Config, protocol string, texts []string, patient bool) (session, error) {
	s := &mysqlSession{protocol: protocol, texts: texts, prepared: make([]driver.Stmt, len(texts)), asText: make([]bool, len(texts))}
	c.Logger = &mysql.NopLogger{} // every error is returned and counted as well
	c.DialFunc = s.dialVia((&net.Dialer{}).DialContext, patient)
	connector, err := mysql.NewConnector(c)
	if err != nil {
		return nil, err
	}
	// The driver's connections do all that is asserted here and below; the first test
	// with a server would tell if a later version did not.
	if s.conn, err = connector.Connect(ctx); err != nil {
		return nil, err
	}
	if protocol != protocolPrepared {
		return s, nil
	}
	for n, text := range texts {
		if s.prepared[n], err = s.prepare(ctx, n); err != nil {
			s.close()
			return nil, fmt.Errorf("prepare %s: %w", dial.Brief(text), err)
		}
	}
	return s, nil
}

// notPreparable is the number of "not supported in the prepared statement protocol yet",
// as MySQL says of BEGIN. Such a statement goes as text.
const notPreparable = 1295

func (s *mysqlSession) prepare(ctx context.Context, index int) (driver.Stmt, error) {
	stmt, err := s.conn.(driver.ConnPrepareContext).PrepareContext(ctx, s.texts[index])
	var answer *mysql.MySQLError
	if errors.As(err, &answer) && answer.Number == notPreparable {
		s.asText[index] = true
		return nil, nil
	}
	return stmt, err
}

func (s *mysqlSession) do(st *script.Statement, vars []int64) error {
	if s.protocol == protocolSimple || s.asText[st.Index] {
		return s.text(st, vars)
	}
	s.values = s.values[:0]
	for n, v := range st.Variables {
		s.values = append(s.values, driver.NamedValue{Ordinal: n + 1, Value: vars[v]})
	}
	ctx := context.Background()
	if s.protocol == protocolPrepared {
		return s.seen(run(ctx, s.prepared[st.Index], s.values))
	}
	stmt, err := s.prepare(ctx, st.Index)
	switch {
	case err != nil:
		return s.seen(err)
	case stmt == nil:
		return s.text(st, vars)
	}
	return s.seen(errors.Join(run(ctx, stmt, s.values), stmt.Close()))
}

// run executes a statement and throws its rows away unread. Not by ExecContext: MariaDB
// leaves the columns out of an answer when it has told them before, and the driver (1.10.1)
// waits for them there for ever.
func run(ctx context.Context, stmt driver.Stmt, values []driver.NamedValue) error {
	rows, err := stmt.(driver.StmtQueryContext).QueryContext(ctx, values)
	if err != nil {
		return err
	}
	return rows.Close()
}

func (s *mysqlSession) text(st *script.Statement, vars []int64) error {
	s.buffer = st.AppendText(s.buffer[:0], vars)
	return s.exec(string(s.buffer))
}

// exec reads rows too, and throws them away.
func (s *mysqlSession) exec(text string) error {
	_, err := s.conn.(driver.ExecerContext).ExecContext(context.Background(), text, nil)
	return s.seen(err)
}

// seen notes an error after which the connection is of no use.
func (s *mysqlSession) seen(err error) error {
	var answer *mysql.MySQLError
	if err != nil && !errors.As(err, &answer) {
		s.broken = true
	}
	return err
}

func (s *mysqlSession) rollback() error { return s.exec("ROLLBACK") }

func (s *mysqlSession) lost() bool {
	v, ok := s.conn.(driver.Validator)
	return s.broken || ok && !v.IsValid()
}

func (s *mysqlSession) interrupt() { _ = s.plain.Close() } // it is being broken off

func (s *mysqlSession) close() { _ = s.conn.Close() } // the server sees the end of the connection in any case
