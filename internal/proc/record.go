package proc

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// recordBytesMax bounds what we read back: tags are nonces and hashes.
const recordBytesMax = 64 << 10

// record is how a process is found again. It outlives the process: a record
// without a living process of the same start time and boot means "it is gone".
type record struct {
	PID       int               `json:"pid"`
	StartTime uint64            `json:"start_time"`
	BootID    string            `json:"boot_id"`
	Argv0     string            `json:"argv0"`
	Tags      map[string]string `json:"tags,omitempty"`
}

// writeRecord describes the calling process. Only the holder of the lock file
// calls it. It does not sync: after a crash of the machine the record is void
// anyway (other boot id), and a crash of ours does not lose the page cache.
func writeRecord(spec Spec) error {
	self, err := readStat("self")
	if err != nil {
		return err
	}
	boot, err := bootID()
	if err != nil {
		return err
	}
	raw, err := json.Marshal(record{self.pid, self.startTime, boot, spec.Argv[0], spec.Tags})
	if err != nil {
		return err
	}
	if len(raw) > recordBytesMax {
		return fmt.Errorf("record of %d bytes is longer than %d", len(raw), recordBytesMax)
	}
	// A fixed name: the lock makes us the only writer, and a leftover of a killed
	// shim is replaced. O_EXCL after Remove refuses a planted link.
	temp := spec.RecordFile + ".tmp"
	if err := removeFile(temp); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	fd, err := openNoLink(temp, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	file := os.NewFile(uintptr(fd), temp)
	_, err = file.Write(raw)
	if err = errors.Join(err, file.Close()); err != nil {
		return err
	}
	return inFolder(temp, func(dir int, name string) error {
		return unix.Renameat(dir, name, dir, filepath.Base(spec.RecordFile))
	})
}

// readRecord gives found=false if there is no record.
func readRecord(path string) (rec record, found bool, err error) {
	file, err := openFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return record{}, false, nil
	}
	if err != nil {
		return record{}, false, err
	}
	defer file.Close()
	raw, err := io.ReadAll(io.LimitReader(file, recordBytesMax))
	if err != nil {
		return record{}, false, err
	}
	if len(bytes.Trim(raw, "\x00")) == 0 {
		// The power went before the content was on the disk, and the process with it.
		return record{}, false, nil
	}
	if err := json.Unmarshal(raw, &rec); err != nil {
		return record{}, false, fmt.Errorf("parse record %s: %w", path, err)
	}
	return rec, true, nil
}

// dropRecord removes the record of a start that failed after writing it. It takes
// the lock meanwhile, since only the holder of the lock may change the record; if
// somebody else holds it, the record is theirs by now.
func dropRecord(spec Spec, pid int) {
	unlock, err := tryLock(spec.LockFile)
	if err != nil {
		return
	}
	defer unlock()
	if rec, found, err := readRecord(spec.RecordFile); err == nil && found && rec.PID == pid {
		_ = removeFile(spec.RecordFile) // A record left behind names a dead process.
	}
}
