//go:build integration

package load

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"kurabe/lab/dial"
	"kurabe/lab/study"
)

// startMariaDB gives a small server with a superuser, and its process.
func startMariaDB(t testing.TB) (dial.Server, *os.Process) {
	t.Helper()
	install, err := exec.LookPath("mariadb-install-db")
	if err != nil {
		t.Skip(err)
	}
	const program = "/usr/sbin/mariadbd"
	if _, err := os.Stat(program); err != nil {
		t.Skip(err)
	}
	dir := t.TempDir()
	giveTo(t, "mysql", dir)
	data := filepath.Join(dir, "data")
	build := unprivileged("mysql", install, "--no-defaults", "--datadir="+data, "--auth-root-authentication-method=normal", "--skip-test-db")
	// A server that starts removes what it takes for old temporary tables from its folder
	// for them, which by default it shares with every other one.
	build.Env = append(os.Environ(), "TMPDIR="+dir)
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("mariadb-install-db: %v: %s", err, out)
	}
	port := freePort(t)
	process, ended := serve(t, unprivileged("mysql", program, "--no-defaults", "--datadir="+data, "--tmpdir="+dir, "--port="+strconv.Itoa(port), "--bind-address=127.0.0.1",
		"--socket="+filepath.Join(dir, "s"), "--innodb-flush-log-at-trx-commit=0", "--innodb-buffer-pool-size=64M"))
	s := dial.Server{Engine: study.MariaDB, Host: "127.0.0.1", Port: port, User: "root", Database: "mysql"}
	waitForServer(t, s, ended)
	session, err := dial.Open(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	if err := session.Exec(t.Context(), "CREATE DATABASE lab", "CREATE USER lab@'%' IDENTIFIED BY 'seeded'", "GRANT ALL PRIVILEGES ON *.* TO lab@'%'"); err != nil {
		t.Fatal(err)
	}
	s.User, s.Password, s.Database = "lab", "seeded", "lab"
	return s, process
}

func TestMariaDBKits(t *testing.T) {
	onceIsEnough(t)
	s, _ := startMariaDB(t)
	runKits(t, s, "1213", "1062")
}

func TestSysbenchOnMariaDB(t *testing.T) {
	onceIsEnough(t)
	s, _ := startMariaDB(t)
	runTools(t, s, map[string]study.Workload{
		// Two clients could meet at a row; sysbench counts that as an error, and goes on.
		"closed": {Generator: study.GeneratorSysbench, Kit: "oltp_read_write", Mode: study.ModeClosed, Clients: 1},
		"open":   {Generator: study.GeneratorSysbench, Kit: "oltp_point_select", Mode: study.ModeOpen, Rate: 200, Clients: 2},
	})
}
