package etcdnode

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"go.etcd.io/etcd/server/v3/lease"
	"go.etcd.io/etcd/server/v3/storage/backend"
	"go.etcd.io/etcd/server/v3/storage/mvcc"
	"go.uber.org/zap"
)

// A Record is a key with what is kept there.
type Record struct {
	Key   string
	Value []byte
}

// WriteBackup writes records in the form that Backup writes a whole node in, which
// CheckBackup and Restore know. So what was in an etcd of others can go into one of our
// own, and back.
func WriteBackup(w io.Writer, records []Record) (err error) {
	dir, err := os.MkdirTemp("", "kurabe-backup-")
	if err != nil {
		return fmt.Errorf("back up state: %w", err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "db")
	if err := writeDatabase(path, records); err != nil {
		return fmt.Errorf("back up state: %w", err)
	}
	f, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("back up state: %w", err)
	}
	defer f.Close() // read only: nothing to lose
	sum := sha256.New()
	if _, err := io.Copy(io.MultiWriter(w, sum), f); err != nil {
		return fmt.Errorf("back up state: %w", err)
	}
	if _, err := w.Write(sum.Sum(nil)); err != nil {
		return fmt.Errorf("back up state: %w", err)
	}
	return nil
}

func writeDatabase(path string, records []Record) error {
	be := backend.NewDefaultBackend(zap.NewNop(), path)
	kv := mvcc.NewStore(zap.NewNop(), be, &lease.FakeLessor{}, mvcc.StoreConfig{})
	for _, r := range records {
		kv.Put([]byte(r.Key), r.Value, lease.NoLease)
	}
	kv.Commit()
	return errors.Join(kv.Close(), be.Close())
}
