package load

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"time"

	"kurabe/lab/dial"
	"kurabe/lab/owner"
	"kurabe/lab/result"
	"kurabe/lab/study"
)

var pgbenchKits = []string{"tpcb-like", "simple-update", "select-only"}

const (
	pgbenchPackage = "postgresql"
	// pgbenchFolders of Debian. What lies on PATH there is a wrapper that chooses.
	pgbenchFolders = "/usr/lib/postgresql/*/bin"
	// pgbenchDetails is the first version with --failures-detailed.
	pgbenchDetails = 15
)

// pgbench is PostgreSQL's own generator. Its histograms and bins come from its log of
// every transaction, its statements from -r.
type pgbench struct{ study.Workload }

func newPgbench(w study.Workload) (*pgbench, error) {
	switch {
	case w.Mode == study.ModeSeries:
		return nil, errors.New("mode: pgbench has no series")
	case w.Mode == study.ModeOpen && w.Arrival == study.ArrivalConstant:
		return nil, errors.New("arrival: pgbench's is poisson")
	case w.Protocol != "" && !slices.Contains([]string{protocolSimple, protocolExtended, protocolPrepared}, w.Protocol):
		return nil, fmt.Errorf("protocol: %q is none of simple, extended, prepared", w.Protocol)
	case w.Kit != "":
		return &pgbench{w}, checkKit(w.Generator, w.Kit)
	}
	return &pgbench{w}, nil
}

func (g *pgbench) Check(engine string) error {
	if err := checkEngine(g.Workload, engine, study.Postgres); err != nil {
		return err
	}
	_, err := findTool("pgbench", pgbenchPackage, pgbenchFolders)
	return err
}

// libpq is the environment that names a server to libpq. Of a process, only its owner
// and root can read it.
func libpq(s dial.Server) []string {
	mode := "disable"
	if s.TLS {
		mode = "require"
	}
	return []string{"PGHOST=" + s.Host, "PGPORT=" + strconv.Itoa(s.Port), "PGUSER=" + s.User, "PGPASSWORD=" + string(s.Password),
		"PGDATABASE=" + s.Database, "PGSSLMODE=" + mode, "PGAPPNAME=pgbench"}
}

func (g *pgbench) Prepare(ctx context.Context, s dial.Server) error {
	session, err := dial.Open(ctx, s)
	if err != nil {
		return err
	}
	defer session.Close()
	if g.Script != "" {
		if err := session.Exec(ctx, setup(g.Workload, s.Engine)...); err != nil {
			return fmt.Errorf("setup of %q: %w", g.Name, err)
		}
		return nil
	}
	tables := pgbenchTables(g.Workload)
	there, err := clearTables(ctx, session, s, tables)
	if err != nil || there {
		return err
	}
	path, err := findTool("pgbench", pgbenchPackage, pgbenchFolders)
	if err != nil {
		return err
	}
	at, err := openWorkshop(ctx, session, s)
	if err != nil {
		return err
	}
	if _, err := (tool{path: path, args: []string{"-i", "-q", "-s", strconv.Itoa(g.Scale)}, env: append(libpq(s), at.env...)}).run(ctx); err != nil {
		return err
	}
	return at.deliver(ctx, session, tables)
}

func (g *pgbench) Run(ctx context.Context, s dial.Server, o Options) (*Outcome, error) {
	if err := g.Check(s.Engine); err != nil {
		return nil, err
	}
	path, err := findTool("pgbench", pgbenchPackage, pgbenchFolders)
	if err != nil {
		return nil, err
	}
	named, err := version(ctx, path)
	if err != nil {
		return nil, err
	}
	dir, err := owner.Folder("", "pgbench")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	r := &pgbenchRun{pgbench: g, server: s, seed: o.Seed, path: path, version: named, dir: dir}
	return toolCourse{Options: o, run: r.once}.lead(ctx)
}

// pgbenchRun is what the two runs of a trial share.
type pgbenchRun struct {
	*pgbench
	server             dial.Server
	seed               uint64
	path, version, dir string
}

var pgbenchMajor = regexp.MustCompile(`\) (\d+)`)

// args are those of one run.
func (r *pgbenchRun) args(seconds int, measured bool) []string {
	args := []string{"-n", "-c", strconv.Itoa(r.Clients), "-j", strconv.Itoa(min(r.Clients, runtime.NumCPU())),
		"-T", strconv.Itoa(seconds), "--random-seed=" + strconv.FormatUint(toolSeed(r.seed), 10)}
	if r.Protocol != "" {
		args = append(args, "-M", r.Protocol)
	}
	if r.Connect {
		args = append(args, "-C")
	}
	if r.Mode == study.ModeOpen {
		// What would start later than that is skipped and counted, as by our own generator.
		args = append(args, "-R", strconv.FormatFloat(r.Rate, 'f', -1, 64), "-L", strconv.FormatInt(queueMax.Milliseconds(), 10))
	}
	if measured {
		args = append(args, "-r", "-l", "--log-prefix="+filepath.Join(r.dir, "log"))
		if m := pgbenchMajor.FindStringSubmatch(r.version); m != nil {
			if major, err := strconv.Atoi(m[1]); err == nil && major >= pgbenchDetails {
				args = append(args, "--failures-detailed")
			}
		}
	} else {
		args = append(args, "-P", "1")
	}
	return append(args, "-s", strconv.Itoa(r.Scale), "-f", r.script())
}

func (r *pgbenchRun) script() string { return filepath.Join(r.dir, "script.sql") }

func (r *pgbenchRun) once(ctx context.Context, seconds int, measured bool, perSecond func(float64)) (*result.Load, error) {
	text, err := r.text(ctx)
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(r.script(), []byte(text), 0o600); err != nil {
		return nil, err
	}
	t := tool{path: r.path, args: r.args(seconds, measured), env: libpq(r.server)}
	if perSecond != nil {
		t.line = func(line string) {
			if rate, ok := pgbenchProgress(line); ok {
				perSecond(rate)
			}
		}
	}
	begin := time.Now()
	e, err := t.run(ctx)
	if err != nil || !measured {
		return nil, err
	}
	report, err := parsePgbench(e.output)
	if err != nil {
		return nil, fmt.Errorf("read pgbench's report: %w", err)
	}
	logs, err := filepath.Glob(filepath.Join(r.dir, "log.*"))
	if err != nil {
		return nil, err
	}
	l, err := readPgbenchLogs(logs, begin, report, r.Mode == study.ModeOpen)
	if err != nil {
		return nil, fmt.Errorf("read pgbench's log: %w", err)
	}
	l.Prog = r.version
	l.Generator["cpu_s"] = e.cpuSeconds
	return l, nil
}
