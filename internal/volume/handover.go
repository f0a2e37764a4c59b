package volume

import (
	"fmt"
	"io/fs"

	"golang.org/x/sys/unix"
)

// inode is a file, whatever its names.
type inode struct{ dev, ino uint64 }

// HandOver gives a tree to another account: what is not root's there, by user and by group
// each, links themselves included. A file with names outside of the tree is refused before
// anything is given: it may be somebody else's. It may be cut off and repeated; folders
// come before what is in them, so that their old owner is out first.
func HandOver(path string, to Owner) error {
	root, err := OpenRoot(path)
	if err != nil {
		return err
	}
	defer root.Close()
	if err := oneTree(root); err != nil {
		return err
	}
	return root.WalkDir(".", func(name string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return root.held("hand over", name, func(fd int, st *unix.Stat_t) error {
			uid, gid := to.UID, to.GID
			if st.Uid == 0 || int(st.Uid) == uid {
				uid = -1
			}
			if st.Gid == 0 || int(st.Gid) == gid {
				gid = -1
			}
			if uid == -1 && gid == -1 {
				return nil
			}
			return unix.Fchownat(fd, "", uid, gid, unix.AT_EMPTY_PATH)
		})
	})
}

// oneTree refuses files of which not all names are below root. Engines make some of two
// names: a crash between the two steps of a rename leaves them.
func oneTree(root *Root) error {
	missing := map[inode]uint64{}
	names := map[inode]string{}
	err := root.WalkDir(".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		return root.held("hand over", name, func(_ int, st *unix.Stat_t) error {
			if st.Nlink < 2 {
				return nil
			}
			file := inode{st.Dev, st.Ino}
			if names[file] == "" {
				names[file], missing[file] = name, uint64(st.Nlink)
			}
			missing[file]--
			return nil
		})
	})
	if err != nil {
		return err
	}
	for file, n := range missing {
		if n > 0 {
			return fmt.Errorf("hand over %s: %w", names[file], ErrSecondName)
		}
	}
	return nil
}
