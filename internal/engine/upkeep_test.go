package engine

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

// Old logs go by age and size. What is not exported yet stays until there is too much of it.
func TestRemoveOldLogs(t *testing.T) {
	const piece = 300 << 20
	now := time.Now()
	for _, c := range []struct {
		name string
		held int64
		want []string // of 0, the newest, to 9
	}{
		{"the disk is not short", 10 * piece, []string{"0", "3", "4", "5"}},
		{"the disk is short", 4 * piece, []string{"0", "3"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			for n := range 10 {
				path := filepath.Join(dir, fmt.Sprint(n))
				file, err := os.Create(path)
				if err == nil {
					err = file.Truncate(piece) // no byte of it is on the disk
				}
				if err == nil {
					err = file.Close()
				}
				if err == nil {
					err = os.Chtimes(path, now, now.Add(-time.Duration(n)*time.Hour))
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			files, err := logFiles(dir)
			if err != nil {
				t.Fatal(err)
			}
			unread := func(name string) bool { return slices.Contains([]string{"3", "4", "5"}, name) }
			if err := removeOldLogs(dir, files, now, c.held, unread); err != nil {
				t.Fatal(err)
			}
			entries, err := os.ReadDir(dir)
			var left []string
			for _, e := range entries {
				left = append(left, e.Name())
			}
			if err != nil || !slices.Equal(left, c.want) {
				t.Errorf("left %v, want %v: %v", left, c.want, err)
			}
		})
	}
}
