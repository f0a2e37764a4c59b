//go:build integration

package integration

import (
	"fmt"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"kurabe/internal/harness"
)

// generator is a client of an engine that many use and nobody wrote for this project.
type generator struct {
	tool       string
	fill, load []string
	// advances asks for what grows with each transaction of the load.
	advances string
	// consistent are questions, and what a whole database answers.
	consistent [][2]string
}

const (
	pgbenchScale = 20 // 2,000,000 accounts, 300 MB
	sysbenchRows = 500_000
	// loadSeconds is more than a snapshot and its restores take; the load is ended before.
	loadSeconds = "600"
	// loadFewest transactions must have come in before the snapshot, and while it is taken.
	loadFewest = 20
	loadTime   = 3 * time.Minute
)

// sysbenchArgs are of a load whose transactions keep the number of rows: what one
// deletes it inserts again.
var sysbenchArgs = []string{"oltp_read_write", "--config-file=/dev/stdin", "--db-driver=mysql", "--tables=2", "--table-size=" + strconv.Itoa(sysbenchRows/2), "--db-ps-mode=disable"}

var generators = map[string]generator{
	"postgres": {
		tool: "pgbench", fill: []string{"-i", "-q", "-s", strconv.Itoa(pgbenchScale)}, load: []string{"-n", "-c", "4", "-T", loadSeconds},
		advances: "SELECT count(*) FROM pgbench_history",
		consistent: [][2]string{
			{"SELECT count(*) FROM pgbench_accounts", strconv.Itoa(pgbenchScale * 100_000)},
			{`SELECT (SELECT sum(delta) FROM pgbench_history) = ALL (ARRAY[(SELECT sum(abalance) FROM pgbench_accounts),
				(SELECT sum(tbalance) FROM pgbench_tellers), (SELECT sum(bbalance) FROM pgbench_branches)])`, "true"},
		},
	},
	"mariadb": {
		tool: "sysbench", fill: append(sysbenchArgs[:len(sysbenchArgs):len(sysbenchArgs)], "prepare"),
		load: append(sysbenchArgs[:len(sysbenchArgs):len(sysbenchArgs)], "--threads=4", "--time="+loadSeconds, "run"),
		// Only its transactions delete, one row each.
		advances: "SELECT variable_value FROM information_schema.global_status WHERE variable_name = 'COM_DELETE'",
		consistent: [][2]string{
			{"SELECT concat((SELECT count(*) FROM sbtest1), ' ', (SELECT count(*) FROM sbtest2))", fmt.Sprintf("%[1]d %[1]d", sysbenchRows/2)},
			{"SELECT concat((SELECT count(DISTINCT id) FROM sbtest1 FORCE INDEX (PRIMARY)), ' ', (SELECT count(*) FROM sbtest1 FORCE INDEX (k_1) WHERE k >= 0))", fmt.Sprintf("%[1]d %[1]d", sysbenchRows/2)},
		},
	},
}

// command is one run of the tool. The password is in no argument.
func (g generator) command(t *testing.T, i *harness.Instance, args []string) *exec.Cmd {
	t.Helper()
	path, err := exec.LookPath(g.tool)
	if err != nil {
		t.Skipf("no client of this kind here: %v", err)
	}
	l := i.Login(t)
	c := exec.CommandContext(t.Context(), path, args...)
	if i.Engine == "mariadb" {
		c.Stdin = strings.NewReader(fmt.Sprintf("mysql-host=%s\nmysql-port=%d\nmysql-user=%s\nmysql-db=%s\nmysql-password=\"%s\"\n", l.Address, l.Port, l.User, l.Database, l.Password))
		return c
	}
	c.Args = append(c.Args, l.Database)
	c.Env = append(c.Environ(), "PGHOST="+l.Address, "PGPORT="+strconv.Itoa(l.Port), "PGUSER="+l.User, "PGPASSWORD="+l.Password,
		"PGSSLMODE=verify-full", "PGSSLROOTCERT="+l.CAFile)
	return c
}

// start runs the load until the returned function ends it; by then it must not have
// failed.
func (g generator) start(t *testing.T, i *harness.Instance) (end func()) {
	t.Helper()
	c, out := g.command(t, i, g.load), &harness.Log{}
	c.Stdout, c.Stderr = out, out
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() { defer close(done); c.Wait() }()
	return func() {
		t.Helper()
		if err := c.Process.Kill(); err != nil {
			t.Errorf("the load was over before it was ended: %v\n%s", err, out)
		}
		<-done
	}
}

// done is how far the load has come.
func (g generator) done(t *testing.T, i *harness.Instance) int {
	t.Helper()
	n, err := strconv.Atoi(i.Query(t, g.advances))
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// waitDone waits until the load has come so far.
func (g generator) waitDone(t *testing.T, i *harness.Instance, least int) {
	t.Helper()
	harness.Wait(t, loadTime, g.tool+" gets on", func() string {
		if n := g.done(t, i); n < least {
			return fmt.Sprintf("%d of %d", n, least)
		}
		return ""
	})
}

// wholeTables has the server check its own tables, asked by its own client.
func wholeTables(t *testing.T, i *harness.Instance) {
	t.Helper()
	path, err := exec.LookPath("mariadb-check")
	if err != nil {
		t.Skipf("everything but CHECK TABLE was checked: %v", err)
	}
	l := i.Login(t)
	c := exec.CommandContext(t.Context(), path, "--no-defaults", "--host="+l.Address, "--port="+strconv.Itoa(l.Port), "--user="+l.User, "--ssl-ca="+l.CAFile, "--extended", l.Database)
	c.Env = append(c.Environ(), "MYSQL_PWD="+l.Password)
	out, err := c.CombinedOutput()
	for _, table := range []string{"sbtest1", "sbtest2"} {
		if !regexp.MustCompile(`(?m)^` + l.Database + `\.` + table + ` +OK$`).Match(out) {
			t.Errorf("%s is not whole: %v\n%s", table, err, out)
		}
	}
}
