//go:build integration

package integration

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"kurabe/internal/harness"
)

// The files of what was measured are damaged while the service is stopped. Its next start says so
// to each instance, and goes on to measure.
func TestDamagedMetrics(t *testing.T) {
	s := harness.Start(t, harness.Options{})
	list := one(t, s)
	for _, i := range list {
		waitSample(t, i, "DatabaseConnections", time.Now().Add(20*time.Second), isMeasured)
	}
	s.Terminate(t)
	damaged := 0
	err := filepath.WalkDir(filepath.Join(s.Data, "metrics"), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		raw, err := os.ReadFile(path)
		if err != nil || len(raw) == 0 {
			return err
		}
		for n := len(raw) / 3; n < len(raw)*2/3; n++ {
			raw[n] ^= 0xff
		}
		damaged++
		return os.WriteFile(path, raw, 0o600)
	})
	if err != nil || damaged == 0 {
		t.Fatalf("%d files: %v", damaged, err)
	}
	began := time.Now()
	s.Start(t)
	for _, i := range list {
		t.Log(i.WaitEvent(t, "has lost metrics"))
		waitSample(t, i, "DatabaseConnections", began, isMeasured)
		waitSample(t, i, "CPUUtilization", began, func(v float64) bool { return v >= 0 && v < 200 })
	}
}
