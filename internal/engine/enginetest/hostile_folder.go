package enginetest

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"kurabe/internal/proc"
)

// FolderDeed is something that the service does in a folder of the engine's user.
type FolderDeed struct {
	Name string
	// Places are names below the folder which the deed makes, changes, reads or removes.
	Places []string
	Do     func(dir string) error
}

// Nobody is the engine's user of a test without an engine, nil where only our own may be used.
func Nobody() *proc.Credential {
	if os.Getuid() != 0 {
		return nil
	}
	return &proc.Credential{UID: 65534, GID: 65534}
}

// RunFolderDeeds does each deed in a folder as lay makes it, where it must succeed, and then
// with each kind of trap in each place, as a tenant whose code runs as the engine's user
// can set it. Whatever comes of the deed then, it ends, and what is not the tenant's stays as
// it is: contents, modes, owners and names.
func RunFolderDeeds(t *testing.T, lay func(t *testing.T, dir string), deeds []FolderDeed) {
	for _, d := range deeds {
		t.Run(d.Name+", without a trap", func(t *testing.T) {
			f := newHostileFolder(t, lay)
			f.give(t)
			if err := d.Do(f.dir); err != nil {
				t.Fatal(err)
			}
		})
		for _, place := range d.Places {
			for kind, set := range folderTraps {
				t.Run(d.Name+", "+strings.ReplaceAll(place, "/", " ")+", "+kind, func(t *testing.T) {
					f := newHostileFolder(t, lay)
					f.give(t)
					if err := set(f, place); err != nil {
						t.Fatal(err)
					}
					before := f.witnessed(t)
					done := make(chan error, 1)
					go func() { done <- d.Do(f.dir) }()
					select {
					case err := <-done:
						t.Log("it says", err)
					case <-time.After(20 * time.Second):
						t.Fatal("it is held up")
					}
					if after := f.witnessed(t); after != before {
						t.Errorf("what is not the tenant's was\n%s\nand is\n%s", before, after)
					}
				})
			}
		}
	}
}

type hostileFolder struct{ dir, ours string }

const folderWitness = "not the tenant's\n"

func newHostileFolder(t *testing.T, lay func(t *testing.T, dir string)) hostileFolder {
	t.Helper()
	base := t.TempDir()
	f := hostileFolder{filepath.Join(base, "theirs"), filepath.Join(base, "ours")}
	if err := errors.Join(os.Mkdir(f.dir, 0o700), os.Mkdir(f.ours, 0o750), os.Mkdir(filepath.Join(f.ours, "in"), 0o750)); err != nil {
		t.Fatal(err)
	}
	lay(t, f.dir)
	if err := os.WriteFile(f.witness(), []byte(folderWitness), 0o644); err != nil {
		t.Fatal(err)
	}
	return f
}

func (f hostileFolder) witness() string { return filepath.Join(f.ours, "witness") }

// give makes it the tenant's.
func (f hostileFolder) give(t *testing.T) {
	t.Helper()
	u := Nobody()
	if u == nil {
		return
	}
	err := filepath.WalkDir(f.dir, func(path string, _ fs.DirEntry, err error) error {
		return errors.Join(err, os.Lchown(path, u.UID, u.GID))
	})
	if err != nil {
		t.Fatal(err)
	}
}

// witnessed is all that must stay.
func (f hostileFolder) witnessed(t *testing.T) string {
	t.Helper()
	var all strings.Builder
	err := filepath.WalkDir(f.ours, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := os.Lstat(path)
		if err != nil {
			return err
		}
		st := info.Sys().(*syscall.Stat_t)
		fmt.Fprintln(&all, path, info.Mode(), st.Uid, st.Gid, st.Ino)
		if info.Mode().IsRegular() {
			text, err := os.ReadFile(path)
			fmt.Fprintf(&all, "%q\n", text)
			return err
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all.String()
}

// folderTraps set a trap in a place. What was there is kept beside where that makes the trap
// more likely to be believed.
var folderTraps = map[string]func(f hostileFolder, place string) error{
	"a link to a file": func(f hostileFolder, place string) error {
		return f.replace(place, func(at string) error { return os.Symlink(f.witness(), at) })
	},
	"a link to what looks right": func(f hostileFolder, place string) error {
		at, real := filepath.Join(f.dir, place), filepath.Join(f.ours, "in", filepath.Base(place))
		if err := copyOf(at, real); err != nil {
			return err
		}
		return f.replace(place, func(at string) error { return os.Symlink(real, at) })
	},
	"a link to a name that is free": func(f hostileFolder, place string) error {
		return f.replace(place, func(at string) error { return os.Symlink(filepath.Join(f.ours, "new"), at) })
	},
	"a link to a folder": func(f hostileFolder, place string) error {
		return f.replace(place, func(at string) error { return os.Symlink(f.ours, at) })
	},
	"a second name of a file": func(f hostileFolder, place string) error {
		at, real := filepath.Join(f.dir, place), filepath.Join(f.ours, "in", filepath.Base(place))
		if err := copyOf(at, real); err != nil {
			return err
		}
		if info, err := os.Lstat(real); err != nil || info.IsDir() {
			return err
		}
		return f.replace(place, func(at string) error { return os.Link(real, at) })
	},
	"a pipe": func(f hostileFolder, place string) error {
		return f.replace(place, func(at string) error { return syscall.Mkfifo(at, 0o666) })
	},
	"a link in the place of its folder": func(f hostileFolder, place string) error {
		above := filepath.Dir(filepath.Join(f.dir, place))
		if above == f.dir { // the whole folder
			return errors.Join(os.Rename(f.dir, filepath.Join(f.ours, "moved")), os.Symlink(filepath.Join(f.ours, "moved"), f.dir))
		}
		moved := filepath.Join(f.ours, "moved")
		err := os.Rename(above, moved)
		if errors.Is(err, fs.ErrNotExist) {
			err = os.Mkdir(moved, 0o700)
		}
		return errors.Join(err, os.MkdirAll(filepath.Dir(above), 0o700), os.Symlink(moved, above))
	},
}

func (f hostileFolder) replace(place string, with func(at string) error) error {
	at := filepath.Join(f.dir, place)
	return errors.Join(os.MkdirAll(filepath.Dir(at), 0o700), os.RemoveAll(at), with(at))
}

// copyOf makes a file or a folder like another, ours; a file of any kind where there is none.
func copyOf(from, to string) error {
	info, err := os.Lstat(from)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return os.WriteFile(to, []byte(folderWitness), 0o600)
	case err != nil:
		return err
	case info.IsDir():
		return os.CopyFS(to, os.DirFS(from))
	}
	text, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, text, 0o600)
}
