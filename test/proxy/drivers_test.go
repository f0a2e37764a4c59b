//go:build integration

package proxy

import (
	"os"
	osexec "os/exec"
	"path/filepath"
	"strings"
	"testing"

	"kurabe/test/relay"
)

// drivers are programs that print "ok", each of which needs what the suite of clients installs.
var drivers = []struct {
	name, needs string
	argv        []string
}{
	{"psycopg", ".cache/clients-venv/lib/python3*/site-packages/psycopg", []string{".cache/clients-venv/bin/python", "test/proxy/drivers/psycopg_client.py"}},
	{"asyncpg", ".cache/clients-venv/lib/python3*/site-packages/asyncpg", []string{".cache/clients-venv/bin/python", "test/proxy/drivers/asyncpg_client.py"}},
	{"JDBC", ".cache/clients/java/lib/postgresql-*.jar", []string{"java", "-cp", "NEEDS", "test/proxy/drivers/Jdbc.java"}},
	{"node-pg", "test/clients/node/node_modules/pg", []string{"node", "test/proxy/drivers/node-pg.mjs"}},
}

// TestPostgresDrivers has clients of each driver share a pool of one connection. Those of the
// suite of clients are skipped where it has not installed them.
func TestPostgresDrivers(t *testing.T) {
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range drivers {
		t.Run(d.name, func(t *testing.T) {
			found, _ := filepath.Glob(filepath.Join(root, d.needs))
			if len(found) == 0 {
				t.Skipf("%s is not there: scripts/clients.sh", d.needs)
			}
			x := start(t, server(t), 1, nil)
			argv := append([]string(nil), d.argv...)
			for i := range argv {
				argv[i] = strings.ReplaceAll(argv[i], "NEEDS", found[0])
			}
			c := osexec.CommandContext(deadline(t), argv[0], argv[1:]...)
			if strings.Contains(argv[0], "/") {
				c = osexec.CommandContext(deadline(t), filepath.Join(root, argv[0]), argv[1:]...)
			}
			c.Dir = root
			c.Env = append(os.Environ(), "URL="+relay.URL(x.Address, "postgres"), "JDBC_URL=jdbc:postgresql://"+x.Address.String()+"/postgres?sslmode=disable",
				"PGUSER="+relay.User, "PGPASSWORD="+relay.Password, "NODE_FROM="+filepath.Join(root, "test/clients/node/package.json"))
			out, err := c.CombinedOutput()
			if err != nil || strings.TrimSpace(string(out)) != "ok" {
				t.Errorf("%v\n%s\n%s", err, out, x.log)
			}
		})
	}
}
