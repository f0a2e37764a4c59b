package volume

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// spareUnit is what the length of a file with a spare is a multiple of: enough for
// most to keep their length for life.
const spareUnit = 16 << 10

// spareOf is the file that the next content goes to.
func spareOf(path string) string {
	return filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+".spare")
}

// WriteSpared is AtomicWrite of a small text that may be followed by line ends, such as
// JSON, for what must be written on a full disk too: the order that ends what fills it.
// Beside the file it keeps a second one of the same length, whose space is taken. The
// new content overwrites that one, and the two change names, for which a file system
// needs no space. Without the second file (the first write, a longer text, one that
// the full disk had no room for) it is AtomicWrite. A reader must not span two writes.
// btrfs never overwrites in place, so there a full disk still hinders.
func WriteSpared(path string, data []byte, mode os.FileMode) error {
	padded := pad(data)
	if swapSpare(path, padded, mode) != nil {
		if err := AtomicWrite(path, padded, mode); err != nil {
			return err
		}
	}
	keepSpare(path, len(padded), mode)
	return nil
}

// RemoveSpared removes the file with its spare. That it is gone already is no error.
func RemoveSpared(path string) error {
	for _, name := range []string{spareOf(path), path} {
		if err := Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

func pad(data []byte) []byte {
	more := (spareUnit - len(data)%spareUnit) % spareUnit
	return append(bytes.Clone(data), bytes.Repeat([]byte("\n"), more)...)
}

// swapSpare writes in place and changes the names. Until then the file has its old
// content, whatever becomes of the spare.
func swapSpare(path string, padded []byte, mode os.FileMode) error {
	spare, err := OpenFile(spareOf(path), os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	info, err := spare.Stat()
	if err == nil && info.Size() != int64(len(padded)) {
		err = fmt.Errorf("the spare of %s has %d bytes instead of %d", path, info.Size(), len(padded))
	}
	if err == nil {
		_, err = spare.WriteAt(padded, 0)
	}
	if err = errors.Join(err, spare.Chmod(mode), spare.Sync(), spare.Close()); err != nil {
		return err
	}
	if err := Exchange(spareOf(path), path); err != nil {
		return err
	}
	return SyncDir(filepath.Dir(path))
}

// keepSpare makes the spare as long as the file, with its space taken. It may fail: the
// file is written already, and the next write does without.
func keepSpare(path string, size int, mode os.FileMode) {
	if info, err := Lstat(spareOf(path)); err == nil && info.Mode().IsRegular() && info.Size() == int64(size) {
		return
	}
	_ = AtomicWrite(spareOf(path), bytes.Repeat([]byte("\n"), size), mode)
}
