package load

import (
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgproto3"

	"kurabe/lab/load/script"
	"kurabe/lab/study"
)

// The reports under testdata are the tools' own, of runs against a server that answers
// everything with nothing after recordDelay; -record makes them anew.
const (
	recordDelay   = 2 * time.Millisecond
	recordSeconds = 2
)

func report(t *testing.T, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", "reports", name))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func near(got, want, share float64) bool { return math.Abs(got-want) <= share*want }

func TestPgbenchReports(t *testing.T) {
	if *record {
		recordPgbench(t)
	}
	for name, open := range map[string]bool{"closed": false, "open": true, "prepared": false, "connect": false, "errors": false} {
		t.Run(name, func(t *testing.T) {
			r, err := parsePgbench(report(t, "pgbench-"+name+".txt"))
			if err != nil {
				t.Fatal(err)
			}
			logs, _ := filepath.Glob(filepath.Join("testdata", "reports", "pgbench-"+name+".log.*"))
			l, err := readPgbenchLogs(logs, time.UnixMicro(0), r, open)
			if err != nil {
				t.Fatal(err)
			}
			if l.Transactions == 0 || !near(l.Seconds, recordSeconds, 0.1) || l.Summary[summaryAverage] == 0 {
				t.Errorf("%+v", l)
			}
			if n := sum(l.Bins); float64(n) < 0.9*float64(l.Transactions) {
				t.Errorf("%d of %d transactions are in the bins", n, l.Transactions)
			}
			if open {
				balanced(t, l)
				if countOf(t, l.Response) != l.Transactions || quantile(t, l.Response, 50) < quantile(t, l.Service, 50) || l.Generator["lag_p99_ms"] == 0 {
					t.Errorf("%+v", l)
				}
			}
			if name == "errors" && (l.Errors["40001"] == 0 || l.Errors["40P01"] == 0) {
				t.Errorf("%v", l.Errors)
			}
			want := []string{"BEGIN", "UPDATE pgbench_accounts SET abalance = abalance + :delta WHERE aid = :aid", "SELECT abalance FROM pgbench_accounts WHERE aid = :aid",
				"UPDATE pgbench_tellers SET tbalance = tbalance + :delta WHERE tid = :tid", "UPDATE pgbench_branches SET bbalance = bbalance + :delta WHERE bid = :bid",
				"INSERT INTO pgbench_history (tid, bid, aid, delta, mtime) VALUES (:tid, :bid, :a…", "END"}
			for n, text := range want {
				if v := l.Summary[summaryStatement+script.Label(n+1, text)]; v < 1 && name != "errors" {
					t.Errorf("statement %s took %g ms of %v", text, v, l.Summary)
				}
			}
			if len(l.Summary) != len(want)+1 {
				t.Errorf("%v", l.Summary)
			}
		})
	}
}

func sum(all []int64) int64 {
	total := int64(0)
	for _, n := range all {
		total += n
	}
	return total
}

func TestSysbenchReports(t *testing.T) {
	if *record {
		recordSysbench(t)
	}
	for name, open := range map[string]bool{"closed": false, "open": true, "overload": true} {
		t.Run(name, func(t *testing.T) {
			l, err := parseSysbench(report(t, "sysbench-"+name+".txt"), open)
			if err != nil {
				t.Fatal(err)
			}
			text := l.Service
			if open {
				text = l.Response
			}
			if l.Transactions == 0 || l.Seconds < recordSeconds || l.Summary["p95"] == 0 || l.Summary["min"] == 0 || l.Summary["max"] == 0 || l.Summary[summaryAverage] == 0 {
				t.Errorf("%+v", l)
			}
			// Its histogram and its own percentile are of the same values.
			if got := quantile(t, text, 95); !near(got, l.Summary["p95"], 0.02) || countOf(t, text) < l.Transactions {
				t.Errorf("p95 of %d is %g ms, and sysbench says %g", countOf(t, text), got, l.Summary["p95"])
			}
			// A schedule that cannot be kept shows in its times: they begin when due.
			if name == "overload" && l.Summary["max"] < 500 {
				t.Errorf("the slowest took %g ms", l.Summary["max"])
			}
		})
	}
}

func TestReportsRefused(t *testing.T) {
	cases := map[string]struct {
		err  error
		want string
	}{
		"pgbench, empty":    {second(parsePgbench(nil)), "no line with tps"},
		"pgbench, half":     {second(parsePgbench([]byte("number of transactions actually processed: 5\n"))), "no line with tps"},
		"pgbench, figure":   {second(parsePgbench([]byte("tps = 1.2.3 (without initial connection time)\n"))), "line 1"},
		"pgbench, long":     {second(parsePgbench([]byte(strings.Repeat("\n", reportLinesMax+1)))), "more lines"},
		"sysbench, empty":   {second(parseSysbench(nil, false)), "no totals"},
		"sysbench, count":   {second(parseSysbench([]byte("  0.1 |** 99999999999999999999\n"), false)), "line 1"},
		"log, short":        {second(parsePgbenchEntry("0 1 2 3 4")), "5 fields"},
		"log, word":         {second(parsePgbenchEntry("0 1 fast 0 1 1")), "no whole number"},
		"log, negative":     {second(parsePgbenchEntry("0 1 -1 0 1 1")), "no whole number"},
		"log, late":         {second(parsePgbenchEntry("0 1 1 0 9223372036854775807 1")), "time"},
		"log, microseconds": {second(parsePgbenchEntry("0 1 1 0 1 1000000")), "time"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if wrong(c.err, c.want) {
				t.Errorf("error = %v, want one with %q", c.err, c.want)
			}
		})
	}
}

func second[T any](_ T, err error) error { return err }

func TestProgressLines(t *testing.T) {
	cases := map[string]struct {
		line string
		read func(string) (float64, bool)
		want float64
		ok   bool
	}{
		"pgbench 15":  {"progress: 2.0 s, 1234.5 tps, lat 0.809 ms stddev 0.1, 0 failed", pgbenchProgress, 1234.5, true},
		"pgbench 13":  {"progress: 1.0 s, 10.0 tps, lat 0.8 ms stddev 0.1", pgbenchProgress, 10, true},
		"pgbench, no": {"pgbench: error: connection refused", pgbenchProgress, 0, false},
		"sysbench":    {"[ 12s ] thds: 2 tps: 51.99 qps: 1039.75 (r/w/o: 0.00/0.00/1039.75) lat (ms,95%): 0.25 err/s: 0.00 reconn/s: 0.00", sysbenchProgress, 51.99, true},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if got, ok := c.read(c.line); got != c.want || ok != c.ok {
				t.Errorf("= %g, %v", got, ok)
			}
		})
	}
}

func FuzzPgbench(f *testing.F) {
	f.Add([]byte("statement latencies in milliseconds and failures:\n 0.002 0 0 BEGIN;\n"))
	f.Add([]byte("tps = 12.3 (without initial connection time)\nnumber of transactions actually processed: 5/5\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := parsePgbench(data)
		if err == nil && (len(r.summary) > script.StatementsMax+1 || math.IsNaN(r.seconds)) {
			t.Errorf("%+v", r)
		}
	})
}

func FuzzPgbenchEntry(f *testing.F) {
	f.Add("0 1 1234 0 1499414498 879183 12")
	f.Add("1 2 skipped 0 1499414498 879183 1.0 0")
	f.Add("1 2 deadlock 0 1499414498 879183")
	f.Fuzz(func(t *testing.T, line string) {
		if e, err := parsePgbenchEntry(line); err == nil && (e.at < 0 || e.took < 0 || e.lag < 0) {
			t.Errorf("%+v", e)
		}
	})
}

func FuzzSysbench(f *testing.F) {
	f.Add([]byte("   0.247 |**** 12\n    transactions:                        104    (51.49 per sec.)\n    total time:                          2.0186s\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if l, err := parseSysbench(data, true); err == nil && (l.Transactions < 0 || l.Seconds <= 0) {
			t.Errorf("%+v", l)
		}
	})
}

// recordPgbench makes the reports of pgbench anew.
func recordPgbench(t *testing.T) {
	for name, change := range map[string]func(*study.Workload){
		"closed": func(*study.Workload) {}, "prepared": func(w *study.Workload) { w.Protocol = protocolPrepared },
		"open": func(w *study.Workload) { w.Mode, w.Rate = study.ModeOpen, 50 }, "connect": func(w *study.Workload) { w.Connect = true },
		"errors": func(*study.Workload) {},
	} {
		p := startNullPostgres(t)
		n := 0
		p.answers(func(text string) *pgproto3.ErrorResponse {
			time.Sleep(recordDelay)
			if name == "errors" && strings.HasPrefix(text, "UPDATE") {
				p.mu.Lock()
				defer p.mu.Unlock()
				if n++; n%10 == 0 {
					return &pgproto3.ErrorResponse{Severity: "ERROR", Code: []string{"40001", "40P01"}[n/10%2], Message: "again"}
				}
			}
			return nil
		})
		w := study.Workload{Name: name, Generator: study.GeneratorPgbench, Kit: "tpcb-like", Mode: study.ModeClosed, Clients: 4, Scale: 1}
		change(&w)
		path, err := findTool("pgbench", pgbenchPackage, pgbenchFolders)
		if err != nil {
			t.Fatal(err)
		}
		r := &pgbenchRun{pgbench: &pgbench{w}, server: p.server, seed: 1, path: path, version: "pgbench (PostgreSQL) 15", dir: t.TempDir()}
		e, err := tool{path: path, args: r.args(recordSeconds, true), env: libpq(p.server)}.run(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		keep(t, "pgbench-"+name+".txt", e.output)
		logs, _ := filepath.Glob(filepath.Join(r.dir, "log.*"))
		slices.Sort(logs)
		for n, from := range logs {
			data, err := os.ReadFile(from)
			if err != nil {
				t.Fatal(err)
			}
			keep(t, fmt.Sprintf("pgbench-%s.log.%d", name, n+1), data)
		}
	}
}

func keep(t *testing.T, name string, data []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Join("testdata", "reports"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join("testdata", "reports", name), data, 0o644); err != nil {
		t.Fatal(err)
	}
}

// recordSysbench makes the reports of sysbench anew.
func recordSysbench(t *testing.T) {
	for name, rate := range map[string]float64{"closed": 0, "open": 20, "overload": 100} {
		p := startNullPostgres(t)
		p.answers(func(string) *pgproto3.ErrorResponse { time.Sleep(recordDelay); return nil })
		w := sysbenchLoad()
		w.Protocol = protocolSimple
		if rate > 0 {
			w.Mode, w.Rate = study.ModeOpen, rate
		}
		x, err := (&sysbench{w}).tool(p.server, 1, recordSeconds, "run")
		if err != nil {
			t.Fatal(err)
		}
		e, err := x.run(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		keep(t, "sysbench-"+name+".txt", e.output)
	}
}

// TestPgbenchWithoutAClock: where pgbench has not read the clock, its log says 0 µs, and
// no percentile is made of that.
func TestPgbenchWithoutAClock(t *testing.T) {
	for instant, fails := range map[int]bool{0: false, 5: false, 6: true, 1000: true} {
		var log strings.Builder
		for n := range 1000 {
			took := 40
			if n < instant {
				took = 0
			}
			fmt.Fprintf(&log, "0 %d %d 0 1795367349 %d\n", n, took, 446768+n)
		}
		path := filepath.Join(t.TempDir(), "log.1")
		if err := os.WriteFile(path, []byte(log.String()), 0o600); err != nil {
			t.Fatal(err)
		}
		report := &pgbenchReport{seconds: 1, transacted: 1000, summary: map[string]float64{}}
		_, err := readPgbenchLogs([]string{path}, time.Unix(1795367349, 0), report, false)
		if (err != nil) != fails || fails && !strings.Contains(err.Error(), "took no time") {
			t.Errorf("%d of 1000: %v", instant, err)
		}
	}
}

// TestPgbenchReadsItsClock: after each statement of its own scripts, and after the last
// of a user's.
func TestPgbenchReadsItsClock(t *testing.T) {
	const shown = "-- select-only: <builtin: select only>\n\\set aid random(1, 100000 * :scale)\nBEGIN;\nSELECT 1;\n\n"
	got, err := clocked(shown, "select-only")
	if want := "\\set aid random(1, 100000 * :scale)\nBEGIN;\n\\set kurabe_clock 0\nSELECT 1;\n\\set kurabe_clock 0\n"; err != nil || got != want {
		t.Errorf("%q, %v", got, err)
	}
	for _, bad := range []string{"", "-- x\n", "SELECT 1,\n  2;\n"} {
		if got, err := clocked(bad, "x"); err == nil {
			t.Errorf("%q became %q", bad, got)
		}
	}
	r := &pgbenchRun{pgbench: &pgbench{study.Workload{Script: "SELECT 1"}}}
	if got, err := r.text(t.Context()); err != nil || got != "SELECT 1\n\\set kurabe_clock 0\n" {
		t.Errorf("%q, %v", got, err)
	}
	report, err := parsePgbench([]byte("tps = 10 (without initial connection time)\nstatement latencies in milliseconds and failures:\n" +
		"         0.5           0  \\set aid random(1, 100000 * :scale)\n         1.0           0  BEGIN;\n         0.25          0  \\set kurabe_clock 0\n" +
		"         0.0           0  SELECT 1;\n         3.0           0  \\set kurabe_clock 0\n"))
	if err != nil || len(report.summary) != 2 || report.summary["statement 01 BEGIN"] != 1.25 || report.summary["statement 02 SELECT 1"] != 3 {
		t.Errorf("%+v, %v", report, err)
	}
}
