package relay

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// User and Password are the owner's of a Server.
const (
	User     = "app"
	Password = "relay-Secret-7Kd2"
)

// ErrNoPostgres says that PostgreSQL is not installed.
var ErrNoPostgres = errors.New("PostgreSQL is not installed: scripts/install.sh")

// Server is a PostgreSQL with SCRAM and without a service around it.
type Server struct {
	Address netip.AddrPort

	dir     string
	tools   string
	account *syscall.Credential
}

// StartPostgres starts a server with its files in dir, and these settings.
func StartPostgres(ctx context.Context, dir string, settings ...string) (*Server, error) {
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	if len(found) == 0 {
		return nil, ErrNoPostgres
	}
	s := &Server{dir: filepath.Join(dir, "data"), tools: filepath.Dir(found[len(found)-1])}
	if err := s.lend(dir); err != nil {
		return nil, err
	}
	secret := filepath.Join(dir, "password")
	if err := os.WriteFile(secret, []byte(Password+"\n"), 0o644); err != nil {
		return nil, err
	}
	if err := s.tool(ctx, "initdb", "-D", s.dir, "-A", "scram-sha-256", "-U", User, "--pwfile="+secret, "-E", "UTF8", "--locale=C.UTF-8", "-N"); err != nil {
		return nil, err
	}
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	s.Address = netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), port)
	lines := append([]string{"listen_addresses = '127.0.0.1'", "port = " + strconv.Itoa(int(port)), "unix_socket_directories = ''", "fsync = off", "max_connections = 300"}, settings...)
	file, err := os.OpenFile(filepath.Join(s.dir, "postgresql.conf"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return nil, err
	}
	_, err = file.WriteString(strings.Join(lines, "\n") + "\n")
	if err := errors.Join(err, file.Close()); err != nil {
		return nil, err
	}
	return s, s.Start(ctx)
}

// Start starts it again after Stop.
func (s *Server) Start(ctx context.Context) error {
	if err := s.tool(ctx, "pg_ctl", "-D", s.dir, "-l", filepath.Join(filepath.Dir(s.dir), "log"), "-t", "120", "-w", "start"); err != nil {
		return err
	}
	for {
		c, err := pgconn.Connect(ctx, s.URL("postgres"))
		if err == nil {
			return c.Close(ctx)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for PostgreSQL: %w", err)
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// Stop ends it: "fast" tells its sessions, "immediate" does not.
func (s *Server) Stop(ctx context.Context, mode string) error {
	return s.tool(ctx, "pg_ctl", "-D", s.dir, "-m", mode, "-w", "stop")
}

// URL is how a client reaches it without the proxy.
func (s *Server) URL(database string) string { return URL(s.Address, database) }

// URL is how a client reaches an address.
func URL(at netip.AddrPort, database string) string {
	return fmt.Sprintf("postgres://%s:%s@%s/%s?sslmode=disable", User, Password, at, database)
}

// lend gives a folder to the user as whom the server runs, because it does not run as root.
func (s *Server) lend(dir string) error {
	if os.Getuid() != 0 {
		return nil
	}
	u, err := user.Lookup("postgres")
	if err != nil {
		return err
	}
	uid, err1 := strconv.Atoi(u.Uid)
	gid, err2 := strconv.Atoi(u.Gid)
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	s.account = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
	for parent := filepath.Dir(dir); parent != "/"; parent = filepath.Dir(parent) {
		if err := os.Chmod(parent, 0o755); err != nil {
			break
		}
		if parent == os.TempDir() {
			break
		}
	}
	return os.Chown(dir, uid, gid)
}

func (s *Server) tool(ctx context.Context, name string, args ...string) error {
	c := exec.CommandContext(ctx, filepath.Join(s.tools, name), args...)
	c.Dir = filepath.Dir(s.dir)
	c.SysProcAttr = &syscall.SysProcAttr{Credential: s.account}
	c.Env = []string{"PATH=/usr/bin:/bin", "LC_ALL=C.UTF-8", "TZ=UTC"}
	log, err := os.CreateTemp("", "relay-tool")
	if err != nil {
		return err
	}
	defer os.Remove(log.Name())
	defer log.Close()
	c.Stdout, c.Stderr = log, log // a file: the server inherits it, and would keep a pipe open
	if err := c.Run(); err != nil {
		words, _ := os.ReadFile(log.Name())
		return fmt.Errorf("%s: %w: %s", name, err, words)
	}
	return nil
}

func freePort() (uint16, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).AddrPort().Port(), nil
}
