//go:build integration

package integration

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"kurabe/internal/harness"
	"kurabe/lab/dial"
	"kurabe/lab/result"
	"kurabe/lab/study"
)

// logTableStudy is the built-in study general-log with what a superuser can have. The
// variant table-csv refuses a table that another variant has left.
const logTableStudy = `
name: log-tables
question: What does the general log cost in each engine?
engines: [mariadb]
primary: {metric: tps, margin: 0.03}
baseline: "off"
variants:
  - {name: "off", parameters: {general_log: "0"}}
  - {name: file, parameters: {general_log: "1", log_output: FILE}}
  - name: table-csv
    parameters: {general_log: "1", log_output: TABLE}
    sql: ["BEGIN NOT ATOMIC IF (SELECT ENGINE FROM information_schema.TABLES WHERE TABLE_SCHEMA = 'mysql' AND TABLE_NAME = 'general_log') <> 'CSV' OR (SELECT count(*) FROM mysql.general_log) > 100 THEN SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'the table is not fresh'; END IF; END"]
  - name: table-myisam
    needs: superuser
    parameters: {general_log: "1", log_output: TABLE}
    sql: ["SET GLOBAL general_log = 0", "ALTER TABLE mysql.general_log ENGINE = MyISAM", "SET GLOBAL general_log = 1"]
  - name: table-aria
    needs: superuser
    parameters: {general_log: "1", log_output: TABLE}
    sql: ["SET GLOBAL general_log = 0", "ALTER TABLE mysql.general_log ENGINE = Aria, TRANSACTIONAL = 0", "SET GLOBAL general_log = 1"]
workloads:
  - {name: own, generator: kurabe, kit: sysbench-like, mode: closed, clients: 2, rows: 2000}
plan: {blocks_min: 2, blocks_max: 2, warm: 200ms, warm_max: 200ms, measure: 1s}
`

// ownLog is a server whose owner has a general log of his own, and how to look at it.
type ownLog struct {
	server  dial.Server
	address string // for --target
	dir     string
	before  string
}

func newOwnLog(t *testing.T) *ownLog {
	t.Helper()
	if _, err := os.Stat("/usr/sbin/mariadbd"); err != nil {
		t.Skip(err)
	}
	address := plain(t, study.MariaDB)
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	port, err := strconv.Atoi(u.Port())
	if err != nil {
		t.Fatal(err)
	}
	o := &ownLog{server: dial.Server{Engine: study.MariaDB, Host: u.Hostname(), Port: port, User: "root"}, address: address, dir: harness.Folder(t, false)}
	session, err := dial.Open(t.Context(), o.server)
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	err = session.Exec(t.Context(), "SET GLOBAL log_output = 'TABLE'", "SET GLOBAL general_log = 1", "DO 'written by the owner'",
		"SET GLOBAL general_log = 0", "SET GLOBAL log_output = 'FILE,TABLE'")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(o.dir, "log-tables.yaml"), []byte(logTableStudy), 0o600); err != nil {
		t.Fatal(err)
	}
	if o.before = o.state(t); !strings.Contains(o.before, "CSV") || !strings.Contains(o.before, "FILE,TABLE") {
		t.Fatalf("the owner's log is %s", o.before)
	}
	return o
}

func (o *ownLog) ask(t *testing.T, question string) string {
	t.Helper()
	session, err := dial.Open(t.Context(), o.server)
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	rows, err := session.Rows(t.Context(), question)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprint(rows)
}

// state is all that a study may not change: settings, tables, and what is in them.
func (o *ownLog) state(t *testing.T) string {
	t.Helper()
	return o.ask(t, "SELECT @@GLOBAL.general_log, @@GLOBAL.log_output, @@GLOBAL.slow_query_log") +
		o.ask(t, "SELECT TABLE_NAME, ENGINE FROM information_schema.TABLES WHERE TABLE_SCHEMA = 'mysql' AND (TABLE_NAME LIKE '%log' OR TABLE_NAME LIKE 'kurabe%') ORDER BY 1") +
		o.ask(t, "SELECT count(*), sum(argument LIKE '%by the owner%'), md5(group_concat(argument ORDER BY event_time)) FROM mysql.general_log") +
		o.ask(t, "SHOW DATABASES LIKE 'kurabe%'")
}

func (o *ownLog) same(t *testing.T, when string) {
	t.Helper()
	if after := o.state(t); after != o.before {
		t.Errorf("%s:\nbefore %s\nafter  %s", when, o.before, after)
	}
}

// start runs the study and returns when the log table has an engine.
func (o *ownLog) start(t *testing.T, engine string) (*exec.Cmd, *harness.Log) {
	t.Helper()
	c := labCommand(t, o.dir, "run", "log-tables.yaml", "--target", o.address, "--i-know-this-writes", "--out", engine+".jsonl")
	said := &harness.Log{}
	c.Stdout, c.Stderr = said, said
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Process.Kill() }) // of one that has ended there is nothing left
	harness.Wait(t, time.Minute, "mysql.general_log is of "+engine, func() string {
		now := o.ask(t, "SELECT ENGINE FROM information_schema.TABLES WHERE TABLE_SCHEMA = 'mysql' AND TABLE_NAME = 'general_log'")
		if strings.Contains(now, engine) {
			return ""
		}
		return now + ": " + said.String()
	})
	return c, said
}

// A study of the general log in each engine leaves the server's own log as it was, its
// rows too, and meets a fresh table in each trial.
func TestLabGivesTheLogTablesBack(t *testing.T) {
	onceIsEnough(t)
	o := newOwnLog(t)
	for _, scheme := range []string{"mysql", "mariadb"} {
		t.Run(scheme, func(t *testing.T) {
			address := scheme + strings.TrimPrefix(o.address, "mariadb")
			t.Log(lab(t, o.dir, "run", "log-tables.yaml", "--target", address, "--i-know-this-writes", "--out", scheme+".jsonl"))
			f, err := result.Read(filepath.Join(o.dir, scheme+".jsonl"))
			if err != nil {
				t.Fatal(err)
			}
			counted := map[string]int{}
			for _, trial := range f.Trials {
				if !trial.Counts() && trial.Status != result.StatusRepeated {
					t.Errorf("%s in block %d: %s, %s", trial.Variant, trial.Block, trial.Status, trial.Reason)
				}
				if trial.Counts() {
					counted[trial.Variant]++
				}
			}
			for _, variant := range []string{"off", "file", "table-csv", "table-myisam", "table-aria"} {
				if counted[variant] != 2 {
					t.Errorf("%d trials of %s", counted[variant], variant)
				}
			}
			if len(f.Study.Unsupported) > 0 {
				t.Errorf("unsupported: %v", f.Study.Unsupported)
			}
			o.same(t, "after the study")
		})
	}
}

// Without the word of the user the log tables are not altered, and the rest is measured.
func TestLabAltersNoLogTableUnasked(t *testing.T) {
	onceIsEnough(t)
	o := newOwnLog(t)
	lab(t, o.dir, "run", "log-tables.yaml", "--target", o.address, "--blocks", "1", "--out", "unasked.jsonl")
	f, err := result.Read(filepath.Join(o.dir, "unasked.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	if why := f.Study.Unsupported["table-myisam"]; !strings.Contains(why, "--i-know-this-writes") {
		t.Errorf("table-myisam: %q", why)
	}
	o.same(t, "after the study")
}

func TestLabGivesTheLogTablesBackAfterCtrlC(t *testing.T) {
	onceIsEnough(t)
	o := newOwnLog(t)
	c, said := o.start(t, "MyISAM")
	if err := c.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	var exit *exec.ExitError
	if err := c.Wait(); err != nil && !errors.As(err, &exit) {
		t.Error(err)
	}
	o.same(t, "after Ctrl-C")
	if !strings.Contains(said.String(), "interrupted") {
		t.Errorf("said: %s", said)
	}
}

func TestLabCleanGivesTheLogTablesBack(t *testing.T) {
	onceIsEnough(t)
	o := newOwnLog(t)
	c, _ := o.start(t, "MyISAM")
	if err := c.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = c.Wait() // it was killed
	if o.state(t) == o.before {
		t.Error("the study had changed nothing when it was killed")
	}
	out := lab(t, o.dir, "clean", "--target", o.address)
	if !strings.Contains(out, "put back") || !strings.Contains(out, "mysql.general_log") {
		t.Errorf("clean said: %s", out)
	}
	o.same(t, "after kurabe lab clean")
	if out := lab(t, o.dir, "clean", "--target", o.address); !strings.Contains(out, "nothing is left") {
		t.Errorf("clean once more said: %s", out)
	}
}
