package postgres

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"kurabe"
	"kurabe/internal/engine"
)

// The superuser is let into its own database, and into others of a copy; nobody else is
// let in as the superuser. What is refused does not come as far as dialling.
func TestDoorRefuses(t *testing.T) {
	i := engine.Instance{Version: kurabe.EngineVersion{Version: "15.18"}}
	for _, c := range []struct {
		name, role, database string
		rights               rights
		fits                 bool
	}{
		{"the service at home", adminRole, adminDatabase, asService, true},
		{"the service in a tenant's database", adminRole, "shop", asService, false},
		{"a copy's database", adminRole, "shop", inCopy, true},
		{"a copy's rights at home", adminRole, adminDatabase, inCopy, false},
		{"a client", "master", "shop", asClient, true},
		{"the probe", probeRolePrefix + "0", adminDatabase, asClient, true},
		{"the superuser as a client", adminRole, "shop", asClient, false},
		{"a client with the service's rights", "master", adminDatabase, asService, false},
		{"a client with those in a copy", "master", "shop", inCopy, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			// A port of nobody's: who is let through meets no server.
			config, err := sessionConfig("127.0.0.1", 1, c.role)
			if err != nil {
				t.Fatal(err)
			}
			config.Database = c.database
			dialled := false
			config.DialFunc = func(context.Context, string, string) (net.Conn, error) {
				dialled = true
				return nil, errors.New("nobody is there")
			}
			if _, err := enter(t.Context(), i, config, c.rights); err == nil || dialled != c.fits {
				t.Errorf("it came to dialling: %v, want %v (%v)", dialled, c.fits, err)
			}
			if dialled && config.RuntimeParams["search_path"] != "pg_catalog, pg_temp" {
				t.Errorf("with the settings %v", config.RuntimeParams)
			}
		})
	}
}

// A database of clients is entered in a copy alone, and after what they set is taken out.
func TestDoorOfCopies(t *testing.T) {
	for _, p := range []*private{{}, {copied: true}, {bared: true}} {
		if _, err := p.databaseConn(t.Context(), "shop"); err == nil || !strings.Contains(err.Error(), "is not one of a copy") {
			t.Errorf("copied %v, bared %v: %v", p.copied, p.bared, err)
		}
	}
	if _, err := (&private{}).bare(t.Context(), (*pgx.Conn)(nil)); err == nil {
		t.Error("settings are taken out of data that are kept")
	}
}

// Every setting of the service's sessions reaches a client program, whole.
func TestClientOptions(t *testing.T) {
	options := clientOptions(15)
	for _, want := range []string{`-c search_path=pg_catalog,\ pg_temp`, "-c role=none", "-c session_preload_libraries= ", `-c default_transaction_isolation=read\ committed`} {
		if !strings.Contains(options+" ", want) {
			t.Errorf("%q is missing in %s", want, options)
		}
	}
}
