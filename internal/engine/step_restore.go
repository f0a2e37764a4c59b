package engine

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"kurabe"
	"kurabe/internal/faultpoint"
	"kurabe/internal/logstream"
	"kurabe/internal/proc"
	"kurabe/internal/snapshot"
	"kurabe/internal/volume"
)

// restoreSnapshot gives the instance the data folder of a snapshot, by a rename as
// copyTemplate does. A snapshot that is damaged, or of another engine or major, is
// refused before anything is made.
func (l *Lifecycle) restoreSnapshot(ctx context.Context, i Instance) error {
	if err := l.restore(ctx, i); err != nil {
		return judgeRestore(fmt.Errorf("restore snapshot %s: %w", i.Origin.Snapshot, err))
	}
	return nil
}

func (l *Lifecycle) restore(ctx context.Context, i Instance) error {
	from, err := openSource(ctx, snapshot.Store{Dir: l.c.Snapshots}, l.archive, i.Origin.Snapshot)
	if err != nil {
		return err
	}
	if r := from.record; r.Engine != i.Engine || r.Family != i.Version.Family {
		return fmt.Errorf("it is of %s, which %s %s cannot start on", r.Family, i.Engine, i.Version.Version)
	}
	uid, gid := owner(i.User)
	fresh := i.Home.DataDir() + ".fresh.tmp"
	if err := volume.RemoveTree(i.Home.Dir, fresh); err != nil {
		return err
	}
	_, _, err = from.copyTo(ctx, fresh, volume.TransferOptions{Owner: &volume.Owner{UID: uid, GID: gid}, Cached: true})
	if err == nil {
		faultpoint.Reach("after", "copy-data")
		err = l.replayLog(ctx, i, from.record, fresh)
	}
	if err == nil {
		err = l.c.Driver.Adopt(i, fresh)
	}
	if err == nil {
		err = volume.SyncFS(fresh)
	}
	if err != nil {
		// What is wrong with the snapshot does not go away by itself: the space of
		// half a copy is not kept until then.
		_ = volume.RemoveTree(i.Home.Dir, fresh)
		return err
	}
	if err := volume.Rename(fresh, i.Home.DataDir()); err != nil {
		return err
	}
	return volume.SyncDir(i.Home.Dir)
}

// prepareForMaster prepares a restored instance for its master user. It creates no initial
// database: that belongs to a new data folder, and one that the source's users dropped must not
// come back.
func (l *Lifecycle) prepareForMaster(ctx context.Context, i *Instance) error {
	if i.Origin == nil {
		return nil
	}
	i.DatabaseName = ""
	if err := l.c.Driver.Welcome(ctx, *i); err != nil {
		return fmt.Errorf("welcome the restored data: %w", err)
	}
	return nil
}

// Fetch writes the log of an instance, which may be gone, into an empty folder: the
// engine's files from the one that from is in up to the first mark that is not
// before at. It refuses what it does not have whole.
type Fetch func(ctx context.Context, r FetchRequest) (logstream.Fetched, error)

// FetchRequest says which part of which log.
type FetchRequest struct {
	Instance    kurabe.InstanceID
	From        kurabe.LogPosition
	TakenAt, At time.Time
	Dir         string
}

// OpenLog looks at the log of the running server of an instance.
func (l *Lifecycle) OpenLog(ctx context.Context, a kurabe.Assignment) (Log, error) {
	return l.c.Driver.OpenLog(ctx, l.instance(a))
}

// OpenLogHolder opens a session by which a running follower is told which log to keep.
func (l *Lifecycle) OpenLogHolder(ctx context.Context, a kurabe.Assignment) (LogHolder, error) {
	return l.c.Driver.OpenLogHolder(ctx, l.instance(a))
}

// DropLog has the running server of an instance hold back no log any more.
func (l *Lifecycle) DropLog(ctx context.Context, a kurabe.Assignment) error {
	return l.c.Driver.DropLog(ctx, l.instance(a))
}

// replayLog brings the fresh copy of a snapshot to the moment that the origin names.
func (l *Lifecycle) replayLog(ctx context.Context, i Instance, r snapshot.Record, fresh string) error {
	point := i.Origin.Point
	if point == nil {
		return nil
	}
	if l.c.Fetch == nil {
		return errors.New("this host keeps no logs")
	}
	if r.Facts.Position.File == "" {
		return fmt.Errorf("snapshot %s has no position in a log", r.Snapshot)
	}
	dir, err := l.emptyLogDir(i)
	if err != nil {
		return err
	}
	request, err := l.fetchLog(ctx, i, FetchRequest{
		Instance: point.Instance, From: r.Facts.Position, TakenAt: r.Facts.TakenAt, At: point.At, Dir: dir,
	})
	if err == nil {
		err = l.c.Driver.Replay(ctx, i, fresh, request)
	}
	if err != nil {
		err = fmt.Errorf("bring it to %s: %w", point.At.Format(time.RFC3339), err)
	}
	return errors.Join(err, volume.RemoveTree(i.Home.Dir, dir))
}

// fetchLog has the part of a log that a replay needs written for the engine's user.
func (l *Lifecycle) fetchLog(ctx context.Context, i Instance, r FetchRequest) (ReplayRequest, error) {
	got, err := l.c.Fetch(ctx, r)
	if err != nil {
		return ReplayRequest{}, err
	}
	faultpoint.Reach("after", "fetch-log")
	for _, dir := range append([]string{r.Dir}, got.Joined...) {
		err = errors.Join(err, giveFiles(dir, i.User))
	}
	return ReplayRequest{
		Dir: r.Dir, Joined: got.Joined, From: r.From, At: r.At, Before: got.Before, BeforeIn: got.BeforeIn, After: got.After,
	}, err
}

// emptyLogDir is where the log for a replay goes; it counts as the instance's, like
// the data in the making.
func (l *Lifecycle) emptyLogDir(i Instance) (string, error) {
	dir := i.Home.ReplayDir()
	if err := volume.RemoveTree(i.Home.Dir, dir); err != nil {
		return "", err
	}
	uid, gid := owner(i.User)
	return dir, volume.EnsureDir(dir, 0o700, uid, gid)
}

// giveFiles makes the engine's user the owner of the files in a folder.
func giveFiles(dir string, user *proc.Credential) error {
	entries, err := volume.ReadDir(dir)
	for _, e := range entries {
		err = errors.Join(err, Give(filepath.Join(dir, e.Name()), user))
	}
	return err
}
