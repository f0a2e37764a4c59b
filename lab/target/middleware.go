package target

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"kurabe/lab/dial"
	"kurabe/lab/owner"
	"kurabe/lab/study"
)

const (
	// betweenTime bounds the start of a program in between, a tenth of a second.
	betweenTime = 10 * time.Second
	// betweenTries: a port that was free may be taken before the program has it.
	betweenTries = 3
	// answerEvery is how often a program that starts is asked whether it answers.
	answerEvery = 20 * time.Millisecond
	// betweenEnd bounds its end; sessions of a load that was cut off are dropped.
	betweenEnd = 5 * time.Second
	// betweenClients is how many clients it lets in: as many as a load may have, and some
	// of the lab's own.
	betweenClients = study.ClientsMax + 100
)

// betweenKind is a program that the lab can put between clients and server.
type betweenKind struct {
	name, title string
	version     string   // the argument with which it says its version
	engines     []string // that it speaks to
	// write makes its configuration in a folder and gives its arguments. about is what
	// the result file tells of it.
	write func(place) (args []string, about map[string]string, err error)
}

// place is where one is to stand.
type place struct {
	dir     string
	port    int // of 127.0.0.1, for clients
	direct  dial.Server
	version string // of the program, as "1.18.0"; "" when unknown
}

// betweenKinds are the endpoints that the lab starts itself, by their name in a study,
// which is their program's.
var betweenKinds = map[string]betweenKind{
	study.EndpointPgBouncer: {study.EndpointPgBouncer, "PgBouncer", "--version", []string{study.Postgres}, writePgBouncer},
	study.EndpointHAProxy:   {study.EndpointHAProxy, "HAProxy", "-v", []string{study.Postgres, study.MariaDB, study.MySQL}, writeHAProxy},
}

// between is one of them before one server.
type between struct {
	server dial.Server // its side of clients
	about  map[string]string
	child  *child
	dir    string
}

func (b *between) pids() []int { return []int{b.child.cmd.Process.Pid} }

// close ends it.
func (b *between) close(context.Context) error {
	return errors.Join(b.child.stop(betweenEnd), os.RemoveAll(b.dir))
}

// put is the way of a variant's clients to a server, through a program of the lab's where
// the variant has one. The lease's release ends that.
func (l *Lease) put(ctx context.Context, v study.Variant, folder string) (end func(context.Context) error, err error) {
	k, ok := betweenKinds[v.Endpoint]
	if !ok {
		return func(context.Context) error { return nil }, nil
	}
	b, err := startBetween(ctx, k, folder, l.Direct)
	if err != nil {
		return nil, err
	}
	l.Server, l.PIDs = b.server, b.pids()
	maps.Copy(l.Settings, b.about)
	return b.close, nil
}

// startBetween puts one before a server and waits until a session through it works.
func startBetween(ctx context.Context, k betweenKind, folder string, direct dial.Server) (*between, error) {
	program, ok := lookFor(k.name)
	if !ok {
		return nil, fmt.Errorf("start %s: %s", k.title, notInstalled(k.name))
	}
	version := programVersion(ctx, program, k.version)
	var err error
	for range betweenTries {
		var b *between
		if b, err = k.try(ctx, program, version, folder, direct); err == nil {
			return b, nil
		}
		if ctx.Err() != nil {
			break
		}
	}
	return nil, fmt.Errorf("start %s: %w", k.title, err)
}

func (k betweenKind) try(ctx context.Context, program, version, folder string, direct dial.Server) (*between, error) {
	dir, err := owner.Folder(folder, "")
	if err != nil {
		return nil, err
	}
	b := &between{dir: dir, server: direct}
	fail := func(err error) (*between, error) {
		if b.child != nil {
			err = errors.Join(err, b.child.stop(betweenEnd))
		}
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	b.server.Host = "127.0.0.1"
	if b.server.Port, err = freePort(); err != nil {
		return fail(err)
	}
	args, about, err := k.write(place{dir: dir, port: b.server.Port, direct: direct, version: version})
	if err != nil {
		return fail(err)
	}
	b.about = map[string]string{"endpoint": strings.TrimSpace(k.title + " " + version)}
	for name, value := range about {
		b.about["endpoint."+name] = value
	}
	cmd := exec.Command(program, args...)
	output := &tail{}
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, output, output
	if cmd.SysProcAttr, err = unprivileged(dir); err != nil {
		return fail(err)
	}
	if b.child, err = start(cmd); err != nil {
		return fail(err)
	}
	manyFiles(cmd.Process.Pid)
	if err := b.answers(ctx); err != nil {
		return fail(fmt.Errorf("%w: %s", err, output))
	}
	return b, nil
}

// manyFiles lets a program have as many connections as its user may: what we were given
// ourselves, often 1024 files, is too few for a thousand clients. Where we may not, fewer
// clients still work, and one too many is an error of its own.
func manyFiles(pid int) {
	var limit unix.Rlimit
	if err := unix.Prlimit(pid, unix.RLIMIT_NOFILE, nil, &limit); err != nil {
		return
	}
	limit.Cur = limit.Max
	_ = unix.Prlimit(pid, unix.RLIMIT_NOFILE, &limit, nil) // as above
}

// answers waits until a session through it works.
func (b *between) answers(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, betweenTime)
	defer cancel()
	tick := time.NewTicker(answerEvery)
	defer tick.Stop()
	for {
		session, err := dial.Open(ctx, b.server)
		if err == nil {
			session.Close()
			return nil
		}
		select {
		case <-b.child.done:
			return errors.New("it ended at once")
		case <-ctx.Done():
			return fmt.Errorf("no session through it works: %w", err)
		case <-tick.C:
		}
	}
}

// programVersion is the first word of digits and dots that a program says of itself, as
// 1.18.0 of "PgBouncer 1.18.0"; "" when it says none.
func programVersion(ctx context.Context, program, argument string) string {
	out, err := exec.CommandContext(ctx, program, argument).Output()
	if err != nil {
		return ""
	}
	line, _, _ := strings.Cut(string(out), "\n")
	version := shortVersion(line)
	if strings.Trim(version, "0123456789.") != "" {
		return ""
	}
	return version
}

// freePort is one that nobody has at the moment.
func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, fmt.Errorf("find a free port: %w", err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}

// unprivileged has a program run as another user when we are root, which PgBouncer
// refuses to be, and gives that user the folder.
func unprivileged(dir string) (*syscall.SysProcAttr, error) {
	if os.Getuid() != 0 {
		return nil, nil
	}
	var account *user.User
	var err error
	for _, name := range []string{"postgres", "nobody"} {
		if account, err = user.Lookup(name); err == nil {
			break
		}
	}
	if err != nil {
		return nil, fmt.Errorf("find a user for a program that must not run as root: %w", err)
	}
	uid, err := strconv.ParseUint(account.Uid, 10, 32)
	if err != nil {
		return nil, fmt.Errorf("user %s: %w", account.Username, err)
	}
	gid, err := strconv.ParseUint(account.Gid, 10, 32)
	if err != nil {
		return nil, fmt.Errorf("user %s: %w", account.Username, err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	paths := []string{dir}
	for _, e := range entries {
		paths = append(paths, filepath.Join(dir, e.Name()))
	}
	for _, path := range paths {
		if err := os.Chown(path, int(uid), int(gid)); err != nil {
			return nil, fmt.Errorf("give the program its folder: %w", err)
		}
	}
	return &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}, nil
}

// betweenNames are the endpoints that the lab starts itself.
func betweenNames() string { return strings.Join(slices.Sorted(maps.Keys(betweenKinds)), ", ") }
