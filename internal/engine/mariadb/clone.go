package mariadb

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io/fs"
	"path/filepath"
	"strings"

	"kurabe"
	"kurabe/internal/engine"
	"kurabe/internal/engine/mariadb/binlog"
	"kurabe/internal/engine/mariadb/conf"
	"kurabe/internal/engine/mariadb/guard"
	"kurabe/internal/engine/mariadb/replica"
	"kurabe/internal/engine/mariadb/sqltext"
	"kurabe/internal/engine/mariadb/transfer"
	"kurabe/internal/faultpoint"
	"kurabe/internal/proc"
	"kurabe/internal/volume"
)

// Clone implements engine.Driver: a copy as for a snapshot, with its place in the
// source's history in the file that makes it a follower's.
func (d *Driver) Clone(ctx context.Context, i engine.Instance, caFile string) error {
	source, err := sourceOf(i)
	if err != nil {
		return fmt.Errorf("clone: %w", err)
	}
	if _, err := volume.Lstat(i.Home.DataDir()); !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("clone %s: there is a data folder already: %w", source.ID, errors.Join(err, fs.ErrExist))
	}
	fresh := i.Home.FreshDir()
	err = volume.RemoveTree(i.Home.Dir, fresh)
	if err == nil {
		err = d.makeClone(ctx, i, caFile, fresh)
	}
	if err != nil {
		// Half a copy is of no use, and its space is not ours to keep.
		return fmt.Errorf("clone %s: %w", source.ID, errors.Join(err, volume.RemoveTree(i.Home.Dir, fresh)))
	}
	faultpoint.Reach("before", "name-clone")
	if err := volume.Rename(fresh, i.Home.DataDir()); err != nil {
		return fmt.Errorf("clone %s: %w", source.ID, err)
	}
	return volume.SyncDir(i.Home.Dir)
}

// bringCopy makes dir, which is absent, a prepared copy of the data of the running source, and
// returns where in the source's history the copy is. A source on this host is copied here: a
// server's folder is on its host from its first day to its last. Until the copy follows, the log
// behind that place is what the source keeps anyway (binlog/bound.go).
func (d *Driver) bringCopy(ctx context.Context, i engine.Instance, caFile, dir string) (position string, err error) {
	source := localSource(i)
	if !conf.Exists(source.Home.Dir) {
		return transfer.Receive(ctx, i, caFile, dir)
	}
	_, position, err = d.copyAt(ctx, source, engine.CopyRequest{Dir: dir})
	return position, err
}

// copyAt copies a running server, with the place of the copy in its history. The copy is of one
// moment, and the server says how far its binary log was at that moment (the tool's info file, or
// the instant of the cloning); from that it reads the position itself.
func (d *Driver) copyAt(ctx context.Context, source engine.Instance, r engine.CopyRequest) (copied engine.Copied, position string, err error) {
	if copied, err = d.CopyRunning(ctx, source, r); err == nil {
		position, err = gtidAt(ctx, source, copied.Position)
	}
	return copied, position, err
}

func (d *Driver) makeClone(ctx context.Context, i engine.Instance, caFile, fresh string) error {
	position, err := d.bringCopy(ctx, i, caFile, fresh)
	if err != nil {
		return err
	}
	faultpoint.Reach("after", "copy-data")
	if err := engine.GiveTree(fresh, i.User); err != nil {
		return err
	}
	if err := d.Adopt(i, fresh); err != nil {
		return err
	}
	if err := beginLog(fresh, position, firstLogNumber(i), i.User); err != nil {
		return err
	}
	if err := replica.WriteFollowing(fresh, replica.Following{Position: position}); err != nil {
		return err
	}
	return volume.SyncFS(fresh)
}

// beginLog has the binary log of a copy begin where the copy is: a server reads this file
// when it has no log yet. Without it nobody could follow from that very place, as a writer
// does that has to take back what came after. An empty file takes the number before the
// first one: the server goes on from there.
func beginLog(dataDir, position string, first int64, user *proc.Credential) error {
	list, err := binlog.ParseGTIDs(position)
	if err != nil {
		return err
	}
	var b strings.Builder
	for _, g := range list {
		b.WriteString(g.String() + "\n")
	}
	for name, text := range map[string]string{binlog.BaseName + ".state": b.String(), binlog.FileName(first - 1): ""} {
		path := filepath.Join(dataDir, name)
		if err := volume.WriteNew(path, []byte(text), 0o600, engine.OwnerFor(user)); err != nil {
			return err
		}
	}
	return nil
}

// firstNumbers is for how many numbers clones are spread over. A server may go on from there
// to 999,999 (DESIGN.md).
const firstNumbers = 400_000

// firstLogNumber is where the numbers of a clone's binary logs begin. A position names a
// file and nothing of whose it is, and what is kept of the instance's log, or a snapshot of
// it, must not be taken for a part of another member's log. A member that was cloned again
// has written in between, so in another epoch.
func firstLogNumber(i engine.Instance) int64 {
	sum := fnv.New32a()
	fmt.Fprint(sum, i.Instance, " ", i.Role.Epoch)
	return 2 + int64(sum.Sum32()%firstNumbers)
}

func sourceOf(i engine.Instance) (kurabe.Source, error) {
	if i.Role == nil || i.Role.Source == nil {
		return kurabe.Source{}, errors.New("the assignment's role names no source to follow")
	}
	return *i.Role.Source, nil
}

// localSource is the source as the driver acts on it, which is reached where it listens.
// Members of a group have the same settings, and their homes lie side by side.
func localSource(i engine.Instance) engine.Instance {
	s := i
	source := *i.Role.Source
	s.Instance, s.Address, s.ListensAt, s.Port, s.ClientsKeptOut = source.ID, source.Address, "", source.Port, false
	s.Role = &kurabe.Role{Epoch: i.Role.Epoch, Duty: kurabe.DutyWrite, Followers: []kurabe.InstanceID{i.Instance}}
	s.User, s.SourceUser = i.SourceUser, nil
	s.Home = engine.Home{Dir: filepath.Join(filepath.Dir(i.Home.Dir), string(source.ID))}
	s.SeenDir = s.Home.Dir
	if i.SeenDir != i.Home.Dir {
		s.SeenDir = filepath.Join(filepath.Dir(i.SeenDir), string(source.ID))
	}
	return s
}

// gtidAt is the place of a copy of a server in its history.
func gtidAt(ctx context.Context, source engine.Instance, at kurabe.LogPosition) (string, error) {
	if at.File == "" {
		return "", errors.New("the source writes no binary log; it must restart with one first")
	}
	var position string
	err := guard.With(ctx, source, func(a *guard.Session) error {
		rows, err := a.Query(ctx, fmt.Sprintf("SELECT BINLOG_GTID_POS(%s, %d)", sqltext.Literal(at.File), at.Offset))
		if err == nil {
			position = rows[0][0]
		}
		return err
	})
	if err == nil && position == "" {
		err = fmt.Errorf("the source does not know which transaction its log has at %s", at)
	}
	return position, err
}

// Feed implements engine.Feeder. What can be sent is made first, in one instant or by the
// tool, and beside the data: so however slow the network is, the server is not held up for
// it, and the redo log that the tool has to follow does not run away from it.
func (d *Driver) Feed(ctx context.Context, i engine.Instance, r engine.FeedRequest) error {
	bytes, err := volume.UsedBytes(i.Home.DataDir())
	if err != nil {
		return err
	}
	return transfer.Send(ctx, r, bytes, func(ctx context.Context) ([]volume.File, string, error) {
		source := i
		source.Address, source.ListensAt = i.Listens(), ""
		copied, position, err := d.copyAt(ctx, source, engine.CopyRequest{Dir: r.Dir, BytesPerSecondMax: r.BytesPerSecondMax})
		return copied.Files, position, err
	})
}
