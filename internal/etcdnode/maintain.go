package etcdnode

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"kurabe/internal/logkey"
)

const (
	maintainEvery = 10 * time.Minute
	backupEvery   = 24 * time.Hour
	// defragFreeBytesMin and more than half of the file free make rewriting it
	// worth the pause (about 10 ms for each MB in use).
	defragFreeBytesMin = 32 << 20
)

// Maintain keeps the database small until ctx ends, and lifts etcd's own write
// stop when there is room again.
func (n *Node) Maintain(ctx context.Context) error {
	tick := time.NewTicker(maintainEvery)
	defer tick.Stop()
	for {
		if err := n.maintain(ctx); err != nil && ctx.Err() == nil {
			n.log.Warn("maintenance of the state store failed", logkey.Error, err)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (n *Node) maintain(ctx context.Context) error {
	be := n.etcd.Server.Backend()
	size, used := be.Size(), be.SizeInUse()
	if size-used >= defragFreeBytesMin && used < size/2 {
		if err := be.Defrag(); err != nil {
			return fmt.Errorf("defragment: %w", err)
		}
		n.log.Info("state store defragmented", logkey.Bytes, be.Size())
	}
	return errors.Join(n.liftAlarm(ctx), n.backupDaily(ctx))
}

func (n *Node) backupDaily(ctx context.Context) error {
	if n.backup == "" {
		return nil
	}
	return BackupDaily(n.backup, func(w io.Writer) error { return n.BackupTo(ctx, w) })
}

// BackupDaily keeps a copy of the state at path that is at most a day old, and the one
// before: a person who has to give up a corrupt store starts from there.
func BackupDaily(path string, write func(io.Writer) error) error {
	if info, err := os.Stat(path); err == nil {
		if age := time.Since(info.ModTime()); age >= 0 && age < backupEvery {
			return nil
		}
		if err := os.Rename(path, path+".1"); err != nil {
			return fmt.Errorf("back up state: %w", err)
		}
	}
	return writeWhole(path, write)
}

// liftAlarm ends the write stop that etcd declares at its quota; it never does
// so itself.
func (n *Node) liftAlarm(ctx context.Context) error {
	alarms, err := n.client.AlarmList(ctx)
	if err != nil {
		return fmt.Errorf("list alarms: %w", err)
	}
	if len(alarms.Alarms) == 0 {
		return nil
	}
	if err := n.shrink(ctx); err != nil {
		return err
	}
	for _, a := range alarms.Alarms {
		if a.Alarm != etcdserverpb.AlarmType_NOSPACE || n.etcd.Server.Backend().Size() > quotaBytes*9/10 {
			return fmt.Errorf("etcd raised the alarm %s", a.Alarm)
		}
		if _, err := n.client.AlarmDisarm(ctx, (*clientv3.AlarmMember)(a)); err != nil {
			return fmt.Errorf("disarm alarm: %w", err)
		}
	}
	n.log.Info("state store accepts writes again", logkey.Bytes, n.etcd.Server.Backend().Size())
	return nil
}

// shrink forgets all history and rewrites the database.
func (n *Node) shrink(ctx context.Context) error {
	r, err := n.client.Get(ctx, "\x00")
	if err != nil {
		return fmt.Errorf("compact: %w", err)
	}
	if _, err := n.client.Compact(ctx, r.Header.Revision, clientv3.WithCompactPhysical()); err != nil {
		return fmt.Errorf("compact: %w", err)
	}
	if err := n.etcd.Server.Backend().Defrag(); err != nil {
		return fmt.Errorf("defragment: %w", err)
	}
	return nil
}

// Backup writes the whole state, as of one revision, to a new file that
// "etcdutl snapshot restore" reads. The file appears whole or not at all.
func (n *Node) Backup(ctx context.Context, path string) error {
	return writeWhole(path, func(w io.Writer) error { return n.BackupTo(ctx, w) })
}

func writeWhole(path string, write func(io.Writer) error) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".backup-*")
	if err != nil {
		return fmt.Errorf("back up state: %w", err)
	}
	defer os.Remove(f.Name()) // gone after the rename
	if err := errors.Join(write(f), f.Sync(), f.Close()); err != nil {
		return fmt.Errorf("back up state: %w", err)
	}
	if err := os.Rename(f.Name(), path); err != nil {
		return fmt.Errorf("back up state: %w", err)
	}
	d, err := os.Open(filepath.Dir(path))
	if err != nil {
		return fmt.Errorf("back up state: %w", err)
	}
	return errors.Join(d.Sync(), d.Close())
}

// BackupTo writes what Backup does. CheckBackup knows whether all of it has arrived.
func (n *Node) BackupTo(ctx context.Context, w io.Writer) error {
	r, err := n.client.Snapshot(ctx)
	if err != nil {
		return fmt.Errorf("back up state: %w", err)
	}
	defer r.Close() // a stream that was read to its end
	if _, err := io.Copy(w, r); err != nil {
		return fmt.Errorf("back up state: %w", err)
	}
	return nil
}
