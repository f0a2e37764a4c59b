package enginetest

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// RunTraps serves an instance in whose folders a tenant, as the engine's user, has set traps,
// and does with it what the service does. The parts build on each other.
func RunTraps(t *testing.T, s Setup) {
	b := &trapped{Bed: Serving(t, s), ours: filepath.Join(s.Root, "ours")}
	b.folder = hostileFolder{b.Home().DataDir(), b.ours}
	err := errors.Join(os.MkdirAll(filepath.Join(b.ours, "in"), 0o700), os.WriteFile(b.folder.witness(), []byte(folderWitness), 0o600))
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range []struct {
		name string
		part func(*testing.T, *trapped)
	}{
		{"logs are tidied", tidiesTrapped},
		{"a snapshot holds nothing of others", takesTrapped},
		{"a socket is not taken for another", dialsTrapped},
		{"deleting removes nothing of others", deletesTrapped},
	} {
		if !t.Run(p.name, func(t *testing.T) {
			before := b.folder.witnessed(t)
			p.part(t, b)
			if after := b.folder.witnessed(t); after != before {
				t.Errorf("what is not the tenant's was\n%s\nand is\n%s", before, after)
			}
		}) {
			t.FailNow()
		}
	}
}

type trapped struct {
	*Bed
	ours   string
	folder hostileFolder
}

// set sets a trap, as the engine's user.
func (b *trapped) set(t *testing.T, path string, with func(at string) error) {
	t.Helper()
	if err := with(path); err != nil {
		t.Fatal(err)
	}
	if b.User != nil {
		if info, err := os.Lstat(path); err == nil && !info.Mode().IsRegular() {
			if err := os.Lchown(path, b.User.UID, b.User.GID); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func (b *trapped) linkTo(target string) func(string) error {
	return func(at string) error { return os.Symlink(target, at) }
}

func pipe(at string) error { return syscall.Mkfifo(at, 0o600) }

func tidiesTrapped(t *testing.T, b *trapped) {
	dir := b.Home().LogDir()
	for _, name := range []string{"postgresql.log.2020-01-01-00", "mysql-error.log.2020-01-01.00"} {
		b.set(t, filepath.Join(dir, name), b.linkTo(b.folder.witness()))
	}
	b.set(t, filepath.Join(dir, "folder"), b.linkTo(b.ours))
	b.set(t, filepath.Join(dir, "pipe"), pipe)
	if err := b.Lifecycle.Tidy(t.Context(), b.Want, func(string) bool { return false }); err != nil {
		t.Error(err)
	}
	b.Satisfy(t)
}

// takesTrapped: a snapshot is refused, or lacks what the trap leads to.
func takesTrapped(t *testing.T, b *trapped) {
	for name, with := range map[string]func(at string) error{
		"a link to a file":   b.linkTo(b.folder.witness()),
		"a link to a folder": b.linkTo(b.ours),
		"a link to nothing":  b.linkTo(filepath.Join(b.ours, "new")),
		"a second name":      func(at string) error { return os.Link(b.folder.witness(), at) },
		"a pipe":             pipe,
		"a device":           func(at string) error { return syscall.Mknod(at, syscall.S_IFCHR|0o600, 1<<8|5) }, // zeros without end
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(b.Home().DataDir(), "kurabe_trap")
			if err := with(path); errors.Is(err, fs.ErrPermission) {
				t.Skip("only root can")
			} else if err != nil {
				t.Fatal(err)
			}
			defer os.Remove(path)
			ctx, cancel := context.WithTimeout(t.Context(), passTime)
			defer cancel()
			_, err := b.Snapshots().Take(ctx, b.assignment(), b.Want, nil)
			t.Log("it says", err)
			if ctx.Err() != nil {
				t.Error("it is held up")
			}
			if found := holding(t, filepath.Join(b.Root, "snapshots"), folderWitness); found != "" {
				t.Errorf("%s holds what is somebody else's", found)
			}
		})
	}
	// And one without traps is none the worse.
	b.Take(t)
}

// holding names a file below a folder that has a text in it.
func holding(t *testing.T, dir, text string) (found string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil || entry.IsDir() {
			return err
		}
		if !entry.Type().IsRegular() {
			found = path
			return nil
		}
		info, err := entry.Info()
		if err != nil || info.Size() > 1<<20 {
			return err
		}
		raw, err := os.ReadFile(path)
		if bytes.Contains(raw, []byte(text)) {
			found = path
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// dialsTrapped puts a link to a socket of somebody else in the place of the server's.
func dialsTrapped(t *testing.T, b *trapped) {
	other := filepath.Join(t.TempDir(), "other")
	l, err := net.Listen("unix", other)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	reached := make(chan struct{}, 100)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_ = c.Close()
			reached <- struct{}{}
		}
	}()
	entries, err := os.ReadDir(b.Home().RunDir())
	if err != nil {
		t.Fatal(err)
	}
	var sockets []string
	for _, e := range entries {
		if e.Type()&fs.ModeSocket != 0 && !strings.HasSuffix(e.Name(), ".real") {
			sockets = append(sockets, filepath.Join(b.Home().RunDir(), e.Name()))
		}
	}
	if len(sockets) == 0 {
		t.Fatal("there is no socket")
	}
	for _, path := range sockets {
		if err := os.Rename(path, path+".real"); err != nil {
			t.Fatal(err)
		}
		b.set(t, path, b.linkTo(other))
	}
	b.Want.Generation++
	b.Want.Password = b.verifier(t, b.Want.Password.Seq+1) // asks for a session of the service
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if err := b.TrySatisfy(ctx); err == nil {
		t.Error("the service works over a link")
	} else {
		t.Log("it says", err)
	}
	if len(reached) > 0 {
		t.Error("the service came to a socket of somebody else")
	}
	for _, path := range sockets {
		if err := os.Rename(path+".real", path); err != nil {
			t.Fatal(err)
		}
	}
	b.Satisfy(t)
}

// deletesTrapped leaves folders deeper than anybody wants to hold open, and links.
func deletesTrapped(t *testing.T, b *trapped) {
	deep := filepath.Join(b.Home().DataDir(), "deep")
	if err := os.MkdirAll(filepath.Join(deep, strings.Repeat("d/", 400)), 0o700); err != nil {
		t.Fatal(err)
	}
	for n, target := range []string{b.ours, b.folder.witness(), "/"} {
		b.set(t, filepath.Join(b.Home().DataDir(), "link"+string(rune('0'+n))), b.linkTo(target))
	}
	b.set(t, filepath.Join(deep, "pipe"), pipe)
	if err := os.Link(b.folder.witness(), filepath.Join(deep, "second")); err != nil {
		t.Fatal(err)
	}
	home := b.Home().Dir
	b.Discard(t)
	if _, err := os.Lstat(home); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("left: %v", err)
	}
}
