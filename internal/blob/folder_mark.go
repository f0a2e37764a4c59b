package blob

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"

	"golang.org/x/sys/unix"

	"kurabe/internal/volume"
)

func (f *Folder) ReadMark(ctx context.Context) ([]byte, error) {
	root, err := f.enter(ctx, "open", "")
	if err != nil {
		return nil, err
	}
	defer root.Close()
	file, err := openObject(root, markName)
	if err != nil {
		return nil, f.fail("open", "", err)
	}
	defer file.Close()
	mark, err := io.ReadAll(io.LimitReader(file, markBytesMax+1))
	return mark, f.fail("open", "", err)
}

// WriteMark makes the folder, whose parent must exist, and its mark. Of two at a
// time one wins, and the other reads the winner's. A folder with anything else in
// it is refused: it is somebody's.
func (f *Folder) WriteMark(_ context.Context, mark []byte) (err error) {
	defer func() { err = f.fail("init", "", err) }()
	err = os.Mkdir(f.dir, folderMode)
	switch {
	case err == nil:
		if err := volume.SyncDir(filepath.Dir(f.dir)); err != nil {
			return err
		}
	case errors.Is(err, fs.ErrNotExist):
		return &Error{Op: "init", Where: f.dir, Kind: ErrNoRepository, Err: err, Hint: "make the folder above it, or mount its disk, first"}
	case !errors.Is(err, fs.ErrExist):
		return err
	}
	root, err := os.OpenRoot(f.dir)
	if err != nil {
		return err
	}
	defer root.Close()
	if err := foreign(root); err != nil {
		return err
	}
	if err := root.Mkdir(incompleteDir, folderMode); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	temp := path.Join(incompleteDir, rand.Text())
	file, err := root.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, fileMode)
	if err != nil {
		return err
	}
	_, err = io.Copy(file, bytes.NewReader(mark))
	err = errors.Join(err, file.Sync(), file.Close())
	if err == nil {
		err = renameNew(root, temp, markName)
	}
	if err != nil {
		_ = root.Remove(temp)
	}
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return syncFolders(root, markName)
}

// ownFiles may lie in a folder that becomes a repository: ours of an Init that died,
// and what a fresh file system has.
var ownFiles = map[string]bool{markName: true, incompleteDir: true, "lost+found": true}

func foreign(root *os.Root) error {
	dir, err := root.Open(".")
	if err != nil {
		return err
	}
	defer dir.Close()
	names, err := dir.Readdirnames(len(ownFiles) + 1)
	if err != nil && err != io.EOF {
		return err
	}
	for _, name := range names {
		if !ownFiles[name] {
			return &Error{Op: "init", Where: root.Name(), Kind: ErrOtherRepository, Err: fmt.Errorf("%s lies in it: %w", name, unix.ENOTEMPTY),
				Hint: "name an empty folder; a new one below it will do"}
		}
	}
	return nil
}
