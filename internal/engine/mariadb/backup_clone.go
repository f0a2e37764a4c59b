package mariadb

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"kurabe"
	"kurabe/internal/engine"
	"kurabe/internal/engine/mariadb/binlog"
	"kurabe/internal/engine/mariadb/conf"
	"kurabe/internal/engine/mariadb/guard"
	"kurabe/internal/proc"
	"kurabe/internal/volume"
)

const (
	// settledRound is how short a round of cloning must be for the next one, which the
	// server stands still for, to be short too.
	settledRound = 200 * time.Millisecond
	// settleRounds bounds the way there.
	settleRounds = 4
	// cloneTries is how often a server that is kept busy is asked again, each time after
	// a longer pause: in all about as long as a statement should take.
	cloneTries = 5
	clonePause = 200 * time.Millisecond
)

// cloneFreeze is how long clients may wait for the files alone.
var cloneFreeze = proc.FreezeLimits{Stop: 500 * time.Millisecond, Hold: 2 * time.Second}

// frozenSafely is the first version that is known to take a wait of its input and
// output which ends early for what it is. Earlier ones may end their thread for it, and
// hang.
var frozenSafely = [3]int{10, 11, 19}

// errNoClone says that the files of a server cannot be cloned to where they should be.
var errNoClone = errors.New("the files cannot be cloned")

// cloning is a copy of a running server whose files are cloned in one instant.
type cloning struct {
	i       engine.Instance
	writer  *followed // that i follows, nil: i writes
	process proc.Process
	clone   *volume.Clone

	takenAt  time.Time
	position kurabe.LogPosition
	frozen   proc.Frozen
	shows    binlog.GTID // of a follower: the newest transaction in it
	// applied and markedAt are of one whose writer is on another host: how far it says to be in the
	// writer's log, and the time of the marker in it.
	applied  kurabe.LogPosition
	markedAt time.Time
}

// cloneRunning copies what a kill of the server would leave, at a moment at which no
// commit is under way and every table outside InnoDB is closed: DESIGN.md, section 9.
// Nothing of it is left after an error.
func cloneRunning(ctx context.Context, i engine.Instance, r engine.CopyRequest) (*cloning, []volume.File, error) {
	return (&cloning{i: i}).of(ctx, r)
}

// of makes the clone.
func (c *cloning) of(ctx context.Context, r engine.CopyRequest) (*cloning, []volume.File, error) {
	i, leftOut := c.i, notCloned
	if c.writer != nil {
		leftOut = notClonedOfFollower
	}
	if !volume.Reflink(filepath.Dir(r.Dir)) {
		return nil, nil, errNoClone
	}
	if !atLeast(i.Version.Version, frozenSafely) {
		return nil, nil, fmt.Errorf("%w: MariaDB %s may not survive a freeze", errNoClone, i.Version.Version)
	}
	process, alive, err := i.Home.Daemon().Find()
	if err != nil || !alive {
		return nil, nil, errors.Join(err, engine.ErrNotReady)
	}
	if err := c.mark(ctx); err != nil {
		return nil, nil, err
	}
	c.process = process
	if c.clone, err = volume.NewClone(i.Home.DataDir(), r.Dir, leftOut); err != nil {
		return nil, nil, err
	}
	files, err := c.run(ctx, r)
	if err != nil {
		err = errors.Join(err, c.clone.Close(), volume.RemoveTree(filepath.Dir(r.Dir), r.Dir))
	}
	return c, files, err
}

// notCloned is left out: the binary log too, as nothing of a commit is in it alone.
func notCloned(rel string) bool {
	return leftOut(rel) || strings.HasPrefix(rel, binlog.BaseName+".")
}

// atLeast compares a version as 10.11.19 or 10.11.19-1; one that cannot be read is too
// old.
func atLeast(version string, least [3]int) bool {
	var have [3]int
	if n, _ := fmt.Sscanf(version, "%d.%d.%d", &have[0], &have[1], &have[2]); n != len(have) {
		return false
	}
	for n := range have {
		if have[n] != least[n] {
			return have[n] > least[n]
		}
	}
	return true
}

func (c *cloning) run(ctx context.Context, r engine.CopyRequest) ([]volume.File, error) {
	wait := clonePause
	for try := 1; ; try++ {
		err := c.settle(ctx, r)
		if err == nil {
			err = c.instant(ctx)
		}
		if err == nil {
			break
		}
		if try == cloneTries || !passes(err) || ctx.Err() != nil {
			return nil, err
		}
		if err := guard.Pause(ctx, wait); err != nil {
			return nil, err
		}
		wait *= 2
	}
	r.Report(c.clone.Bytes(), c.clone.Bytes())
	return c.clone.Finish()
}

// passes says of an error that another try may meet a server that is less busy.
func passes(err error) bool {
	return inTheWay(err) || errors.Is(err, errPrepared) || errors.Is(err, proc.ErrNotFrozen) && !errors.Is(err, fs.ErrPermission) && !errors.Is(err, os.ErrProcessDone)
}

// settle clones beside the clients, until little is left for the instant.
func (c *cloning) settle(ctx context.Context, r engine.CopyRequest) error {
	for range settleRounds {
		began := time.Now()
		_, err := c.clone.Round(ctx)
		if err != nil {
			return err
		}
		r.Report(0, c.clone.Bytes())
		if time.Since(began) < settledRound {
			break
		}
	}
	return c.clone.Learn(ctx)
}

// hold takes the server to where nothing commits.
func (c *cloning) hold(ctx context.Context) (*stage, proc.FreezeLimits, error) {
	if c.writer != nil {
		s, err := c.holdFollower(ctx)
		return s, followerFreeze, err
	}
	s, err := openStage(ctx, c.i)
	if err == nil {
		c.takenAt, c.position = s.takenAt, s.position
	}
	return s, cloneFreeze, err
}

// instant brings the clone to one moment.
func (c *cloning) instant(ctx context.Context) error {
	s, limits, err := c.hold(ctx)
	if err != nil {
		return err
	}
	c.frozen, err = c.process.WhileFrozen(ctx, limits, func(ctx context.Context) error {
		_, err := c.clone.Round(ctx)
		return err
	})
	return errors.Join(err, s.close())
}

// Rewritten implements engine.Copier: the redo log is a circle.
func (d *Driver) Rewritten() []string { return []string{conf.RedoLog + "*", "aria_log.*"} }
