package binlog

import (
	"errors"
	"io"
	"os"

	"kurabe/internal/volume"
)

// FileFlagsAt is where a file has the flags of its first event, which are its own. The
// event's checksum leaves out whether it is in use.
const FileFlagsAt = int64(len(Magic) + flagsAt)

// MarkInUse is for the newest binary log of a folder that no server runs on.
func MarkInUse(dataDir string) error {
	names, err := List(dataDir)
	if err != nil || len(names) == 0 {
		return err
	}
	root, err := volume.OpenRoot(dataDir)
	if err != nil {
		return err
	}
	defer root.Close()
	name := names[len(names)-1]
	read, size, err := Open(root, name)
	if err != nil {
		return err
	}
	flags := make([]byte, 1)
	_, err = read.ReadAt(flags, FileFlagsAt)
	if err = errors.Join(err, read.Close()); size <= FileFlagsAt || errors.Is(err, io.EOF) {
		return nil // it holds no event
	}
	if err != nil {
		return err
	}
	file, err := root.OpenFile(name, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = file.WriteAt([]byte{flags[0] | InUseFlag}, FileFlagsAt)
	return errors.Join(err, file.Sync(), file.Close())
}
