package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"kurabe"
	"kurabe/internal/daemon"
	"kurabe/internal/engine"
	"kurabe/internal/engine/postgres/parameter"
	"kurabe/internal/engine/postgres/tree"
	"kurabe/internal/engine/postgres/wal"
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
		Folder: scratch.Folder{Dir: filepath.Dir(dataDir), User: i.User, Programs: tree.Programs(i.Version.BinDir, majorOf(i.Version)), Cgroups: i.Cgroups},
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

const (
	// privateBuffers without a memory limit; a quarter of it otherwise, as the class's
	// own formula has it.
	privateBuffers    = 256 << 20
	privateBuffersMin = 16 << 20
	privateBuffersMax = 8 << 30
	// privatePrepared is room for prepared transactions: pg_control tells how many the
	// snapshot's server had room for, and the log can go on with one that had more.
	privatePrepared = 200
)

// plain settings of a private server: what it does is for nobody but us, and it is
// thrown away when it fails, so it writes no checkpoint on the way. fsync is on where
// what it leaves is kept.
func (p *private) settings() []line {
	buffers := int64(privateBuffers)
	if p.i.Limits.MemoryBytes > 0 {
		buffers = min(max(p.i.Limits.MemoryBytes/4, privateBuffersMin), privateBuffersMax)
	}
	files := func(name string) string { return p.Seen(filepath.Join(p.work, name)) }
	lines := []line{
		{"listen_addresses", ""},
		{"port", strconv.Itoa(privatePort)},
		{"unix_socket_directories", filepath.Join("..", filepath.Base(p.work), filepath.Base(p.home().RunDir()))},
		{"unix_socket_permissions", "0700"},
		{"hba_file", files(accessFile)},
		{"ident_file", files(identFile)},
		{"ssl", "off"},
		{"logging_collector", "off"},
		{"log_destination", "stderr"},
		{"log_line_prefix", parameter.LogLinePrefix},
		{"log_timezone", "UTC"},
		{"lc_messages", "C"},
		{"timezone", "UTC"},
		{"shared_preload_libraries", ""},
		{"session_preload_libraries", ""},
		{"shared_buffers", strconv.FormatInt(buffers>>10, 10) + "kB"},
		{"huge_pages", "off"},
		{"jit", "off"},
		{"autovacuum", "off"},
		// A subscription of the data would go on with the work of its source's, elsewhere.
		{"max_logical_replication_workers", "0"},
		{"hot_standby", "off"},
		{"wal_level", "replica"},
		{"archive_mode", "off"},
		{"restart_after_crash", "off"},
		{"checkpoint_timeout", "1d"},
		{"max_wal_size", "1TB"},
	}
	for _, name := range slices.Sorted(maps.Keys(p.control.settings)) {
		value := p.control.settings[name]
		if n, err := strconv.Atoi(value); name == "max_prepared_transactions" && (err != nil || n < privatePrepared) {
			value = strconv.Itoa(privatePrepared)
		}
		lines = append(lines, line{name, value})
	}
	if p.copied {
		lines = append(lines, line{"fsync", "off"})
	}
	const eventTriggersMajor = 17
	if majorOf(p.i.Version) >= eventTriggersMajor {
		lines = append(lines, line{"event_triggers", "off"})
	}
	return lines
}

// writeFiles writes what the server reads, for it to read and not to write.
func (p *private) writeFiles(extra []line) error {
	var b strings.Builder
	for _, l := range append(p.settings(), extra...) {
		writeLine(&b, l)
	}
	files := map[string]string{
		settingsFile: b.String(),
		accessFile:   "local all " + adminRole + " peer map=kurabe\nlocal all all reject\nlocal replication all reject\n",
		identFile:    fmt.Sprintf("kurabe %s %s\n", quoteAccess(p.d.serviceUser), adminRole),
	}
	for name, text := range files {
		path := filepath.Join(p.work, name)
		if err := volume.AtomicWrite(path, []byte(text), 0o640); err != nil {
			return err
		}
		if u := p.i.User; u != nil {
			if err := volume.Give(path, volume.Owner{UID: os.Getuid(), GID: u.GID}); err != nil {
				return err
			}
		}
	}
	return nil
}

// signalFile asks a server that starts for recovery from an archive.
const signalFile = "recovery.signal"

// signal puts it there; the server removes it when recovery is over.
func (p *private) signal() error {
	root, err := volume.OpenRoot(p.data)
	if err != nil {
		return err
	}
	defer root.Close()
	file, err := root.OpenFile(signalFile, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	if owner := engine.OwnerFor(p.i.User); owner != nil {
		err = owner.Own(file)
	}
	return cmp.Or(err, file.Close())
}

// recovery are the settings of a replay. There is nothing to fetch: the whole log is
// in its folder already, and the server insists on a command.
func recovery(g goal, past wal.Lineage) []line {
	timeline := "current"
	if n := len(past); n > 1 {
		timeline = strconv.FormatUint(uint64(past[n-1].Timeline), 10)
	}
	lines := []line{
		{"restore_command", "/bin/false"},
		{"recovery_target_timeline", timeline},
		{"recovery_target_action", "promote"},
	}
	if g.target != 0 {
		lines = append(lines, line{"recovery_target_lsn", g.target.String()}, line{"recovery_target_inclusive", strconv.FormatBool(g.inclusive)})
	}
	return lines
}
