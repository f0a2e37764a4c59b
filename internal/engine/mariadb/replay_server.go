package mariadb

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"kurabe/internal/daemon"
	"kurabe/internal/engine"
	"kurabe/internal/engine/mariadb/binlog"
	"kurabe/internal/engine/mariadb/conf"
	"kurabe/internal/engine/mariadb/door"
	"kurabe/internal/engine/mariadb/guard"
	"kurabe/internal/engine/mariadb/role"
	"kurabe/internal/engine/mariadb/sqltext"
	"kurabe/internal/engine/scratch"
	"kurabe/internal/logkey"
	"kurabe/internal/proc"
	"kurabe/internal/volume"
)

// privateDir is the private server's own, in the data folder: sockets, logs, what it
// applies. It goes with the server.
const privateDir = ".private"

// The files in it.
const (
	privateSettings = "my.cnf"
	privateInit     = "init.sql"
	privateSocket   = "s"
	privateErrors   = "error.log"
)

// privatePrefix begins the name of its only account, which goes with it.
const privatePrefix = "rdsprivate_"

// privateCheckPool bounds the memory of a server that only checks: it runs beside
// instances whose memory is reserved.
const privateCheckPool = 256 << 20

// privateStop is how long a shutdown may take to write what is dirty; the caller's
// time bounds it too.
const privateStop = 30 * time.Minute

// privateServer is a server on a data folder that nobody else can reach: no network,
// a socket in a folder of its own, no guard.
type privateServer struct {
	scratch.Server // its folder is that of the data
	i              engine.Instance
	name           string
	password       logkey.Secret
	db             *sql.DB
}

// privateOptions are what differs between the uses of a private server.
type privateOptions struct {
	binlog  bool // recover with the binary log that is in the folder
	account bool // somebody wants to come in
	options []conf.Option
}

// openPrivate prepares the folder. What an earlier service left of a server on it
// is ended.
func openPrivate(ctx context.Context, i engine.Instance, dataDir string) (*privateServer, error) {
	s := &privateServer{i: i}
	s.Server = scratch.Server{
		Folder: scratch.Folder{Dir: dataDir, User: i.User, Programs: programs(i.Version), Cgroups: i.Cgroups},
		Signal: killSignal, Grace: copyCleanup, Ended: s.died,
	}
	s.Daemon = daemon.Daemon{Work: dataDir, Lock: s.beside(".lock"), Record: s.beside(".json"), Log: s.beside(".log")}
	if err := s.End(ctx); err != nil {
		return nil, fmt.Errorf("end an earlier private server: %w", err)
	}
	// The copy is as the guard left it: closed, and with triggers that refuse.
	system := filepath.Join(dataDir, conf.SystemSchema)
	if err := volume.Chmod(system, 0o700); err != nil {
		return nil, err
	}
	for name := range guard.TriggerFiles() {
		if err := volume.Remove(filepath.Join(system, name)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, err
		}
	}
	for _, dir := range []string{filepath.Join(dataDir, privateDir), filepath.Join(dataDir, conf.TempDir)} {
		if err := errors.Join(volume.RemoveTree(dataDir, dir), volume.Mkdir(dir, 0o700)); err != nil {
			return nil, err
		}
		if plugin := conf.ReadPassword(i, i.Home.ConfDir()); plugin != "" && filepath.Base(dir) == privateDir {
			// The log may make accounts whose passwords are the plugin's.
			if err := volume.WriteNew(filepath.Join(dir, conf.PasswordFile), []byte(plugin), 0o644, nil); err != nil {
				return nil, err
			}
		}
		if err := engine.Give(dir, i.User); err != nil {
			return nil, err
		}
	}
	return s, s.Open()
}

// beside is a file of the service's beside the data folder, which the engine's user
// cannot write.
func (s *privateServer) beside(suffix string) string { return s.Dir + ".private" + suffix }

func (s *privateServer) path(name string) string { return filepath.Join(s.Dir, privateDir, name) }

func (s *privateServer) seenPath(name string) string { return s.Seen(s.path(name)) }

// close ends whatever runs, at once, and removes what was the server's.
func (s *privateServer) close() error {
	if s.db != nil {
		_ = s.db.Close()
	}
	return s.Close(func() (err error) {
		for _, suffix := range []string{".json", ".lock", ".log"} {
			if e := volume.Remove(s.beside(suffix)); !errors.Is(e, os.ErrNotExist) {
				err = errors.Join(err, e)
			}
		}
		return errors.Join(err, volume.RemoveTree(s.Dir, filepath.Join(s.Dir, privateDir)))
	})
}

// settings are the instance's own, as what statements do may depend on them, and then
// what makes the server private: of two values the later counts.
func (s *privateServer) settings(o privateOptions) string {
	share := conf.ShareDir(s.i.Version.BinDir)
	options := append(conf.Chosen(s.i), []conf.Option{
		{Name: "basedir", Value: filepath.Dir(s.i.Version.BinDir)}, {Name: "lc_messages_dir", Value: share},
		{Name: "character_sets_dir", Value: filepath.Join(share, "charsets")},
		{Name: "datadir", Value: s.Seen(s.Dir)}, {Name: "tmpdir", Value: s.Seen(filepath.Join(s.Dir, conf.TempDir))},
		{Name: "pid_file", Value: s.seenPath("pid")}, {Name: "log_error", Value: s.seenPath(privateErrors)},
		// Relative to the data folder: the path may be longer than an address.
		{Name: "socket", Value: filepath.Join(privateDir, privateSocket)},
		{Name: "skip_networking", Value: "1"}, {Name: "skip_name_resolve", Value: "1"}, {Name: "ssl", Value: "0"}, {Name: "tls_version", Value: "TLSv1.2"},
		{Name: "plugin_dir", Value: s.seenPath("")}, {Name: "secure_file_priv", Value: s.seenPath("")},
		{Name: "symbolic_links", Value: "0"}, {Name: "innodb_checksum_algorithm", Value: "full_crc32"},
		{Name: "event_scheduler", Value: "OFF"}, {Name: "general_log", Value: "0"}, {Name: "slow_query_log", Value: "0"}, {Name: "performance_schema", Value: "0"},
		{Name: "init_connect", Value: ""}, {Name: "max_connections", Value: "10"}, {Name: "max_statement_time", Value: "0"}, {Name: "secure_timestamp", Value: "NO"},
		{Name: "userstat", Value: "0"}, {Name: "innodb_buffer_pool_load_at_startup", Value: "0"}, {Name: "innodb_buffer_pool_dump_at_shutdown", Value: "0"},
		{Name: "server_id", Value: role.ServerID(s.i.Instance)}, {Name: "skip_slave_start", Value: "1"}, {Name: "read_only", Value: "0"},
		{Name: "ignore_db_dirs", Value: conf.TempDir}, {Name: "ignore_db_dirs", Value: privateDir},
	}...)
	if len(s.i.Cgroups) > 0 && s.i.Limits.MemoryBytes > 0 {
		options = append(options, bufferPool(s.i, s.i.Limits.MemoryBytes/4)) // the group's bound is for all of the server
	}
	if conf.Exists(s.path(conf.PasswordFile)) {
		options = append(options, conf.PasswordOption)
	}
	if o.binlog {
		options = append(options, conf.Option{Name: "log_bin", Value: binlog.BaseName}, conf.Option{Name: "log_bin_index", Value: binlog.BaseName + ".index"}, conf.Option{Name: "sync_binlog", Value: "1"})
	} else {
		options = append(options, conf.Option{Name: "skip_log_bin", Value: "1"})
	}
	if o.account {
		options = append(options, conf.Option{Name: "init_file", Value: s.seenPath(privateInit)})
	}
	var b strings.Builder
	b.WriteString("[mariadbd]\n")
	for _, o := range append(options, o.options...) {
		b.WriteString(o.String())
	}
	return b.String()
}

// write makes a file that the server reads.
func (s *privateServer) write(name, text string) error {
	return volume.WriteNew(s.path(name), []byte(text), 0o600, engine.OwnerFor(s.User))
}

// launch starts the server and waits until it lets us in, or has ended.
func (s *privateServer) launch(ctx context.Context, o privateOptions) error {
	if o.account {
		s.name, s.password = privatePrefix+door.RandomHex(), logkey.Secret(door.RandomHex())
		verifier, err := door.Verifier(s.password)
		if err != nil {
			return err
		}
		who := sqltext.Literal(s.name) + "@'localhost'"
		text := "SET SESSION sql_mode = 0;\nCREATE USER " + who + " IDENTIFIED VIA " + door.NativePlugin + " USING " + sqltext.Literal(verifier) + ";\n"
		for _, rights := range door.PrivateRights {
			text += "GRANT " + rights + " TO " + who + ";\n"
		}
		if err := s.write(privateInit, text); err != nil {
			return err
		}
	}
	if err := s.write(privateSettings, s.settings(o)); err != nil {
		return err
	}
	_ = volume.Remove(s.path(privateErrors)) // Of an earlier start, whose words are not of this one.
	argv := []string{conf.ServerPath(s.i.Version.BinDir), "--defaults-file=" + s.seenPath(privateSettings)}
	if s.i.User == nil && os.Geteuid() == 0 {
		argv = append(argv, "--user=root")
	}
	if err := s.Start(ctx, proc.Spec{Name: "private mariadbd " + s.i.Name, Argv: argv}); err != nil {
		return err
	}
	if !o.account {
		return s.until(ctx, func() bool { return strings.Contains(s.log(), "ready for connections") })
	}
	if err := s.connect(); err != nil {
		return err
	}
	return s.until(ctx, func() bool { return s.db.PingContext(ctx) == nil })
}

// until waits for a condition of the server, or for its end.
func (s *privateServer) until(ctx context.Context, met func() bool) error {
	return s.Await(ctx, func() (bool, error) { return met(), nil })
}

// died says why the server ended, in its own words.
func (s *privateServer) died() error {
	_, words := (&Driver{}).StartFailure(engine.Tail(s.Daemon.Log, privateLogBytes) + "\n" + s.log())
	return &serverDied{words}
}

// serverDied is a private server that ended by itself.
type serverDied struct{ words string }

func (e *serverDied) Error() string { return "the server ended: " + e.words }

// log is the end of the server's error log.
func (s *privateServer) log() string { return engine.Tail(s.path(privateErrors), privateLogBytes) }

// privateLogBytes is how much of a log's end is looked at.
const privateLogBytes = 64 << 10

// connect makes the pool of the only account. The folder of the socket is dialled
// through a descriptor, as its path may be longer than an address.
func (s *privateServer) connect() (err error) {
	config := door.ClientConfig()
	config.User, config.Passwd = s.name, s.password.Reveal()
	config.Net, config.Addr = "private", s.path(privateSocket)
	config.DialFunc = door.DialLong
	if s.db, err = door.OpenPool(config); err != nil {
		return err
	}
	s.db.SetMaxOpenConns(1)
	return nil
}

// stop shuts the server down cleanly, without its account.
func (s *privateServer) stop(ctx context.Context) error {
	if s.db != nil {
		err := s.exec(ctx, "DROP USER IF EXISTS "+sqltext.Literal(s.name)+"@'localhost'")
		err = errors.Join(err, s.db.Close())
		s.db = nil
		if err != nil {
			return fmt.Errorf("remove the private account: %w", err)
		}
	}
	if err := s.Process.Signal(syscall.SIGTERM); err != nil {
		return fmt.Errorf("stop the private server: %w: %w", err, s.died())
	}
	wait, cancel := context.WithTimeout(ctx, privateStop)
	defer cancel()
	if err := s.Process.Wait(wait); err != nil {
		return fmt.Errorf("stop the private server: %w", err)
	}
	if exit, known := s.Process.Exit(); known && (exit.Code != 0 || exit.Signal != 0) {
		return fmt.Errorf("stop the private server: %v: %w", exit, s.died())
	}
	return nil
}

// exec runs one statement; an error does not show it.
func (s *privateServer) exec(ctx context.Context, statement string) error {
	_, err := s.db.ExecContext(ctx, statement)
	return err
}

func (s *privateServer) rows(ctx context.Context, statement string) ([]map[string]string, error) {
	return door.Named(ctx, s.db, statement)
}

// bufferPool is the class's, or less.
func bufferPool(i engine.Instance, most int64) conf.Option {
	have, err := strconv.ParseInt(i.Settings["innodb_buffer_pool_size"], 10, 64)
	if err != nil || have <= 0 || have > most {
		have = most
	}
	return conf.Option{Name: "innodb_buffer_pool_size", Value: strconv.FormatInt(have, 10)}
}
