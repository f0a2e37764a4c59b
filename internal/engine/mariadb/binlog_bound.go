package mariadb

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"kurabe"
	"kurabe/internal/engine"
	"kurabe/internal/engine/mariadb/binlog"
	"kurabe/internal/engine/mariadb/guard"
	"kurabe/internal/engine/mariadb/role"
	"kurabe/internal/volume"
)

// Bounds of binary logs that nobody fetches: a tenth of the storage, so that they do
// not fill it, at least a few files, and at most what is a day's of many.
const (
	unreadBytesLeast = 256 << 20
	unreadBytesMost  = 16 << 30
	unreadShare      = 10
)

// unreadBytesMax is the bound of one instance.
func unreadBytesMax(i engine.Instance) int64 {
	return min(max(i.Limits.StorageBytes/unreadShare, unreadBytesLeast), unreadBytesMost)
}

// boundLog purges the oldest binary logs beyond the bound; who still wanted them gets
// ErrLogGone, and a follower that has been away for so long is cloned. The server of this series has no such bound of its own (a later one
// calls it max_binlog_total_size), so it holds while the service runs.
func boundLog(ctx context.Context, i engine.Instance) error {
	if !role.KeepsBinlog(i) || i.Goal != kurabe.GoalRunning {
		return nil
	}
	names, err := binlog.List(i.Home.DataDir())
	if os.IsNotExist(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("bound the binary log: %w", err)
	}
	var sum int64
	for n := len(names) - 1; n > 0; n-- {
		if info, err := volume.Lstat(filepath.Join(i.Home.DataDir(), names[n])); err == nil {
			sum += info.Size()
		}
		if sum <= unreadBytesMax(i) {
			continue
		}
		err := guard.With(ctx, i, func(a *guard.Session) error { return purge(ctx, a, names[n]) })
		if err != nil {
			return fmt.Errorf("bound the binary log: %w", err)
		}
		return nil
	}
	return nil
}

// recoverTime is how long a crashed server's copy may take to recover when no caller
// says.
const recoverTime = time.Hour

// adoptLog removes the binary log from a copy. That of a crashed server is first
// recovered with it: without it, InnoDB rolls back commits that were acknowledged.
func adoptLog(i engine.Instance, dataDir string) error {
	names, err := binlog.List(dataDir)
	if err != nil || len(names) == 0 {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), recoverTime)
	defer cancel()
	s, err := openPrivate(ctx, i, dataDir)
	if err != nil {
		return err
	}
	if err := s.settle(ctx); err != nil {
		_ = s.close()
		return fmt.Errorf("recover it with its binary log: %w", err)
	}
	return s.close()
}
