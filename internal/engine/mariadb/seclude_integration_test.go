//go:build integration

package mariadb

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"kurabe/internal/engine/enginetest"
	"kurabe/internal/engine/mariadb/door"
	"kurabe/internal/engine/mariadb/sqltext"
	"kurabe/internal/proc"
)

// runner is a function that runs a program, which the product never loads.
const runner = `#include <stdlib.h>
#include <sys/wait.h>
struct args { unsigned count; int *types; char **values; };
int kurabe_run_init(void *i, struct args *a, char *message) { return 0; }
long long kurabe_run(void *i, struct args *a, char *is_null, char *error) {
	int status = system(a->values[0]);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 255;
}
`

// TestSecludedServer runs programs inside a server that looks at a copy, as a tenant's code
// that got so far would: they see nothing of the host and of other instances, and end with
// the server, wherever they have gone.
func TestSecludedServer(t *testing.T) {
	b := enginetest.Serving(t, setup(t, enginetest.Reachable(t)))
	if b.User == nil {
		t.Skip("needs root")
	}
	i, data := b.CopyBeside(t)
	source, library, witness := filepath.Join(b.Root, "run.c"), filepath.Join(b.Root, "run.so"), filepath.Join(b.Root, "witness")
	if err := os.WriteFile(source, []byte(runner), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(witness, []byte("secret"), 0o644); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("cc", "-shared", "-fPIC", "-o", library, source).CombinedOutput(); err != nil {
		t.Skipf("no compiler: %v: %s", err, out)
	}
	text, err := os.ReadFile(library)
	if err != nil {
		t.Fatal(err)
	}
	// What the account may not, whoever is in its server's place may; so it has all rights here.
	rights := door.PrivateRights
	door.PrivateRights = []string{"ALL PRIVILEGES ON *.*"}
	t.Cleanup(func() { door.PrivateRights = rights })
	s, err := openPrivate(t.Context(), i, data)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(s.path("run.so"), text, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := s.settle(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := s.launch(t.Context(), privateOptions{account: true}); err != nil {
		t.Fatal(err)
	}
	if err := s.exec(t.Context(), "CREATE FUNCTION kurabe_run RETURNS INTEGER SONAME 'run.so'"); err != nil {
		t.Fatal(err)
	}
	run := func(script string) string {
		rows, err := s.rows(t.Context(), "SELECT kurabe_run("+sqltext.Literal("exec </dev/null; "+script)+") AS code")
		if err != nil || len(rows) != 1 {
			t.Fatal(rows, err)
		}
		return rows[0]["code"]
	}
	for _, a := range enginetest.SecludedAttacks(witness, b) {
		if code := run(a.Script); code == "0" {
			t.Errorf("%s: a program of the copy's server can: %s", a.Name, a.Script)
		}
	}
	if code := run("test -n \"$(id -u)\""); code != "0" {
		t.Errorf("no program runs at all, so the test says nothing: %s", code)
	}
	run(enginetest.Daemon)
	if err := s.close(); err != nil {
		t.Fatal(err)
	}
	if left, err := proc.Owned(i.User.UID); err != nil || len(left) > 0 {
		t.Errorf("it left %v, %v", left, err)
	}
}
