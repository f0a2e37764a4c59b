package proxy

import (
	"bufio"
	"context"
	"fmt"
	"log/slog"
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

	"kurabe/internal/logkey"
	"kurabe/internal/proxy"
	"kurabe/internal/proxy/pool"
	"kurabe/test/relay"
)

// ServerEnv makes this process the proxy to the server of that address, which ofMariaDB
// precedes for a MariaDB.
const ServerEnv = "KURABE_BENCH_PROXY"

const ofMariaDB = "mariadb/"

// poolSize is what both have, PgBouncer's own default.
const poolSize = 20

// Serve is the proxy. It prints its address and ends with its input.
func Serve(server string) error {
	start := relay.Postgres
	if after, is := strings.CutPrefix(server, ofMariaDB); is {
		server, start = after, relay.MariaDB
	}
	address, err := netip.ParseAddrPort(server)
	if err != nil {
		return err
	}
	settings := &proxy.Settings{
		Endpoint: "default", Users: map[string]proxy.User{relay.User: {Name: relay.User, Password: logkey.Secret(relay.Password)}},
		ClientsMax: 20_000, IdleClientTimeout: time.Hour, Log: slog.New(slog.NewTextHandler(os.Stderr, nil)),
	}
	r, err := start(address, settings, pool.Limits{MaxServers: poolSize, MaxIdle: poolSize, BorrowTimeout: 2 * time.Minute})
	if err != nil {
		return err
	}
	fmt.Println(r.Address)
	_, _ = bufio.NewReader(os.Stdin).ReadString('\n')
	return r.Close()
}

// way is one of the ways to the server.
type way struct {
	name string
	at   netip.AddrPort
	pid  int // of what is in between, 0 for nothing
}

// startProxy starts this program as the proxy.
func startProxy(self, server string) (way, func(), error) {
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), ServerEnv+"="+server)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return way{}, nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return way{}, nil, err
	}
	if err := cmd.Start(); err != nil {
		return way{}, nil, err
	}
	end := func() { _ = in.Close(); _ = cmd.Wait() }
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		end()
		return way{}, nil, fmt.Errorf("start the proxy: %w", err)
	}
	at, err := netip.ParseAddrPort(strings.TrimSpace(line))
	return way{"Kurabe's proxy", at, cmd.Process.Pid}, end, err
}

// startPgBouncer starts Debian's, which has no prepared statements in its pools before 1.21.
func startPgBouncer(ctx context.Context, dir string, server netip.AddrPort) (way, func(), error) {
	port, err := freePort()
	if err != nil {
		return way{}, nil, err
	}
	lines := []string{
		"[databases]", fmt.Sprintf("* = host=%s port=%d", server.Addr(), server.Port()),
		"[pgbouncer]", "listen_addr = 127.0.0.1", fmt.Sprintf("listen_port = %d", port), "unix_socket_dir =", "auth_type = scram-sha-256",
		"auth_file = " + filepath.Join(dir, "users.txt"), "pool_mode = transaction", fmt.Sprintf("default_pool_size = %d", poolSize), "max_client_conn = 12000",
		"ignore_startup_parameters = extra_float_digits", "server_tls_sslmode = disable", "log_connections = 0", "log_disconnections = 0",
	}
	for name, text := range map[string]string{"pgbouncer.ini": strings.Join(lines, "\n") + "\n", "users.txt": fmt.Sprintf("%q %q\n", relay.User, relay.Password)} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			return way{}, nil, err
		}
	}
	cmd := exec.CommandContext(ctx, "/usr/sbin/pgbouncer", "-q", filepath.Join(dir, "pgbouncer.ini"))
	if os.Getuid() == 0 {
		u, err := user.Lookup("postgres")
		if err != nil {
			return way{}, nil, err
		}
		uid, _ := strconv.ParseUint(u.Uid, 10, 32)
		gid, _ := strconv.ParseUint(u.Gid, 10, 32)
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}
	}
	if err := cmd.Start(); err != nil {
		return way{}, nil, err
	}
	w := way{"PgBouncer", netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), port), cmd.Process.Pid}
	end := func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		c, err := net.Dial("tcp", w.at.String())
		if err == nil {
			return w, end, c.Close()
		}
		if time.Now().After(deadline) {
			end()
			return way{}, nil, fmt.Errorf("start PgBouncer: %w", err)
		}
	}
}

func freePort() (uint16, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).AddrPort().Port(), nil
}
