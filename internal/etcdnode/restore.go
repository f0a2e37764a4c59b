package etcdnode

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/lease"
	"go.etcd.io/etcd/server/v3/storage/backend"
	"go.etcd.io/etcd/server/v3/storage/mvcc"
	"go.uber.org/zap"
)

// ErrBackup: a file is no backup of the state, or not all of one.
var ErrBackup = errors.New("no whole backup of the state")

const (
	// sectorBytes divides the size of a database; what is over in a backup is its sum.
	sectorBytes = 512
	// restoreOps is how many records are written at a time; etcd takes 128, and 1.5 MiB.
	restoreOps = 10
)

// CheckBackup demands that a file of Backup is whole.
func CheckBackup(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("read backup: %w", err)
	}
	defer f.Close() // read only: nothing to lose
	info, err := f.Stat()
	if err != nil {
		return fmt.Errorf("read backup: %w", err)
	}
	size := info.Size() - sha256.Size
	if size <= 0 || size%sectorBytes != 0 {
		return fmt.Errorf("%w: %s", ErrBackup, path)
	}
	sum, want := sha256.New(), make([]byte, sha256.Size)
	if _, err := io.CopyN(sum, f, size); err != nil {
		return fmt.Errorf("read backup: %w", err)
	}
	if _, err := io.ReadFull(f, want); err != nil {
		return fmt.Errorf("read backup: %w", err)
	}
	if !bytes.Equal(sum.Sum(nil), want) {
		return fmt.Errorf("%w: %s is damaged: wrong checksum", ErrBackup, path)
	}
	return nil
}

// Change is what a restore makes of a record; without keep it is left out.
type Change func(key string, value []byte) (changed []byte, keep bool, err error)

// Restore makes a new state in dir, which does not exist, with the records of a backup, as
// a lone node. History and leases are not restored.
func Restore(ctx context.Context, dir string, records []Record, log *slog.Logger) error {
	if _, err := os.Stat(dir); err == nil {
		return fmt.Errorf("restore state: %s already exists", dir)
	}
	n, err := Start(ctx, Options{Dir: dir, Log: log})
	if err != nil {
		return fmt.Errorf("restore state: %w", err)
	}
	return errors.Join(n.fill(ctx, records), n.Close())
}

// ReadBackup reads the records of a file of Backup or WriteBackup, changed.
func ReadBackup(ctx context.Context, path string, change Change) ([]Record, error) {
	if err := CheckBackup(path); err != nil {
		return nil, err
	}
	all, err := readBackup(ctx, path)
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrBackup, path, err)
	}
	var records []Record
	for _, kv := range all {
		if kv.Lease != 0 {
			continue
		}
		value, keep, err := change(string(kv.Key), kv.Value)
		if err != nil {
			return nil, fmt.Errorf("restore state: %w", err)
		}
		if keep {
			records = append(records, Record{string(kv.Key), value})
		}
	}
	return records, nil
}

// readBackup reads the newest version of every record, from a copy: etcd's reader is also
// a writer.
func readBackup(ctx context.Context, path string) (records []*mvccpb.KeyValue, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("unreadable page: %v", p)
		}
	}()
	dir, err := os.MkdirTemp("", "kurabe-restore-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	scratch := filepath.Join(dir, "db")
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(scratch, content[:len(content)-sha256.Size], 0o600); err != nil {
		return nil, err
	}
	be := backend.NewDefaultBackend(zap.NewNop(), scratch)
	defer be.Close()
	kv := mvcc.NewStore(zap.NewNop(), be, &lease.FakeLessor{}, mvcc.StoreConfig{})
	defer kv.Close()
	r, err := kv.Range(ctx, []byte{0}, []byte{0xff}, mvcc.RangeOptions{})
	if err != nil {
		return nil, err
	}
	return r.KVs, nil
}

// fill writes the records.
func (n *Node) fill(ctx context.Context, records []Record) error {
	for part := range slices.Chunk(records, restoreOps) {
		var ops []clientv3.Op
		for _, r := range part {
			ops = append(ops, clientv3.OpPut(r.Key, string(r.Value)))
		}
		if _, err := n.client.Txn(ctx).Then(ops...).Commit(); err != nil {
			return fmt.Errorf("restore state: %w", err)
		}
	}
	return nil
}
