package volume

import (
	"io/fs"
	"os"
)

// These do with a whole path what the methods of Root of the same names do with one below
// a folder.

// Open opens a file for reading: see Root.OpenFile.
func Open(path string) (*os.File, error) { return anywhere.Open(path) }

// OpenFile is Root.OpenFile.
func OpenFile(path string, flags int, mode fs.FileMode) (*os.File, error) {
	return anywhere.OpenFile(path, flags, mode)
}

// OpenDir is Root.OpenDir.
func OpenDir(path string) (*os.File, error) { return anywhere.OpenDir(path) }

// Create is Root.Create.
func Create(path string) (*os.File, error) { return anywhere.Create(path) }

// CreateTemp is Root.CreateTemp.
func CreateTemp(dir, pattern string) (*os.File, error) { return anywhere.CreateTemp(dir, pattern) }

// MkdirTemp is Root.MkdirTemp.
func MkdirTemp(dir, pattern string) (string, error) { return anywhere.MkdirTemp(dir, pattern) }

// ReadFile is Root.ReadFile.
func ReadFile(path string) ([]byte, error) { return anywhere.ReadFile(path) }

// WriteNew is Root.WriteNew.
func WriteNew(path string, data []byte, mode fs.FileMode, owner *Owner) error {
	return anywhere.WriteNew(path, data, mode, owner)
}

// Truncate is Root.Truncate.
func Truncate(path string, size int64) error { return anywhere.Truncate(path, size) }

// Lstat is Root.Lstat.
func Lstat(path string) (fs.FileInfo, error) { return anywhere.Lstat(path) }

// Stat is Root.Stat.
func Stat(path string) (fs.FileInfo, error) { return anywhere.Stat(path) }

// Readlink is Root.Readlink.
func Readlink(path string) (string, error) { return anywhere.Readlink(path) }

// Mkdir is Root.Mkdir.
func Mkdir(path string, mode fs.FileMode) error { return anywhere.Mkdir(path, mode) }

// MkdirAll is Root.MkdirAll.
func MkdirAll(path string, mode fs.FileMode) error { return anywhere.MkdirAll(path, mode) }

// Symlink is Root.Symlink.
func Symlink(target, path string) error { return anywhere.Symlink(target, path) }

// Remove is Root.Remove.
func Remove(path string) error { return anywhere.Remove(path) }

// RemoveAll is Root.RemoveAll.
func RemoveAll(path string) error { return anywhere.RemoveAll(path) }

// Rename is Root.Rename.
func Rename(from, to string) error { return anywhere.Rename(from, to) }

// RenameNew is Root.RenameNew.
func RenameNew(from, to string) error { return anywhere.RenameNew(from, to) }

// Exchange is Root.Exchange.
func Exchange(a, b string) error { return anywhere.Exchange(a, b) }

// ReadDir is Root.ReadDir.
func ReadDir(path string) ([]fs.DirEntry, error) { return anywhere.ReadDir(path) }

// WalkDir is Root.WalkDir.
func WalkDir(path string, fn fs.WalkDirFunc) error { return anywhere.WalkDir(path, fn) }

// Chmod is Root.Chmod.
func Chmod(path string, mode fs.FileMode) error { return anywhere.Chmod(path, mode) }

// Give is Root.Give.
func Give(path string, to Owner) error { return anywhere.Give(path, to) }

// GiveTree gives a folder and all in it, links themselves included.
func GiveTree(path string, to Owner) error {
	return anywhere.WalkDir(path, func(name string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return anywhere.Give(name, to)
	})
}
