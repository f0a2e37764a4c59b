package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"time"

	"kurabe"
	"kurabe/internal/volume"
)

// Rotator is implemented by a driver whose server does not rotate its logs by
// itself.
type Rotator interface {
	// RotateLogs gives the logs of a running server other names and has it begin
	// new ones.
	RotateLogs(ctx context.Context, i Instance, now time.Time) error
}

// Bounds of an instance's logs. RDS keeps PostgreSQL's for three days and
// MariaDB's for up to thirty; the size keeps a noisy server from filling the disk
// with them.
const (
	logAgeMax   = 7 * 24 * time.Hour
	logBytesMax = 512 << 20
	// heldBytesMax is for those that are not exported yet. Where the storage is small, a tenth of
	// it: then the disk is short, and the export tells what it has missed.
	heldBytesMax = 4 * logBytesMax
	rotateAfter  = 24 * time.Hour
	rotateBytes  = 32 << 20
	tidyDeadline = 20 * time.Second
)

// Tidy rotates and removes old logs of an instance. The agent calls it now and
// then; a failure harms nothing and is tried again.
func (l *Lifecycle) Tidy(ctx context.Context, a kurabe.Assignment, unread func(name string) bool) error {
	i := l.instance(a)
	ctx, cancel := context.WithTimeout(ctx, tidyDeadline)
	defer cancel()
	// Copies are made of writers only, and what they leave in a server is gone only there.
	if a.Writes() {
		if err := l.c.Driver.SweepCopy(ctx, i); err != nil {
			return fmt.Errorf("remove what a cut-off snapshot left: %w", err)
		}
	}
	if err := l.sweepFeeds(i); err != nil {
		return fmt.Errorf("remove a copy that a cut-off feed left: %w", err)
	}
	files, err := logFiles(i.Home.LogDir())
	if err != nil {
		return err
	}
	if r, ok := l.c.Driver.(Rotator); ok && a.Goal == kurabe.GoalRunning && l.rotationDue(i, files) {
		if err := r.RotateLogs(ctx, i, l.c.Now()); err != nil {
			return fmt.Errorf("rotate logs: %w", err)
		}
		if files, err = logFiles(i.Home.LogDir()); err != nil {
			return err
		}
	}
	held := int64(heldBytesMax)
	if a.Limits.StorageBytes > 0 {
		held = min(held, a.Limits.StorageBytes/10)
	}
	return removeOldLogs(i.Home.LogDir(), files, l.c.Now(), held, unread)
}

// rotationDue says whether the newest error log is large, or the last rotation
// was a day ago.
func (l *Lifecycle) rotationDue(i Instance, files []fs.FileInfo) bool {
	var names []string
	for _, f := range files {
		names = append(names, f.Name())
	}
	current := filepath.Base(l.c.Driver.ErrorLog(i, names))
	var newestOther time.Time
	for _, f := range files {
		if f.Name() == current {
			if f.Size() >= rotateBytes {
				return true
			}
			continue
		}
		if f.Size() >= rotateBytes && f.ModTime().After(l.c.Now().Add(-time.Minute)) {
			return true // a slow or general log that is being written
		}
		if f.ModTime().After(newestOther) {
			newestOther = f.ModTime()
		}
	}
	born, err := volume.Stat(i.Home.TLSDir())
	if newestOther.IsZero() && err == nil {
		newestOther = born.ModTime()
	}
	return !newestOther.IsZero() && l.c.Now().Sub(newestOther) >= rotateAfter
}

// logFiles lists the regular files of a log folder, newest first.
func logFiles(dir string) ([]fs.FileInfo, error) {
	entries, err := volume.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list logs: %w", err)
	}
	var files []fs.FileInfo
	for _, e := range entries {
		if info, err := e.Info(); err == nil && info.Mode().IsRegular() {
			files = append(files, info)
		}
	}
	slices.SortFunc(files, func(a, b fs.FileInfo) int { return cmp.Compare(b.ModTime().UnixNano(), a.ModTime().UnixNano()) })
	return files, nil
}

// removeOldLogs removes what is too old or beyond the size; the newest stays, and what is unread up to
// heldBytes of all.
func removeOldLogs(dir string, files []fs.FileInfo, now time.Time, heldBytes int64, unread func(name string) bool) error {
	var kept int64
	for n, f := range files {
		kept += f.Size()
		if n == 0 || now.Sub(f.ModTime()) < logAgeMax && kept <= logBytesMax || kept <= heldBytes && unread(f.Name()) {
			continue
		}
		if err := volume.Remove(filepath.Join(dir, f.Name())); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("remove old log: %w", err)
		}
	}
	return nil
}
