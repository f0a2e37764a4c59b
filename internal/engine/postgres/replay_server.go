package postgres

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"kurabe"
	"kurabe/internal/daemon"
	"kurabe/internal/engine"
	"kurabe/internal/engine/scratch"
	"kurabe/internal/proc"
	"kurabe/internal/volume"
)

// private is a server on a data folder that is no instance's yet. Its folder is the parent of
// the data, where it has a folder of its own beside them, which goes with it.
type private struct {
	scratch.Server
	d       *Driver
	i       engine.Instance
	data    string // the data folder, as we see it
	work    string // settings, socket, log and lock, as we see it
	control control
	copied  bool // the data will be thrown away
	bared   bool // and its clients rule no session in it any more
}

// What is in the folder beside the data.
const (
	privateSuffix = ".private.tmp" // volume.Clean takes it for what it is
	privateLog    = "log"
	privateLock   = "lock"
	privateRecord = "process.json"
	privatePort   = 5432 // the name of the socket; there is no TCP
	// privateLogBytes is how much of the log's end is looked at for last words.
	privateLogBytes = 64 << 10
	// privateEnd is how long an immediate shutdown may take: the server gives its
	// children five seconds.
	privateEnd = 10 * time.Second
)

// recoveryError is that the server could not bring the data to where it should be,
// in its own words. The data is at fault, or the log.
type recoveryError struct{ words string }

func (e *recoveryError) Error() string { return e.words }

// openPrivate ends what an earlier call left behind when the service died, and takes
// from the data folder what would hinder a server on it or belongs to its source.
func (d *Driver) openPrivate(ctx context.Context, i engine.Instance, dataDir string) (p *private, err error) {
	p = &private{d: d, i: i, data: dataDir, work: dataDir + privateSuffix}
	p.Server = scratch.Server{
		Folder: scratch.Folder{Dir: filepath.Dir(dataDir), User: i.User, Programs: programs(i.Version), Cgroups: i.Cgroups},
		Daemon: daemon.Daemon{
			Work: p.data, Lock: filepath.Join(p.work, privateLock), Record: filepath.Join(p.work, privateRecord), Log: filepath.Join(p.work, privateLog),
		},
		Signal: syscall.SIGQUIT, Grace: privateEnd, Ended: p.failure,
	}
	if err := errors.Join(p.End(ctx), p.removeWork()); err != nil {
		return nil, fmt.Errorf("end what an earlier private server left: %w", err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, p.close())
		}
	}()
	if err := p.makeWork(); err != nil {
		return nil, err
	}
	if err := d.Adopt(i, dataDir); err != nil {
		return nil, err
	}
	p.control, err = readControlData(ctx, p)
	return p, err
}

func (p *private) removeWork() error { return volume.RemoveTree(p.Dir, p.work) }

func (p *private) close() error { return p.Close(p.removeWork) }

// makeWork: the server may read the folder and write in the socket's alone. It could
// otherwise put links where we write.
func (p *private) makeWork() error {
	uid, gid := os.Getuid(), os.Getgid()
	if u := p.i.User; u != nil {
		uid, gid = u.UID, u.GID
	}
	if err := errors.Join(p.Open(), volume.EnsureDir(p.work, 0o750, os.Getuid(), gid)); err != nil {
		return err
	}
	return volume.EnsureDir(p.home().RunDir(), 0o700, uid, gid)
}

// home is where adminConn looks for the socket.
func (p *private) home() engine.Home { return engine.Home{Dir: p.work} }

// tool runs one of the version's tools as the server's account.
func (p *private) tool(ctx context.Context, argv ...string) ([]byte, error) {
	return p.Run(ctx, proc.Tool{
		Name: argv[0], Argv: append([]string{filepath.Join(p.i.Version.BinDir, argv[0])}, argv[1:]...), Dir: p.home().RunDir(),
	})
}

// start starts the server with these settings, and waits until it can be written to.
func (p *private) launch(ctx context.Context, extra []line) (*pgx.Conn, error) {
	if err := p.writeFiles(extra); err != nil {
		return nil, err
	}
	err := p.Start(ctx, proc.Spec{
		Name: "postgres private " + p.i.Name, Env: p.d.Command(p.i).Env,
		Argv: []string{
			filepath.Join(p.i.Version.BinDir, "postgres"), "-D", p.Seen(p.data),
			"-c", "config_file=" + p.Seen(filepath.Join(p.work, settingsFile)),
		},
	})
	if err != nil {
		return nil, err
	}
	return p.waitReady(ctx)
}

// waitReady returns a session of a server that is out of recovery.
func (p *private) waitReady(ctx context.Context) (*pgx.Conn, error) {
	i := p.i
	i.Home, i.Port = p.home(), privatePort
	var conn *pgx.Conn
	err := p.Await(ctx, func() (met bool, err error) {
		conn, err = p.d.adminConn(ctx, i)
		// A connection that breaks off is of a server that is about to end: the next look
		// at the process tells. Only what the server itself answers is final.
		var answer *pgconn.PgError
		if errors.Is(err, engine.ErrNotReady) || !errors.As(err, &answer) {
			return err == nil, nil // There is no hot standby: who is let in meets the primary.
		}
		return false, err
	})
	return conn, err
}

// failure says why a server ended: with a recoveryError when data or log are at fault.
func (p *private) failure() error {
	text := engine.Tail(p.Daemon.Log, privateLogBytes)
	kind, words := p.d.StartFailure(text)
	lines := slices.DeleteFunc(strings.Split(text, "\n"), session.MatchString)
	fatal, crashed := slices.IndexFunc(lines, isFatal), slices.IndexFunc(lines, crash.MatchString)
	switch {
	// What the host or our settings did is not the data's fault.
	case kind != kurabe.FailureOther:
	case fatal >= 0:
		return &recoveryError{withDetail(lines, fatal)}
	// A server that was killed says nothing of the data.
	case crashed >= 0 && !strings.Contains(lines[crashed], "by signal 9"):
		return &recoveryError{message(lines[crashed])}
	}
	return fmt.Errorf("the private server ended: %s", words)
}

// stop is a clean shutdown.
func (p *private) stop(ctx context.Context) error {
	if err := p.Process.Signal(syscall.Signal(p.d.StopSignal())); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	if err := p.Process.Wait(ctx); err != nil {
		return err
	}
	// Its children may take a moment longer.
	if err := proc.KillSurvivors(ctx, p.data); err != nil {
		return err
	}
	var err error
	if p.control, err = readControlData(ctx, p); err == nil && p.control.state != controlShutDown {
		err = fmt.Errorf("the private server is %q after its end", p.control.state)
	}
	return err
}
