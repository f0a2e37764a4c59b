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
	"kurabe/internal/faultpoint"
	"kurabe/internal/proc"
	"kurabe/internal/volume"
)

// private is a server on a data folder that is no instance's yet. Only the service
// can reach it, by a socket in a folder of its own beside the data; that folder goes
// with it.
type private struct {
	d       *Driver
	i       engine.Instance
	data    string // the data folder, as we see it
	work    string // settings, socket, log and lock, as we see it
	seen    string // the parent of both, as the server sees it
	server  daemon.Daemon
	control control
	scratch bool // the data will be thrown away
	bared   bool // and its clients rule no session in it any more
	process proc.Process
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
	p.server = daemon.Daemon{
		Work: p.data, Lock: filepath.Join(p.work, privateLock), Record: filepath.Join(p.work, privateRecord), Log: filepath.Join(p.work, privateLog),
		From: filepath.Dir(p.data), Seen: filepath.Dir(p.data),
	}
	if err := p.end(ctx); err != nil {
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

// end ends the server at once, also one of an earlier service, and removes the folder.
func (p *private) end(ctx context.Context) error {
	if err := p.server.Kill(ctx, syscall.SIGQUIT, privateEnd, nil); err != nil {
		return err
	}
	return volume.RemoveTree(filepath.Dir(p.work), p.work)
}

// makeWork: the server may read the folder and write in the socket's alone. It could
// otherwise put links where we write.
func (p *private) makeWork() error {
	uid, gid, parent := os.Getuid(), os.Getgid(), filepath.Dir(p.data)
	p.seen = parent
	if u := p.i.User; u != nil {
		uid, gid = u.UID, u.GID
		if !proc.Traversable(parent, uid, gid) {
			var err error
			// The mount is in the server's own namespace; here the folder stays empty.
			if p.seen, err = os.MkdirTemp("", "kurabe-"); err != nil {
				return err
			}
		}
	}
	if err := volume.EnsureDir(p.work, 0o750, os.Getuid(), gid); err != nil {
		return err
	}
	return volume.EnsureDir(p.home().RunDir(), 0o700, uid, gid)
}

// home is where adminConn looks for the socket.
func (p *private) home() engine.Home { return engine.Home{Dir: p.work} }

// seenPath is a path below the parent folder, as the server sees it.
func (p *private) seenPath(path string) string {
	return filepath.Join(p.seen, strings.TrimPrefix(path, filepath.Dir(p.data)))
}

func (p *private) bind() (as, from string) {
	if p.seen == filepath.Dir(p.data) {
		return "", ""
	}
	return p.seen, filepath.Dir(p.data)
}

// secluded: what runs on the data sees the folder that they are in, and its programs.
func (p *private) secluded() *proc.Seclusion {
	return engine.Seclude(p.i.User, programs(p.i.Version), p.seen)
}

// tool runs one of the version's tools as the server's account.
func (p *private) tool(ctx context.Context, argv ...string) ([]byte, error) {
	as, from := p.bind()
	return proc.Run(ctx, proc.Tool{
		Name: argv[0], Argv: append([]string{filepath.Join(p.i.Version.BinDir, argv[0])}, argv[1:]...), Env: toolEnv(),
		Dir: p.home().RunDir(), User: p.i.User, Cgroups: p.i.Cgroups, BindAs: as, BindFrom: from, Seclude: p.secluded(),
	})
}

// close ends the server, if it still runs, and removes the folder.
func (p *private) close() error {
	ctx, cancel := context.WithTimeout(context.Background(), 3*privateEnd)
	defer cancel()
	err := p.end(ctx)
	if p.seen != "" && p.seen != filepath.Dir(p.data) {
		err = errors.Join(err, os.Remove(p.seen))
	}
	return err
}

// start starts the server with these settings, and waits until it can be written to.
func (p *private) start(ctx context.Context, extra []line) (*pgx.Conn, error) {
	if err := p.writeFiles(extra); err != nil {
		return nil, err
	}
	p.server.Seen = p.seen
	var err error
	p.process, err = p.server.Start(ctx, proc.Spec{
		Name: "postgres private " + p.i.Name, Env: p.d.Command(p.i).Env, User: p.i.User, Cgroups: p.i.Cgroups,
		Argv: []string{
			filepath.Join(p.i.Version.BinDir, "postgres"), "-D", p.seenPath(p.data),
			"-c", "config_file=" + p.seenPath(filepath.Join(p.work, settingsFile)),
		},
		Seclude: p.secluded(),
	})
	if err != nil {
		return nil, err
	}
	faultpoint.Reach("after", "start-private")
	return p.waitReady(ctx)
}

// waitReady returns a session of a server that is out of recovery.
func (p *private) waitReady(ctx context.Context) (*pgx.Conn, error) {
	i := p.i
	i.Home, i.Port = p.home(), privatePort
	var conn *pgx.Conn
	err := daemon.Await(ctx, p.process, func() (met bool, err error) {
		conn, err = p.d.adminConn(ctx, i)
		// A connection that breaks off is of a server that is about to end: the next look
		// at the process tells. Only what the server itself answers is final.
		var answer *pgconn.PgError
		if errors.Is(err, engine.ErrNotReady) || !errors.As(err, &answer) {
			return err == nil, nil // There is no hot standby: who is let in meets the primary.
		}
		return false, err
	})
	if errors.Is(err, daemon.ErrEnded) {
		return nil, p.failure()
	}
	return conn, err
}

// failure says why a server ended: with a recoveryError when data or log are at fault.
func (p *private) failure() error {
	text, err := readTail(filepath.Join(p.work, privateLog), privateLogBytes)
	if err != nil {
		return err
	}
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

func readTail(path string, most int64) (string, error) {
	file, err := volume.Open(path)
	if err != nil {
		return "", err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return "", err
	}
	tail := make([]byte, min(most, info.Size()))
	_, err = file.ReadAt(tail, info.Size()-int64(len(tail)))
	return string(tail), err
}

// stop is a clean shutdown.
func (p *private) stop(ctx context.Context) error {
	if err := p.process.Signal(syscall.Signal(p.d.StopSignal())); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	if err := p.process.Wait(ctx); err != nil {
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
