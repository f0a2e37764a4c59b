package etcdnode

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"time"

	bolt "go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"
	"go.etcd.io/etcd/server/v3/storage/wal"
	"go.uber.org/zap"
	"golang.org/x/sys/unix"
)

// Errors of a data folder. They wrap the details.
var (
	// ErrLocked: another process uses the folder.
	ErrLocked = errors.New("the data folder is in use by another process")
	// ErrCorrupt: the state is damaged or not whole. Nothing was changed.
	ErrCorrupt = errors.New("the state is damaged; nothing was changed")
	// ErrDiskFull: too little space is left to start.
	ErrDiskFull = errors.New("the disk is full")
)

// spaceBytesMin is two log files and room for the database to grow.
const spaceBytesMin = 2*segmentBytes + 32<<20

// lockDir takes the folder for this process. The lock dies with the process.
func lockDir(dir string) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock data folder: %w", err)
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		holder := make([]byte, 32)
		n, _ := f.Read(holder) // only to help: an empty file names nobody
		f.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, fmt.Errorf("%s: %w (pid %s)", dir, ErrLocked, strings.TrimSpace(string(holder[:n])))
		}
		return nil, fmt.Errorf("lock data folder %s: %w", dir, err)
	}
	if err := f.Truncate(0); err == nil {
		fmt.Fprintf(f, "%d\n", os.Getpid()) // a full disk is found right after
	}
	return f, nil
}

func checkSpace(dir string) error {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return fmt.Errorf("check space of %s: %w", dir, err)
	}
	if free := int64(st.Bavail) * st.Bsize; free < spaceBytesMin {
		return fmt.Errorf("%w: %s has %d MiB free; the state needs %d MiB", ErrDiskFull, dir, free>>20, int64(spaceBytesMin)>>20)
	}
	return nil
}

// checkFiles refuses a state that etcd would silently replace or die of. An
// empty folder is fine.
func checkFiles(dir string) error {
	dbPath := filepath.Join(dir, "member", "snap", "db")
	walDir := filepath.Join(dir, "member", "wal")
	_, err := os.Stat(dbPath)
	haveDB := err == nil
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("check state: %w", err)
	}
	haveWAL := wal.Exist(walDir)
	var applied uint64
	if haveDB {
		if applied, err = checkDatabase(dbPath); err != nil {
			return fmt.Errorf("%w: database %s: %w", ErrCorrupt, dbPath, err)
		}
	}
	switch {
	case haveWAL && !haveDB:
		return fmt.Errorf("%w: there is a log but no database %s", ErrCorrupt, dbPath)
	case haveDB && !haveWAL && applied > 0:
		// etcd would begin a new log at entry 1 and skip the first writes as
		// already applied. An unused database is a first start that was cut.
		return fmt.Errorf("%w: there is a database but no log in %s", ErrCorrupt, walDir)
	case !haveWAL:
		return nil
	}
	last, err := checkLog(walDir)
	if err != nil {
		return fmt.Errorf("%w: log %s: %w", ErrCorrupt, walDir, err)
	}
	if last < applied {
		return fmt.Errorf("%w: log %s ends at entry %d, but the database holds entry %d", ErrCorrupt, walDir, last, applied)
	}
	return nil
}

// checkDatabase reads every page that is in use and returns the index of the
// last log entry that the database holds.
func checkDatabase(path string) (applied uint64, err error) {
	if err := checkPages(path); err != nil {
		return 0, err
	}
	return readDatabase(path)
}

// readDatabase reads what checkPages has let pass.
func readDatabase(path string) (applied uint64, err error) {
	// The database is mapped: a damaged page panics, a missing one faults.
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("unreadable page: %v", r)
		}
	}()
	db, err := bolt.Open(path, 0o600, &bolt.Options{ReadOnly: true, Timeout: time.Second})
	if errors.Is(err, bolterrors.ErrTimeout) {
		return 0, ErrLocked
	}
	if err != nil {
		return 0, err
	}
	defer db.Close() // read only: nothing to lose
	err = db.View(func(tx *bolt.Tx) error {
		if meta := tx.Bucket([]byte("meta")); meta != nil {
			if v := meta.Get([]byte("consistent_index")); len(v) == 8 {
				applied = binary.BigEndian.Uint64(v)
			}
		}
		return tx.ForEach(func(name []byte, b *bolt.Bucket) error {
			return b.ForEach(func(_, _ []byte) error { return nil })
		})
	})
	return applied, err
}

// checkLog reads the log and returns the index of its last entry. A torn end,
// as a crash leaves it, is no damage: it was never acknowledged.
func checkLog(dir string) (last uint64, err error) {
	defer func() {
		if r := recover(); r != nil { // etcd's decoder panics on odd records
			err = fmt.Errorf("unreadable record: %v", r)
		}
	}()
	snapshots, err := wal.ValidSnapshotEntries(zap.NewNop(), dir)
	if err != nil {
		return 0, err
	}
	if len(snapshots) == 0 {
		return 0, errors.New("no snapshot record")
	}
	newest := snapshots[len(snapshots)-1]
	w, err := wal.OpenForRead(zap.NewNop(), dir, newest)
	if err != nil {
		return 0, err
	}
	defer w.Close() // read only: nothing to lose
	_, _, entries, err := w.ReadAll()
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
		return 0, err
	}
	last = newest.GetIndex()
	if n := len(entries); n > 0 {
		last = max(last, entries[n-1].GetIndex())
	}
	return last, nil
}
