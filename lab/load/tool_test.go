package load

import (
	"context"
	"crypto/sha1"
	"errors"
	"flag"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"kurabe/lab/dial"
	"kurabe/lab/study"
)

var (
	update = flag.Bool("update", false, "rewrite the golden files")
	record = flag.Bool("record", false, "make the tools' reports anew; they differ each time")
)

func shell(script string) tool { return tool{path: "/bin/sh", args: []string{"-c", script}} }

func TestToolSays(t *testing.T) {
	e, err := shell("echo out; echo err >&2").run(context.Background())
	if err != nil || string(e.output) != "out\n" || string(e.errors) != "err\n" {
		t.Errorf("%+v, %v", e, err)
	}
	if _, err := shell("echo why >&2; exit 3").run(context.Background()); wrong(err, "exit status 3: why") {
		t.Error(err)
	}
	if _, err := shell("echo on output; exit 3").run(context.Background()); wrong(err, "on output") {
		t.Error(err)
	}
}

func TestToolGetsItsSecretsUnseen(t *testing.T) {
	x := shell(`read line; echo "$line $SECRET"`)
	x.input, x.env = "from input\n", []string{"SECRET=from environment"}
	e, err := x.run(context.Background())
	if err != nil || string(e.output) != "from input from environment\n" {
		t.Errorf("%+v, %v", e, err)
	}
}

// What a tool sleeps too long would count as the server's.
func TestToolSleepsExactly(t *testing.T) {
	e, err := shell("cat /proc/self/timerslack_ns").run(context.Background())
	if err != nil || string(e.output) != "1\n" {
		t.Errorf("its timers have %q ns of slack, %v", e.output, err)
	}
}

func TestToolOutputIsBounded(t *testing.T) {
	e, err := shell("head -c 3000000 /dev/zero; echo end >&2").run(context.Background())
	if err != nil || len(e.output) != toolMaxBytes || string(e.errors) != "end\n" {
		t.Errorf("%d bytes, %v", len(e.output), err)
	}
}

func TestToolEndsWithContext(t *testing.T) {
	cases := map[string]struct {
		script string
		grace  time.Duration
	}{
		"SIGTERM":         {"echo ready; exec sleep 1000", time.Minute},
		"SIGKILL":         {"trap '' TERM; echo ready; while :; do :; done", 20 * time.Millisecond},
		"child keeps out": {"echo ready; sleep 1000", time.Minute},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			x := shell(c.script)
			x.watchOutput, x.grace = true, c.grace
			x.line = func(string) { cancel() }
			if _, err := x.run(ctx); !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
		})
	}
}

func TestKeeperLines(t *testing.T) {
	var lines []string
	k := &keeper{max: 4, line: func(s string) { lines = append(lines, s) }}
	for _, part := range []string{"a", "b\nc", "\n\nd", strings.Repeat("x", 2*toolLineBytes), "\nlast\n"} {
		if n, err := k.Write([]byte(part)); n != len(part) || err != nil {
			t.Fatal(n, err)
		}
	}
	if k.kept.String() != "ab\nc" || strings.Join(lines, "|") != "ab|c|||last" {
		t.Errorf("kept %q, lines %q", k.kept.String(), lines)
	}
}

func TestMissingToolNamesItsPackage(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	for engine, w := range map[string]study.Workload{"sysbench": sysbenchLoad()} {
		g, err := New(w)
		if err != nil {
			t.Fatal(err)
		}
		if err := g.Check(study.MariaDB); wrong(err, "Debian package "+engine) || !errors.Is(err, exec.ErrNotFound) {
			t.Error(err)
		}
	}
	if _, err := findTool("pgbench", pgbenchPackage, t.TempDir()); wrong(err, "Debian package postgresql") {
		t.Error(err)
	}
}

func TestFindsNewestTool(t *testing.T) {
	dir := t.TempDir()
	for _, version := range []string{"9.6", "15", "16"} {
		if err := os.MkdirAll(filepath.Join(dir, version), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, version, "pgbench"), nil, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := findTool("pgbench", "", filepath.Join(dir, "*")); err != nil || got != filepath.Join(dir, "16", "pgbench") {
		t.Error(got, err)
	}
}

func sysbenchLoad() study.Workload {
	return study.Workload{Name: "w", Generator: study.GeneratorSysbench, Kit: "oltp_read_write", Mode: study.ModeClosed, Clients: 2}
}

// Arguments are for everybody to read.
func TestNoSecretInArguments(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "sysbench"), nil, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir)
	for _, engine := range []string{study.Postgres, study.MariaDB} {
		s := dial.Server{Engine: engine, Host: "h", Port: 1, User: "u", Password: "seeded secret", Database: "d"}
		x, err := (&sysbench{sysbenchLoad()}).tool(s, 1, 1, "run")
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(strings.Join(x.args, " "), "seeded") || !strings.Contains(x.input+strings.Join(x.env, " "), "seeded secret") {
			t.Errorf("%s: %+v", engine, x)
		}
	}
	r := pgbenchRun{pgbench: &pgbench{openLoad(1, 1)}, server: dial.Server{Password: "seeded secret"}}
	if strings.Contains(strings.Join(r.args(1, true), " "), "seeded") {
		t.Error("pgbench has it in its arguments")
	}
}

// What sysbench makes of a password in its configuration, told by the answer that it
// gives to a server's salt.
func TestSysbenchPassword(t *testing.T) {
	if _, err := findTool("sysbench", sysbenchPackage, ""); err != nil {
		t.Skip(err)
	}
	for name, password := range map[string]string{"plain": "abc", "spaces": " a # b ", "marks": `=,;\'%$(x)`, "long": strings.Repeat("x", 41)} {
		t.Run(name, func(t *testing.T) {
			said := make(chan []byte, 16)
			s := serveNull(t, study.MariaDB, func(c net.Conn) {
				if _, err := c.Write(packet(0, greeting())); err == nil {
					body, _ := receive(c)
					said <- body
				}
			})
			s.Password = dial.Secret(password)
			x, err := (&sysbench{sysbenchLoad()}).tool(s, 1, 1, "run")
			if err != nil {
				t.Fatal(err)
			}
			if _, err := x.run(context.Background()); err == nil {
				t.Error("a server that hangs up was no error")
			}
			if body := <-said; !strings.Contains(string(body), scramble(password)) {
				t.Errorf("it sent another password: %q", body)
			}
		})
	}
	for _, password := range []dial.Secret{`a"b`, "a\nb"} {
		if _, err := mysqlConfig(dial.Server{Password: password}); wrong(err, "sysbench cannot be given") || strings.Contains(err.Error(), string(password)) {
			t.Error(err)
		}
	}
	if _, err := mysqlConfig(dial.Server{TLS: true}); wrong(err, "client certificate") {
		t.Error(err)
	}
}

// scramble is the answer of mysql_native_password to the salt of greeting.
func scramble(password string) string {
	one := sha1.Sum([]byte(password))
	two := sha1.Sum(one[:])
	three := sha1.Sum(append([]byte(strings.Repeat("s", 20)), two[:]...))
	for n := range three {
		three[n] ^= one[n]
	}
	return string(three[:])
}
