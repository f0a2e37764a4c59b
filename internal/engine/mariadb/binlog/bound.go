package binlog

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"kurabe"
	"kurabe/internal/engine"
	"kurabe/internal/engine/mariadb/guard"
	"kurabe/internal/engine/mariadb/role"
	"kurabe/internal/engine/mariadb/sqltext"
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

// BoundLog purges the oldest binary logs beyond the bound; who still wanted them gets
// ErrLogGone, and a follower that has been away for so long is cloned. The server of this series has no such bound of its own (a later one
// calls it max_binlog_total_size), so it holds while the service runs.
func BoundLog(ctx context.Context, i engine.Instance) error {
	if !role.KeepsBinlog(i) || i.Goal != kurabe.GoalRunning {
		return nil
	}
	names, err := List(i.Home.DataDir())
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
		err := guard.With(ctx, i, func(a *guard.Session) error { return Purge(ctx, a, names[n]) })
		if err != nil {
			return fmt.Errorf("bound the binary log: %w", err)
		}
		return nil
	}
	return nil
}

// Purge has the server remove what is older than a file. One that it does not know is
// an error of its own.
func Purge(ctx context.Context, a *guard.Session, before string) error {
	if FileNumber(before) == 0 {
		return fmt.Errorf("invalid binary log name %q", before)
	}
	return a.Exec(ctx, "PURGE BINARY LOGS TO "+sqltext.Literal(before))
}
