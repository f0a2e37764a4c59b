package relay

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os/exec"
	"path/filepath"
	"time"
)

// ErrNoMariaDB says that MariaDB is not installed.
var ErrNoMariaDB = errors.New("MariaDB is not installed: scripts/install.sh")

// StartMariaDB starts a server with its files in dir, a schema "shop", and the user of this
// package as its owner. The function ends it.
func StartMariaDB(ctx context.Context, dir string) (netip.AddrPort, func(), error) {
	if _, err := exec.LookPath("mariadbd"); err != nil {
		return netip.AddrPort{}, nil, ErrNoMariaDB
	}
	data, socket := filepath.Join(dir, "data"), filepath.Join(dir, "s")
	if out, err := exec.CommandContext(ctx, "mariadb-install-db", "--no-defaults", "--datadir="+data, "--auth-root-authentication-method=normal", "--skip-test-db", "--user=root").CombinedOutput(); err != nil {
		return netip.AddrPort{}, nil, fmt.Errorf("mariadb-install-db: %w: %s", err, out)
	}
	port, err := freePort()
	if err != nil {
		return netip.AddrPort{}, nil, err
	}
	at := netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), port)
	server := exec.Command("mariadbd", "--no-defaults", "--datadir="+data, "--socket="+socket, fmt.Sprint("--port=", port), "--bind-address=127.0.0.1",
		"--user=root", "--skip-name-resolve", "--innodb-flush-log-at-trx-commit=0", "--innodb-buffer-pool-size=256M", "--max-connections=500")
	var log bytes.Buffer
	server.Stderr = &log
	if err := server.Start(); err != nil {
		return netip.AddrPort{}, nil, err
	}
	end := func() { _ = server.Process.Kill(); _ = server.Wait() }
	for deadline := time.Now().Add(2 * time.Minute); ; time.Sleep(20 * time.Millisecond) {
		c, err := net.Dial("tcp", at.String())
		if err == nil {
			_ = c.Close()
			break
		}
		if time.Now().After(deadline) {
			end()
			return netip.AddrPort{}, nil, fmt.Errorf("start MariaDB: %w: %s", err, log.String())
		}
	}
	owner := fmt.Sprintf("CREATE DATABASE shop; CREATE USER %s@'%%' IDENTIFIED BY '%s'; GRANT ALL ON *.* TO %s@'%%'", User, Password, User)
	if out, err := exec.CommandContext(ctx, "mariadb", "--no-defaults", "-uroot", "-S", socket, "-e", owner).CombinedOutput(); err != nil {
		end()
		return netip.AddrPort{}, nil, fmt.Errorf("make the owner: %w: %s", err, out)
	}
	return at, end, nil
}
