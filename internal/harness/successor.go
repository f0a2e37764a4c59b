package harness

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// Successor has the packages of an engine bring its next minor version, until the test ends:
// in the place of its programs there are copies of them that call themselves so. They are
// the installed ones otherwise, for what matters is which of two is run and told of. It
// concerns the mount namespace of the test alone, and takes one; a service sees it when it
// starts. Of a version whose successor has another length it skips the test.
func Successor(t testing.TB, engine, version string) string {
	t.Helper()
	dot := strings.LastIndex(version, ".")
	minor, err := strconv.Atoi(version[dot+1:])
	next := version[:dot+1] + strconv.Itoa(minor+1)
	if err != nil || len(next) != len(version) {
		t.Skipf("the programs of %s have no room for the version after it", version)
	}
	for _, place := range programsOf(t, engine, version[:dot]) {
		replaced := filepath.Join(Folder(t, false), filepath.Base(place))
		if err := renamed(place, replaced, version, next); err != nil {
			t.Fatal(err)
		}
		if err := unix.Mount(replaced, place, "", unix.MS_BIND, ""); err != nil {
			t.Fatalf("put %s in the place of %s: %v", next, place, err)
		}
		t.Cleanup(func() {
			if err := unix.Unmount(place, unix.MNT_DETACH); err != nil {
				t.Errorf("take the successor from %s: %v", place, err)
			}
		})
	}
	return next
}

// programsOf is the folder or the file of an engine's programs that know their version.
func programsOf(t testing.TB, engine, major string) []string {
	t.Helper()
	if engine == "postgres" {
		return []string{filepath.Join("/usr/lib/postgresql", major, "bin")}
	}
	server, err := filepath.EvalSymlinks("/usr/sbin/mariadbd")
	if err != nil {
		t.Skip("MariaDB is not where Debian's package puts it")
	}
	return []string{server}
}

// renamed copies a program, or a folder of them, with another version in its text.
func renamed(from, to, version, next string) error {
	info, err := os.Stat(from)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		text, err := os.ReadFile(from)
		if err != nil {
			return err
		}
		return os.WriteFile(to, bytes.ReplaceAll(text, []byte(version), []byte(next)), info.Mode())
	}
	if err := os.Mkdir(to, info.Mode()); err != nil {
		return err
	}
	entries, err := os.ReadDir(from)
	for _, e := range entries {
		if err == nil {
			err = renamed(filepath.Join(from, e.Name()), filepath.Join(to, e.Name()), version, next)
		}
	}
	return err
}
