package target

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"kurabe/lab/dial"
)

const (
	// bouncerTime bounds its start, a tenth of a second.
	bouncerTime = 10 * time.Second
	// bouncerTries: a port that was free may be taken before the program has it.
	bouncerTries = 3
	// answerEvery is how often a program that starts is asked whether it answers.
	answerEvery = 20 * time.Millisecond
	// bouncerEnd bounds its end; sessions of a load that was cut off are dropped.
	bouncerEnd = 5 * time.Second
)

// bouncer is a PgBouncer before one server.
type bouncer struct {
	server dial.Server // its side of clients
	child  *child
	dir    string
}

func (b *bouncer) pids() []int { return []int{b.child.cmd.Process.Pid} }

// close ends it.
func (b *bouncer) close(context.Context) error {
	return errors.Join(b.child.stop(bouncerEnd), os.RemoveAll(b.dir))
}

// startPgBouncer puts one before a server, with transaction pooling and its own defaults
// for the rest, and waits until a session through it works.
func startPgBouncer(ctx context.Context, folder string, direct dial.Server) (*bouncer, error) {
	program, ok := lookFor(EndpointPgBouncer)
	if !ok {
		return nil, fmt.Errorf("start PgBouncer: it is not installed; install the Debian package %s", packages[EndpointPgBouncer])
	}
	var err error
	for range bouncerTries {
		var b *bouncer
		if b, err = tryPgBouncer(ctx, program, folder, direct); err == nil {
			return b, nil
		}
		if ctx.Err() != nil {
			break
		}
	}
	return nil, fmt.Errorf("start PgBouncer: %w", err)
}

func tryPgBouncer(ctx context.Context, program, folder string, direct dial.Server) (*bouncer, error) {
	dir, err := makeFolder(folder)
	if err != nil {
		return nil, err
	}
	b := &bouncer{dir: dir, server: direct}
	b.server.Host, b.server.TLS = "127.0.0.1", false
	fail := func(err error) (*bouncer, error) {
		if b.child != nil {
			err = errors.Join(err, b.child.stop(bouncerEnd))
		}
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	if b.server.Port, err = freePort(); err != nil {
		return fail(err)
	}
	cmd := exec.Command(program, filepath.Join(dir, "pgbouncer.ini"))
	output := &tail{}
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, output, output
	if err := writeBouncer(dir, b.server.Port, direct, bouncerVersion(ctx, program)); err != nil {
		return fail(err)
	}
	if cmd.SysProcAttr, err = unprivileged(dir); err != nil {
		return fail(err)
	}
	if b.child, err = start(cmd); err != nil {
		return fail(err)
	}
	if err := b.answers(ctx); err != nil {
		return fail(fmt.Errorf("%w: %s", err, output))
	}
	return b, nil
}

// answers waits until a session through it works.
func (b *bouncer) answers(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, bouncerTime)
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

// writeBouncer writes its configuration and, for its user alone, the login.
func writeBouncer(dir string, port int, direct dial.Server, version [2]int) error {
	lines := []string{
		"[databases]",
		fmt.Sprintf("* = host=%s port=%d", direct.Host, direct.Port),
		"[pgbouncer]",
		"listen_addr = 127.0.0.1",
		fmt.Sprintf("listen_port = %d", port),
		"unix_socket_dir =",
		"auth_type = scram-sha-256",
		"auth_file = " + filepath.Join(dir, "users.txt"),
		"pool_mode = transaction",
		"max_client_conn = 2000",
		"ignore_startup_parameters = extra_float_digits,options",
		"server_tls_sslmode = " + map[bool]string{false: "disable", true: "require"}[direct.TLS],
	}
	// Without it, before 1.21, a prepared statement is lost with the transaction.
	if version[0] > 1 || version[0] == 1 && version[1] >= 21 {
		lines = append(lines, "max_prepared_statements = 200")
	}
	const private = 0o600
	if err := os.WriteFile(filepath.Join(dir, "pgbouncer.ini"), []byte(strings.Join(lines, "\n")+"\n"), private); err != nil {
		return err
	}
	quote := func(text string) string { return `"` + strings.ReplaceAll(text, `"`, `""`) + `"` }
	login := quote(direct.User) + " " + quote(string(direct.Password)) + "\n"
	return os.WriteFile(filepath.Join(dir, "users.txt"), []byte(login), private)
}

// bouncerVersion is the first two numbers of "PgBouncer 1.18.0", zero when unknown.
func bouncerVersion(ctx context.Context, program string) (version [2]int) {
	out, err := exec.CommandContext(ctx, program, "--version").Output()
	if err != nil {
		return version
	}
	_, text, _ := strings.Cut(string(out), "PgBouncer ")
	for n, part := range strings.SplitN(text, ".", 3) {
		number, err := strconv.Atoi(part)
		if err != nil || n >= len(version) {
			break
		}
		version[n] = number
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

// makeFolder makes a folder of ours that names our process, for us alone.
func makeFolder(parent string) (string, error) {
	dir, err := os.MkdirTemp(parent, fmt.Sprintf("%s%d-", namePrefix, os.Getpid()))
	if err != nil {
		return "", fmt.Errorf("make a folder: %w", err)
	}
	me, err := thisProcess()
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, ownerFile), []byte(me.String()+"\n"), 0o644)
	}
	if err != nil {
		return "", errors.Join(err, os.RemoveAll(dir))
	}
	return dir, nil
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
		return nil, fmt.Errorf("find a user for PgBouncer, which does not run as root: %w", err)
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
			return nil, fmt.Errorf("give PgBouncer its folder: %w", err)
		}
	}
	return &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}, nil
}
