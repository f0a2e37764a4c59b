package engine

import (
	"context"
	"fmt"

	"kurabe/internal/faultpoint"
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

// welcome prepares a restored instance for its master user. An initial database
// belongs to a new data folder: one that the source's users dropped must not come
// back.
func (l *Lifecycle) welcome(ctx context.Context, i *Instance) error {
	if i.Origin == nil {
		return nil
	}
	i.DatabaseName = ""
	if err := l.c.Driver.Welcome(ctx, *i); err != nil {
		return fmt.Errorf("welcome the restored data: %w", err)
	}
	return nil
}
