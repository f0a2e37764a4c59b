package mariadb

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"kurabe/internal/engine"
	"kurabe/internal/engine/mariadb/binlog"
	"kurabe/internal/engine/mariadb/conf"
	"kurabe/internal/engine/mariadb/guard"
	"kurabe/internal/engine/mariadb/replica"
	"kurabe/internal/proc"
	"kurabe/internal/volume"
)

// The names in Home.CopyDir.
const (
	copyData    = "data"         // the copy: ours until it is complete, then the engine's user's
	copyTemp    = "tmp"          // the tool's own files
	copyLock    = "service.lock" // held by the service that makes the copy
	toolLock    = "tool.lock"
	toolRecord  = "tool.json"
	toolLog     = "tool.log"
	toolOptions = "tool.cnf" // with the password, 0600
)

// toolName is in no package of the server's.
const toolName = "mariadb-backup"

// CopyRunning implements engine.Copier: the files are cloned in one instant where the
// file system can and the server may be stopped for it, else the engine's own tool
// copies them.
func (d *Driver) CopyRunning(ctx context.Context, i engine.Instance, r engine.CopyRequest) (engine.Copied, error) {
	c, files, cloneErr := cloneRunning(ctx, i, r)
	if cloneErr == nil {
		return engine.Copied{Files: files, Method: engine.Method(true), TakenAt: c.takenAt, Position: c.position}, nil
	}
	if ctx.Err() != nil {
		return engine.Copied{}, cloneErr
	}
	copied, err := d.copyByTool(ctx, i, r)
	if err != nil && !errors.Is(cloneErr, errNoClone) {
		err = fmt.Errorf("%w; before that, clone: %w", err, cloneErr)
	}
	return copied, held(err)
}

// toolHeld is what the tool says when it has waited for ftwrl_wait_timeout.
var toolHeld = regexp.MustCompile(`Lock wait timeout exceeded|Unable to obtain lock`)

// held says of an error whose cause are locks of clients: FLUSH TABLES WITH READ LOCK, LOCK
// TABLES, a statement that lasts.
func held(err error) error {
	if err == nil || !inTheWay(err) && !toolHeld.MatchString(err.Error()) {
		return err
	}
	return fmt.Errorf("%w: %w", engine.ErrHeld, err)
}

// copyByTool follows the redo log while it copies: InnoDB's files alone are consistent
// at no moment. It comes in with a throw-away account that may do less than the master
// user. The copy is prepared at once, so that restoring is copying. It runs beside
// the instance, not in its control group.
func (d *Driver) copyByTool(ctx context.Context, i engine.Instance, r engine.CopyRequest) (engine.Copied, error) {
	tool, err := findTool(i)
	if err != nil {
		return engine.Copied{}, err
	}
	// The tool never clones.
	bytes, err := volume.UsedBytes(i.Home.DataDir())
	if err == nil {
		err = engine.NeedRoom(i.Home.Dir, bytes)
	}
	if err != nil {
		return engine.Copied{}, err
	}
	if err := mark(ctx, i, time.Now()); err != nil {
		return engine.Copied{}, err
	}
	w, err := d.openCopy(ctx, i, r.BytesPerSecondMax)
	if err != nil {
		return engine.Copied{}, err
	}
	defer w.close()
	takenAt, err := w.backup(ctx, tool, r, bytes)
	if err != nil {
		return engine.Copied{}, fmt.Errorf("%s: %w", toolName, err)
	}
	if err := w.prepare(ctx, tool, r.BytesPerSecondMax); err != nil {
		return engine.Copied{}, fmt.Errorf("%s --prepare: %w", toolName, err)
	}
	position, err := w.position()
	if err != nil {
		return engine.Copied{}, fmt.Errorf("%s: %w", toolName, err)
	}
	files, err := w.deliver(ctx, r)
	return engine.Copied{Files: files, Method: engine.Method(false), TakenAt: takenAt, Position: position}, err
}

// findTool finds the tool of the server's own version: another one may not know its
// files.
func findTool(i engine.Instance) (string, error) {
	prefix := filepath.Dir(i.Version.BinDir)
	for _, dir := range []string{"bin", "sbin"} {
		if path := filepath.Join(prefix, dir, toolName); conf.Exists(path) {
			return path, nil
		}
	}
	return "", fmt.Errorf("a snapshot of a running MariaDB needs the program %s, which is not installed beside %s", toolName, conf.ServerPath(i.Version.BinDir))
}

// CopyStopped implements engine.Copier. The binary log stays out, but for what the
// recovery of a server that did not stop cleanly needs.
func (d *Driver) CopyStopped(ctx context.Context, i engine.Instance, r engine.CopyRequest) (engine.Copied, error) {
	copied := engine.Copied{TakenAt: time.Now()}
	if err := conf.AwaitWrites(ctx, i.Home.DataDir()); err != nil {
		return copied, fmt.Errorf("wait for what the server has written: %w", err)
	}
	t, err := binlog.ReadTail(i.Home.DataDir())
	if err != nil {
		return copied, fmt.Errorf("read where the binary log ends: %w", err)
	}
	if i.Log && t.End.Offset > 0 {
		copied.Position = t.End
	}
	files, cloned, err := volume.Transfer(ctx, i.Home.DataDir(), r.Dir, volume.TransferOptions{
		Skip: func(rel string) bool { return leftOut(rel) || t.Past(rel) }, BytesPerSecondMax: r.BytesPerSecondMax, Progress: r.Progress,
	})
	copied.Files, copied.Method = files, engine.Method(cloned)
	return copied, err
}

// leftOut says what a copy of a stopped server's folder does without: temporary
// files, of the server and of statements that a crash cut off.
func leftOut(rel string) bool {
	base := filepath.Base(rel)
	return filepath.Dir(rel) == conf.TempDir || base == "ibtmp1" || base == "ddl_recovery-backup.log" || strings.HasSuffix(base, ".pid")
}

// Seal implements engine.Copier: no tool of the engine's reads sums.
func (d *Driver) Seal(string, []volume.File) error { return nil }

// Adopt implements engine.Copier: the guard's files are written again, as the copy
// may be older than they are, and what would make it another's replica goes, and
// another's binary log, when what it alone has has been recovered.
func (d *Driver) Adopt(i engine.Instance, dataDir string) error {
	if err := adoptLog(i, dataDir); err != nil {
		return fmt.Errorf("adopt: %w", err)
	}
	for _, name := range append([]string{"ib_buffer_pool", replica.FollowFile}, replicationFiles...) {
		if err := volume.Remove(filepath.Join(dataDir, name)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("adopt: %w", err)
		}
	}
	if err := writeTriggers(dataDir, i.User); err != nil {
		return fmt.Errorf("adopt: %w", err)
	}
	temp := filepath.Join(dataDir, conf.TempDir)
	if err := volume.Mkdir(temp, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return fmt.Errorf("adopt: %w", err)
	}
	return engine.Give(temp, i.User)
}

// writeTriggers writes the triggers of the system schema into a data folder, which the server's
// plugin closes when it starts.
func writeTriggers(dataDir string, user *proc.Credential) error {
	system := filepath.Join(dataDir, conf.SystemSchema)
	if err := volume.Chmod(system, 0o700); err != nil {
		return err
	}
	for name, text := range guard.TriggerFiles() {
		path := filepath.Join(system, name)
		if err := volume.WriteNew(path, []byte(text), 0o600, engine.OwnerFor(user)); err != nil {
			return err
		}
	}
	return nil
}

// Welcome implements engine.Copier: the account that the snapshot was taken with is
// in it, like all others.
func (d *Driver) Welcome(ctx context.Context, i engine.Instance) error {
	return guard.With(ctx, i, func(a *guard.Session) error { return replica.DropLeftCopiers(ctx, a) })
}

// SweepCopy implements engine.Copier.
func (d *Driver) SweepCopy(ctx context.Context, i engine.Instance) error {
	if err := binlog.BoundLog(ctx, i); err != nil && !errors.Is(err, engine.ErrNotReady) {
		return err
	}
	if !conf.Exists(i.Home.CopyDir()) {
		return nil
	}
	release, err := proc.Hold(filepath.Join(i.Home.CopyDir(), copyLock))
	if errors.Is(err, proc.ErrLockHeld) {
		return nil // One is being made.
	}
	if err != nil {
		return err
	}
	defer release()
	// An account can be left only where a server is. Until it is asked, the folder
	// stays as the sign of it, without what takes space.
	if err := endTool(ctx, i.Home.CopyDir()); err != nil {
		return err
	}
	err = guard.With(ctx, i, func(a *guard.Session) error { return replica.DropLeftCopiers(ctx, a) })
	if errors.Is(err, engine.ErrNotReady) {
		return volume.RemoveTree(i.Home.CopyDir(), filepath.Join(i.Home.CopyDir(), copyData))
	}
	if err != nil {
		return err
	}
	return volume.RemoveTree(i.Home.Dir, i.Home.CopyDir())
}

// endTool ends the tool of a service that died.
func endTool(ctx context.Context, dir string) error {
	p, alive, err := proc.Find(filepath.Join(dir, toolRecord))
	if err != nil || !alive {
		return err
	}
	if err := p.Signal(killSignal); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	return p.Wait(ctx)
}
