package load

import (
	"context"
	"fmt"
	"strconv"

	"github.com/jackc/pgx/v5/pgconn"

	"kurabe/lab/dial"
)

// postgresSession is below pgx, at the level of libpq: no statement cache, no types.
// All its calls have a context without an end, or each would start a goroutine to
// watch it; interrupt is their end.
type postgresSession struct {
	conn     *pgconn.PgConn
	protocol string
	texts    []string // by statement
	names    []string
	buffer   []byte
	values   [][]byte
}

func openPostgres(ctx context.Context, c *pgconn.Config, protocol string, texts []string) (session, error) {
	conn, err := pgconn.ConnectConfig(ctx, c)
	if err != nil {
		return nil, err
	}
	s := &postgresSession{conn: conn, protocol: protocol, texts: texts}
	if protocol != protocolPrepared {
		return s, nil
	}
	for n, text := range texts {
		name := "lab_" + strconv.Itoa(n)
		if _, err := conn.Prepare(ctx, name, text, nil); err != nil {
			s.close()
			return nil, fmt.Errorf("prepare %s: %w", dial.Brief(text), err)
		}
		s.names = append(s.names, name)
	}
	return s, nil
}

func (s *postgresSession) do(st *statement, vars []int64) error {
	ctx := context.Background()
	if s.protocol == protocolSimple {
		s.buffer = st.appendText(s.buffer[:0], vars)
		return s.conn.Exec(ctx, string(s.buffer)).Close()
	}
	s.buffer, s.values = s.buffer[:0], s.values[:0]
	for _, v := range st.variables {
		from := len(s.buffer)
		s.buffer = strconv.AppendInt(s.buffer, vars[v], 10)
		s.values = append(s.values, s.buffer[from:])
	}
	var err error
	if s.protocol == protocolPrepared {
		_, err = s.conn.ExecPrepared(ctx, s.names[st.index], s.values, nil, nil).Close()
	} else {
		_, err = s.conn.ExecParams(ctx, s.texts[st.index], s.values, nil, nil, nil).Close()
	}
	return err
}

func (s *postgresSession) rollback() error {
	const idle = 'I'
	if s.conn.TxStatus() == idle {
		return nil
	}
	return s.conn.Exec(context.Background(), "ROLLBACK").Close()
}

func (s *postgresSession) lost() bool { return s.conn.IsClosed() }

// interrupt asks the server to cancel as well: a backend that waits for a lock would not
// see that its client has gone.
func (s *postgresSession) interrupt() {
	ctx, cancel := context.WithTimeout(context.Background(), interruptMax)
	defer cancel()
	_ = s.conn.CancelRequest(ctx) // without it the backend ends a little later
	_ = s.conn.Conn().Close()     // it is being broken off
}

func (s *postgresSession) close() {
	ctx, cancel := context.WithTimeout(context.Background(), interruptMax)
	defer cancel()
	_ = s.conn.Close(ctx) // the server sees the end of the connection in any case
}
