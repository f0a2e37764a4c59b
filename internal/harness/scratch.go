package harness

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// journaled mounts a file system of its own, in a sparse image, on the scratch folder where that lies on an ext4
// without a journal. There the kernel gives out no inode again within minutes of its release,
// and looks at every one of these when it searches for a free one (recently_deleted in
// fs/ext4/ialloc.c). Tests make and remove databases of a thousand files all the time, and
// spent most of their system time with that search. Everything is as on the folder itself but for
// this. It is called in namespaces of our own, so
// that the mount ends with them.
func journaled(dir string) error {
	if has, err := hasJournal(dir); has || err != nil {
		return err
	}
	image := dir + ".image"
	f, err := os.OpenFile(image, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer os.Remove(image) // mounted, it lives on without a name, and goes with the mount
	// As large as the folder's own file system: what an instance may be promised depends on it.
	var parent unix.Statfs_t
	if err = unix.Statfs(dir, &parent); err == nil {
		err = f.Truncate(int64(parent.Blocks) * parent.Bsize)
	}
	if err != nil {
		f.Close()
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	for _, argv := range [][]string{
		{"mkfs.ext4", "-q", "-F", "-E", "lazy_itable_init=1,lazy_journal_init=1,nodiscard", "-m", "0", image},
		// Nobody cuts the power: a flush of the image would write out what all lanes have.
		{"mount", "-o", "loop,discard,barrier=0", image, dir},
	} {
		if out, err := exec.Command(argv[0], argv[1:]...).CombinedOutput(); err != nil {
			return fmt.Errorf("%s: %w\n%s", argv[0], err, out)
		}
	}
	return os.Chmod(dir, 0o1777)
}

// hasJournal is true for everything that is not known to be without.
func hasJournal(dir string) (bool, error) {
	var fs unix.Statfs_t
	if err := unix.Statfs(dir, &fs); err != nil {
		return false, err
	}
	if fs.Type != unix.EXT4_SUPER_MAGIC {
		return true, nil
	}
	var s unix.Stat_t
	if err := unix.Stat(dir, &s); err != nil {
		return false, err
	}
	device, err := os.Readlink(fmt.Sprintf("/sys/dev/block/%d:%d", unix.Major(s.Dev), unix.Minor(s.Dev)))
	if err != nil {
		return true, nil // a file system that the kernel shows no device of
	}
	name := filepath.Base(device)
	if _, err := os.Stat("/proc/fs/ext4/" + name); err != nil {
		return true, nil // ext2 or ext3 by the same magic number
	}
	journals, err := filepath.Glob("/proc/fs/jbd2/" + name + "-*")
	return len(journals) > 0, err
}
