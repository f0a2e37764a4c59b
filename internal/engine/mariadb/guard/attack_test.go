package guard

import (
	"context"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// guardFuzzSeconds is how long the guard is attacked each time.
const guardFuzzSeconds = "4"

// The guard runs in the server: what it reads wrongly is a hole in that. Its socket and its
// notes are attacked outside of one, under the compiler's sanitizers (ext/kurabe_guard/fuzz.c):
// strangers, more sessions than there may be, frames that lie, clients that leave.
func TestAttackGuard(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes a compiler, and seconds")
	}
	source, err := filepath.Abs("../../../../ext/kurabe_guard")
	if err != nil {
		t.Fatal(err)
	}
	var headers []string
	for _, pattern := range []string{"/usr/include/mariadb/server", filepath.Join(source, "../../.cache/mariadb-headers")} {
		found, _ := filepath.Glob(filepath.Join(pattern, "mysql/service_sql.h"))
		headers = append(headers, found...)
	}
	if len(headers) == 0 {
		t.Skip("the headers of the MariaDB server are missing")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Second)
	defer cancel()
	out := t.TempDir()
	build := exec.CommandContext(ctx, "make", "-C", source, "fuzz", "OUT="+out, "SERVER="+filepath.Dir(filepath.Dir(headers[0])))
	if text, err := build.CombinedOutput(); err != nil {
		if strings.Contains(string(text), "sanitizer") || strings.Contains(string(text), "asan") || strings.Contains(string(text), "not found") {
			t.Skipf("no compiler with sanitizers: %s", text)
		}
		t.Fatalf("build: %v\n%s", err, text)
	}
	dir, seed := t.TempDir(), time.Now().Format("150405")
	text, err := exec.CommandContext(ctx, filepath.Join(out, "kurabe_guard_fuzz"), guardFuzzSeconds, seed, dir).CombinedOutput()
	if err != nil || !strings.Contains(string(text), " rounds") {
		t.Errorf("seed %s: %v\n%s", seed, err, text)
	}
}
