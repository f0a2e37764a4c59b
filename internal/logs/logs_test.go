package logs

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"kurabe"
)

const testID = kurabe.InstanceID("db-TEST")

// newTestSource makes a home with files that nobody has written to for long.
func newTestSource(t *testing.T, files map[string]string) (*Source, string) {
	t.Helper()
	homes := t.TempDir()
	dir := filepath.Join(homes, string(testID), "log")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s := New(homes)
	s.now = func() time.Time { return time.Now().Add(time.Hour) }
	return s, dir
}

func TestList(t *testing.T) {
	s, dir := newTestSource(t, map[string]string{
		"postgresql.log.2026-11-21-03": "abc\n", "start.log": "s\n", "core": "x", "postgresql.logX": "x", "mysql-error.log": "m",
	})
	for _, err := range []error{
		os.Symlink("/etc/passwd", filepath.Join(dir, "postgresql.log.link")),
		os.Mkdir(filepath.Join(dir, "postgresql.log.d"), 0o700),
		syscall.Mkfifo(filepath.Join(dir, "postgresql.log.pipe"), 0o600),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	files, err := s.List(t.Context(), testID, kurabe.Postgres)
	if err != nil || len(files) != 1 || files[0].Name != "error/postgresql.log.2026-11-21-03" || files[0].SizeBytes != 4 {
		t.Fatalf("%+v, %v", files, err)
	}
	if files, err := s.List(t.Context(), "db-OTHER", kurabe.Postgres); err != nil || files != nil {
		t.Errorf("no home: %v, %v", files, err)
	}
	if _, err := s.List(t.Context(), "../x", kurabe.Postgres); err == nil {
		t.Error("an id that is a path")
	}
}

func TestMariaDBNames(t *testing.T) {
	for local, want := range map[string]string{
		"mysql-error.log": "error/mysql-error.log", "mysql-error.log.1": "error/mysql-error.log.1", "mysql-slowquery.log": "slowquery/mysql-slowquery.log",
		"mysql-general.log.7": "general/mysql-general.log.7", "mysql-error.logs": "", "start.log": "", "": "",
	} {
		if got := rdsName(kurabe.MariaDB, local); got != want {
			t.Errorf("%q: %q, want %q", local, got, want)
		}
	}
}

func TestReadFindsListedFilesOnly(t *testing.T) {
	s, dir := newTestSource(t, map[string]string{"start.log": "s\n"})
	if err := os.WriteFile(filepath.Join(dir, "..", "secret"), []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"", "start.log", "../secret", "error/../secret", "error/postgresql.log/../../secret", "/etc/passwd", "error/postgresql.log.\x00"} {
		if _, err := s.Read(t.Context(), testID, kurabe.Postgres, name, "0", 10); kurabe.CodeOf(err) != kurabe.CodeLogFileNotFound {
			t.Errorf("%q: %v", name, err)
		}
	}
}

func TestWindow(t *testing.T) {
	for _, c := range []struct {
		name  string
		w     window
		lines int
		first string
		more  bool
		last  string
	}{
		{"whole file", window{[]byte("a\nb\n"), true, true, true}, 9, "a\nb\n", false, "a\nb\n"},
		{"one line of two", window{[]byte("a\nb\n"), true, true, true}, 1, "a\n", true, "b\n"},
		{"two of three", window{[]byte("a\nb\nc\n"), true, true, true}, 2, "a\nb\n", true, "b\nc\n"},
		{"empty lines", window{[]byte("\n\n\n"), true, true, true}, 2, "\n\n", true, "\n\n"},
		{"last line being written", window{[]byte("a\nb"), true, true, false}, 9, "a\n", false, "a\n"},
		{"last line has no end", window{[]byte("a\nb"), true, true, true}, 9, "a\nb", false, "a\nb"},
		{"last line has no end, one asked", window{[]byte("a\nb"), true, true, true}, 1, "a\n", true, "b"},
		{"nothing but a beginning", window{[]byte("a"), true, true, false}, 9, "", false, ""},
		{"empty", window{nil, true, true, true}, 9, "", false, ""},
		{"middle of a file", window{[]byte("x\na\nb"), false, false, true}, 9, "x\na\n", true, "a\nb"},
		{"line longer than the window", window{[]byte("aあ")[:3], false, false, true}, 9, "a", true, "a\xe3\x81"},
	} {
		t.Run(c.name, func(t *testing.T) {
			end, more := c.w.first(c.lines)
			if got := string(c.w.data[:end]); got != c.first || more != c.more {
				t.Errorf("first: %q %v, want %q %v", got, more, c.first, c.more)
			}
			begin, end := c.w.last(c.lines)
			if got := string(c.w.data[begin:end]); got != c.last {
				t.Errorf("last: %q, want %q", got, c.last)
			}
		})
	}
}

// Portions follow each other without a gap, a repetition or a cut line.
func TestReadInPortions(t *testing.T) {
	var text strings.Builder
	for n := range 60_000 {
		text.WriteString(strings.Repeat("x", n%97) + "\n")
	}
	s, _ := newTestSource(t, map[string]string{"postgresql.log.1": text.String()})
	var got bytes.Buffer
	marker, portions := "0", 0
	for more := true; more; portions++ {
		p, err := s.Read(t.Context(), testID, kurabe.Postgres, "error/postgresql.log.1", marker, 10_000)
		if err != nil {
			t.Fatal(err)
		}
		if len(p.Data) > maxPortion || strings.Count(p.Data, "\n") > 10_000 || !strings.HasSuffix(p.Data, "\n") {
			t.Fatalf("portion of %d bytes", len(p.Data))
		}
		got.WriteString(p.Data)
		marker, more = p.Marker, p.More
	}
	if got.String() != text.String() || portions < 6 {
		t.Errorf("%d bytes of %d in %d portions", got.Len(), text.Len(), portions)
	}
	p, err := s.Read(t.Context(), testID, kurabe.Postgres, "error/postgresql.log.1", "", 3)
	if err != nil || !strings.HasSuffix(text.String(), p.Data) || strings.Count(p.Data, "\n") != 3 || p.More {
		t.Errorf("tail: %q %v", p.Data, err)
	}
}

func TestReadFollowsGrowthAndRotation(t *testing.T) {
	s, dir := newTestSource(t, map[string]string{"mysql-error.log": "one\n"})
	read := func(marker string) kurabe.LogPortion {
		t.Helper()
		p, err := s.Read(t.Context(), testID, kurabe.MariaDB, "error/mysql-error.log", marker, 100)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	p := read("0")
	path := filepath.Join(dir, "mysql-error.log")
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString("two\n"); err != nil || f.Close() != nil {
		t.Fatal(err)
	}
	if p = read(p.Marker); p.Data != "two\n" || p.More {
		t.Errorf("growth: %+v", p)
	}
	if again := read(p.Marker); again.Data != "" || again.Marker != p.Marker {
		t.Errorf("nothing new: %+v", again)
	}
	if err := os.Rename(path, path+".1"); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("three is a longer line\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if p = read(p.Marker); p.Data != "three is a longer line\n" {
		t.Errorf("rotation: %+v", p)
	}
}

func FuzzMarker(f *testing.F) {
	for _, s := range []string{"", "0", "1:2", "01:2", "-1:0", "1:-1", "1:+2", "99999999999999999999:0", "a:b", "1:2:3"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		p, err := parseMarker(s)
		if err == nil && s != "" && s != "0" && p.String() != s {
			t.Errorf("%q is read as %v", s, p)
		}
		if p.offset < 0 {
			t.Errorf("%q is before the file", s)
		}
	})
}

func FuzzWindow(f *testing.F) {
	f.Add([]byte("a\nb\n"), 1, byte(7))
	f.Fuzz(func(t *testing.T, data []byte, lines int, flags byte) {
		lines = 1 + max(lines, -lines, 0)%20
		w := window{data, flags&1 > 0, flags&2 > 0, flags&4 > 0}
		end, more := w.first(lines)
		begin, stop := w.last(lines)
		if end < 0 || end > len(data) || begin < 0 || begin > stop || stop > len(data) {
			t.Fatalf("%q: first %d, last %d:%d", data, end, begin, stop)
		}
		if more && end == 0 && len(data) > 3 {
			t.Fatalf("%q: more without progress", data)
		}
		if bytes.Count(data[begin:stop], []byte{'\n'}) > lines || bytes.Count(data[:end], []byte{'\n'}) > lines {
			t.Fatalf("%q: too many lines", data)
		}
	})
}
