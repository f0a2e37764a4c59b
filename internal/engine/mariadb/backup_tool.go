package mariadb

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"time"

	"kurabe"
	"kurabe/internal/engine"
	"kurabe/internal/engine/mariadb/binlog"
	"kurabe/internal/engine/mariadb/conf"
	"kurabe/internal/engine/mariadb/door"
	"kurabe/internal/engine/mariadb/guard"
	"kurabe/internal/engine/mariadb/replica"
	"kurabe/internal/engine/mariadb/transfer"
	"kurabe/internal/engine/scratch"
	"kurabe/internal/logkey"
	"kurabe/internal/proc"
	"kurabe/internal/volume"
)

const (
	// toolThreads copy at a time; more than two are no faster on one disk and
	// slower for the clients.
	toolThreads = 2
	// prepareMemory is what the tool's own recovery may use.
	prepareMemory = "256M"
	copyCleanup   = 10 * time.Second
	killSignal    = syscall.SIGKILL
)

// copyShop is a copy in the making, in Home.CopyDir.
type copyShop struct {
	i       engine.Instance
	dir     string // as we see it
	seen    string // as the tool sees it
	name    string // the account
	release func()
}

// openCopy makes the folder and the account. What an earlier service left goes.
func (d *Driver) openCopy(ctx context.Context, i engine.Instance, bytesPerSecondMax int64) (*copyShop, error) {
	if err := d.SweepCopy(ctx, i); err != nil {
		return nil, fmt.Errorf("remove what an earlier copy left: %w", err)
	}
	uid, gid := os.Getuid(), os.Getgid()
	if i.User != nil {
		uid, gid = i.User.UID, i.User.GID
	}
	w := &copyShop{i: i, dir: i.Home.CopyDir(), seen: i.Seen().CopyDir(), name: replica.CopierPrefix + door.RandomHex()}
	// The engine's user may pass through and write where we do not: it could otherwise
	// put links there.
	if err := volume.EnsureDir(w.dir, 0o750, os.Getuid(), gid); err != nil {
		return nil, err
	}
	var err error
	if w.release, err = proc.Hold(w.path(copyLock)); err != nil {
		return nil, err
	}
	password := logkey.Secret(door.RandomHex())
	options := w.path(toolOptions)
	err = errors.Join(
		volume.EnsureDir(w.path(copyData), 0o700, os.Getuid(), os.Getgid()),
		volume.EnsureDir(w.path(copyTemp), 0o700, uid, gid),
		volume.AtomicWrite(options, []byte(toolSettings(i, w.name, password, bytesPerSecondMax)), 0o600),
	)
	if err == nil {
		err = volume.Give(options, volume.Owner{UID: uid, GID: gid})
	}
	if err == nil {
		err = guard.With(ctx, i, func(a *guard.Session) error { return makeCopier(ctx, a, w.name, password) })
	}
	if err != nil {
		w.close()
		return nil, fmt.Errorf("make an account for the copy: %w", err)
	}
	return w, nil
}

func (w *copyShop) path(name string) string { return filepath.Join(w.dir, name) }

// close takes away folder and account, whatever the caller's time. Without a server
// the account stays; SweepCopy sees the folder then, and ends it later.
func (w *copyShop) close() {
	ctx, cancel := context.WithTimeout(context.Background(), copyCleanup)
	defer cancel()
	err := guard.With(ctx, w.i, func(a *guard.Session) error { return replica.DropCopier(ctx, a, w.name) })
	w.release()
	if err != nil {
		_ = volume.RemoveTree(w.dir, w.path(copyData))
		return
	}
	_ = volume.RemoveTree(w.i.Home.Dir, w.dir)
}

// backup runs the tool to its end and returns a moment that the copy is not older
// than. The copy comes as a stream, and is written here: the tool would keep its rate by
// a burst a second, and leave a gigabyte to be written when commits have to be.
func (w *copyShop) backup(ctx context.Context, tool string, r engine.CopyRequest, bytes int64) (_ time.Time, failure error) {
	begun := time.Now()
	files, err := transfer.NewStreamFiles(ctx, w.path(copyData), r, bytes)
	if err != nil {
		return begun, err
	}
	defer func() { failure = errors.Join(failure, files.Close()) }()
	said, err := volume.Create(w.path(toolLog))
	if err != nil {
		return begun, err
	}
	defer said.Close()
	stream := transfer.StartStreaming(files)
	run := proc.Tool{
		Name: toolName + " " + w.i.Name, Env: scratch.Env(), Dir: w.dir, User: w.i.User,
		Argv: []string{tool, "--defaults-file=" + filepath.Join(w.seen, toolOptions), "--backup", "--stream=xbstream",
			"--target-dir=" + filepath.Join(w.seen, copyTemp), "--tmpdir=" + filepath.Join(w.seen, copyTemp)},
		LockFile: w.path(toolLock), RecordFile: w.path(toolRecord), Nofile: toolNofile, Stdout: stream.Pipe, Stderr: said,
	}
	if w.i.SeenDir != w.i.Home.Dir {
		run.BindAs, run.BindFrom = w.i.SeenDir, w.i.Home.Dir
	}
	_, err = proc.Run(ctx, run)
	if streamErr := stream.End(); streamErr != nil && ctx.Err() == nil {
		err = errors.Join(streamErr, err)
	}
	log, readErr := volume.ReadFile(w.path(toolLog))
	if err == nil && readErr == nil && !completed.Match(log) {
		err = errors.New("its output does not report a complete copy")
	}
	if err = errors.Join(err, readErr); err != nil {
		return begun, fmt.Errorf("%w: %s", err, lastLines(string(log)))
	}
	return moment(string(log), begun), engine.GiveTree(w.path(copyData), w.i.User)
}

// toolNofile is a descriptor for each table, as the server needs.
const toolNofile = 65536

var (
	completed = regexp.MustCompile(`(?m)completed OK!\s*$`)
	// blocked begins the stage in which no commit goes on: what the copy shows.
	blocked = regexp.MustCompile(`(?m)^\[\d+\] (\d{4}-\d{2}-\d{2} \d{2}:\d{2}:\d{2}) Starting BACKUP STAGE BLOCK_COMMIT`)
)

// moment reads when commits were held, to the second below: what was acknowledged
// before is in the copy.
func moment(log string, otherwise time.Time) time.Time {
	m := blocked.FindStringSubmatch(log)
	if m == nil {
		return otherwise
	}
	at, err := time.Parse("2006-01-02 15:04:05", m[1])
	if err != nil || at.Before(otherwise) {
		return otherwise
	}
	return at
}

// prepare makes the copy one that a server starts on at once.
func (w *copyShop) prepare(ctx context.Context, tool string, bytesPerSecondMax int64) error {
	run := proc.Tool{
		Name: toolName + " --prepare", Env: scratch.Env(), Dir: w.dir, User: w.i.User, Nofile: toolNofile,
		// Recorded: one that outlived us would fill the folder while it is removed.
		LockFile: w.path(toolLock), RecordFile: w.path(toolRecord),
		Argv: []string{tool, "--no-defaults", "--prepare", "--use-memory=" + prepareMemory, "--target-dir=" + filepath.Join(w.seen, copyData)},
		// It reads and writes each page that was written during the copy, as fast as it can.
		DiskBytesPerSecondMax: bytesPerSecondMax,
	}
	if w.i.SeenDir != w.i.Home.Dir {
		run.BindAs, run.BindFrom = w.i.SeenDir, w.i.Home.Dir
	}
	_, err := proc.Run(ctx, run)
	return err
}

// positionFiles are where the tool notes the end of the binary log at the moment that
// the copy shows, by its names of today and before.
var positionFiles = []string{"mariadb_backup_binlog_info", "xtrabackup_binlog_info"}

// position reads that moment's place in the binary log, zero of a server that writes
// none.
func (w *copyShop) position() (kurabe.LogPosition, error) {
	for _, name := range positionFiles {
		text, err := conf.ReadSmall(w.path(copyData), name)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return kurabe.LogPosition{}, err
		}
		fields := strings.Fields(text)
		if len(fields) < 2 {
			return kurabe.LogPosition{}, fmt.Errorf("%s: no position", name)
		}
		return binlog.ParsePosition(fields[0], fields[1])
	}
	return kurabe.LogPosition{}, nil
}

// toolFiles are what the tool leaves in a copy for itself.
var toolFiles = []string{"backup-my.cnf", "ib_buffer_pool"}

// deliver moves the finished copy to where it was asked for, as the service's.
func (w *copyShop) deliver(ctx context.Context, r engine.CopyRequest) ([]volume.File, error) {
	made := w.path(copyData)
	entries, err := volume.ReadDir(made)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		name := e.Name()
		ours := strings.HasPrefix(name, "xtrabackup_") || strings.HasPrefix(name, "mariadb_backup_")
		for _, f := range toolFiles {
			ours = ours || name == f
		}
		if ours {
			if err := volume.Remove(filepath.Join(made, name)); err != nil {
				return nil, err
			}
		}
	}
	files, err := volume.Claim(made)
	if err != nil {
		return nil, err
	}
	err = volume.Rename(made, r.Dir)
	if errors.Is(err, syscall.EXDEV) {
		files, _, err = volume.Transfer(ctx, made, r.Dir, volume.TransferOptions{})
	}
	return files, err
}

// lastLines are where the tool says why it gave up.
func lastLines(log string) string {
	const most = 5
	lines := strings.Split(strings.TrimSpace(log), "\n")
	return strings.Join(lines[max(0, len(lines)-most):], "\n")
}
