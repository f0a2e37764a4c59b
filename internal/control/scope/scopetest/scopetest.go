package scopetest

import (
	"context"
	"kurabe"
	"kurabe/internal/control/scope"
	"kurabe/internal/store"
	"strings"
	"sync"
	"testing"
	"time"
)

// Now is a Saturday; the window of Spec opens the next morning.
var Now = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

const deadline = 20 * time.Second

// New returns a scope over an empty store, one host with two versions of PostgreSQL 15 and
// one of MariaDB, and their catalogs.
func New(t testing.TB) scope.Scope {
	t.Helper()
	kv := store.NewMemory()
	view := store.NewView(kv)
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { _ = view.Run(ctx) }) // ends with ctx only
	t.Cleanup(func() { cancel(); wg.Wait() })
	s := scope.New(scope.Scope{
		KV: kv, View: view, Region: "us-east-1", Account: "000000000000", Zones: []string{"us-east-1a", "us-east-1b", "us-east-1c"},
		Now: func() time.Time { return Now },
	})
	change := store.NewChange().PutHost(Host())
	for _, cat := range []kurabe.Catalog{
		{Engine: kurabe.Postgres, Version: "15.9", Family: "postgres15", Parameters: Parameters()[:2]},
		{Engine: kurabe.Postgres, Version: "15.18", Family: "postgres15", Parameters: Parameters()},
		{Engine: kurabe.MariaDB, Version: "10.11.19", Family: "mariadb10.11", Parameters: []kurabe.Parameter{
			{Name: "max_connections", Type: "integer", Allowed: "10-100000", Apply: kurabe.ApplyDynamic, Modifiable: true, Default: "151", HasDefault: true},
		}},
	} {
		change.PutCatalog("h1", cat)
	}
	Commit(t, s, change)
	return s
}

// Host is the host.
func Host() kurabe.HostReport {
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

// Parameters has one of each kind, sorted by name.
func Parameters() []kurabe.Parameter {
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

// Commit writes a change.
func Commit(t testing.TB, s scope.Scope, change *store.Change) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), deadline)
	defer cancel()
	if err := s.Commit(ctx, change); err != nil {
		t.Fatal(err)
	}
}

// Spec is an instance as the API would have written it.
func Spec(name string) kurabe.InstanceSpec {
	return kurabe.InstanceSpec{
		ID: kurabe.InstanceID("db-" + strings.ToUpper(name)), Name: name, Revision: 1, Engine: kurabe.Postgres, CreatedAt: Now,
		Now:            kurabe.InstanceSettings{EngineVersion: "15.9", Class: "db.local.micro", StorageGiB: 20, StorageType: "local", Port: 5432, CACertificate: "kurabe-ca"},
		ParameterGroup: "default.postgres15", OptionGroup: "default:postgres-15", SubnetGroup: "default", MaintenanceWindow: "sun:05:00-sun:05:30",
	}
}

// AddInstance stores a spec with a status that answers it.
func AddInstance(t testing.TB, s scope.Scope, spec kurabe.InstanceSpec) {
	t.Helper()
	status := kurabe.InstanceStatus{ID: spec.ID, SpecRevision: spec.Revision, State: kurabe.StateAvailable, Applied: spec.Now, Host: "h1", Zone: "us-east-1b"}
	Commit(t, s, store.NewChange().CreateInstance(spec).PutStatus(status, 0))
}

// WantCode checks the code of an error, and that its message holds a text; "" is no error.
func WantCode(t testing.TB, err error, code kurabe.Code, text string) {
	t.Helper()
	if kurabe.CodeOf(err) != code || code != "" && !strings.Contains(err.Error(), text) {
		t.Errorf("got %q %v, want %q %q", kurabe.CodeOf(err), err, code, text)
	}
}
