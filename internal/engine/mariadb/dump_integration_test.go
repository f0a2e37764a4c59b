//go:build integration

package mariadb

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"kurabe/internal/engine/enginetest"
	"kurabe/internal/engine/mariadb/replica"
)

// server is one that dumps are taken of and restored to.
type server struct {
	host, port, user, password string
	caFile                     string
}

func bedServer(b *enginetest.Bed) server {
	l := b.Login()
	return server{host: l.Address, port: strconv.Itoa(l.Port), user: l.User, password: l.Password.Reveal(), caFile: l.CAFile}
}

// program finds a client of scripts/install.sh, or of the machine.
func program(t *testing.T, name string) string {
	t.Helper()
	if path, err := exec.LookPath(name); err == nil {
		return path
	}
	path, err := filepath.Abs("../../../.cache/clients/usr/bin/" + name)
	if err == nil {
		_, err = os.Stat(path)
	}
	if err != nil {
		t.Skipf("no program %s: scripts/install.sh test fetches it", name)
	}
	return path
}

// call runs a client against the server and returns its output. The password is in
// its environment.
func (s server) call(t *testing.T, stdin []byte, name string, args ...string) ([]byte, error) {
	t.Helper()
	libraries, _ := filepath.Glob("../../../.cache/clients/lib/*")
	for n := range libraries {
		libraries[n], _ = filepath.Abs(libraries[n])
	}
	all := []string{"--host=" + s.host, "--port=" + s.port, "--user=" + s.user}
	if strings.HasPrefix(name, "my") {
		all = append(all, "--password="+s.password)
	} else {
		all = append([]string{"--no-defaults", "--protocol=tcp", "--default-character-set=utf8mb4"}, all...)
		if s.caFile != "" {
			all = append(all, "--ssl-ca="+s.caFile)
		}
	}
	c := exec.CommandContext(t.Context(), program(t, name), append(all, args...)...)
	c.Env = append(os.Environ(), "MYSQL_PWD="+s.password, "LD_LIBRARY_PATH="+strings.Join(libraries, ":"))
	c.Stdin, c.Dir = bytes.NewReader(stdin), t.TempDir()
	var said bytes.Buffer
	c.Stderr = &said
	out, err := c.Output()
	if err != nil {
		return out, fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, said.String())
	}
	return out, nil
}

func (s server) must(t *testing.T, stdin []byte, name string, args ...string) []byte {
	t.Helper()
	out, err := s.call(t, stdin, name, args...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func (s server) ask(t *testing.T, statement string) string {
	t.Helper()
	return strings.TrimSpace(string(s.must(t, nil, "mariadb", "--batch", "--skip-column-names", "--execute="+statement)))
}

// plainServer is one as anybody installs one, with a user who may do everything.
func plainServer(t *testing.T) server {
	t.Helper()
	dir, account := enginetest.Reachable(t), enginetest.Account(t, "mysql")
	start := func(args ...string) *exec.Cmd {
		c := exec.Command(args[0], args[1:]...)
		c.Dir, c.SysProcAttr = dir, &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
		if account != nil {
			c.SysProcAttr.Credential = &syscall.Credential{Uid: uint32(account.UID), Gid: uint32(account.GID)}
		}
		return c
	}
	data := filepath.Join(dir, "data")
	if account != nil {
		if err := os.Chown(dir, account.UID, account.GID); err != nil {
			t.Fatal(err)
		}
	}
	if out, err := start("mariadb-install-db", "--no-defaults", "--datadir="+data, "--auth-root-authentication-method=normal", "--skip-test-db").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	init := filepath.Join(dir, "init.sql")
	err := os.WriteFile(init, []byte("DELETE FROM mysql.global_priv WHERE User = '';\nFLUSH PRIVILEGES;\nCREATE USER admin@'%' IDENTIFIED BY 'Plain-password-1';\nGRANT ALL ON *.* TO admin@'%' WITH GRANT OPTION;\n"), 0o644)
	l, listenErr := net.Listen("tcp", "127.0.0.1:0")
	if err := errors.Join(err, listenErr); err != nil {
		t.Fatal(err)
	}
	port := strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
	l.Close()
	c := start("/usr/sbin/mariadbd", "--no-defaults", "--datadir="+data, "--bind-address=127.0.0.1", "--port="+port, "--socket="+filepath.Join(dir, "s"),
		"--init-file="+init, "--innodb-buffer-pool-size=32M", "--character-set-server=utf8mb4", "--collation-server=utf8mb4_bin", "--log-error="+filepath.Join(dir, "log"))
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Process.Kill(); _ = c.Wait() })
	s := server{host: "127.0.0.1", port: port, user: "admin", password: "Plain-password-1"}
	for deadline := time.Now().Add(time.Minute); ; {
		if _, err = s.call(t, nil, "mariadb", "--execute=SELECT 1"); err == nil {
			return s
		}
		if time.Now().After(deadline) {
			text, _ := os.ReadFile(filepath.Join(dir, "log"))
			t.Fatalf("%v: %s", err, text)
		}
		select {
		case <-t.Context().Done():
		case <-time.After(replica.PeerEvery):
		}
	}
}

// everything is one of each kind of object that a dump has. The definer is who runs it.
const everything = `CREATE DATABASE all_kinds; USE all_kinds;
CREATE TABLE t (a INT PRIMARY KEY AUTO_INCREMENT, b VARCHAR(20), g INT AS (CHAR_LENGTH(b)) STORED, KEY (b));
CREATE TABLE log (word VARCHAR(20));
INSERT INTO t (b) VALUES ('one'), ('two'), ('🍣');
CREATE VIEW v AS SELECT b, g FROM t;
CREATE SEQUENCE s START WITH 7;
DELIMITER //
CREATE TRIGGER tr AFTER INSERT ON t FOR EACH ROW BEGIN INSERT INTO log VALUES (NEW.b); END//
CREATE PROCEDURE p(IN word VARCHAR(20)) BEGIN INSERT INTO t (b) VALUES (word); END//
CREATE FUNCTION f(n INT) RETURNS INT DETERMINISTIC BEGIN RETURN n + 1; END//
CREATE EVENT e ON SCHEDULE EVERY 1 DAY DISABLE DO BEGIN DELETE FROM log; END//
DELIMITER ;
`

const allKinds = `SELECT CONCAT_WS(' ', (SELECT GROUP_CONCAT(b ORDER BY a) FROM all_kinds.t), (SELECT SUM(g) FROM all_kinds.v), all_kinds.f(1), NEXTVAL(all_kinds.s) >= 7,
 (SELECT COUNT(*) FROM information_schema.TRIGGERS WHERE TRIGGER_SCHEMA = 'all_kinds'), (SELECT COUNT(*) FROM information_schema.EVENTS WHERE EVENT_SCHEMA = 'all_kinds'),
 (SELECT COUNT(*) FROM information_schema.ROUTINES WHERE ROUTINE_SCHEMA = 'all_kinds'))`

const allThere = "one,two,🍣 7 2 1 1 1 2"

func (s server) check(t *testing.T, what string) {
	t.Helper()
	if got := s.ask(t, allKinds); got != allThere {
		t.Errorf("%s: %s, want %s", what, got, allThere)
	}
	s.ask(t, "START TRANSACTION; CALL all_kinds.p('more'); SELECT IF(COUNT(*) > 0, 1, 1/0) FROM all_kinds.log; ROLLBACK")
}

// definerForm is what the guide has sed take away.
var definerForm = regexp.MustCompile("DEFINER=`[^`]*`@`[^`]*`")

// whole is what people take a dump with.
var whole = []string{"--single-transaction", "--routines", "--events", "--triggers", "--hex-blob"}

func TestDumps(t *testing.T) {
	b := enginetest.Serving(t, setup(t, enginetest.Reachable(t)))
	ours, theirs := bedServer(b), plainServer(t)
	ours.must(t, []byte(everything), "mariadb")
	dump := func(s server, args ...string) []byte {
		return s.must(t, nil, "mariadb-dump", append(whole, args...)...)
	}

	t.Run("into the same server, over what is there", func(t *testing.T) {
		text := dump(ours, "--databases", "all_kinds")
		if !bytes.Contains(text, []byte("DEFINER=`master`@`%`")) {
			t.Error("no definers in the dump")
		}
		ours.must(t, text, "mariadb")
		ours.check(t, "restored")
		ours.must(t, text, "mariadb")
		ours.check(t, "restored twice")
	})
	t.Run("a routine is dropped by its name alone", func(t *testing.T) {
		ours.must(t, []byte("USE all_kinds; CREATE FUNCTION gone() RETURNS INT RETURN 1; DROP FUNCTION gone; DROP FUNCTION IF EXISTS gone; DROP FUNCTION IF EXISTS all_kinds.gone;"), "mariadb")
		if _, err := ours.call(t, []byte("USE all_kinds; DROP FUNCTION gone;"), "mariadb"); err == nil || !strings.Contains(err.Error(), "1305") {
			t.Errorf("one that is not there: %v", err)
		}
	})
	t.Run("all databases into a plain server", func(t *testing.T) {
		text := dump(ours, "--all-databases")
		if bytes.Contains(text, []byte("TRIGGER kurabe_")) {
			t.Error("the guard's triggers are in it")
		}
		theirs.ask(t, "CREATE USER master@'%' IDENTIFIED BY 'Other-password-1'; GRANT ALL ON *.* TO master@'%'")
		theirs.must(t, dump(ours, "--all-databases", "--ignore-database=mysql", "--ignore-database=sys"), "mariadb")
		theirs.check(t, "in the plain server")
	})
	t.Run("from a plain server", func(t *testing.T) {
		ours.ask(t, "DROP DATABASE all_kinds")
		theirs.ask(t, "DROP DATABASE all_kinds")
		theirs.must(t, []byte(everything), "mariadb")
		text := dump(theirs, "--all-databases", "--ignore-database=mysql", "--ignore-database=sys")
		if _, err := ours.call(t, text, "mariadb"); err == nil || !strings.Contains(err.Error(), "SET USER") {
			t.Errorf("with definers that are others: %v", err)
		}
		// As the guide says.
		ours.must(t, withoutDefiners(text), "mariadb")
		ours.check(t, "from the plain server")
	})
	t.Run("mydumper and myloader", func(t *testing.T) {
		program(t, "mydumper")
		dir := filepath.Join(t.TempDir(), "dump")
		flags := []string{"--triggers", "--events", "--routines", "--outputdir=" + dir, "--regex=^(?!(mysql|sys|information_schema|performance_schema)\\.)"}
		ours.must(t, nil, "mydumper", flags...)
		ours.ask(t, "DROP DATABASE all_kinds")
		ours.must(t, nil, "myloader", "--directory="+dir, "--overwrite-tables")
		ours.check(t, "loaded")
	})
}

func withoutDefiners(text []byte) []byte {
	return definerForm.ReplaceAll(text, nil)
}
