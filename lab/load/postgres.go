package load

import (
	"context"
	"fmt"
	"strconv"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"

	"kurabe/lab/dial"
	"kurabe/lab/load/script"
)

// postgresSession speaks the protocol by itself once pgconn has logged in, and asks as
// libpq does: bind, describe, execute, sync. pgconn sets a timer before each write and
// takes it back after it: without that, transactions of seven statements took 0.42 ms in
// place of 0.49 at the median, on two processors that the server needs too (pgbench: 0.38).
type postgresSession struct {
	netConn
	conn     *pgconn.HijackedConn
	whole    pgconn.HijackedConn // as it was at first, for interrupt: conn is the worker's
	protocol string
	texts    []string // by statement
	names    []string
	buffer   []byte
	values   [][]byte
	broken   bool // the connection is of no use any more

	// Messages that are sent again and again.
	parse    pgproto3.Parse
	bind     pgproto3.Bind
	describe pgproto3.Describe
	execute  pgproto3.Execute
}

func openPostgres(ctx context.Context, c *pgconn.Config, protocol string, texts []string, patient bool) (session, error) {
	s := &postgresSession{protocol: protocol, texts: texts, describe: pgproto3.Describe{ObjectType: 'P'}}
	connect := c.DialFunc
	c.DialFunc = pgconn.DialFunc(s.dialVia(dialer(connect), patient))
	conn, err := pgconn.ConnectConfig(ctx, c)
	if err != nil {
		return nil, err
	}
	if protocol == protocolPrepared {
		for n, text := range texts {
			name := "lab_" + strconv.Itoa(n)
			if _, err := conn.Prepare(ctx, name, text, nil); err != nil {
				goodbye(conn)
				return nil, fmt.Errorf("prepare %s: %w", dial.Brief(text), err)
			}
			s.names = append(s.names, name)
		}
	}
	if s.conn, err = conn.Hijack(); err != nil {
		goodbye(conn)
		return nil, err
	}
	s.whole = *s.conn
	c.DialFunc = connect // for interrupt, which dials for itself
	return s, nil
}

func (s *postgresSession) do(st *script.Statement, vars []int64) error {
	to := s.conn.Frontend
	if s.protocol == protocolSimple {
		s.buffer = st.AppendText(s.buffer[:0], vars)
		to.SendQuery(&pgproto3.Query{String: string(s.buffer)})
		return s.answer()
	}
	s.buffer, s.values = s.buffer[:0], s.values[:0]
	for _, v := range st.Variables {
		from := len(s.buffer)
		s.buffer = strconv.AppendInt(s.buffer, vars[v], 10)
		s.values = append(s.values, s.buffer[from:])
	}
	s.bind.Parameters = s.values
	if s.protocol == protocolPrepared {
		s.bind.PreparedStatement = s.names[st.Index]
	} else {
		s.parse.Query = s.texts[st.Index]
		to.SendParse(&s.parse)
	}
	to.SendBind(&s.bind)
	to.SendDescribe(&s.describe)
	to.SendExecute(&s.execute)
	to.SendSync(&pgproto3.Sync{})
	return s.answer()
}

// answer sends what is waiting to be sent and reads until the server is ready again. Rows
// are read and thrown away.
func (s *postgresSession) answer() error {
	if err := s.conn.Frontend.Flush(); err != nil {
		s.broken = true
		return err
	}
	var failure error
	for {
		message, err := s.conn.Frontend.Receive()
		if err != nil {
			s.broken = true
			return err
		}
		switch m := message.(type) {
		case *pgproto3.ReadyForQuery:
			s.conn.TxStatus = m.TxStatus
			return failure
		case *pgproto3.ErrorResponse:
			if failure == nil {
				failure = pgconn.ErrorResponseToPgError(m)
			}
			if m.Severity == "FATAL" || m.Severity == "PANIC" || m.SeverityUnlocalized == "FATAL" || m.SeverityUnlocalized == "PANIC" {
				s.broken = true // nothing follows
				return failure
			}
		case *pgproto3.CopyInResponse:
			// A script has nothing to copy in; the server answers with an error.
			s.conn.Frontend.Send(&pgproto3.CopyFail{Message: "the generator sends no rows"})
			if err := s.conn.Frontend.Flush(); err != nil {
				s.broken = true
				return err
			}
		}
	}
}

func (s *postgresSession) rollback() error {
	const idle = 'I'
	if s.conn.TxStatus == idle {
		return nil
	}
	s.conn.Frontend.SendQuery(&pgproto3.Query{String: "ROLLBACK"})
	return s.answer()
}

func (s *postgresSession) lost() bool { return s.broken }

// interrupt asks the server to cancel as well: a backend that waits for a lock would not
// see that its client has gone.
func (s *postgresSession) interrupt() {
	ctx, cancel := context.WithTimeout(context.Background(), interruptMax)
	defer cancel()
	if conn, err := pgconn.Construct(&s.whole); err == nil {
		_ = conn.CancelRequest(ctx) // without it the backend ends a little later
	}
	_ = s.plain.Close() // it is being broken off
}

func (s *postgresSession) close() {
	if !s.broken {
		if conn, err := pgconn.Construct(s.conn); err == nil {
			goodbye(conn)
			return
		}
	}
	_ = s.conn.Conn.Close() // the server sees the end of the connection in any case
}

func goodbye(conn *pgconn.PgConn) {
	ctx, cancel := context.WithTimeout(context.Background(), interruptMax)
	defer cancel()
	_ = conn.Close(ctx) // the server sees the end of the connection in any case
}
