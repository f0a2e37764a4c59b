//go:build integration

package integration

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"kurabe/internal/harness"
	"kurabe/lab/dial"
	"kurabe/lab/result"
	"kurabe/lab/study"
	"kurabe/lab/target"
)

// betweenStudy is the built-in one, cut down to seconds: a series, many clients, and a
// connection for each transaction.
const betweenStudy = `
name: between
question: What does a hop cost?
engines: [postgres, mariadb]
primary: {metric: resp_p50, margin: 0.5}
metrics: [resp_p90, resp_max, tps]
baseline: direct
variants:
  - {name: direct}
  - {name: pgbouncer, engines: [postgres], endpoint: pgbouncer}
  - {name: haproxy, endpoint: haproxy}
  - {name: service-proxy, needs: proxy, endpoint: proxy}
workloads:
  - {name: series, generator: kurabe, kit: select-now, protocol: simple, mode: series, clients: 1, requests: 200}
  - {name: clients, generator: kurabe, kit: select-only, protocol: simple, mode: closed, clients: %d, scale: 1}
  - {name: connect, generator: kurabe, kit: select-only, protocol: simple, connect: true, mode: closed, clients: 4, scale: 1}
plan: {blocks_min: 2, blocks_max: 2, warm: 200ms, warm_max: 200ms, measure: 1s}
`

func writeBetween(t *testing.T, dir string, clients int) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, "between.yaml"), fmt.Appendf(nil, betweenStudy, clients), 0o600); err != nil {
		t.Fatal(err)
	}
}

// betweenPrograms skips where one is not installed, which the lab would say itself.
func betweenPrograms(t *testing.T, names ...string) {
	t.Helper()
	for _, name := range names {
		if _, err := exec.LookPath(name); err != nil {
			if _, err := os.Stat("/usr/sbin/" + name); err != nil {
				t.Skipf("the Debian package %s is not installed", name)
			}
		}
	}
}

// Every endpoint is measured under every load, the file names it, and nothing is left.
func TestLabBetween(t *testing.T) {
	onceIsEnough(t)
	for engine, endpoints := range map[string][]string{study.Postgres: {study.EndpointPgBouncer, study.EndpointHAProxy}, study.MariaDB: {study.EndpointHAProxy}} {
		t.Run(engine, func(t *testing.T) {
			if _, err := os.Stat("/usr/sbin/mariadbd"); engine == study.MariaDB && err != nil {
				t.Skip(err)
			}
			betweenPrograms(t, endpoints...)
			address, dir := plain(t, engine), harness.Folder(t, false)
			writeBetween(t, dir, 24)
			out := lab(t, dir, "run", "between.yaml", "--target", address, "--out", "between.jsonl")
			t.Log(out)
			f, err := result.Read(filepath.Join(dir, "between.jsonl"))
			if err != nil {
				t.Fatal(err)
			}
			if why := f.Study.Unsupported["service-proxy"]; !strings.Contains(why, "no proxy of its own") {
				t.Errorf("the service's proxy: %q", why)
			}
			measured(t, f, append(endpoints, "direct"))
			for _, endpoint := range endpoints {
				if about := f.Settings[endpoint]["endpoint"]; !strings.HasPrefix(strings.ToLower(about), endpoint+" ") {
					t.Errorf("the file calls %s %q", endpoint, about)
				}
			}
			if engine == study.Postgres && f.Settings["pgbouncer"]["endpoint.pool_mode"] != "transaction" {
				t.Errorf("the pool is %v", f.Settings["pgbouncer"])
			}
			nothingBetween(t, dir)
		})
	}
}

// measured demands two trials of every cell, with percentiles and without an error.
func measured(t *testing.T, f *result.File, variants []string) {
	t.Helper()
	cells := map[study.Cell]int{}
	for _, trial := range f.Trials {
		if !trial.Counts() {
			continue
		}
		cell := study.Cell{Variant: trial.Variant, Workload: trial.Workload}
		cells[cell]++
		for _, name := range []string{"resp_p50", "resp_p90", "resp_max"} {
			if ms, ok := result.Value(&trial, name); !ok || ms <= 0 {
				t.Errorf("%v has no %s", cell, name)
			}
		}
		for _, p := range trial.Phases {
			if p.Load != nil && len(p.Load.Errors) > 0 {
				t.Errorf("%v in %s: %v", cell, p.Name, p.Load.Errors)
			}
		}
	}
	for _, variant := range variants {
		for _, workload := range []string{"series", "clients", "connect"} {
			if n := cells[study.Cell{Variant: variant, Workload: workload}]; n != 2 {
				t.Errorf("%s under %s was measured %d times", variant, workload, n)
			}
		}
	}
}

// nothingBetween demands that neither a folder nor a program of the lab's is left. A
// program names its folder in its arguments.
func nothingBetween(t *testing.T, dir string) {
	t.Helper()
	if left, err := filepath.Glob(filepath.Join(dir, "kurabe-lab-*")); err != nil || len(left) > 0 {
		t.Errorf("left %v, %v", left, err)
	}
	if left := betweenRunning(t, dir); len(left) > 0 {
		t.Errorf("it runs: %q", left)
	}
}

func betweenRunning(t *testing.T, dir string) []string {
	t.Helper()
	all, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, path := range all {
		// One that ended meanwhile has none.
		if words := tryRead(path); strings.Contains(words, filepath.Join(dir, "kurabe-lab-")) && strings.HasPrefix(filepath.Base(strings.Split(words, "\x00")[0]), "pgbouncer") {
			found = append(found, strings.ReplaceAll(words, "\x00", " "))
		}
	}
	return found
}

// PgBouncer is really in between: five sessions have one backend.
func TestLabGoesThroughPgBouncer(t *testing.T) {
	betweenPrograms(t, study.EndpointPgBouncer)
	address, dir := plain(t, study.Postgres), harness.Folder(t, false)
	on, err := target.URL(t.Context(), address, target.Options{Folder: dir})
	if err != nil {
		t.Fatal(err)
	}
	definition := &study.Study{Baseline: "direct", Variants: []study.Variant{{Name: "direct"}, {Name: "pooled", Endpoint: study.EndpointPgBouncer}}}
	if unsupported, err := on.Check(t.Context(), definition); err != nil || len(unsupported) > 0 {
		t.Fatalf("%v, %v", unsupported, err)
	}
	if err := on.Prepare(t.Context(), definition, fillLab); err != nil {
		t.Fatal(err)
	}
	lease := labTrial(t, on, "pooled", definition)
	backends := map[string]bool{}
	for range 5 {
		session, err := dial.Open(t.Context(), lease.Server)
		if err != nil {
			t.Fatal(err)
		}
		rows, err := session.Rows(t.Context(), "SELECT pg_backend_pid()")
		if err != nil {
			t.Fatal(err)
		}
		backends[rows[0][0]] = true
		session.Close()
	}
	if lease.Server.Address() == lease.Direct.Address() || len(lease.PIDs) != 1 || len(backends) != 1 {
		t.Errorf("five sessions had the backends %v: nothing pools them", backends)
	}
	if name := tryRead(fmt.Sprintf("/proc/%d/comm", lease.PIDs[0])); name != "pgbouncer\n" {
		t.Errorf("the process is %q", name)
	}
	if err := lease.Release(t.Context()); err != nil {
		t.Error(err)
	}
	if err := on.Close(t.Context()); err != nil {
		t.Error(err)
	}
	nothingBetween(t, dir)
}

// A lab that is killed takes the program in between with it, and clean the rest; one that
// is interrupted leaves nothing.
func TestLabBetweenIsEnded(t *testing.T) {
	betweenPrograms(t, study.EndpointPgBouncer, study.EndpointHAProxy)
	for name, end := range map[string]syscall.Signal{"interrupted": syscall.SIGINT, "killed": syscall.SIGKILL} {
		t.Run(name, func(t *testing.T) {
			address, dir := plain(t, study.Postgres), harness.Folder(t, false)
			writeBetween(t, dir, 24)
			c := labCommand(t, dir, "run", "between.yaml", "--target", address, "--out", "between.jsonl", "--blocks", "20")
			var said bytes.Buffer
			c.Stderr = &said
			if err := c.Start(); err != nil {
				t.Fatal(err)
			}
			harness.Wait(t, 2*time.Minute, "PgBouncer runs", func() string {
				if len(betweenRunning(t, dir)) == 0 {
					return "it does not"
				}
				return ""
			})
			if err := c.Process.Signal(end); err != nil {
				t.Fatal(err)
			}
			_ = c.Wait() // how it ended is known
			harness.Wait(t, time.Minute, "PgBouncer ends with the lab", func() string { return strings.Join(betweenRunning(t, dir), "; ") })
			if end == syscall.SIGKILL {
				out := lab(t, dir, "clean", "--target", address)
				if !strings.Contains(out, "removed") {
					t.Errorf("clean said: %s", out)
				}
			}
			nothingBetween(t, dir)
			if out := lab(t, dir, "clean", "--target", address); !strings.Contains(out, "nothing is left") {
				t.Errorf("left: %s\n%s", out, said.String())
			}
		})
	}
}

// What cannot be had is refused before anything is created.
func TestLabBetweenRefuses(t *testing.T) {
	onceIsEnough(t)
	address, dir := plain(t, study.Postgres), harness.Folder(t, false)
	cases := map[string]struct {
		clients  int
		from, to string // of the study's text
		want     string
	}{
		"more clients than sessions":   {clients: 500, want: "workload clients: clients: 500 are too many for variant direct: the server's max_connections is 100"},
		"an endpoint that is none":     {clients: 4, from: "endpoint: haproxy", to: "endpoint: envoy", want: `"envoy" is none of pgbouncer, haproxy, proxy, HOST:PORT`},
		"PgBouncer for MariaDB":        {clients: 4, from: "engines: [postgres], endpoint", to: "endpoint", want: "pgbouncer speaks to postgres only"},
		"the service's without a need": {clients: 4, from: "needs: proxy, ", want: "add needs: proxy"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			text := strings.Replace(fmt.Sprintf(betweenStudy, c.clients), c.from, c.to, 1)
			if err := os.WriteFile(filepath.Join(dir, "between.yaml"), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			out, err := labCommand(t, dir, "run", "between.yaml", "--target", address, "--out", "between.jsonl").CombinedOutput()
			if err == nil || !strings.Contains(strings.Join(strings.Fields(string(out)), " "), c.want) {
				t.Errorf("%v: %s", err, out)
			}
			if _, err := os.Stat(filepath.Join(dir, "between.jsonl")); err == nil {
				t.Error("it made a result file")
			}
		})
	}
}

// An endpoint at which nobody answers is shown as one that cannot be had.
func TestLabBetweenAtAnAddress(t *testing.T) {
	onceIsEnough(t)
	address, dir := plain(t, study.Postgres), harness.Folder(t, false)
	port := unusedPort(t)
	writeBetween(t, dir, 4)
	text := strings.Replace(read(t, filepath.Join(dir, "between.yaml")), "endpoint: haproxy", fmt.Sprintf("endpoint: \"127.0.0.1:%d\"", port), 1)
	if err := os.WriteFile(filepath.Join(dir, "between.yaml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	lab(t, dir, "run", "between.yaml", "--target", address, "--out", "between.jsonl", "--variants", "haproxy", "--blocks", "1")
	f, err := result.Read(filepath.Join(dir, "between.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	if why := f.Study.Unsupported["haproxy"]; !strings.Contains(why, "no session goes by its endpoint") {
		t.Errorf("%q", why)
	}
	if strings.Contains(read(t, filepath.Join(dir, "between.jsonl")), harness.Password) {
		t.Error("the password is in the file")
	}
}
