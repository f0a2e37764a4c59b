package volume

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// trap is a folder of somebody hostile, and what must not be touched from it.
type trap struct {
	dir, outside, witness string
}

const witnessText = "nobody else's\n"

func newTrap(t *testing.T) trap {
	t.Helper()
	base := t.TempDir()
	tr := trap{dir: filepath.Join(base, "theirs"), outside: filepath.Join(base, "ours")}
	tr.witness = filepath.Join(tr.outside, "witness")
	for _, dir := range []string{tr.dir, tr.outside, filepath.Join(tr.outside, "in")} {
		if err := os.Mkdir(dir, 0o750); err != nil {
			t.Fatal(err)
		}
	}
	for _, path := range []string{tr.witness, filepath.Join(tr.outside, "in", "name")} {
		if err := os.WriteFile(path, []byte(witnessText), 0o640); err != nil {
			t.Fatal(err)
		}
	}
	// Their own file: what is inside is hostile as well.
	if err := os.WriteFile(filepath.Join(tr.dir, "own"), []byte("own"), 0o600); err != nil {
		t.Fatal(err)
	}
	return tr
}

func (tr trap) path(name string) string { return filepath.Join(tr.dir, name) }

// state is all that must be as it was: names, modes, owners, contents.
func (tr trap) state(t *testing.T) string {
	t.Helper()
	var all strings.Builder
	err := filepath.WalkDir(tr.outside, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		var st unix.Stat_t
		if err := unix.Lstat(path, &st); err != nil {
			return err
		}
		fmt.Fprintln(&all, path, st.Mode, st.Uid, st.Gid, st.Ino, st.Nlink)
		if entry.Type().IsRegular() {
			data, err := os.ReadFile(path)
			all.Write(data)
			return err
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all.String()
}

// traps are what can bear the name "name" in the hostile folder, or be its folder "sub".
func (tr trap) lay(t *testing.T, kind string) (name string) {
	t.Helper()
	var err error
	name = tr.path("name")
	switch kind {
	case "link to a file":
		err = os.Symlink(tr.witness, name)
	case "relative link to a file":
		err = os.Symlink("../ours/witness", name)
	case "link to a folder":
		err = os.Symlink(tr.outside, name)
	case "link to nothing":
		err = os.Symlink(filepath.Join(tr.outside, "new"), name)
	case "link inside":
		err = os.Symlink("own", name)
	case "folder replaced by a link":
		err = os.Symlink(filepath.Join(tr.outside, "in"), tr.path("sub"))
		name = tr.path("sub/name")
	case "folder replaced by a link inside":
		err = errors.Join(os.Mkdir(tr.path("other"), 0o700), os.WriteFile(tr.path("other/name"), []byte("own"), 0o600), os.Symlink("other", tr.path("sub")))
		name = tr.path("sub/name")
	case "pipe":
		err = unix.Mkfifo(name, 0o600)
	case "socket":
		var l net.Listener
		if l, err = net.Listen("unix", name); err == nil {
			t.Cleanup(func() { l.Close() })
		}
	case "device":
		if err = unix.Mknod(name, unix.S_IFCHR|0o600, int(unix.Mkdev(1, 7))); errors.Is(err, unix.EPERM) {
			t.Skip("devices are root's to make")
		}
	case "folder":
		err = os.Mkdir(name, 0o700)
	default:
		t.Fatalf("no trap %q", kind)
	}
	if err != nil {
		t.Fatal(err)
	}
	return name
}

var (
	links  = []string{"link to a file", "relative link to a file", "link to a folder", "link to nothing", "link inside", "folder replaced by a link", "folder replaced by a link inside"}
	others = []string{"pipe", "socket", "device", "folder"}
)

// deeds are all that is done with a file by its name.
var deeds = map[string]func(path string) error{
	"open":      func(p string) error { return closed(Open(p)) },
	"append":    func(p string) error { return closed(OpenFile(p, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)) },
	"cut":       func(p string) error { return closed(OpenFile(p, os.O_WRONLY|os.O_TRUNC, 0)) },
	"create":    func(p string) error { return closed(Create(p)) },
	"read":      func(p string) error { _, err := ReadFile(p); return err },
	"truncate":  func(p string) error { return Truncate(p, 0) },
	"chmod":     func(p string) error { return Chmod(p, 0o777) },
	"list":      func(p string) error { _, err := ReadDir(p); return err },
	"mkdir all": func(p string) error { return MkdirAll(filepath.Join(p, "deeper"), 0o777) },
	"write":     func(p string) error { return WriteNew(filepath.Join(p, "in"), []byte("mine"), 0o600, nil) },
	"atomic":    func(p string) error { return AtomicWrite(filepath.Join(p, "in"), []byte("mine"), 0o600) },
	"remove in": func(p string) error { return Remove(filepath.Join(p, "witness")) },
	"tree in":   func(p string) error { return RemoveAll(filepath.Join(p, "in")) },
	"rename in": func(p string) error { return Rename(filepath.Join(p, "witness"), p+".stolen") },
	"rename to": func(p string) error {
		return Rename(filepath.Join(filepath.Dir(p), "own"), filepath.Join(p, "witness"))
	},
	"give in": func(p string) error { return Give(filepath.Join(p, "witness"), Owner{os.Getuid() + 1, -1}) },
	"ensure":  func(p string) error { return EnsureDir(filepath.Join(p, "in"), 0o777, -1, -1) },
	"sum":     func(p string) error { _, _, err := SumFile(context.Background(), p, NewPace(0)); return err },
	"unshare": func(p string) error { return Unshare(context.Background(), p, NewPace(0)) },
	"sync":    func(p string) error { return SyncDir(p) },
	"space":   func(p string) error { _, err := FreeBytes(p); return err },
	"dial":    func(p string) error { return closed(DialSocket(context.Background(), p)) },
}

func closed(c io.Closer, err error) error {
	if err != nil {
		return err
	}
	return c.Close()
}

// TestNoLinkIsFollowed does everything with the name of each kind of link.
func TestNoLinkIsFollowed(t *testing.T) {
	for _, kind := range links {
		for deed, do := range deeds {
			t.Run(kind+", "+deed, func(t *testing.T) {
				tr := newTrap(t)
				name := tr.lay(t, kind)
				before := tr.state(t)
				err := quickly(t, func() error { return do(name) })
				if err == nil {
					t.Error("it was done")
				}
				if deed != "create" && !errors.Is(err, ErrLink) && !errors.Is(err, unix.ENOTDIR) && !errors.Is(err, ErrNotFile) {
					t.Errorf("the error does not tell of a link: %v", err)
				}
				if after := tr.state(t); after != before {
					t.Errorf("what is not theirs was\n%s\nand is\n%s", before, after)
				}
			})
		}
	}
}

// TestNothingButFilesIsOpened: neither held up nor confused by what is no file.
func TestNothingButFilesIsOpened(t *testing.T) {
	for _, kind := range others {
		for _, deed := range []string{"open", "append", "cut", "create", "read", "truncate", "sum"} {
			t.Run(kind+", "+deed, func(t *testing.T) {
				name := newTrap(t).lay(t, kind)
				if err := quickly(t, func() error { return deeds[deed](name) }); err == nil {
					t.Error("it was done")
				}
			})
		}
	}
}

// TestNewFileTakesTheName: what bears the name is replaced, whatever it is.
func TestNewFileTakesTheName(t *testing.T) {
	for _, kind := range slices.Concat(links[:5], others) {
		t.Run(kind, func(t *testing.T) {
			tr := newTrap(t)
			name := tr.lay(t, kind)
			before := tr.state(t)
			if err := quickly(t, func() error { return WriteNew(name, []byte("mine"), 0o640, nil) }); err != nil {
				t.Fatal(err)
			}
			info, err := os.Lstat(name)
			if err != nil || info.Mode() != 0o640 {
				t.Errorf("made %v, %v", info, err)
			}
			if got, err := os.ReadFile(name); string(got) != "mine" {
				t.Errorf("holds %q, %v", got, err)
			}
			if after := tr.state(t); after != before {
				t.Errorf("what is not theirs was\n%s\nand is\n%s", before, after)
			}
		})
	}
}

// TestSecondNames: a file that has a name elsewhere is not written to, given or cut.
func TestSecondNames(t *testing.T) {
	for _, deed := range []string{"append", "cut", "truncate", "chmod"} {
		t.Run(deed, func(t *testing.T) {
			tr := newTrap(t)
			if err := os.Link(tr.witness, tr.path("name")); err != nil {
				t.Fatal(err)
			}
			before := tr.state(t)
			if err := deeds[deed](tr.path("name")); !errors.Is(err, ErrSecondName) {
				t.Errorf("%v", err)
			}
			if err := Give(tr.path("name"), Owner{os.Getuid() + 1, -1}); !errors.Is(err, ErrSecondName) {
				t.Errorf("given: %v", err)
			}
			if after := tr.state(t); after != before {
				t.Errorf("was\n%s\nand is\n%s", before, after)
			}
		})
	}
}

// TestSecondNameOfAnother: one that belongs to somebody else is not even read.
func TestSecondNameOfAnother(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs files of two users")
	}
	tr := newTrap(t)
	if err := errors.Join(os.Chown(tr.dir, 65534, 65534), os.Link(tr.witness, tr.path("name"))); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadFile(tr.path("name")); !errors.Is(err, ErrSecondName) {
		t.Errorf("%v", err)
	}
}

// TestRootStaysBelow: a Root does what the functions do, and leaves its folder by no name.
func TestRootStaysBelow(t *testing.T) {
	tr := newTrap(t)
	root, err := OpenRoot(tr.dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	for _, name := range []string{"../ours/witness", tr.witness, "sub/../../ours/witness", ".."} {
		if _, err := root.ReadFile(name); err == nil {
			t.Errorf("%s was read", name)
		}
		if err := root.Remove(name); err == nil {
			t.Errorf("%s was removed", name)
		}
	}
	// The folder is the one that was opened, whoever bears its name now.
	if err := errors.Join(os.Rename(tr.dir, tr.dir+".moved"), os.Symlink(tr.outside, tr.dir)); err != nil {
		t.Fatal(err)
	}
	if got, err := root.ReadFile("own"); string(got) != "own" {
		t.Errorf("%q, %v", got, err)
	}
	if _, err := OpenRoot(tr.dir); !errors.Is(err, ErrLink) {
		t.Errorf("opened by a link: %v", err)
	}
	if err := errors.Join(root.MkdirAll("a/b/c", 0o700), root.WriteNew("a/b/c/d", []byte("x"), 0o600, nil), root.Rename("a/b", "a/e")); err != nil {
		t.Fatal(err)
	}
	var seen []string
	if err := root.WalkDir(".", func(path string, _ fs.DirEntry, err error) error { seen = append(seen, path); return err }); err != nil {
		t.Fatal(err)
	}
	if want := []string{".", "a", "a/e", "a/e/c", "a/e/c/d", "own"}; !slices.Equal(seen, want) {
		t.Errorf("walked %v", seen)
	}
	if err := root.RemoveAll("a"); err != nil {
		t.Fatal(err)
	}
	if _, err := root.Lstat("a"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("left: %v", err)
	}
}

// TestWalkStaysBelow: links are named and not entered, also one that takes the place of a
// folder while the walk is on its way.
func TestWalkStaysBelow(t *testing.T) {
	tr := newTrap(t)
	tr.lay(t, "link to a folder")
	if err := os.MkdirAll(tr.path("z/deep"), 0o700); err != nil {
		t.Fatal(err)
	}
	var seen []string
	err := WalkDir(tr.dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return nil // the folder that is one no more
		}
		rel, _ := filepath.Rel(tr.dir, path)
		seen = append(seen, rel)
		if rel == "z" {
			return errors.Join(os.Rename(path, path+"z"), os.Symlink(tr.outside, path))
		}
		_, err = entry.Info()
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{".", "name", "own", "z"}; !slices.Equal(seen, want) {
		t.Errorf("walked %v", seen)
	}
}

// TestRemoveAllLeavesWhatLinksLeadTo, and takes what is odd.
func TestRemoveAllLeavesWhatLinksLeadTo(t *testing.T) {
	for _, kind := range slices.Concat(links[:5], others) {
		t.Run(kind, func(t *testing.T) {
			tr := newTrap(t)
			name := tr.lay(t, kind)
			before := tr.state(t)
			if err := RemoveAll(name); err != nil {
				t.Error(err)
			}
			if err := RemoveAll(tr.dir); err != nil {
				t.Error(err)
			}
			if after := tr.state(t); after != before {
				t.Errorf("was\n%s\nand is\n%s", before, after)
			}
			if _, err := os.Lstat(tr.dir); !errors.Is(err, fs.ErrNotExist) {
				t.Error("left")
			}
		})
	}
}

// TestGiveTakesTheLink: a link is given itself, and what it leads to keeps its owner.
func TestGiveTakesTheLink(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root gives")
	}
	for _, kind := range links[:5] {
		tr := newTrap(t)
		name := tr.lay(t, kind)
		before := tr.state(t)
		if err := GiveTree(tr.dir, Owner{65534, 65534}); err != nil {
			t.Fatal(err)
		}
		var st unix.Stat_t
		if err := unix.Lstat(name, &st); err != nil || st.Uid != 65534 {
			t.Errorf("%s: %v, %v", kind, st.Uid, err)
		}
		if after := tr.state(t); after != before {
			t.Errorf("%s: was\n%s\nand is\n%s", kind, before, after)
		}
	}
}

// TestReadIsBounded: a file of terabytes in the place of a small one.
func TestReadIsBounded(t *testing.T) {
	tr := newTrap(t)
	if err := os.Truncate(tr.path("own"), readMax+1); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadFile(tr.path("own")); err == nil {
		t.Error("it was read")
	}
}

// TestDialSocket reaches a socket itself, by a path of any length.
func TestDialSocket(t *testing.T) {
	dir := t.TempDir()
	for range 3 {
		dir = filepath.Join(dir, strings.Repeat("d", 60))
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	short := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", short)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if err := os.Rename(short, filepath.Join(dir, "s")); err != nil {
		t.Fatal(err)
	}
	if err := closed(DialSocket(t.Context(), filepath.Join(dir, "s"))); err != nil {
		t.Error(err)
	}
	if err := closed(DialSocket(t.Context(), filepath.Join(dir, "missing"))); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}

func TestResolve(t *testing.T) {
	base := t.TempDir()
	if err := errors.Join(os.Mkdir(filepath.Join(base, "real"), 0o700), os.Symlink("real", filepath.Join(base, "name"))); err != nil {
		t.Fatal(err)
	}
	for in, want := range map[string]string{"name": "real", "name/new/er": "real/new/er", "real": "real", "new": "new"} {
		if got, err := Resolve(filepath.Join(base, in)); err != nil || got != filepath.Join(base, want) {
			t.Errorf("%s: %s, %v", in, got, err)
		}
	}
}

// quickly fails a deed that waits.
func quickly(t *testing.T, do func() error) error {
	t.Helper()
	done := make(chan error, 1)
	go func() { done <- do() }()
	select {
	case err := <-done:
		return err
	case <-time.After(10 * time.Second):
		t.Fatal("it waits")
		return nil
	}
}

func TestReadFile(t *testing.T) {
	tr := newTrap(t)
	for _, size := range []int{0, 1, 100_000} {
		want := bytes.Repeat([]byte("x"), size)
		if err := WriteNew(tr.path("f"), want, 0o600, nil); err != nil {
			t.Fatal(err)
		}
		if got, err := ReadFile(tr.path("f")); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%d bytes: %d, %v", size, len(got), err)
		}
	}
}
