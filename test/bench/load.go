package main

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

// trial is one measurement under load.
type trial struct {
	clients, seconds, scale int
	readOnly, tls           bool
	seed                    uint64
}

// result of a trial; latency is the mean.
type result struct {
	PerSecond float64 `json:"perSecond"`
	LatencyMS float64 `json:"latencyMs"`
	Failed    int64   `json:"failed"`
	Again     int64   `json:"again,omitempty"` // measurements before it in which no transaction ended
}

// loadSeed fits what the load programs take.
func loadSeed(seed uint64) string { return strconv.FormatUint(seed%1_000_000_000+1, 10) }

func (t target) tool(ctx context.Context, tls bool, argv ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	mode := "disable"
	if tls {
		mode = "require"
	}
	cmd.Env = append(os.Environ(), "PGHOST="+t.host, "PGPORT="+strconv.Itoa(t.port), "PGUSER="+masterUser, "PGPASSWORD="+masterPassword,
		"PGDATABASE="+database, "PGSSLMODE="+mode)
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

func (t target) pgbenchInit(ctx context.Context, tls bool, scale int) error {
	_, err := t.tool(ctx, tls, newest("pgbench"), "-i", "-q", "-s", strconv.Itoa(scale))
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

// pgbench runs the built-in TPC-B-like script, or its select.
func (t target) pgbench(ctx context.Context, x trial) (result, error) {
	ctx, cancel := context.WithTimeout(ctx, (1+emptyMost)*(time.Duration(x.seconds)*time.Second+startGrace))
	defer cancel()
	argv := []string{newest("pgbench"), "-c", strconv.Itoa(x.clients), "-j", strconv.Itoa(min(x.clients, runtime.NumCPU())),
		"-T", strconv.Itoa(x.seconds), "--random-seed=" + loadSeed(x.seed)}
	if x.readOnly {
		argv = append(argv, "-S", "-n")
	}
	for again := int64(0); ; again++ {
		out, err := t.tool(ctx, x.tls, argv...)
		if err != nil {
			return result{}, err
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
	sysbenchRows   = 100_000
)

func (t target) sysbench(ctx context.Context, x trial, command string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Duration(x.seconds)*time.Second+4*startGrace)
	defer cancel()
	argv := []string{"sysbench", "oltp_read_write", "--tables=" + strconv.Itoa(sysbenchTables), "--table-size=" + strconv.Itoa(x.scale),
		"--threads=" + strconv.Itoa(x.clients), "--time=" + strconv.Itoa(x.seconds), "--rand-type=uniform", "--rand-seed=" + loadSeed(x.seed)}
	if t.engine == mariadb {
		argv = append(argv, "--db-driver=mysql", "--mysql-host="+t.host, "--mysql-port="+strconv.Itoa(t.port), "--mysql-user="+masterUser,
			"--mysql-password="+masterPassword, "--mysql-db="+database)
	} else {
		argv = append(argv, "--db-driver=pgsql", "--pgsql-host="+t.host, "--pgsql-port="+strconv.Itoa(t.port), "--pgsql-user="+masterUser,
			"--pgsql-password="+masterPassword, "--pgsql-db="+database)
	}
	return t.tool(ctx, x.tls, append(argv, command)...)
}

func (t target) sysbenchPrepare(ctx context.Context, rows int) error {
	_, err := t.sysbench(ctx, trial{clients: 1, scale: rows}, "prepare")
	return err
}

func (t target) sysbenchRun(ctx context.Context, x trial) (result, error) {
	out, err := t.sysbench(ctx, x, "run")
	if err != nil {
		return result{}, err
	}
	return parse(out, sysbenchTPS, sysbenchLatency, sysbenchErrors)
}

// parse reads a tool's report. A report without a rate is an error; the rest may
// be missing.
func parse(out []byte, rate, latency, failed *regexp.Regexp) (result, error) {
	var r result
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
