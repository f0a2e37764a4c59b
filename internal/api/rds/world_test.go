package rds

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/rds"
	"github.com/aws/smithy-go"

	"kurabe"
	"kurabe/internal/api"
	"kurabe/internal/aws/sdkhttp"
	"kurabe/internal/control"
	"kurabe/internal/control/scope"
	"kurabe/internal/control/secret"
	"kurabe/internal/logkey"
	"kurabe/internal/logs"
	"kurabe/internal/store"
)

const testDeadline = 20 * time.Second

// testWorld is a service with a real client before it and a store in memory behind.
type testWorld struct {
	client *rds.Client
	c      *control.Control
	homes  string
}

// newTestWorld has one host with PostgreSQL 15.9 and 15.18 and MariaDB, the
// catalog of a family with 130 parameters, and the instance "orders".
func newTestWorld(t *testing.T) testWorld {
	t.Helper()
	kv, homes := store.NewMemory(), t.TempDir()
	view := store.NewView(kv)
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { _ = view.Run(ctx) }) // ends with ctx only
	t.Cleanup(func() { cancel(); wg.Wait() })
	s := scope.New(scope.Scope{
		KV: kv, View: view, Region: "us-east-1", Account: "000000000000", Zones: []string{"us-east-1a", "us-east-1b", "us-east-1c"}, Now: time.Now,
	})
	verifier := func(logkey.Secret) (string, error) { return "verifier", nil }
	c := control.New(s, control.Config{
		Verifiers: map[kurabe.EngineName]control.Verifier{kurabe.Postgres: verifier, kurabe.MariaDB: verifier},
		Secrets:   secret.Secrets{Scope: s, Sealer: secret.NewSealer([32]byte{1})},
		Authority: control.Authority{Identifier: "kurabe-ca", Thumbprint: "00ff", NotBefore: time.Unix(1e9, 0).UTC(), NotAfter: time.Unix(2e9, 0).UTC()},
		Logs:      logs.New(homes),
	})
	commit(t, c, store.NewChange().PutHost(testHost()).PutCatalog("h1", testCatalog("15.9")).PutCatalog("h1", testCatalog("15.18")))
	commit(t, c, testInstance("orders"))
	server := httptest.NewServer(api.New(api.Config{
		Credentials: func(string) (logkey.Secret, bool) { return "secret", true }, Region: "us-east-1", Account: "000000000000",
		Services: []api.Service{New(c).API()}, Log: slog.New(slog.NewTextHandler(io.Discard, nil)),
	}))
	t.Cleanup(server.Close)
	client := rds.New(rds.Options{
		Region: "us-east-1", BaseEndpoint: aws.String(server.URL), RetryMaxAttempts: 1, HTTPClient: sdkhttp.Client(),
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "AKID", SecretAccessKey: "secret"}, nil
		}),
	})
	return testWorld{client, c, homes}
}

func commit(t *testing.T, c *control.Control, change *store.Change) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), testDeadline)
	defer cancel()
	revision, err := change.Commit(ctx, c.KV)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.View.WaitRevision(ctx, revision); err != nil {
		t.Fatal(err)
	}
}

func testHost() kurabe.HostReport {
	return kurabe.HostReport{
		Host: "h1", Zones: []string{"us-east-1a", "us-east-1b", "us-east-1c"}, CPUs: 2, MemoryBytes: 8 * kurabe.GiB,
		Levers: []kurabe.Lever{{Name: "cpu", Available: true}, {Name: "memory", Available: true}, {Name: "io", Available: true}},
		Engines: []kurabe.EngineVersion{
			{Engine: kurabe.Postgres, Version: "15.9", Family: "postgres15", Ready: true, Locales: []string{"C"}},
			{Engine: kurabe.Postgres, Version: "15.18", Family: "postgres15", Default: true, Ready: true, Locales: []string{"C", "ja_JP.UTF-8"}},
			{Engine: kurabe.MariaDB, Version: "10.11.19", Family: "mariadb10.11", Default: true, Ready: true},
		},
	}
}

func testCatalog(version string) kurabe.Catalog {
	cat := kurabe.Catalog{Engine: kurabe.Postgres, Version: version, Family: "postgres15"}
	for n := range 129 {
		cat.Parameters = append(cat.Parameters, kurabe.Parameter{
			Name: fmt.Sprintf("p%03d", n), Type: "integer", Allowed: "0-100", Apply: kurabe.ApplyDynamic, Modifiable: true, Default: "1", HasDefault: true,
		})
	}
	cat.Parameters = append(cat.Parameters, kurabe.Parameter{
		Name: "shared_buffers", Type: "integer", Allowed: "16-1073741823", Apply: kurabe.ApplyStatic, Modifiable: true, System: true,
		Default: "{DBInstanceClassMemory/32768}", HasDefault: true, Description: "Sets the number of shared memory buffers.",
	})
	return cat
}

// testInstance is an available instance with a class that waits for its window.
func testInstance(name string) *store.Change {
	now := kurabe.InstanceSettings{EngineVersion: "15.9", Class: "db.t3.micro", StorageGiB: 20, StorageType: "local", Port: 5432, CACertificate: "kurabe-ca"}
	next := now
	next.Class = "db.t3.small"
	spec := kurabe.InstanceSpec{
		ID: "db-ORDERS", Name: name, Revision: 1, Engine: kurabe.Postgres, CreatedAt: time.Now(), Now: now, Next: &next, NextSeq: 1,
		ParameterGroup: "default.postgres15", OptionGroup: "default:postgres-15", SubnetGroup: "default", MaintenanceWindow: "sun:05:00-sun:05:30",
	}
	status := kurabe.InstanceStatus{ID: spec.ID, SpecRevision: 1, State: kurabe.StateAvailable, Applied: now, Host: "h1", Zone: "us-east-1a"}
	return store.NewChange().CreateInstance(spec).PutStatus(status, 0).AddEvent(kurabe.Event{
		At: time.Now().Add(-time.Minute), SourceType: "db-instance", Source: name, SourceID: string(spec.ID), ID: "RDS-EVENT-0005",
		Categories: []string{"creation"}, Message: "DB instance created",
	})
}

// writeLog puts a file into the instance's log folder.
func (w testWorld) writeLog(t *testing.T, name, text string) {
	t.Helper()
	dir := filepath.Join(w.homes, "db-ORDERS", "log")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// wantCode checks the code on the wire.
func wantCode(t *testing.T, err error, code, text string) {
	t.Helper()
	var known smithy.APIError
	if !errors.As(err, &known) || known.ErrorCode() != code || !strings.Contains(known.ErrorMessage(), text) {
		t.Errorf("got %v, want %s %q", err, code, text)
	}
}

// must returns what a call that cannot fail returned.
func must[T any](out T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
}
