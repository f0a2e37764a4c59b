//go:build integration

package integration

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"kurabe/internal/harness"
	"kurabe/lab/dial"
	"kurabe/lab/load"
	"kurabe/lab/probe"
	"kurabe/lab/study"
	"kurabe/lab/target"
)

// shop is a user's database on a server of his own.
type shop struct {
	server  dial.Server
	address string
}

func newShop(t *testing.T, engine string) *shop {
	t.Helper()
	if _, err := os.Stat("/usr/sbin/mariadbd"); engine == study.MariaDB && err != nil {
		t.Skip(err)
	}
	address := plain(t, engine)
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	port, err := strconv.Atoi(u.Port())
	if err != nil {
		t.Fatal(err)
	}
	s := &shop{server: dial.Server{Engine: engine, Host: u.Hostname(), Port: port, User: u.User.Username(), Database: "postgres"}, address: address + "shop"}
	if password, ok := u.User.Password(); ok {
		s.server.Password = dial.Secret(password)
	}
	if engine != study.Postgres {
		s.server.Database = ""
	}
	s.exec(t, "CREATE DATABASE shop")
	s.server.Database = "shop"
	return s
}

func (s *shop) exec(t *testing.T, statements ...string) {
	t.Helper()
	session, err := dial.Open(t.Context(), s.server)
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	if err := session.Exec(t.Context(), statements...); err != nil {
		t.Fatal(err)
	}
}

// state is what is in the database, and what there is of the lab beside it.
func (s *shop) state(t *testing.T) string {
	t.Helper()
	session, err := dial.Open(t.Context(), s.server)
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	schemas := "SELECT schema_name FROM information_schema.schemata WHERE schema_name LIKE 'kurabe%' ORDER BY 1"
	tables := "SELECT table_name FROM information_schema.tables WHERE table_schema IN ('public', 'shop') ORDER BY 1"
	databases := "SHOW DATABASES LIKE 'kurabe%'"
	if s.server.Engine == study.Postgres {
		databases = "SELECT datname FROM pg_database WHERE datname LIKE 'kurabe%'"
	}
	var all []string
	for _, question := range []string{schemas, tables, databases} {
		rows, err := session.Rows(t.Context(), question)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, fmt.Sprint(rows))
		if question != tables {
			continue
		}
		for _, row := range rows {
			count, err := session.Rows(t.Context(), "SELECT count(*) FROM "+row[0])
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, row[0]+" has "+count[0][0])
		}
	}
	return strings.Join(all, "; ")
}

// prepare has the study's data made in the user's database, by his word.
func (s *shop) prepare(t *testing.T, w study.Workload) (target.Target, load.Generator, error) {
	t.Helper()
	g, err := load.New(w)
	if err != nil {
		t.Fatal(err)
	}
	if err := g.Check(s.server.Engine); err != nil {
		t.Skip(err)
	}
	on, err := target.URL(t.Context(), s.address, target.Options{WritesAllowed: true})
	if err != nil {
		t.Fatal(err)
	}
	definition := &study.Study{Baseline: "plain", Variants: []study.Variant{{Name: "plain"}}, Workloads: []study.Workload{w}}
	if why, err := on.Check(t.Context(), definition); err != nil || len(why) > 0 {
		t.Fatalf("unsupported %v, %v", why, err)
	}
	return on, g, on.Prepare(t.Context(), definition, func(ctx context.Context, at dial.Server) error { return g.Prepare(ctx, at) })
}

var placeLoads = []struct {
	name, table string
	workload    study.Workload
}{
	{"own tpcb-like", "pgbench_accounts", study.Workload{Name: "w", Generator: study.GeneratorOwn, Kit: "tpcb-like", Mode: study.ModeClosed, Clients: 1, Scale: 1}},
	{"pgbench", "pgbench_accounts", study.Workload{Name: "w", Generator: study.GeneratorPgbench, Kit: "tpcb-like", Mode: study.ModeClosed, Clients: 1, Scale: 1}},
	{"sysbench", "sbtest1", study.Workload{Name: "w", Generator: study.GeneratorSysbench, Kit: "oltp_read_write", Mode: study.ModeClosed, Clients: 1, Rows: 1000}},
}

// A study in the user's database makes its tables, loads them, and leaves the database as
// it was; what a table of his is called like is left alone, whatever is in it.
func TestLabInTheUsersDatabase(t *testing.T) {
	onceIsEnough(t)
	for _, engine := range []string{study.Postgres, study.MariaDB} {
		t.Run(engine, func(t *testing.T) {
			s := newShop(t, engine)
			s.exec(t, "CREATE TABLE orders (id int)", "INSERT INTO orders VALUES (1), (2)")
			for _, l := range placeLoads {
				t.Run(l.name, func(t *testing.T) { s.works(t, l.workload, l.table) })
				t.Run(l.name+", a table of the user's", func(t *testing.T) { s.refuses(t, l.workload, l.table) })
				t.Run(l.name+", killed", func(t *testing.T) { s.cleans(t, l.workload, l.table) })
			}
		})
	}
}

func (s *shop) works(t *testing.T, w study.Workload, table string) {
	before := s.state(t)
	on, g, err := s.prepare(t, w)
	if err != nil {
		t.Fatal(err)
	}
	lease, err := on.Lease(t.Context(), study.Variant{Name: "plain"})
	if err != nil {
		t.Fatal(err)
	}
	if out, err := g.Run(t.Context(), lease.Server, load.Options{Measure: time.Second, Seed: 1}); err != nil || out.Phases[0].Load.Transactions == 0 {
		t.Errorf("%+v, %v", out, err)
	}
	if during := s.state(t); !strings.Contains(during, table+" has") {
		t.Errorf("the tables are elsewhere: %s", during)
	}
	if err := g.Prepare(t.Context(), s.server); err != nil {
		t.Errorf("data that is right is made again: %v", err)
	}
	if err := lease.Release(t.Context()); err != nil {
		t.Error(err)
	}
	if err := on.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if after := s.state(t); after != before {
		t.Errorf("before %s\nafter  %s", before, after)
	}
}

func (s *shop) refuses(t *testing.T, w study.Workload, table string) {
	s.exec(t, "CREATE TABLE "+table+" (mine int)", "INSERT INTO "+table+" VALUES (1), (2), (3)")
	defer s.exec(t, "DROP TABLE "+table)
	before := s.state(t)
	on, _, err := s.prepare(t, w)
	if err == nil || !strings.Contains(err.Error(), "table "+table+" of database shop") || !strings.Contains(err.Error(), "another database") {
		t.Errorf("prepare: %v", err)
	}
	if err := on.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if after := s.state(t); after != before {
		t.Errorf("before %s\nafter  %s", before, after)
	}
}

// cleans finds what a run left that could not close: its tables are told by their mark.
func (s *shop) cleans(t *testing.T, w study.Workload, table string) {
	before := s.state(t)
	if _, _, err := s.prepare(t, w); err != nil {
		t.Fatal(err)
	}
	if other, _, err := s.prepare(t, w); err == nil || !strings.Contains(err.Error(), "another run of the lab") {
		t.Errorf("beside another run: %v", err)
	} else if err := other.Close(t.Context()); err != nil {
		t.Error(err)
	}
	// It is another process's from here on, which nobody can see.
	s.disown(t)
	said, err := target.CleanURL(t.Context(), s.address, target.Options{Others: true})
	if err != nil || !strings.Contains(strings.Join(said, "\n"), "removed table shop."+table) {
		t.Errorf("clean said %q, %v", said, err)
	}
	if after := s.state(t); after != before {
		t.Errorf("before %s\nafter  %s", before, after)
	}
}

// disown has the notes of all runs name a machine that nobody knows.
func (s *shop) disown(t *testing.T) {
	t.Helper()
	question := "SHOW DATABASES LIKE 'kurabe%note'"
	if s.server.Engine == study.Postgres {
		question = "SELECT datname FROM pg_database WHERE datname LIKE 'kurabe%note'"
	}
	session, err := dial.Open(t.Context(), s.server)
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	rows, err := session.Rows(t.Context(), question)
	if err != nil || len(rows) == 0 {
		t.Fatal(rows, err)
	}
	for _, row := range rows {
		note := &shop{server: s.server}
		note.server.Database = row[0]
		note.exec(t, "UPDATE note SET value = 'elsewhere/b/1/1/1' WHERE kind = 'owner'")
	}
}

// Who waits for a change to end waits for a lock, of which the engine keeps no count.
func TestLabSeesWaitsForATable(t *testing.T) {
	onceIsEnough(t)
	for _, engine := range []string{study.Postgres, study.MariaDB} {
		t.Run(engine, func(t *testing.T) {
			s := newShop(t, engine)
			s.exec(t, "CREATE TABLE orders (id int)")
			p, err := probe.Start(t.Context(), probe.Options{Server: s.server})
			if err != nil {
				t.Fatal(err)
			}
			defer p.Close()
			reader, err := dial.Open(t.Context(), s.server)
			if err != nil {
				t.Fatal(err)
			}
			defer reader.Close()
			if err := reader.Exec(t.Context(), "BEGIN", "SELECT count(*) FROM orders"); err != nil {
				t.Fatal(err)
			}
			changed := make(chan error, 1)
			go func() {
				session, err := dial.Open(t.Context(), s.server)
				if err == nil {
					defer session.Close()
					err = session.Exec(t.Context(), "ALTER TABLE orders ADD COLUMN more int")
				}
				changed <- err
			}()
			waits, seconds := 0.0, 0.0
			harness.Wait(t, time.Minute, "a wait of half a second for the table is seen", func() string {
				totals, _, err := p.Cut()
				if err != nil {
					t.Fatal(err)
				}
				waits, seconds = waits+totals["lock_waits"], seconds+totals["lock_wait_s"]
				if seconds < 0.5 {
					return fmt.Sprintf("%v waits, %v s", waits, seconds)
				}
				return ""
			})
			if waits != 1 {
				t.Errorf("%v waits, want 1", waits)
			}
			if err := reader.Exec(t.Context(), "COMMIT"); err != nil {
				t.Error(err)
			}
			if err := <-changed; err != nil {
				t.Error(err)
			}
		})
	}
}

// What the server has against a variant's SQL is known before there is data, and what it
// misses only because there is none is left to the trial.
func TestLabTriesSQL(t *testing.T) {
	onceIsEnough(t)
	for _, engine := range []string{study.Postgres, study.MariaDB} {
		t.Run(engine, func(t *testing.T) {
			s := newShop(t, engine)
			before := s.state(t)
			on, err := target.URL(t.Context(), s.address, target.Options{})
			if err != nil {
				t.Fatal(err)
			}
			variant := func(name string, list ...string) study.Variant {
				return study.Variant{Name: name, SQL: map[string][]string{"": list}}
			}
			definition := &study.Study{Baseline: "plain", Variants: []study.Variant{
				{Name: "plain"}, variant("index", "CREATE INDEX more ON pgbench_accounts (bid)"), variant("own", "CREATE TABLE mine (id int)", "CREATE INDEX more ON mine (id)"),
				variant("again", "CREATE TABLE mine (id int)"), variant("slip", "CREATE TABLE mine (id int,)"), variant("twice", "CREATE TABLE mine (id int)", "CREATE TABLE mine (id int)"),
			}}
			want := map[string]string{"slip": "the server refuses its SQL", "twice": "already exists"}
			if engine == study.Postgres {
				definition.Variants = append(definition.Variants, variant("missing", "CREATE EXTENSION no_such"), variant("unloaded", "CREATE EXTENSION pg_stat_statements"))
				want["missing"], want["unloaded"] = "does not have the extension no_such", "shared_preload_libraries"
			}
			why, err := on.Check(t.Context(), definition)
			if err != nil {
				t.Fatal(err)
			}
			for _, v := range definition.Variants {
				if !strings.Contains(why[v.Name], want[v.Name]) || (why[v.Name] == "") != (want[v.Name] == "") {
					t.Errorf("%s: %q, want %q", v.Name, why[v.Name], want[v.Name])
				}
			}
			if after := s.state(t); after != before {
				t.Errorf("before %s\nafter  %s", before, after)
			}
		})
	}
}
