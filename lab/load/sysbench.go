package load

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"kurabe/lab/dial"
	"kurabe/lab/result"
	"kurabe/lab/study"
)

var sysbenchKits = []string{"oltp_read_write", "oltp_read_only", "oltp_write_only", "oltp_point_select",
	"oltp_update_index", "oltp_update_non_index", "oltp_insert", "oltp_delete"}

const (
	sysbenchPackage = "sysbench"
	sysbenchTable   = "sbtest1" // the first of as many as --tables says; it is always one
	// sysbenchInsert adds rows, so its table has no number that would be right.
	sysbenchInsert = "oltp_insert"
)

// sysbench is the generator that most measurements of MySQL were made with. It gives no
// bins, and its histogram has steps of 1.8 %.
type sysbench struct{ study.Workload }

func newSysbench(w study.Workload) (*sysbench, error) {
	switch {
	case w.Script != "":
		return nil, errors.New("script: sysbench runs Lua only; the generators kurabe and pgbench run scripts")
	case w.Mode == study.ModeSeries:
		return nil, errors.New("mode: sysbench has no series")
	case w.Mode == study.ModeOpen && w.Arrival == study.ArrivalConstant:
		return nil, errors.New("arrival: sysbench's is poisson")
	case w.Connect:
		return nil, errors.New("connect: sysbench keeps its connections")
	case w.Protocol != "" && w.Protocol != protocolSimple && w.Protocol != protocolPrepared:
		return nil, fmt.Errorf("protocol: sysbench has simple and prepared, not %q", w.Protocol)
	}
	return &sysbench{w}, checkKit(w.Generator, w.Kit)
}

func (g *sysbench) Check(engine string) error {
	if err := checkEngine(g.Workload, engine, study.Postgres, study.MariaDB, study.MySQL); err != nil {
		return err
	}
	_, err := findTool("sysbench", sysbenchPackage, "")
	return err
}

// tool is a command of sysbench for the server.
func (g *sysbench) tool(s dial.Server, seed uint64, seconds int, command string) (tool, error) {
	path, err := findTool("sysbench", sysbenchPackage, "")
	if err != nil {
		return tool{}, err
	}
	t := tool{path: path, args: []string{g.Kit, "--tables=1", "--table-size=" + strconv.FormatInt(rowsOf(g.Workload), 10),
		"--rand-type=uniform", "--rand-seed=" + strconv.FormatUint(toolSeed(seed), 10)}}
	if g.Protocol == protocolSimple {
		t.args = append(t.args, "--db-ps-mode=disable")
	}
	if s.Engine == study.Postgres {
		t.args = append(t.args, "--db-driver=pgsql", "--pgsql-host="+s.Host, "--pgsql-port="+strconv.Itoa(s.Port),
			"--pgsql-user="+s.User, "--pgsql-db="+s.Database)
		t.env = libpq(s)
	} else if t.input, err = mysqlConfig(s); err != nil {
		return tool{}, err
	} else {
		t.args = append(t.args, "--db-driver=mysql", "--config-file=/dev/stdin")
	}
	if command == "run" {
		t.args = append(t.args, "--threads="+strconv.Itoa(g.Clients), "--time="+strconv.Itoa(seconds), "--report-interval=1", "--histogram=on")
		if g.Mode == study.ModeOpen {
			// Whole numbers only: 0 would be without a limit.
			t.args = append(t.args, "--rate="+strconv.Itoa(max(1, int(g.Rate+0.5))))
		}
	}
	t.args = append(t.args, command)
	return t, nil
}

// mysqlConfig is a configuration for sysbench's standard input: its only other way to take
// a password is an argument, which everybody on the machine can read. In its files a
// quoted value keeps every character but the quote, for which there is no escape.
func mysqlConfig(s dial.Server) (string, error) {
	if s.TLS {
		return "", errors.New("sysbench 1.0 encrypts for MySQL only with a client certificate; use a server address without TLS, or the generator kurabe")
	}
	if strings.ContainsAny(string(s.Password), "\"\n\r") {
		return "", errors.New("sysbench cannot be given a password with a double quote or a line break in it, but as an argument that everybody could read; use another password, or the generator kurabe")
	}
	return fmt.Sprintf("mysql-host=%s\nmysql-port=%d\nmysql-user=%s\nmysql-db=%s\nmysql-password=\"%s\"\n", s.Host, s.Port, s.User, s.Database, string(s.Password)), nil
}

func (g *sysbench) Prepare(ctx context.Context, s dial.Server) error {
	session, err := dial.Open(ctx, s)
	if err != nil {
		return err
	}
	defer session.Close()
	tables := []table{{name: sysbenchTable, rows: rowsOf(g.Workload), grows: g.Kit == sysbenchInsert}}
	there, err := clearTables(ctx, session, s, tables)
	if err != nil || there {
		return err
	}
	at, err := openWorkshop(ctx, session, s)
	if err != nil {
		return err
	}
	t, err := g.tool(at.Server, 0, 0, "prepare")
	if err != nil {
		return err
	}
	t.env = append(t.env, at.env...)
	if _, err := t.run(ctx); err != nil {
		return err
	}
	if err := at.deliver(ctx, session, tables); err != nil {
		return err
	}
	if s.Engine == study.Postgres {
		return session.Exec(ctx, "VACUUM ANALYZE "+sysbenchTable)
	}
	return session.Exec(ctx, "ANALYZE TABLE "+sysbenchTable)
}

func (g *sysbench) Run(ctx context.Context, s dial.Server, o Options) (*Outcome, error) {
	if err := g.Check(s.Engine); err != nil {
		return nil, err
	}
	path, err := findTool("sysbench", sysbenchPackage, "")
	if err != nil {
		return nil, err
	}
	named, err := version(ctx, path)
	if err != nil {
		return nil, err
	}
	once := func(ctx context.Context, seconds int, measured bool, perSecond func(float64)) (*result.Load, error) {
		t, err := g.tool(s, o.Seed, seconds, "run")
		if err != nil {
			return nil, err
		}
		if perSecond != nil {
			t.watchOutput = true
			t.line = func(line string) {
				if rate, ok := sysbenchProgress(line); ok {
					perSecond(rate)
				}
			}
		}
		e, err := t.run(ctx)
		if err != nil || !measured {
			return nil, err
		}
		l, err := parseSysbench(e.output, g.Mode == study.ModeOpen)
		if err != nil {
			return nil, fmt.Errorf("read sysbench's report: %w", err)
		}
		l.Prog = named
		l.Generator["cpu_s"] = e.cpuSeconds
		return l, nil
	}
	return toolCourse{Options: o, run: once}.lead(ctx)
}
