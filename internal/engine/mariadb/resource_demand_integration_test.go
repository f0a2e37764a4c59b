//go:build integration

package mariadb

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kurabe"
	"kurabe/internal/engine"
	"kurabe/internal/engine/enginetest"
)

// A server is not started with what would fill its host, nor has a running one it; and a change
// of the parameter alone mends it.
func TestNothingFillsTheHost(t *testing.T) {
	b := enginetest.NewBed(t, setup(t, enginetest.Reachable(t)))
	b.Want.Limits = kurabe.Limits{StorageBytes: 5 * kurabe.GiB}
	b.Satisfy(t)
	for _, boot := range []bool{false, true} {
		b.Set(map[string]string{"innodb_log_file_size": "107374182400"})
		if boot {
			b.Want.Boot++
		}
		err := b.TrySatisfy(t.Context())
		var refused *engine.StartError
		if !errors.As(err, &refused) || refused.Kind != kurabe.FailureParameters || !strings.Contains(refused.Message, "innodb_log_file_size") {
			t.Fatalf("it says %v", err)
		}
		for _, name := range []string{"ib_logfile0", "ib_logfile101"} {
			if info, err := os.Stat(filepath.Join(b.Home().DataDir(), name)); err == nil && info.Size() > kurabe.GiB {
				t.Errorf("%s has %d bytes", name, info.Size())
			}
		}
	}
	b.Set(map[string]string{"innodb_log_file_size": "134217728"})
	b.Satisfy(t)
	b.MustQuery(t, "SELECT 1")
}

// What a start that failed has allocated for a log of another size goes with it.
func TestRefusedLogIsRemoved(t *testing.T) {
	b := enginetest.NewBed(t, setup(t, enginetest.Reachable(t)))
	b.Satisfy(t)
	b.Want.Goal, b.Want.Generation = kurabe.GoalStopped, b.Want.Generation+1
	b.Satisfy(t)
	left := filepath.Join(b.Home().DataDir(), resizedLog)
	if err := os.WriteFile(left, make([]byte, 1<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := New(Config{}).AfterFailedStart(b.Instance(), "InnoDB: Cannot set log file "+resizedLog+" size to 107374182400"); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(left); err == nil {
		t.Error("it is still there")
	}
	b.Want.Goal, b.Want.Generation = kurabe.GoalRunning, b.Want.Generation+1
	b.Satisfy(t)
}
