package bed

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"strconv"
	"time"
)

// startGrace is how much longer than its measuring time a load program may take.
const startGrace = 30 * time.Second

// Trial is one measurement under load.
type Trial struct {
	Clients, Seconds, Scale int
	ReadOnly, Tls           bool
	Seed                    uint64
}

// Result of a trial; latency is the mean.
type Result struct {
	PerSecond float64 `json:"perSecond"`
	LatencyMS float64 `json:"latencyMs"`
	Failed    int64   `json:"failed"`
	Again     int64   `json:"again,omitempty"` // measurements before it in which no transaction ended
}

// loadSeed fits what the load programs take.
func loadSeed(seed uint64) string { return strconv.FormatUint(seed%1_000_000_000+1, 10) }

func (t Target) tool(ctx context.Context, tls bool, argv ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	mode := "disable"
	if tls {
		mode = "require"
	}
	cmd.Env = append(os.Environ(), "PGHOST="+t.Host, "PGPORT="+strconv.Itoa(t.Port), "PGUSER="+MasterUser, "PGPASSWORD="+MasterPassword,
		"PGDATABASE="+Database, "PGSSLMODE="+mode)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		tail := stderr.Bytes()
		const most = 400
		err = fmt.Errorf("%s: %w: %s", argv[0], err, tail[max(0, len(tail)-most):])
	}
	return out, err
}

// PgbenchInit makes pgbench's tables.
func (t Target) PgbenchInit(ctx context.Context, tls bool, scale int) error {
	_, err := t.tool(ctx, tls, Newest("pgbench"), "-i", "-q", "-s", strconv.Itoa(scale))
	return err
}

var (
	pgbenchTPS     = regexp.MustCompile(`(?m)^tps = ([0-9.]+) \(without`)
	pgbenchLatency = regexp.MustCompile(`(?m)^latency average = ([0-9.]+) ms`)
	pgbenchNone    = regexp.MustCompile(`(?m)^number of transactions actually processed: 0$`)
	pgbenchFailed  = regexp.MustCompile(`(?m)^number of failed transactions: ([0-9]+)`)
)

// emptyMost is how often a measurement is repeated in which no transaction ended: a second may
// be too short on a machine whose processors others have. It has no ratio to any other.
const emptyMost = 3

// Pgbench runs the built-in TPC-B-like script, or its select.
func (t Target) Pgbench(ctx context.Context, x Trial) (Result, error) {
	ctx, cancel := context.WithTimeout(ctx, (1+emptyMost)*(time.Duration(x.Seconds)*time.Second+startGrace))
	defer cancel()
	argv := []string{Newest("pgbench"), "-c", strconv.Itoa(x.Clients), "-j", strconv.Itoa(min(x.Clients, runtime.NumCPU())),
		"-T", strconv.Itoa(x.Seconds), "--random-seed=" + loadSeed(x.Seed)}
	if x.ReadOnly {
		argv = append(argv, "-S", "-n")
	}
	for again := int64(0); ; again++ {
		out, err := t.tool(ctx, x.Tls, argv...)
		if err != nil {
			return Result{}, err
		}
		if again < emptyMost && pgbenchNone.Match(out) {
			continue
		}
		r, err := parse(out, pgbenchTPS, pgbenchLatency, pgbenchFailed)
		r.Again = again
		return r, err
	}
}

var (
	sysbenchTPS     = regexp.MustCompile(`transactions:\s+[0-9]+\s+\(([0-9.]+) per sec`)
	sysbenchLatency = regexp.MustCompile(`avg:\s+([0-9.]+)`)
	sysbenchErrors  = regexp.MustCompile(`ignored errors:\s+([0-9]+)`)
)

// The size of sysbench's data: each row takes about 250 bytes with its index.
const (
	sysbenchTables = 4
	SysbenchRows   = 100_000
)

func (t Target) sysbench(ctx context.Context, x Trial, command string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Duration(x.Seconds)*time.Second+4*startGrace)
	defer cancel()
	argv := []string{"sysbench", "oltp_read_write", "--tables=" + strconv.Itoa(sysbenchTables), "--table-size=" + strconv.Itoa(x.Scale),
		"--threads=" + strconv.Itoa(x.Clients), "--time=" + strconv.Itoa(x.Seconds), "--rand-type=uniform", "--rand-seed=" + loadSeed(x.Seed)}
	if t.Engine == MariaDB {
		argv = append(argv, "--db-driver=mysql", "--mysql-host="+t.Host, "--mysql-port="+strconv.Itoa(t.Port), "--mysql-user="+MasterUser,
			"--mysql-password="+MasterPassword, "--mysql-db="+Database)
	} else {
		argv = append(argv, "--db-driver=pgsql", "--pgsql-host="+t.Host, "--pgsql-port="+strconv.Itoa(t.Port), "--pgsql-user="+MasterUser,
			"--pgsql-password="+MasterPassword, "--pgsql-db="+Database)
	}
	return t.tool(ctx, x.Tls, append(argv, command)...)
}

// SysbenchPrepare makes sysbench's table.
func (t Target) SysbenchPrepare(ctx context.Context, rows int) error {
	_, err := t.sysbench(ctx, Trial{Clients: 1, Scale: rows}, "prepare")
	return err
}

// SysbenchRun runs oltp_read_write.
func (t Target) SysbenchRun(ctx context.Context, x Trial) (Result, error) {
	out, err := t.sysbench(ctx, x, "run")
	if err != nil {
		return Result{}, err
	}
	return parse(out, sysbenchTPS, sysbenchLatency, sysbenchErrors)
}

// parse reads a tool's report. A report without a rate is an error; the rest may
// be missing.
func parse(out []byte, rate, latency, failed *regexp.Regexp) (Result, error) {
	var r Result
	if m := rate.FindSubmatch(out); m != nil {
		r.PerSecond, _ = strconv.ParseFloat(string(m[1]), 64)
	}
	if m := latency.FindSubmatch(out); m != nil {
		r.LatencyMS, _ = strconv.ParseFloat(string(m[1]), 64)
	}
	if m := failed.FindSubmatch(out); m != nil {
		r.Failed, _ = strconv.ParseInt(string(m[1]), 10, 64)
	}
	if r.PerSecond <= 0 {
		return r, fmt.Errorf("no rate in the report: %s", out)
	}
	return r, nil
}
