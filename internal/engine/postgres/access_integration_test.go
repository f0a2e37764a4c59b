//go:build integration

package postgres

import (
	"context"
	"crypto/tls"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"kurabe"
	"kurabe/internal/engine/enginetest"
	"kurabe/internal/engine/postgres/parameter"
	"kurabe/internal/engine/scratch"
	"kurabe/internal/proc"
)

func TestTLS(t *testing.T) {
	b := running(t)
	plain := b.Login()
	plain.CAFile = ""
	const encrypted = "SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()"
	if got, err := query(t.Context(), plain, encrypted); err != nil || got != "false" {
		t.Errorf("a client may turn TLS off: %q, %v", got, err)
	}
	if got := b.MustQuery(t, encrypted); got != "true" {
		t.Errorf("over TLS: %q", got)
	}
	if err := oldTLS(t.Context(), b); err == nil {
		t.Error("TLS 1.1 is accepted")
	}
	b.Set(map[string]string{parameter.ForceSSL: "1"})
	b.Satisfy(t)
	if got := b.MustQuery(t, "SHOW "+parameter.ForceSSL); got != "1" {
		t.Errorf("%s is %q", parameter.ForceSSL, got)
	}
	if _, err := query(t.Context(), plain, encrypted); err == nil || !strings.Contains(refusal(err), "28000") {
		t.Errorf("without TLS although it is forced: %v", err)
	}
	if got := b.MustQuery(t, encrypted); got != "true" {
		t.Errorf("over forced TLS: %q", got)
	}
}

// A name that the server writes in mixed case (TimeZone) is found among the refused
// ones too: else the old value would go on under a status that says in-sync.
func TestRefusedSettingIsReported(t *testing.T) {
	b := running(t)
	for _, name := range []string{"timezone", "datestyle", "work_mem"} {
		before := b.Want.Settings
		b.Set(map[string]string{name: "nonsense"})
		if err := b.TrySatisfy(t.Context()); err == nil || !strings.Contains(strings.ToLower(err.Error()), name+" = nonsense") {
			t.Errorf("%s=nonsense: %v", name, err)
		}
		b.Want.Settings = before
		b.Satisfy(t)
	}
}

func oldTLS(ctx context.Context, b *enginetest.Bed) error {
	config, err := clientConfig(b.Login())
	if err != nil {
		return err
	}
	config.TLSConfig.MinVersion, config.TLSConfig.MaxVersion = tls.VersionTLS10, tls.VersionTLS11
	conn, err := pgx.ConnectConfig(ctx, config)
	if err == nil {
		closeConn(ctx, conn)
	}
	return err
}

// A role whose password is kept as MD5 cannot log in: only SCRAM is asked for.
func TestOnlySCRAM(t *testing.T) {
	b := running(t)
	b.MustQuery(t, "CREATE ROLE old LOGIN PASSWORD 'md5a3556571e93b0d20722ba62be61e8c2d'")
	login := b.Login()
	login.User, login.Password = "old", "whatever"
	if _, err := query(t.Context(), login, "SELECT 1"); err == nil || !strings.Contains(refusal(err), "28P01") {
		t.Errorf("with an MD5 verifier: %v", err)
	}
}

// A parameter group that hinders clients must not hinder the service, and one
// that logs everything must not log what the service says.
func TestServiceSessions(t *testing.T) {
	b := running(t)
	b.MustQuery(t, "CREATE EXTENSION pg_stat_statements")
	b.Set(map[string]string{
		"statement_timeout": "1", "lock_timeout": "1", "default_transaction_read_only": "on", "search_path": "public",
		"log_statement": "all", "log_min_duration_statement": "0", "log_min_error_statement": "debug5",
		"pg_stat_statements.track": "all", "track_activities": "on", "log_parameter_max_length": "-1",
	})
	b.Satisfy(t)
	driver, i := New(Config{}), instanceOf(b)
	for _, step := range []error{
		driver.Reload(t.Context(), i), driver.EnsureMaster(t.Context(), i),
		driver.SetPassword(t.Context(), i), driver.Probe(t.Context(), i, b.Login().CAFile),
	} {
		if step != nil {
			t.Error(step)
		}
	}
	logs, err := filepath.Glob(filepath.Join(b.Home().LogDir(), "postgresql.log.*"))
	if err != nil || len(logs) == 0 {
		t.Fatalf("logs: %v, %v", logs, err)
	}
	for _, path := range logs {
		text, err := os.ReadFile(path)
		if err != nil || strings.Contains(string(text), "SCRAM-SHA-256$") {
			t.Errorf("%s holds a verifier, or: %v", path, err)
		}
	}
	b.Set(map[string]string{"statement_timeout": "0"})
	b.Satisfy(t)
	if got := b.MustQuery(t, "SELECT count(*) FROM pg_stat_statements WHERE query LIKE '%SCRAM%'"); got != "0" {
		t.Errorf("the statistics hold %s statements with a verifier", got)
	}
}

// A probe whose service died leaves a login behind; the next one takes it away.
func TestProbeCleansUp(t *testing.T) {
	b := running(t)
	driver, i := New(Config{}), instanceOf(b)
	err := driver.withAdmin(t.Context(), i, func(conn *pgx.Conn) error {
		return makeProbe(t.Context(), conn, i, newProbeLogin())
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := driver.Probe(t.Context(), i, b.Login().CAFile); err != nil {
		t.Fatal(err)
	}
	if got := b.MustQuery(t, "SELECT count(*) FROM pg_roles WHERE rolname LIKE 'rdsprobe%'"); got != "0" {
		t.Errorf("%s logins are left", got)
	}
}

// No value reaches beyond its own line, and each arrives as it was given.
func TestHostileValue(t *testing.T) {
	b := enginetest.NewBed(t, setup(t, enginetest.Reachable(t)))
	const value = "x'\nwork_mem = '1GB'\\'' # \"\t;"
	b.Set(map[string]string{"kurabe.hostile": value})
	b.Satisfy(t)
	if got := b.MustQuery(t, "SHOW kurabe.hostile"); got != value {
		t.Errorf("got %q", got)
	}
	if got := b.MustQuery(t, "SHOW work_mem"); got != "4MB" {
		t.Errorf("work_mem is %s", got)
	}
}

// Each copy of a template gets an identity of its own and still starts.
func TestIndividualize(t *testing.T) {
	b := running(t)
	const identifier = "SELECT system_identifier FROM pg_control_system()"
	before := b.MustQuery(t, identifier)
	b.MustQuery(t, "CREATE TABLE kept AS SELECT 1")
	b.Want.Goal = kurabe.GoalStopped
	b.Satisfy(t)
	if err := New(Config{}).GiveIdentity(b.Home().DataDir()); err != nil {
		t.Fatal(err)
	}
	b.Want.Goal = kurabe.GoalRunning
	b.Satisfy(t)
	if after := b.MustQuery(t, identifier); after == before {
		t.Error("the identifier is the same")
	}
	b.MustQuery(t, "TABLE kept")
}

// Every parameter that a user may set is accepted by the server, at the value
// that the catalogue gives for its default.
func TestEveryModifiableParameter(t *testing.T) {
	b := enginetest.NewBed(t, setup(t, enginetest.Reachable(t)))
	catalog, err := b.Driver.ReadCatalog(t.Context(), b.Request())
	if err != nil {
		t.Fatal(err)
	}
	settings := maps.Clone(b.Want.Settings)
	for _, p := range catalog.Parameters {
		if _, small := settings[p.Name]; small || !p.Modifiable || !p.HasDefault || strings.Contains(p.Default, "{") {
			continue
		}
		settings[p.Name] = p.Default
	}
	t.Logf("%d of %d parameters", len(settings), len(catalog.Parameters))
	b.Want.Settings = settings
	b.Satisfy(t)
	if err := b.Driver.Reload(t.Context(), instanceOf(b)); err != nil {
		t.Error(err)
	}
}

// The tools cope with the predefined roles that are missing up to 15.
func TestDumpAll(t *testing.T) {
	b := running(t)
	short, err := os.MkdirTemp("/tmp", "k") // the socket's own path may be too long for libpq
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(short) })
	link := filepath.Join(short, "s")
	if err := os.Symlink(b.Home().RunDir(), link); err != nil {
		t.Fatal(err)
	}
	argv := []string{filepath.Join(b.Version.BinDir, "pg_dumpall"), "-U", adminRole, "-h", link, "-p", portText(b)}
	out, err := proc.Run(t.Context(), proc.Tool{Name: "pg_dumpall", Argv: argv, Env: scratch.Env(), Dir: "/"})
	if err != nil || !strings.Contains(string(out), "CREATE ROLE master") {
		t.Errorf("%d bytes, %v", len(out), err)
	}
}

func TestLocales(t *testing.T) {
	enginetest.OnceIsEnough(t)
	b := enginetest.NewBed(t, setup(t, enginetest.Reachable(t)))
	for _, locale := range []string{"C", "C.UTF-8", "icu:ja-JP"} {
		r := b.Request()
		r.Locale, r.Dir = locale, r.Dir+strings.ReplaceAll(locale, ":", "-")
		if err := b.Driver.MakeTemplate(t.Context(), r); err != nil {
			t.Errorf("%s: %v", locale, err)
		}
	}
	r := b.Request()
	r.Locale = "xx_YY"
	if err := b.Driver.MakeTemplate(t.Context(), r); kurabe.CodeOf(err) != kurabe.CodeInvalidParameterValue {
		t.Errorf("an unknown locale: %v", err)
	}
}
