package volume

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func write(t *testing.T, path, content string, mode os.FileMode) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

func names(t *testing.T, dir string) string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, e := range entries {
		all = append(all, e.Name())
	}
	return strings.Join(all, " ")
}

func TestAtomicWrite(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "f")
	for i, mode := range []os.FileMode{0o600, 0o644} {
		if err := AtomicWrite(path, []byte(fmt.Sprint(i)), mode); err != nil {
			t.Fatal(err)
		}
		info, _ := os.Stat(path)
		if read(t, path) != fmt.Sprint(i) || info.Mode() != mode {
			t.Errorf("content %q, mode %v", read(t, path), info.Mode())
		}
	}
	// A folder in the way makes the rename fail.
	if err := os.MkdirAll(filepath.Join(dir, "d", "x"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := AtomicWrite(filepath.Join(dir, "d"), nil, 0o600); err == nil {
		t.Error("replaced a folder")
	}
	if got := names(t, dir); got != "d f" {
		t.Errorf("left behind: %s", got)
	}
}

// TestAtomicWriteOwned: a file that is not its group's yet has no name.
func TestAtomicWriteOwned(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "f")
	err := atomicWrite(path, []byte("x"), 0o640, func(*os.File) error {
		if got := names(t, dir); strings.Contains(" "+got+" ", " f ") {
			t.Errorf("it has its name before it is its group's: %s", got)
		}
		return os.ErrPermission
	})
	if !errors.Is(err, os.ErrPermission) || names(t, dir) != "" {
		t.Errorf("%v; left behind: %s", err, names(t, dir))
	}
	gid := os.Getgid()
	if os.Getuid() == 0 {
		gid++ // root may give it to any
	}
	if err := AtomicWriteOwned(path, []byte("x"), 0o640, Owner{-1, gid}); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil || int(info.Sys().(*syscall.Stat_t).Gid) != gid || info.Mode() != 0o640 {
		t.Errorf("%+v, %v", info, err)
	}
}

func TestEnsureDir(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "b")
	for _, mode := range []os.FileMode{0o700, 0o751, 0o751} {
		if err := EnsureDir(dir, mode, -1, os.Getgid()); err != nil {
			t.Fatal(err)
		}
		if info, _ := os.Stat(dir); info.Mode().Perm() != mode {
			t.Errorf("mode = %v", info.Mode())
		}
	}
	link := filepath.Join(filepath.Dir(dir), "link")
	_ = os.Symlink("/etc", link)
	if err := EnsureDir(link, 0o700, -1, -1); !errors.Is(err, ErrLink) {
		t.Errorf("through a link: %v", err)
	}
}

func TestClean(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "we[ird")
	write(t, filepath.Join(dir, "keep"), "", 0o600)
	write(t, filepath.Join(dir, ".f.123.tmp"), "", 0o600)
	write(t, filepath.Join(dir, "tree.tmp", "x", "y"), "", 0o600)
	removed, err := Clean(dir)
	if err != nil || len(removed) != 2 || names(t, dir) != "keep" {
		t.Errorf("removed %v, %v; left %s", removed, err, names(t, dir))
	}
}

func TestRemoveTree(t *testing.T) {
	top := t.TempDir()
	root, outside := filepath.Join(top, "root"), filepath.Join(top, "outside")
	write(t, filepath.Join(outside, "precious"), "1", 0o600)
	write(t, filepath.Join(root, "i", "data", "f"), "1", 0o400)
	if err := os.Symlink(outside, filepath.Join(root, "way")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, filepath.Join(root, "i", "data", "link")); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{root, root + "/", top, outside, root + "/../outside", "/", root + "/i/../..", root + "x"} {
		if err := RemoveTree(root, path); !errors.Is(err, ErrOutside) {
			t.Errorf("RemoveTree(%s) = %v", path, err)
		}
	}
	if err := RemoveTree(root, root+"/way/precious"); err == nil {
		t.Error("a link led outside")
	}
	if err := os.Chmod(filepath.Join(root, "i", "data"), 0o500); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second time there is nothing to do
		if err := RemoveTree(root, filepath.Join(root, "i")); err != nil {
			t.Fatal(err)
		}
	}
	if err := RemoveTree(root, filepath.Join(root, "way")); err != nil {
		t.Fatal(err)
	}
	if names(t, root) != "" || read(t, filepath.Join(outside, "precious")) != "1" {
		t.Errorf("left %q", names(t, root))
	}
}

// TestRemoveTreeThatWasCutOff: what a removal had come to when it was killed is removed by
// the next one, and seen until then.
func TestRemoveTreeThatWasCutOff(t *testing.T) {
	root := t.TempDir()
	path := filepath.Join(root, "i")
	write(t, filepath.Join(root, "i.removed.tmp", "data", "f"), "1", 0o600)
	if !Remains(path) {
		t.Error("what is left is not seen")
	}
	if err := RemoveTree(root, path); err != nil {
		t.Fatal(err)
	}
	if Remains(path) || names(t, root) != "" {
		t.Errorf("left %q", names(t, root))
	}
}

func TestRemoveTreeRefusesMounts(t *testing.T) {
	root := t.TempDir()
	at := filepath.Join(root, "i", "mnt")
	if err := os.MkdirAll(at, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount("tmpfs", at, "tmpfs", 0, "size=64k"); err != nil {
		t.Skip("cannot mount: ", err)
	}
	defer syscall.Unmount(at, syscall.MNT_DETACH)
	write(t, filepath.Join(at, "precious"), "1", 0o600)
	if err := RemoveTree(root, filepath.Join(root, "i")); err == nil || !strings.Contains(err.Error(), "mount point") {
		t.Errorf("error = %v", err)
	}
	if read(t, filepath.Join(at, "precious")) != "1" {
		t.Error("removed from a mounted file system")
	}
}

func TestUsage(t *testing.T) {
	dir := t.TempDir()
	empty, err := UsedBytes(dir)
	if err != nil {
		t.Fatal(err)
	}
	f := filepath.Join(dir, "f")
	write(t, f, strings.Repeat("x", 1<<20), 0o600)
	if err := AtomicWrite(f, []byte(strings.Repeat("x", 1<<20)), 0o600); err != nil { // allocated now
		t.Fatal(err)
	}
	if err := os.Link(f, filepath.Join(dir, "hard")); err != nil {
		t.Fatal(err)
	}
	sparse, _ := os.Create(filepath.Join(dir, "sparse"))
	_ = sparse.Truncate(1 << 30)
	_ = sparse.Close()
	used, err := UsedBytes(dir)
	if err != nil || used-empty < 1<<20 || used-empty > 1<<20+64<<10 {
		t.Errorf("used %d, %v", used-empty, err)
	}
	if _, err := UsedBytes(filepath.Join(dir, "missing")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("missing: %v", err)
	}
	if free, err := FreeBytes(dir); err != nil || free <= 0 {
		t.Errorf("free %d, %v", free, err)
	}
}

func TestDirLock(t *testing.T) {
	dir := t.TempDir()
	lock, err := DirLock(dir)
	if err != nil {
		t.Fatal(err)
	}
	_, err = DirLock(dir)
	var used *InUseError
	if !errors.As(err, &used) || used.PID != os.Getpid() || !strings.Contains(err.Error(), fmt.Sprintf("another kurabe server (pid %d)", os.Getpid())) {
		t.Errorf("second lock: %v", err)
	}
	if err := lock.Close(); err != nil {
		t.Fatal(err)
	}
	lock, err = DirLock(dir)
	if err != nil {
		t.Fatal(err)
	}
	_ = lock.Close()
}

// TestDirLockOfTheDead: a service that was killed between fork and exec leaves a child that
// has its lock for a moment.
func TestDirLockOfTheDead(t *testing.T) {
	dir := t.TempDir()
	lock, err := DirLock(dir)
	if err != nil {
		t.Fatal(err)
	}
	dead := exec.Command("true")
	if err := dead.Run(); err != nil {
		t.Fatal(err)
	}
	child := exec.Command("sleep", "0.3")
	child.ExtraFiles = []*os.File{lock.file}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = child.Wait() })
	if _, err := lock.file.WriteAt(fmt.Appendf(nil, "%-12d\n", dead.Process.Pid), 0); err != nil {
		t.Fatal(err)
	}
	if err := lock.Close(); err != nil {
		t.Fatal(err)
	}
	lock, err = DirLock(dir)
	if err != nil {
		t.Fatal(err)
	}
	_ = lock.Close()
}

func sampleTree(t *testing.T) string {
	t.Helper()
	src := filepath.Join(t.TempDir(), "src")
	for i := range 40 {
		write(t, fmt.Sprintf("%s/base/%d/%d", src, i%4, i), strings.Repeat(fmt.Sprint(i), i*1000), 0o600)
	}
	write(t, src+"/PG_VERSION", "18\n", 0o640)
	write(t, src+"/pg_wal/seg", "wal", 0o600)
	write(t, src+"/closed/f", "1", 0o400)
	_ = os.Chmod(src+"/closed", 0o500)
	_ = os.Chmod(src, 0o700)
	if err := os.Symlink("../elsewhere", src+"/link"); err != nil {
		t.Fatal(err)
	}
	sock, err := net.Listen("unix", src+"/s")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = sock.Close(); _ = os.Chmod(src+"/closed", 0o700) })
	f, _ := os.Create(src + "/sparse")
	_, _ = f.WriteAt([]byte("middle"), 8<<20)
	_ = f.Truncate(32 << 20)
	_ = f.Close()
	return src
}

func TestCopyTree(t *testing.T) {
	for _, opts := range []CopyOptions{
		{UID: -1, GID: -1},
		{UID: os.Getuid(), GID: os.Getgid(), Workers: 3, Sync: true},
	} {
		src := sampleTree(t)
		dst := filepath.Join(filepath.Dir(src), "dst")
		write(t, dst+".tmp/left/over", "1", 0o600)
		if err := CopyTree(context.Background(), src, dst, opts); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = os.Chmod(dst+"/closed", 0o700) })
		sameTree(t, src, dst)
		if used, _ := UsedBytes(dst + "/sparse"); used > 1<<20 {
			t.Errorf("the holes were filled: %d", used)
		}
		if got := names(t, filepath.Dir(dst)); got != "dst src" {
			t.Errorf("left: %s", got)
		}
		if err := CopyTree(context.Background(), src, dst, opts); !errors.Is(err, fs.ErrExist) {
			t.Errorf("copy over a copy: %v", err)
		}
	}
}

func sameTree(t *testing.T, src, dst string) {
	t.Helper()
	err := filepath.WalkDir(src, func(path string, entry fs.DirEntry, err error) error {
		rel, _ := filepath.Rel(src, path)
		if entry.Type()&fs.ModeSocket != 0 {
			if _, err := os.Lstat(filepath.Join(dst, rel)); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("%s was copied", rel)
			}
			return err
		}
		want, _ := os.Lstat(path)
		got, err := os.Lstat(filepath.Join(dst, rel))
		if err != nil || got.Mode() != want.Mode() {
			t.Errorf("%s: %v %v, want %v", rel, got, err, want.Mode())
			return nil
		}
		if entry.Type().IsRegular() && read(t, path) != read(t, filepath.Join(dst, rel)) {
			t.Errorf("%s differs", rel)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if target, _ := os.Readlink(dst + "/link"); target != "../elsewhere" {
		t.Errorf("link = %s", target)
	}
}

func TestCopyTreeSkips(t *testing.T) {
	src := sampleTree(t)
	dst := src + "2"
	skip := func(rel string) bool { return rel == "pg_wal" || rel == "PG_VERSION" || rel == "closed" }
	if err := CopyTree(context.Background(), src, dst, CopyOptions{UID: -1, GID: -1, Skip: skip}); err != nil {
		t.Fatal(err)
	}
	if got := names(t, dst); got != "base link sparse" {
		t.Errorf("copied: %s", got)
	}
}

// A file that goes away between listing and copying.
func TestCopyTreeLive(t *testing.T) {
	for _, live := range []bool{false, true} {
		src := sampleTree(t)
		vanish := func(rel string) bool {
			if rel == "base/1/1" {
				_ = os.Remove(src + "/base/1/1")
				_ = os.Remove(src + "/PG_VERSION")
			}
			return false
		}
		err := CopyTree(context.Background(), src, src+"2", CopyOptions{UID: -1, GID: -1, Live: live, Skip: vanish})
		t.Cleanup(func() { _ = os.Chmod(src+"2/closed", 0o700) })
		if live != (err == nil) || (!live && !errors.Is(err, fs.ErrNotExist)) {
			t.Errorf("live %v: %v", live, err)
		}
	}
}

func TestCopyTreeFails(t *testing.T) {
	src := sampleTree(t)
	ctx, cancel := context.WithCancelCause(context.Background())
	why := errors.New("enough")
	skip := func(rel string) bool {
		if rel == "base/2" {
			cancel(why)
		}
		return false
	}
	if err := CopyTree(ctx, src, src+"2", CopyOptions{UID: -1, GID: -1, Skip: skip}); !errors.Is(err, why) {
		t.Errorf("cancelled: %v", err)
	}
	if os.Getuid() == 0 {
		if err := syscall.Mknod(src+"/device", syscall.S_IFCHR|0o600, 1<<8|3); err == nil {
			err := CopyTree(context.Background(), src, src+"2", CopyOptions{UID: -1, GID: -1})
			if err == nil || !strings.Contains(err.Error(), "must not contain") {
				t.Errorf("device: %v", err)
			}
		}
	}
	if got := names(t, filepath.Dir(src)); got != "src" {
		t.Errorf("left: %s", got)
	}
}

func TestRemoveTreeOfLargeFiles(t *testing.T) {
	dir := t.TempDir()
	kept := filepath.Join(dir, "kept")
	for _, name := range []string{"tree/large", "tree/shared"} {
		path := filepath.Join(dir, name)
		write(t, path, "begin", 0o600)
		if err := os.Truncate(path, 3*shrinkStep+1); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Link(filepath.Join(dir, "tree/shared"), kept); err != nil {
		t.Fatal(err)
	}
	if err := RemoveTree(dir, filepath.Join(dir, "tree")); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "tree")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the tree is still there: %v", err)
	}
	info, err := os.Stat(kept)
	if err != nil || info.Size() != 3*shrinkStep+1 {
		t.Errorf("the file's other name has %v, %v; want its full size", info, err)
	}
}
