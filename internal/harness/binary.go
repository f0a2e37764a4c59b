package harness

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
)

var (
	plainBinary = sync.OnceValues(func() (string, error) {
		if path := os.Getenv("KURABE_BIN"); path != "" {
			return path, nil
		}
		return build("")
	})
	faultBinary = sync.OnceValues(func() (string, error) { return build("fault") })
)

// Binary is the service as users run it.
func Binary(t testing.TB) string { return must(t, plainBinary) }

// FaultBinary is the service that ends at the step it is told to.
func FaultBinary(t testing.TB) string { return must(t, faultBinary) }

func must(t testing.TB, get func() (string, error)) string {
	t.Helper()
	path, err := get()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// build builds the service, once for each run of a test binary.
func build(tags string) (string, error) {
	dir, err := os.MkdirTemp("", "kurabe-bin-")
	if err != nil {
		return "", err
	}
	atEnd(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		return "", err
	}
	goCommand := strings.Fields(os.Getenv("GO"))
	if len(goCommand) == 0 {
		goCommand = []string{"go"}
	}
	_, here, _, _ := runtime.Caller(0)
	root := filepath.Dir(filepath.Dir(filepath.Dir(here)))
	path := filepath.Join(dir, "kurabe")
	cmd := exec.Command(goCommand[0], append(goCommand[1:], "build", "-trimpath", "-buildvcs=false", "-tags="+tags, "-o", path, "./cmd/kurabe")...)
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the service: %w\n%s", err, out)
	}
	return path, copyGuard(root, dir)
}

// guards are the plugins of MariaDB's servers, which the service looks for beside
// itself. Without the first one the service offers no MariaDB.
var guards = []string{"kurabe_guard.so", "auth_ed25519.so"}

func copyGuard(root, dir string) error {
	built := filepath.Join(root, "bin")
	if path := os.Getenv("KURABE_BIN"); path != "" {
		built = filepath.Dir(path)
	}
	for _, guard := range guards {
		data, err := os.ReadFile(filepath.Join(built, guard))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, guard), data, 0o755)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
