package proc

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// Seclusion is a machine of its own for a process and all that it starts: no network, no
// other process, no shared memory of others, and of the files its programs and what it
// is given. Everything that was started in it ends with the process, in whatever session
// or group it is. Needs root.
type Seclusion struct {
	Show []string `json:"show,omitempty"` // paths to read, beside systemPaths
	Give []string `json:"give,omitempty"` // folders to write, as their modes allow
}

// systemPaths are where programs and their libraries are.
var systemPaths = []string{
	"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32",
	"/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/alternatives", "/etc/localtime", "/etc/timezone",
}

// devices that programs open.
var devices = []string{"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"}

// secludedSpaces are the kernel's names for what is its own. The first process of its own
// space of pids takes all others of it along.
const secludedSpaces = unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWIPC | unix.CLONE_NEWNET

// sceneBytes bounds what can be written outside of the folders that are given.
const sceneBytes = "64m"

// scenes are folders of the host of which one is covered by a file system in memory, in
// our own table of mounts.
var scenes = []string{"/tmp", "/mnt", "/run", "/var"}

// coverScene mounts an empty file system in memory, and says where.
func coverScene(mode string) (string, error) {
	at := slices.IndexFunc(scenes, func(dir string) bool {
		info, err := os.Lstat(dir)
		return err == nil && info.IsDir()
	})
	if at < 0 {
		return "", fmt.Errorf("none of %v exists", scenes)
	}
	err := unix.Mount("kurabe", scenes[at], "tmpfs", unix.MS_NOSUID, "mode="+mode+",size="+sceneBytes)
	if err != nil {
		return "", fmt.Errorf("mount a file system in memory: %w", err)
	}
	return scenes[at], nil
}

// enterSeclusion builds the view and makes it the root. We are the first process of our
// own spaces already.
func enterSeclusion(spec Spec) error {
	// Nothing of it reaches the host, and nothing that the host mounts later reaches us.
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("detach mounts: %w", err)
	}
	v := view{sources: map[string]*os.File{}}
	defer v.close()
	// By descriptors, before the scene covers what is below it.
	for _, path := range slices.Concat(systemPaths, devices, spec.Seclude.Show, spec.Seclude.Give) {
		if err := v.open(path); err != nil {
			return err
		}
	}
	var err error
	if v.root, err = coverScene("0755"); err != nil {
		return err
	}
	for _, path := range slices.Concat(systemPaths, spec.Seclude.Show) {
		if err := v.show(path, true); err != nil {
			return err
		}
	}
	for _, path := range slices.Concat(devices, spec.Seclude.Give) {
		if err := v.show(path, false); err != nil {
			return err
		}
	}
	if err := v.furnish(spec.User); err != nil {
		return err
	}
	if err := raiseLoopback(); err != nil {
		return err
	}
	return v.enter()
}

// view is the root of a secluded process in the making.
type view struct {
	root    string
	sources map[string]*os.File
}

func (v view) close() {
	for _, file := range v.sources {
		_ = file.Close()
	}
}

// open takes a path of the host, if it is there. What we give must be.
func (v view) open(path string) error {
	fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC|unix.O_NOFOLLOW, 0)
	if errors.Is(err, unix.ENOENT) && slices.Contains(systemPaths, path) {
		return nil
	}
	if err != nil {
		return &fs.PathError{Op: "show", Path: path, Err: err}
	}
	v.sources[path] = os.NewFile(uintptr(fd), path)
	return nil
}

// show puts a path of the host at the same place below the root: a link as a link.
func (v view) show(path string, readOnly bool) error {
	source := v.sources[path]
	if source == nil {
		return nil
	}
	info, err := source.Stat()
	if err != nil {
		return err
	}
	target := filepath.Join(v.root, path)
	if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
		return err
	}
	switch {
	case info.Mode()&fs.ModeSymlink != 0:
		leads, err := readLink(source)
		if err != nil {
			return err
		}
		return os.Symlink(leads, target)
	case info.IsDir():
		err = os.MkdirAll(target, 0o755)
	default:
		err = os.WriteFile(target, nil, 0o600)
	}
	if err != nil {
		return err
	}
	return bind(source, target, readOnly)
}

func readLink(source *os.File) (string, error) {
	buffer := make([]byte, unix.PathMax)
	n, err := unix.Readlinkat(int(source.Fd()), "", buffer)
	if err != nil {
		return "", &fs.PathError{Op: "read link", Path: source.Name(), Err: err}
	}
	return string(buffer[:n]), nil
}

// bind shows what a descriptor is open on.
func bind(source *os.File, target string, readOnly bool) error {
	from := fmt.Sprintf("/proc/self/fd/%d", source.Fd())
	if err := unix.Mount(from, target, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
		return fmt.Errorf("show %s: %w", source.Name(), err)
	}
	if !readOnly {
		return nil
	}
	attr := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY | unix.MOUNT_ATTR_NOSUID}
	err := unix.MountSetattr(unix.AT_FDCWD, target, unix.AT_RECURSIVE, &attr)
	if errors.Is(err, unix.ENOSYS) { // Linux before 5.12: without the mounts below it
		err = unix.Mount("", target, "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY|unix.MS_NOSUID, "")
	}
	if err != nil {
		return fmt.Errorf("show %s to read: %w", source.Name(), err)
	}
	return nil
}

// furnish adds what is of no file of the host.
func (v view) furnish(user *Credential) error {
	for _, m := range []struct{ kind, dir, options string }{
		{"proc", "proc", ""}, {"tmpfs", "dev/shm", "mode=1777"}, {"tmpfs", "tmp", "mode=1777,size=" + sceneBytes},
	} {
		target := filepath.Join(v.root, m.dir)
		if err := os.MkdirAll(target, 0o755); err != nil {
			return err
		}
		// A folder that is given may be below /tmp.
		if m.dir == "tmp" && notEmpty(target) {
			if err := os.Chmod(target, 0o1777); err != nil {
				return err
			}
			continue
		}
		if err := unix.Mount(m.kind, target, m.kind, unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, m.options); err != nil {
			return fmt.Errorf("mount %s: %w", m.dir, err)
		}
	}
	files := map[string]string{
		"passwd": passwdLine(&Credential{Name: "root"}), "group": "root:x:0:\n", "nsswitch.conf": "passwd: files\ngroup: files\nhosts: files\n",
		"hosts": "127.0.0.1 localhost\n::1 localhost\n",
	}
	if user != nil {
		files["passwd"] += passwdLine(user)
	}
	if err := os.MkdirAll(filepath.Join(v.root, "etc"), 0o755); err != nil {
		return err
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(v.root, "etc", name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}

func notEmpty(dir string) bool {
	entries, err := os.ReadDir(dir)
	return err == nil && len(entries) > 0
}

// enter makes the view the root, and takes the old one away.
func (v view) enter() error {
	if err := os.Chdir(v.root); err != nil {
		return err
	}
	if err := unix.PivotRoot(".", "."); err != nil {
		return fmt.Errorf("change the root: %w", err)
	}
	if err := unix.Unmount(".", unix.MNT_DETACH); err != nil {
		return fmt.Errorf("leave the host's files: %w", err)
	}
	return os.Chdir("/")
}

// raiseLoopback: PostgreSQL before 15 counts by messages to itself over it.
func raiseLoopback() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if errors.Is(err, unix.EAFNOSUPPORT) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("raise the loopback: %w", err)
	}
	defer unix.Close(fd)
	request, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	request.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	if err := unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, request); err != nil {
		return fmt.Errorf("raise the loopback: %w", err)
	}
	return nil
}

// passwdLine is an entry of /etc/passwd.
func passwdLine(user *Credential) string {
	return fmt.Sprintf("%s:x:%d:%d::/nonexistent:/usr/sbin/nologin\n", user.Name, user.UID, user.GID)
}

// showUser gives this thread, and what it becomes, an /etc/passwd with an entry of a
// user that the host's has not: initdb and single-user mode look their name up.
func showUser(user *Credential) error {
	const passwd = "/etc/passwd"
	known, err := os.ReadFile(passwd)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err != nil || strings.ContainsAny(user.Name, ":\n") {
		return fmt.Errorf("no entry for %q can be made in %s", user.Name, passwd)
	}
	if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
		return fmt.Errorf("own mount namespace (needs root): %w", err)
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_SLAVE, ""); err != nil {
		return fmt.Errorf("detach mounts: %w", err)
	}
	scene, err := coverScene("0755")
	if err != nil {
		return err
	}
	if len(known) > 0 && known[len(known)-1] != '\n' {
		known = append(known, '\n')
	}
	file := filepath.Join(scene, "passwd")
	err = os.WriteFile(file, append(known, passwdLine(user)...), 0o644)
	if err == nil {
		err = unix.Mount(file, passwd, "", unix.MS_BIND, "")
	}
	// The file lives on where it is bound.
	if err = errors.Join(err, unix.Unmount(scene, unix.MNT_DETACH)); err != nil {
		return fmt.Errorf("show the entry of %s: %w", user.Name, err)
	}
	return nil
}

// trySeclusion is how long the look whether this machine can seclude may take.
const trySeclusion = 10 * time.Second

// Secludes says why this process can seclude nobody, nil when it can: root of a
// container may lack the right.
var Secludes = sync.OnceValue(func() error {
	if os.Geteuid() != 0 {
		return errors.New("only root may seclude a process")
	}
	ctx, cancel := context.WithTimeout(context.Background(), trySeclusion)
	defer cancel()
	_, err := Run(ctx, Tool{Name: "try seclusion", Argv: []string{"/bin/true"}, Env: []string{}, Dir: "/", Seclude: &Seclusion{}})
	return err
})
