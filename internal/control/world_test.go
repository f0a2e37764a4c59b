package control

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"kurabe"
	"kurabe/internal/logkey"
	"kurabe/internal/store"
)

// testNow is a Saturday; the window of newTestSpec opens the next morning.
var testNow = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

const testDeadline = 20 * time.Second

// newTestWorld returns a Control over an empty store, one host with two versions
// of PostgreSQL 15 and one of MariaDB, and their catalogs.
func newTestWorld(t testing.TB) *Control {
	t.Helper()
	kv := store.NewMemory()
	view := store.NewView(kv)
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { _ = view.Run(ctx) }) // ends with ctx only
	t.Cleanup(func() { cancel(); wg.Wait() })
	c := New(Config{
		KV: kv, View: view, Region: "us-east-1", Account: "000000000000", Zones: []string{"us-east-1a", "us-east-1b", "us-east-1c"},
		Authority: Authority{Identifier: "kurabe-ca", Thumbprint: "00ff", NotBefore: testNow, NotAfter: testNow.AddDate(10, 0, 0)},
		Now:       func() time.Time { return testNow },
		Verifiers: map[kurabe.EngineName]Verifier{kurabe.Postgres: func(logkey.Secret) (string, error) { return "verifier", nil }},
	})
	change := store.NewChange().PutHost(testHost())
	for _, cat := range []kurabe.Catalog{
		{Engine: kurabe.Postgres, Version: "15.9", Family: "postgres15", Parameters: testParameters()[:2]},
		{Engine: kurabe.Postgres, Version: "15.18", Family: "postgres15", Parameters: testParameters()},
		{Engine: kurabe.MariaDB, Version: "10.11.19", Family: "mariadb10.11", Parameters: []kurabe.Parameter{
			{Name: "max_connections", Type: "integer", Allowed: "10-100000", Apply: kurabe.ApplyDynamic, Modifiable: true, Default: "151", HasDefault: true},
		}},
	} {
		change.PutCatalog("h1", cat)
	}
	mustCommit(t, c, change)
	return c
}

func testHost() kurabe.HostReport {
	return kurabe.HostReport{
		Host: "h1", Zones: []string{"us-east-1a", "us-east-1b", "us-east-1c"}, CPUs: 2, MemoryBytes: 8 * kurabe.GiB, StorageBytes: 100 * kurabe.GiB,
		Levers: []kurabe.Lever{{Name: "cpu", Detail: "not root"}, {Name: "memory", Detail: "not root"}, {Name: "io", Detail: "not root"}},
		Engines: []kurabe.EngineVersion{
			{Engine: kurabe.Postgres, Version: "15.9", Family: "postgres15", Ready: true, Locales: []string{"C"}},
			{Engine: kurabe.Postgres, Version: "15.18", Family: "postgres15", Default: true, Ready: true, Locales: []string{"C", "ja_JP.UTF-8"}},
			{Engine: kurabe.Postgres, Version: "16.1", Family: "postgres16", Reason: "no template"},
			{Engine: kurabe.MariaDB, Version: "10.11.19", Family: "mariadb10.11", Default: true, Ready: true, Locales: []string{"utf8mb4"}},
		},
	}
}

// testParameters has one of each kind, sorted by name.
func testParameters() []kurabe.Parameter {
	return []kurabe.Parameter{
		{Name: "autovacuum", Type: "boolean", Allowed: "0,1", Apply: kurabe.ApplyDynamic, Modifiable: true, Default: "1", HasDefault: true},
		{Name: "fsync", Type: "boolean", Allowed: "0,1", Apply: kurabe.ApplyDynamic, Default: "1", HasDefault: true, Fixed: "an acknowledged write must survive a crash"},
		{Name: "log_min_duration_statement", Type: "integer", Allowed: "-1-2147483647", Apply: kurabe.ApplyDynamic, Modifiable: true, Default: "-1", HasDefault: true},
		{Name: "max_connections", Type: "integer", Allowed: "6-8388607", Apply: kurabe.ApplyStatic, Modifiable: true, System: true, Default: "LEAST({DBInstanceClassMemory/9531392},5000)", HasDefault: true},
		{Name: "random_page_cost", Type: "float", Allowed: "0-179769300000000000000", Apply: kurabe.ApplyDynamic, Modifiable: true, Default: "4", HasDefault: true},
		{Name: "search_path", Type: "string", Apply: kurabe.ApplyDynamic, Modifiable: true},
		{Name: "shared_preload_libraries", Type: "list", Allowed: "auto_explain,pg_stat_statements", Apply: kurabe.ApplyStatic, Modifiable: true},
		{Name: "ssl_max_protocol_version", Type: "string", Allowed: ",TLSv1.2,TLSv1.3", Apply: kurabe.ApplyDynamic, Modifiable: true},
	}
}

func mustCommit(t testing.TB, c *Control, change *store.Change) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), testDeadline)
	defer cancel()
	if err := c.commit(ctx, change); err != nil {
		t.Fatal(err)
	}
}

// newTestSpec is an instance as the API would have written it.
func newTestSpec(name string) kurabe.InstanceSpec {
	return kurabe.InstanceSpec{
		ID: kurabe.InstanceID("db-" + strings.ToUpper(name)), Name: name, Revision: 1, Engine: kurabe.Postgres, CreatedAt: testNow,
		Now:            kurabe.InstanceSettings{EngineVersion: "15.9", Class: "db.local.micro", StorageGiB: 20, StorageType: "local", Port: 5432, CACertificate: "kurabe-ca"},
		ParameterGroup: "default.postgres15", OptionGroup: "default:postgres-15", SubnetGroup: "default", MaintenanceWindow: "sun:05:00-sun:05:30",
	}
}

// addInstance stores a spec with a status that answers it.
func addInstance(t testing.TB, c *Control, spec kurabe.InstanceSpec) {
	t.Helper()
	status := kurabe.InstanceStatus{ID: spec.ID, SpecRevision: spec.Revision, State: kurabe.StateAvailable, Applied: spec.Now, Host: "h1", Zone: "us-east-1b"}
	mustCommit(t, c, store.NewChange().CreateInstance(spec).PutStatus(status, 0))
}

func mustGroup(t testing.TB, c *Control, name string) {
	t.Helper()
	if _, err := c.CreateParameterGroup(t.Context(), kurabe.ParameterGroup{Name: name, Family: "postgres15", Description: "d"}); err != nil {
		t.Fatal(err)
	}
}

func wantCode(t testing.TB, err error, code kurabe.Code, text string) {
	t.Helper()
	if kurabe.CodeOf(err) != code || code != "" && !strings.Contains(err.Error(), text) {
		t.Errorf("got %q %v, want %q %q", kurabe.CodeOf(err), err, code, text)
	}
}

func set(name, value string, method kurabe.ApplyMethod) ParameterChange {
	return ParameterChange{Name: name, Value: &value, Method: method}
}
