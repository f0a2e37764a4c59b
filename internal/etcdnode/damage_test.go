package etcdnode

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Each kind of damage must be told from the others, and from a first start, and
// must leave every byte as it was.
func TestDamageIsRefused(t *testing.T) {
	db := filepath.Join("member", "snap", "db")
	walDir := filepath.Join("member", "wal")
	cases := []struct {
		name   string
		damage func(t *testing.T, dir string)
		words  string
	}{
		{"database gone", func(t *testing.T, dir string) { remove(t, filepath.Join(dir, db)) }, "no database"},
		{"log gone", func(t *testing.T, dir string) { remove(t, filepath.Join(dir, walDir)) }, "no log"},
		{"database is not one", func(t *testing.T, dir string) {
			write(t, filepath.Join(dir, db), bytes.Repeat([]byte("garbage "), 4096))
		}, "database"},
		{"database cut", func(t *testing.T, dir string) {
			truncate(t, filepath.Join(dir, db), 12<<10)
		}, "database"},
		{"database page overwritten", func(t *testing.T, dir string) {
			overwrite(t, filepath.Join(dir, db), 16<<10, 0x7f, 64<<10)
		}, "database"},
		{"bits flipped in the log", func(t *testing.T, dir string) {
			overwrite(t, segment(t, dir), 200<<10, 0x55, 64)
		}, "log"},
		{"log zeroed from the middle", func(t *testing.T, dir string) {
			overwrite(t, segment(t, dir), 100<<10, 0, 8<<20)
		}, "log"},
	}
	origin := t.TempDir()
	n := mustStart(t, origin)
	for i := range 300 {
		put(t, n, fmt.Sprintf("/k/%04d", i), strings.Repeat("x", 2000))
	}
	mustClose(t, n)
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.CopyFS(dir, os.DirFS(origin)); err != nil {
				t.Fatal(err)
			}
			c.damage(t, dir)
			before := content(t, dir)
			n, err := Start(testContext(t), Options{Dir: dir, Log: silent()})
			if err == nil {
				n.Close()
				t.Fatal("it started")
			}
			t.Log(err)
			if !errors.Is(err, ErrCorrupt) || !strings.Contains(err.Error(), c.words) {
				t.Errorf("error %q; want ErrCorrupt that says %q", err, c.words)
			}
			if after := content(t, dir); !bytes.Equal(before, after) {
				t.Error("the folder was changed")
			}
		})
	}
}

func TestTornEndIsNoDamage(t *testing.T) {
	dir := t.TempDir()
	n := mustStart(t, dir)
	put(t, n, "/k", "v")
	mustClose(t, n)
	// What a power cut leaves of a record that was being written: its length,
	// and nothing of it.
	path := segment(t, dir)
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	end := len(bytes.TrimRight(text, "\x00"))
	end = (end + 7) / 8 * 8
	overwrite(t, path, int64(end), 0x40, 1)
	n = mustStart(t, dir)
	if get(t, n, "/k") != "v" {
		t.Error("value lost")
	}
}

func TestSecondProcessIsRefused(t *testing.T) {
	dir := t.TempDir()
	n := mustStart(t, dir)
	_, err := Start(testContext(t), Options{Dir: dir, Log: silent()})
	if !errors.Is(err, ErrLocked) || !strings.Contains(err.Error(), fmt.Sprint(os.Getpid())) {
		t.Errorf("error %v; want ErrLocked with our pid", err)
	}
	mustClose(t, n)
	mustStart(t, dir)
}

func segment(t *testing.T, dir string) string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "member", "wal", "0*.wal"))
	if err != nil || len(names) == 0 {
		t.Fatalf("no log file: %v", err)
	}
	return names[len(names)-1]
}

// content is every file under dir in one, but the lock.
func content(t *testing.T, dir string) []byte {
	t.Helper()
	var all bytes.Buffer
	err := filepath.Walk(dir, func(path string, info os.FileInfo, err error) error {
		if err != nil || info.IsDir() || info.Name() == "lock" {
			return err
		}
		text, err := os.ReadFile(path)
		fmt.Fprintf(&all, "%s %d\n", path, len(text))
		all.Write(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all.Bytes()
}

func remove(t *testing.T, path string) {
	t.Helper()
	if err := os.RemoveAll(path); err != nil {
		t.Fatal(err)
	}
}

func write(t *testing.T, path string, content []byte) {
	t.Helper()
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
}

func truncate(t *testing.T, path string, size int64) {
	t.Helper()
	if err := os.Truncate(path, size); err != nil {
		t.Fatal(err)
	}
}

func overwrite(t *testing.T, path string, at int64, with byte, n int) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteAt(bytes.Repeat([]byte{with}, n), at); err != nil {
		t.Fatal(err)
	}
}
