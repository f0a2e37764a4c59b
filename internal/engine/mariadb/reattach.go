package mariadb

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"time"

	"kurabe/internal/engine"
	"kurabe/internal/engine/mariadb/binlog"
	"kurabe/internal/engine/mariadb/conf"
	"kurabe/internal/engine/mariadb/replica"
	"kurabe/internal/faultpoint"
	"kurabe/internal/volume"
)

// truncates is the first version that takes back, when it recovers as a follower, what its
// binary log has and its engine has only prepared.
var truncates = [3]int{10, 11, 9}

// Rejoin implements engine.Replicator. A commit that nobody answered for is in the binary
// log, and only prepared in the engine: a writer that starts again commits it, a follower
// must not, because the new writer may have another transaction in its place. The server's
// own recovery can take it back. What it has committed is another matter: if the source
// has not got that, only a clone helps.
func (d *Driver) Rejoin(ctx context.Context, i engine.Instance, caFile string) error {
	source, err := sourceOf(i)
	if err != nil {
		return fmt.Errorf("rejoin: %w", err)
	}
	state, err := replica.ReadFollowing(i.Home)
	switch {
	case err != nil:
	case state != nil && state.Rebuild != "":
		err = fmt.Errorf("%w: %s", engine.ErrRebuild, state.Rebuild)
	case state == nil:
		err = d.rejoin(ctx, i, caFile)
	}
	if err != nil {
		return fmt.Errorf("rejoin %s: %w", source.ID, err)
	}
	return nil
}

func (d *Driver) rejoin(ctx context.Context, i engine.Instance, caFile string) error {
	if err := conf.AwaitWrites(ctx, i.Home.DataDir()); err != nil {
		return fmt.Errorf("wait for what the server has written: %w", err)
	}
	// Asked first: a source that cannot be reached costs no recovery each time.
	source, err := replica.AskSource(ctx, i, caFile)
	if err != nil {
		return err
	}
	if err := recoverAsFollower(ctx, i); err != nil {
		return err
	}
	faultpoint.Reach("after", "recover-follower")
	data := i.Home.DataDir()
	own, found, err := binlog.LastLogged(data)
	switch {
	case err != nil:
		return err
	case !found:
		return fmt.Errorf("%w: its binary log names no transaction", engine.ErrRebuild)
	}
	// What the source has it keeps, so what it had a moment ago it has now.
	if err := source.Refuse(own); err != nil {
		return err
	}
	for _, name := range replicationFiles {
		if err := volume.Remove(filepath.Join(data, name)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	if err := writeTriggers(data, i.User); err != nil {
		return err
	}
	if err := volume.SyncFS(data); err != nil {
		return err
	}
	return replica.WriteFollowing(data, replica.Following{Position: own.String()})
}

// recoverTries are two: one that died in the midst of its shutdown refuses the first.
const recoverTries = 2

// recoverAsFollower has a private server recover the data, and shut it down cleanly. It
// holds the lock of the instance: while it lives, also after us, no other can start.
func recoverAsFollower(ctx context.Context, i engine.Instance) error {
	data := i.Home.DataDir()
	t, err := binlog.ReadTail(data)
	if err != nil {
		return err
	}
	if !t.Closed && !atLeast(i.Version.Version, truncates) {
		return fmt.Errorf("%w: MariaDB %s cannot undo unacknowledged transactions", engine.ErrRebuild, i.Version.Version)
	}
	for try := 1; ; try++ {
		err := recoverOnce(ctx, i)
		var died *serverDied
		if !errors.As(err, &died) {
			return err
		}
		if try == recoverTries || !leftPrepared.MatchString(died.words) {
			return judgeDeath(err, died)
		}
		if err := binlog.MarkInUse(data); err != nil {
			return err
		}
	}
}

// noRoom passes; nothing else that a server dies of in a recovery does.
var noRoom = regexp.MustCompile(`No space left on device|Disk quota exceeded|Disk is full|errno: 28\b|[Cc]annot allocate memory`)

func judgeDeath(err error, died *serverDied) error {
	if noRoom.MatchString(died.words) {
		return err
	}
	return fmt.Errorf("%w: %w", engine.ErrRebuild, err)
}

func recoverOnce(ctx context.Context, i engine.Instance) error {
	s, err := openPrivate(ctx, i, i.Home.DataDir())
	if err != nil {
		return err
	}
	s.Daemon.Lock = i.Home.LockFile()
	var options []conf.Option
	if atLeast(i.Version.Version, truncates) {
		options = append(options, conf.Option{Name: "init_rpl_role", Value: "SLAVE"})
	}
	err = s.launch(ctx, privateOptions{binlog: true, options: options})
	if err == nil {
		err = s.stop(ctx)
	}
	return errors.Join(err, s.close())
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
