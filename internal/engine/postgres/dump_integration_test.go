//go:build integration

package postgres

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"kurabe/internal/engine/enginetest"
)

// server is one that dumps are taken of and restored to.
type server struct {
	bin, host, port, user, password string
}

// call runs one of the programs that come with the server.
func (s server) call(t *testing.T, stdin []byte, name string, args ...string) ([]byte, error) {
	t.Helper()
	c := exec.CommandContext(t.Context(), filepath.Join(s.bin, name), append([]string{"-h", s.host, "-p", s.port, "-U", s.user, "-w"}, args...)...)
	c.Env = append(os.Environ(), "PGPASSWORD="+s.password, "PGCONNECT_TIMEOUT=10")
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

func (s server) ask(t *testing.T, database, statement string) string {
	t.Helper()
	return strings.TrimSpace(string(s.must(t, nil, "psql", "-XAtq", "-v", "ON_ERROR_STOP=1", "-d", database, "-c", statement)))
}

// plainServer is one as anybody installs one, with its superuser.
func plainServer(t *testing.T, bin string) server {
	t.Helper()
	dir, account := enginetest.Reachable(t), enginetest.Account(t, "postgres")
	start := func(args ...string) *exec.Cmd {
		c := exec.Command(filepath.Join(bin, args[0]), args[1:]...)
		c.Dir, c.SysProcAttr = dir, &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
		if account != nil {
			c.SysProcAttr.Credential = &syscall.Credential{Uid: uint32(account.UID), Gid: uint32(account.GID)}
		}
		return c
	}
	if account != nil {
		if err := os.Chown(dir, account.UID, account.GID); err != nil {
			t.Fatal(err)
		}
	}
	data := filepath.Join(dir, "data")
	if out, err := start("initdb", "-D", data, "-U", "root", "-A", "trust", "--no-sync", "--locale=C", "-E", "UTF8").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
	l.Close()
	c := start("postgres", "-D", data, "-p", port, "-c", "listen_addresses=127.0.0.1", "-c", "unix_socket_directories=", "-c", "fsync=off")
	var said bytes.Buffer
	c.Stderr = &said
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Process.Signal(syscall.SIGINT); _ = c.Wait() })
	s := server{bin: bin, host: "127.0.0.1", port: port, user: "root"}
	for deadline := time.Now().Add(time.Minute); ; {
		if _, err = s.call(t, nil, "psql", "-d", "postgres", "-c", "SELECT 1"); err == nil {
			return s
		}
		if time.Now().After(deadline) {
			t.Fatalf("%v: %s", err, said.String())
		}
		select {
		case <-t.Context().Done():
		case <-time.After(100 * time.Millisecond):
		}
	}
}

const everything = `CREATE TABLE t (a int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, b text, g int GENERATED ALWAYS AS (length(b)) STORED);
CREATE INDEX ON t (b); CREATE TABLE log (word text);
INSERT INTO t (b) VALUES ('one'), ('two'), ('🍣');
CREATE VIEW v AS SELECT b, g FROM t; CREATE MATERIALIZED VIEW m AS SELECT sum(g) AS s FROM t;
CREATE FUNCTION f(n int) RETURNS int LANGUAGE plpgsql AS 'BEGIN RETURN n + 1; END';
CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS 'BEGIN INSERT INTO public.log VALUES (NEW.b); RETURN NEW; END';
CREATE TRIGGER tr AFTER INSERT ON t FOR EACH ROW EXECUTE FUNCTION note();
CREATE TYPE mood AS ENUM ('glad', 'sad'); CREATE DOMAIN small AS int CHECK (VALUE < 10); CREATE EXTENSION citext; CREATE EXTENSION pg_trgm;
SELECT lo_from_bytea(0, 'large');`

func (s server) check(t *testing.T, database, what string) {
	t.Helper()
	const ask = `SELECT concat_ws(' ', (SELECT string_agg(b, ',' ORDER BY a) FROM t), (SELECT sum(g) FROM v), (SELECT s FROM m), f(1),
		(SELECT count(*) FROM pg_trigger WHERE tgname = 'tr'), (SELECT count(*) FROM pg_extension WHERE extname IN ('citext', 'pg_trgm')), (SELECT count(*) FROM pg_largeobject_metadata))`
	if got := s.ask(t, database, ask); got != "one,two,🍣 7 7 2 1 2 1" {
		t.Errorf("%s: %s", what, got)
	}
	s.ask(t, database, "BEGIN; INSERT INTO t (b) VALUES ('more'); SELECT 1 / count(*) FROM log; ROLLBACK")
}

// Dumps go into the service and out of it as the master user takes and loads them.
func TestDumps(t *testing.T) {
	b := enginetest.Serving(t, setup(t, enginetest.Reachable(t)))
	l := b.Login()
	ours := server{bin: b.Version.BinDir, host: l.Address, port: strconv.Itoa(l.Port), user: l.User, password: l.Password.Reveal()}
	theirs := plainServer(t, b.Version.BinDir)
	ours.ask(t, "postgres", "CREATE DATABASE kinds")
	theirs.ask(t, "postgres", "CREATE DATABASE kinds")
	ours.ask(t, "kinds", everything)

	t.Run("everything of the server", func(t *testing.T) {
		// The passwords of roles and the service's own database are not for the master user, as on RDS.
		text := ours.must(t, nil, "pg_dumpall", "--no-role-passwords", "--exclude-database=rdsadmin")
		if !bytes.Contains(text, []byte("CREATE DATABASE kinds")) {
			t.Error("no database in the dump")
		}
	})
	archive := ours.must(t, nil, "pg_dump", "-Fc", "--blobs", "kinds")
	t.Run("into a plain server", func(t *testing.T) {
		theirs.must(t, archive, "pg_restore", "--no-owner", "--no-privileges", "--exit-on-error", "-d", "kinds")
		theirs.check(t, "kinds", "in the plain server")
	})
	t.Run("into the service, twice", func(t *testing.T) {
		ours.ask(t, "postgres", "CREATE DATABASE again")
		ours.must(t, archive, "pg_restore", "--exit-on-error", "-d", "again")
		ours.check(t, "again", "restored")
		ours.must(t, archive, "pg_restore", "--clean", "--if-exists", "--exit-on-error", "-d", "again")
		ours.check(t, "again", "restored over what is there")
	})
	t.Run("from a plain server", func(t *testing.T) {
		ours.ask(t, "postgres", "CREATE DATABASE brought")
		text := theirs.must(t, nil, "pg_dump", "--no-owner", "--no-privileges", "--blobs", "kinds")
		ours.must(t, text, "psql", "-Xq", "-v", "ON_ERROR_STOP=1", "-d", "brought")
		ours.check(t, "brought", "from the plain server")
	})
}

// takePlaces takes every place that clients have.
func takePlaces(t *testing.T, b *enginetest.Bed) (all []*pgx.Conn) {
	t.Helper()
	config, err := clientConfig(b.Login())
	if err != nil {
		t.Fatal(err)
	}
	for len(all) < 100 {
		conn, err := pgx.ConnectConfig(t.Context(), config)
		var refused *pgconn.PgError
		if errors.As(err, &refused) && refused.Code == "53300" {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close(context.Background()) })
		all = append(all, conn)
	}
	t.Fatal("clients are never turned away")
	return nil
}

// Neither locks nor limits nor taken places of clients keep the service from a snapshot.
func TestServiceHasPlaces(t *testing.T) {
	b := enginetest.Serving(t, setup(t, enginetest.Reachable(t)))
	b.MustQuery(t, "CREATE TABLE t (a int)")
	taken := takePlaces(t, b)
	for _, statement := range []string{
		"ALTER DATABASE shop CONNECTION LIMIT 0", "ALTER ROLE master CONNECTION LIMIT 1", "ALTER ROLE master SET statement_timeout = 1",
		"BEGIN", "LOCK TABLE t IN ACCESS EXCLUSIVE MODE", "INSERT INTO t VALUES (1)",
	} {
		if _, err := taken[0].Exec(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.Driver.Probe(t.Context(), b.Instance(), b.Login().CAFile); err != nil {
		t.Errorf("probe: %v", err)
	}
	b.Take(t)
}
