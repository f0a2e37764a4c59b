package bed

import (
	"strings"
	"testing"
)

const pgbenchReport = `transaction type: <builtin: TPC-B (sort of)>
number of transactions actually processed: 23405
number of failed transactions: 2 (0.009%)
latency average = 6.831 ms
initial connection time = 39.472 ms
tps = 1171.093112 (without initial connection time)
`

const sysbenchReport = `SQL statistics:
    transactions:                        1583   (527.20 per sec.)
    ignored errors:                      3      (1.00 per sec.)
Latency (ms):
         min:                                    4.91
         avg:                                   15.16
`

func TestParseReports(t *testing.T) {
	got, err := parse([]byte(pgbenchReport), pgbenchTPS, pgbenchLatency, pgbenchFailed)
	if want := (Result{PerSecond: 1171.093112, LatencyMS: 6.831, Failed: 2}); err != nil || got != want {
		t.Errorf("pgbench: %+v %v, want %+v", got, err, want)
	}
	got, err = parse([]byte(sysbenchReport), sysbenchTPS, sysbenchLatency, sysbenchErrors)
	if want := (Result{PerSecond: 527.20, LatencyMS: 15.16, Failed: 3}); err != nil || got != want {
		t.Errorf("sysbench: %+v %v, want %+v", got, err, want)
	}
	if _, err = parse([]byte("connection refused"), pgbenchTPS, pgbenchLatency, pgbenchFailed); err == nil {
		t.Error("a report without a rate was accepted")
	}
	if pgbenchNone.MatchString(pgbenchReport) || !pgbenchNone.MatchString("duration: 1 s\nnumber of transactions actually processed: 0\nnumber of failed transactions: 0 (NaN%)\n") {
		t.Error("a report of no transaction is not told from one of many")
	}
}

func TestHomeInArguments(t *testing.T) {
	const home = "/var/tmp/x/data/instances/db-ABC"
	for name, argv := range map[string][]string{
		"a path of its own": {"/x/postgres", "-D", home + "/data", "-c", "config_file=" + home + "/conf/postgresql.conf"},
		"after an option":   {"/x/mariadbd", "--defaults-file=" + home + "/conf/my.cnf"},
	} {
		if got := homeIn(argv, "db-ABC"); got != home {
			t.Errorf("%s: %q", name, got)
		}
	}
	if got := homeIn([]string{"/x/postgres"}, "db-ABC"); got != "" {
		t.Errorf("found %q in nothing", got)
	}
}

func TestTableKeepsItsColumns(t *testing.T) {
	var b strings.Builder
	printTable(&b, []Row{{What: "a → b", Value: "1.0 s", Bar: "≤ 2 s", Verdict: Meets}, {What: "longer name", Value: "2", Note: "why"}})
	lines := strings.Split(b.String(), "\n")
	column := func(line, word string) int { return len([]rune(line[:strings.Index(line, word)])) }
	if column(lines[1], "1.0 s") != column(lines[2], "2") || strings.TrimSpace(lines[3]) != "why" {
		t.Errorf("columns differ:\n%s", b.String())
	}
}
