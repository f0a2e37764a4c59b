//go:build integration

package proxy

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"kurabe/test/relay"
)

// TestPostgresDifferential runs random programs of several sessions on two equal databases,
// directly and through the proxy, and wants the same answers. With one connection, a program
// changes its session only where no transaction is open, and pins nothing.
func TestPostgresDifferential(t *testing.T) {
	s := server(t)
	for name, c := range map[string]struct {
		connections int
		pins        bool
	}{"one connection": {1, false}, "pinned sessions": {4, true}} {
		t.Run(name, func(t *testing.T) {
			x := start(t, s, c.connections, nil)
			for round := range 3 {
				seed := rand.Uint64()
				if !differ(t, s, x, seed, c.pins) {
					t.Fatalf("seed %d, round %d\n%s", seed, round, x.log.String())
				}
			}
		})
	}
}

// programLength is how many steps a program has.
const programLength = 250

func differ(t *testing.T, s *relay.Server, x *through, seed uint64, pins bool) bool {
	ctx := deadline(t)
	admin := connect(t, s.URL("postgres"), simple)
	var sides [2]*side
	for i, name := range []string{"diff_direct", "diff_proxied"} {
		exec(t, admin, "DROP DATABASE IF EXISTS "+name+" WITH (FORCE)")
		exec(t, admin, "CREATE DATABASE "+name)
		prepare := connect(t, s.URL(name), simple)
		exec(t, prepare, "CREATE TABLE t (id int PRIMARY KEY, v text); CREATE SCHEMA a; CREATE SCHEMA b; CREATE TABLE a.w AS SELECT 'a' AS here; CREATE TABLE b.w AS SELECT 'b' AS here; CREATE TABLE w AS SELECT 'public' AS here; CREATE SEQUENCE seq")
		_ = prepare.Close(ctx)
		at := s.Address
		if i == 1 {
			at = x.Address
		}
		sides[i] = &side{url: relay.URL(at, name)}
		defer sides[i].close()
	}
	g := &program{r: rand.New(rand.NewPCG(seed, 1)), pins: pins, states: make([]state, 4)}
	for n := range programLength {
		session, step := g.next()
		direct := sides[0].do(ctx, session, step)
		proxied := sides[1].do(ctx, session, step)
		if failed := g.states[session].status == 'E' && step.how == "execute"; failed && strings.Contains(direct, "ERROR") && strings.Contains(proxied, "ERROR") {
			// A statement that this connection does not have yet cannot be parsed in a
			// transaction that has failed: the reason is that, and not what its values lack.
			direct, proxied = "", ""
		}
		if direct != proxied {
			t.Errorf("step %d, session %d, %s %q:\n direct  %s\n proxied %s", n, session, step.how, step.sql, direct, proxied)
			return false
		}
		g.states[session].status = 'I'
		if c := sides[0].sessions[session]; c != nil {
			g.states[session].status = c.TxStatus()
		}
	}
	return true
}

// side is one of the two databases, with its sessions.
type side struct {
	url      string
	sessions [4]*pgconn.PgConn
}

func (s *side) close() {
	for _, c := range s.sessions {
		if c != nil {
			_ = c.Close(context.Background())
		}
	}
}

type step struct {
	how  string
	sql  string
	name string
	args []string
}

// do runs a step, and tells everything that the client sees of it.
func (s *side) do(ctx context.Context, session int, x step) string {
	c := s.sessions[session]
	if c == nil {
		var err error
		if c, err = pgconn.Connect(ctx, s.url+"&application_name=session"+fmt.Sprint(session)); err != nil {
			return err.Error()
		}
		s.sessions[session] = c
	}
	var args [][]byte
	for _, a := range x.args {
		args = append(args, []byte(a))
	}
	var out strings.Builder
	switch x.how {
	case "close":
		_ = c.Close(ctx)
		s.sessions[session] = nil
		return ""
	case "simple":
		results, err := c.Exec(ctx, x.sql).ReadAll()
		for _, r := range results {
			tell(&out, r, nil)
		}
		tell(&out, nil, err)
	case "unnamed":
		tell(&out, c.ExecParams(ctx, x.sql, args, nil, nil, nil).Read(), nil)
	case "prepare":
		d, err := c.Prepare(ctx, x.name, x.sql, nil)
		if err == nil {
			fmt.Fprint(&out, d.ParamOIDs, len(d.Fields))
		}
		tell(&out, nil, err)
	case "execute":
		tell(&out, c.ExecPrepared(ctx, x.name, args, nil, nil).Read(), nil)
	case "deallocate":
		tell(&out, nil, c.Deallocate(ctx, x.name))
	case "copy in":
		tag, err := c.CopyFrom(ctx, strings.NewReader(strings.Join(x.args, "\n")+"\n"), x.sql)
		fmt.Fprint(&out, tag)
		tell(&out, nil, err)
	case "copy out":
		var b bytes.Buffer
		tag, err := c.CopyTo(ctx, &b, x.sql)
		fmt.Fprint(&out, tag, b.String())
		tell(&out, nil, err)
	case "pipeline":
		pipeline(ctx, c, x, &out)
	}
	fmt.Fprintf(&out, " status %c", c.TxStatus())
	for _, name := range []string{"application_name", "DateStyle", "TimeZone", "client_encoding"} {
		fmt.Fprint(&out, " ", c.ParameterStatus(name))
	}
	return out.String()
}

// pipeline sends all statements of a step before it reads an answer.
func pipeline(ctx context.Context, c *pgconn.PgConn, x step, out *strings.Builder) {
	p := c.StartPipeline(ctx)
	for i, sql := range strings.Split(x.sql, ";") {
		switch name := fmt.Sprint(x.name, i); {
		case sql == "|":
			_ = p.Sync()
		case i%2 == 1:
			p.SendPrepare(name, sql, nil)
			p.SendQueryPrepared(name, nil, nil, nil)
			p.SendDeallocate(name)
		default:
			p.SendQueryParams(sql, nil, nil, nil, nil)
		}
	}
	_ = p.Sync()
	for {
		r, err := p.GetResults()
		if err != nil {
			tell(out, nil, err)
			if pgErr := (*pgconn.PgError)(nil); !errors.As(err, &pgErr) {
				break
			}
			continue
		}
		switch r := r.(type) {
		case nil:
			_ = p.Close()
			return
		case *pgconn.ResultReader:
			tell(out, r.Read(), nil)
		default:
			fmt.Fprintf(out, "%T;", r)
		}
	}
	_ = p.Close()
}

func tell(out *strings.Builder, r *pgconn.Result, err error) {
	if r != nil {
		for _, row := range r.Rows {
			fmt.Fprintf(out, "%q", row)
		}
		fmt.Fprint(out, r.CommandTag, ";")
		err = errors.Join(err, r.Err)
	}
	if failure := (*pgconn.PgError)(nil); errors.As(err, &failure) {
		fmt.Fprint(out, failure.Severity, failure.Code, failure.Message, ";")
	} else if err != nil {
		fmt.Fprint(out, err, ";")
	}
}

// state is what the program knows of a session.
type state struct{ status byte }

// program makes steps.
type program struct {
	r       *rand.Rand
	pins    bool
	states  []state
	current int
	ids     int
}

func (g *program) pick(of ...string) string { return of[g.r.IntN(len(of))] }

// next gives the next step and its session.
func (g *program) next() (int, step) {
	if g.states[g.current].status != 'T' && g.states[g.current].status != 'E' {
		g.current = g.r.IntN(len(g.states))
	}
	s := g.step()
	return g.current, s
}

func (g *program) step() step {
	g.ids++
	id, name := fmt.Sprint(g.ids), g.pick("p1", "p2", "P three")
	setting := g.pick("SET search_path TO a", "SET search_path TO b, public", "RESET search_path", "SET search_path TO DEFAULT", "SET datestyle = 'German'", "SET datestyle = ISO",
		"SET TIME ZONE 'Asia/Tokyo'", "SET TIME ZONE DEFAULT", "SET LOCAL search_path TO b", "SELECT set_config('my.x', '"+id+"', false)", "SELECT set_config('my.x', '"+id+"', true)",
		"RESET ALL", "DISCARD ALL", "SET work_mem = '"+id+"kB'", "SET application_name = 'app"+id+"'", "SET nonsense = 1", "SET client_encoding = 'LATIN1'", "RESET client_encoding", "DISCARD PLANS")
	look := g.pick("SELECT here FROM w", "SHOW search_path", "SELECT current_setting('my.x', true)", "SELECT '2026-02-01'::date, now()::timestamptz IS NULL", "SHOW work_mem", "SHOW TimeZone",
		"SELECT count(*) FROM t", "SELECT v FROM t ORDER BY id DESC LIMIT 3", "SELECT 'é'", "SELECT repeat('long ', 20000)")
	change := g.pick("INSERT INTO t VALUES ("+id+", 'x')", "UPDATE t SET v = v || 'y' WHERE id % 3 = 0", "DELETE FROM t WHERE id = "+id+" - 20", "INSERT INTO t VALUES (1, 'again')")
	wrong := g.pick("SELECT 1/0", "SELECT nonsense", "SELEC", "", "INSERT INTO nowhere VALUES (1)", ";")
	switch n := g.r.IntN(100); {
	case n < 12:
		return step{how: "simple", sql: g.pick("BEGIN", "BEGIN ISOLATION LEVEL SERIALIZABLE", "COMMIT", "ROLLBACK", "COMMIT", "SAVEPOINT s", "ROLLBACK TO s", "RELEASE s", "BEGIN; "+change+"; COMMIT", change+"; "+wrong)}
	case n < 30:
		return step{how: g.pick("simple", "unnamed"), sql: setting}
	case n < 50:
		return step{how: g.pick("simple", "unnamed"), sql: look}
	case n < 60:
		return step{how: g.pick("simple", "unnamed"), sql: change}
	case n < 65:
		return step{how: g.pick("simple", "unnamed"), sql: wrong}
	case n < 72:
		return step{how: "prepare", name: name, sql: "/* " + name + " */ " + g.pick(look, change, "SELECT $1::int + 1", setting, wrong)}
	case n < 80:
		return step{how: "execute", name: name}
	case n < 83:
		return g.forget(name)
	case n < 86:
		return step{how: "copy in", sql: "COPY t FROM STDIN", args: []string{id + "\tcopied", g.pick(id+"000\tmore", "bad", id+"\ttwice")}}
	case n < 88:
		return step{how: "copy out", sql: g.pick("COPY (SELECT * FROM t ORDER BY id) TO STDOUT", "COPY nowhere TO STDOUT")}
	case n < 97:
		return step{how: "pipeline", name: "pipe" + id + "_", sql: strings.Join([]string{g.pick(look, change), g.pick(look, wrong), g.pick("|", setting), g.pick(look, "BEGIN"), g.pick(change, "|"), g.pick("COMMIT", look)}, ";")}
	case n < 98:
		return step{how: "close"}
	case g.pins:
		return step{how: "simple", sql: g.pick("CREATE TEMP TABLE IF NOT EXISTS mine (n int)", "INSERT INTO mine VALUES ("+id+")", "SELECT count(*) FROM mine", "DECLARE c CURSOR WITH HOLD FOR SELECT 1", "FETCH c", "CLOSE c", "PREPARE q AS SELECT 'q'", "EXECUTE q")}
	}
	return step{how: "simple", sql: "BEGIN; DECLARE c CURSOR FOR SELECT generate_series(1, 3); FETCH 2 FROM c; COMMIT"}
}

func (g *program) forget(name string) step {
	if g.r.IntN(2) == 0 {
		return step{how: "deallocate", name: name}
	}
	return step{how: "simple", sql: g.pick(`DEALLOCATE "`+name+`"`, `EXECUTE "`+name+`"`, "DEALLOCATE ALL")}
}
