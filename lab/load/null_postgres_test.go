package load

import (
	"context"
	"errors"
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgproto3"

	"kurabe/lab/dial"
	"kurabe/lab/study"
)

// nullPostgres speaks PostgreSQL's protocol and stores nothing: every statement is
// answered by an empty result. It is enough for pgx, pgbench and sysbench.
type nullPostgres struct {
	answer func(text string) *pgproto3.ErrorResponse // nil for success
	server dial.Server

	mu       sync.Mutex
	messages map[string]int // by type
	texts    map[string]int
	conns    atomic.Int64
}

// serveNull listens until the test ends.
func serveNull(t testing.TB, engine string, serve func(net.Conn)) dial.Server {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var wait sync.WaitGroup
	var mu sync.Mutex
	open := map[net.Conn]bool{}
	wait.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			mu.Lock()
			open[c] = true
			mu.Unlock()
			wait.Go(func() {
				serve(c)
				c.Close()
			})
		}
	})
	t.Cleanup(func() {
		l.Close()
		mu.Lock()
		for c := range open {
			c.Close()
		}
		mu.Unlock()
		wait.Wait()
	})
	host, port, _ := net.SplitHostPort(l.Addr().String())
	n, _ := strconv.Atoi(port)
	return dial.Server{Engine: engine, Host: host, Port: n, User: "lab", Password: "seeded", Database: "lab"}
}

func startNullPostgres(t testing.TB) *nullPostgres {
	p := &nullPostgres{messages: map[string]int{}, texts: map[string]int{}}
	p.server = serveNull(t, study.Postgres, p.serve)
	return p
}

func (p *nullPostgres) serve(c net.Conn) {
	b := pgproto3.NewBackend(c, c)
	first, err := b.ReceiveStartupMessage()
	if _, ok := first.(*pgproto3.CancelRequest); ok {
		p.count("cancel", "") // one connection each
	}
	if _, ok := first.(*pgproto3.StartupMessage); err != nil || !ok {
		return
	}
	p.conns.Add(1)
	b.Send(&pgproto3.AuthenticationOk{})
	for _, x := range [][2]string{{"server_version", "15.0"}, {"client_encoding", "UTF8"}, {"standard_conforming_strings", "on"}} {
		b.Send(&pgproto3.ParameterStatus{Name: x[0], Value: x[1]})
	}
	b.Send(&pgproto3.BackendKeyData{ProcessID: 1, SecretKey: []byte{0, 0, 0, 1}})
	b.Send(&pgproto3.ReadyForQuery{TxStatus: 'I'})
	for b.Flush() == nil {
		m, err := b.Receive()
		if err != nil {
			return
		}
		if !p.one(b, m) {
			return
		}
	}
}

func (p *nullPostgres) one(b *pgproto3.Backend, m pgproto3.FrontendMessage) bool {
	switch m := m.(type) {
	case *pgproto3.Query:
		p.count("query", m.String)
		if e := p.judge(m.String); e != nil {
			b.Send(e)
		} else {
			answer(b, m.String)
		}
		b.Send(&pgproto3.ReadyForQuery{TxStatus: 'I'})
	case *pgproto3.Parse:
		p.count("parse", m.Query)
		b.Send(&pgproto3.ParseComplete{})
	case *pgproto3.Bind:
		p.count("bind", "")
		b.Send(&pgproto3.BindComplete{})
	case *pgproto3.Describe:
		if m.ObjectType == 'S' {
			b.Send(&pgproto3.ParameterDescription{})
		}
		b.Send(&pgproto3.NoData{})
	case *pgproto3.Execute:
		p.judge("") // for its delay
		b.Send(&pgproto3.CommandComplete{CommandTag: []byte("SELECT 0")})
	case *pgproto3.Sync:
		b.Send(&pgproto3.ReadyForQuery{TxStatus: 'I'})
	case *pgproto3.Terminate:
		return false
	}
	return true
}

func (p *nullPostgres) judge(text string) *pgproto3.ErrorResponse {
	p.mu.Lock()
	answer := p.answer
	p.mu.Unlock()
	if answer == nil {
		return nil
	}
	return answer(text)
}

// answers says what is answered from now on.
func (p *nullPostgres) answers(answer func(text string) *pgproto3.ErrorResponse) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.answer = answer
}

func (p *nullPostgres) count(kind, text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.messages[kind]++
	p.texts[text]++
}

// answer answers what pgbench asks before it begins: how large its tables are, and
// whether they are partitioned.
func answer(b *pgproto3.Backend, text string) {
	values := [][]byte(nil)
	switch {
	case strings.Contains(text, "count(*) from pgbench_branches"):
		values = [][]byte{[]byte("1")}
	case strings.Contains(text, "partstrat"):
		values = [][]byte{[]byte("1"), nil, []byte("0")}
	}
	if values != nil {
		fields := make([]pgproto3.FieldDescription, len(values))
		for n := range fields {
			fields[n] = pgproto3.FieldDescription{Name: []byte("f" + strconv.Itoa(n)), DataTypeOID: 25, DataTypeSize: -1, TypeModifier: -1}
		}
		b.Send(&pgproto3.RowDescription{Fields: fields})
		b.Send(&pgproto3.DataRow{Values: values})
	}
	b.Send(&pgproto3.CommandComplete{CommandTag: []byte("SELECT 1")})
}

func TestPostgresProtocols(t *testing.T) {
	t.Parallel()
	for _, protocol := range []string{protocolSimple, protocolExtended, protocolPrepared} {
		t.Run(protocol, func(t *testing.T) {
			p := startNullPostgres(t)
			w := openLoad(2, 100)
			w.Script, w.Protocol = "\\set a random(5, 5)\nUPDATE t SET a = :a;", protocol
			out, err := generator(t, w).Run(context.Background(), p.server, Options{Measure: 200 * time.Millisecond})
			if err != nil {
				t.Fatal(err)
			}
			l := phase(t, out, "measure").Load
			balanced(t, l)
			p.mu.Lock()
			defer p.mu.Unlock()
			want := map[string]map[string]int{
				protocolSimple:   {"UPDATE t SET a = 5": 20},
				protocolExtended: {"UPDATE t SET a = $1": 20, "": 20},
				protocolPrepared: {"UPDATE t SET a = $1": 2, "": 20}, // once in each session
			}[protocol]
			for text, n := range want {
				if p.texts[text] != n {
					t.Errorf("%q came %d times, want %d; all: %v", text, p.texts[text], n, p.texts)
				}
			}
			if l.Transactions != 20 {
				t.Errorf("%+v", l)
			}
		})
	}
}

func TestPostgresErrors(t *testing.T) {
	t.Parallel()
	p := startNullPostgres(t)
	var n atomic.Int64
	p.answers(func(string) *pgproto3.ErrorResponse {
		switch n.Add(1) {
		case 3:
			return &pgproto3.ErrorResponse{Severity: "ERROR", Code: "40P01", Message: "deadlock"}
		case 6:
			return &pgproto3.ErrorResponse{Severity: "FATAL", Code: "57P01", Message: "shutting down"}
		}
		return nil
	})
	out, err := generator(t, openLoad(1, 100)).Run(context.Background(), p.server, Options{Measure: 200 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	l := phase(t, out, "measure").Load
	balanced(t, l)
	if l.Transactions != 18 || l.Errors["40P01"] != 1 || l.Errors["57P01"] != 1 || p.conns.Load() != 2 {
		t.Errorf("%+v, %d connections", l, p.conns.Load())
	}
}

// A server that never answers holds up neither the end of a run nor its interruption,
// and is asked to cancel.
func TestPostgresInterrupted(t *testing.T) {
	t.Parallel()
	p := startNullPostgres(t)
	never := make(chan struct{})
	t.Cleanup(func() { close(never) })
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	p.answers(func(string) *pgproto3.ErrorResponse {
		cancel()
		<-never
		return nil
	})
	if _, err := generator(t, closedLoad(2)).Run(ctx, p.server, Options{Measure: time.Hour}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	// pgconn may ask once more, when it meets the connection that was closed.
	if p.messages["cancel"] < 2 {
		t.Errorf("%v", p.messages)
	}
}

// BenchmarkNullPostgres is a request and its answer over the loopback device, with the
// null server in this process.
func BenchmarkNullPostgres(b *testing.B) {
	p := startNullPostgres(b)
	benchmarkLoad(b, closedLoad(2), func(o Options) (*Outcome, error) {
		return generator(b, closedLoad(2)).Run(context.Background(), p.server, o)
	})
}
