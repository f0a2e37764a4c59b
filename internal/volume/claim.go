package volume

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// Claim makes us the owner of a tree that another user has built, and lists its
// files. Anything but files and folders is refused: that user could have put a link
// there, to a file of somebody else's.
func Claim(path string) ([]File, error) {
	var files []File
	err := WalkDir(path, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		st, ok := info.Sys().(*syscall.Stat_t)
		if !info.IsDir() && (!info.Mode().IsRegular() || !ok || st.Nlink != 1) {
			return &fs.PathError{Op: "claim", Path: name, Err: errors.New("neither a folder nor a file with one name")}
		}
		if err := Give(name, Owner{os.Getuid(), os.Getgid()}); err != nil {
			return err
		}
		if info.IsDir() {
			return nil
		}
		rel, err := filepath.Rel(path, name)
		files = append(files, File{Path: rel, Size: info.Size()})
		return err
	})
	return files, err
}
