//go:build fault

package fault

import (
	"os/exec"
	"testing"
	"time"

	"kurabe/internal/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }

// backTime is how soon a killed engine serves again.
const backTime = 5 * time.Second

// settleTime is how long a change may take on a busy machine.
const settleTime = 30 * time.Second

func needRoot(t *testing.T) {
	t.Helper()
	if !harness.Root() {
		t.Skip("mounts need root")
	}
}

// pgbench runs the tool against an instance; it ends with the test.
func pgbench(t *testing.T, i *harness.Instance, args ...string) *exec.Cmd {
	t.Helper()
	path, err := exec.LookPath("pgbench")
	if err != nil {
		t.Skip("pgbench is not installed")
	}
	l := i.Login(t)
	cmd := exec.CommandContext(t.Context(), path, append(args, l.Database)...)
	cmd.Env = append(cmd.Environ(), "PGHOST="+l.Address, "PGPORT="+itoa(l.Port), "PGUSER="+l.User, "PGPASSWORD="+l.Password,
		"PGSSLMODE=verify-full", "PGSSLROOTCERT="+l.CAFile)
	return cmd
}
