//go:build integration

package mariadb

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"kurabe/internal/engine/enginetest"
	"kurabe/internal/engine/mariadb/conf"
	"kurabe/internal/engine/mariadb/guard"
	"kurabe/internal/engine/mariadb/sqltext"
)

// errorNumber is the error that a server answered with, 0 for none.
func errorNumber(err error) uint16 {
	var answer *mysql.MySQLError
	if errors.As(err, &answer) {
		return answer.Number
	}
	return 0
}

// No variable of the server can be set for all sessions by an account, so what
// the group says is true. Every one of them is tried.
func TestNoSettingBySQL(t *testing.T) {
	b := enginetest.NewBed(t, setup(t, enginetest.Reachable(t)))
	b.Satisfy(t)
	var names []string
	for _, row := range inside(t, b, "SELECT LOWER(VARIABLE_NAME) FROM information_schema.SYSTEM_VARIABLES") {
		names = append(names, row[0])
	}
	if len(names) < 600 {
		t.Fatalf("%d variables", len(names))
	}
	conn, err := masterPool(t, b).Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	byRight := 0
	for _, name := range names {
		for _, value := range []string{"DEFAULT", "1", "'x'"} {
			_, err := conn.ExecContext(t.Context(), "SET GLOBAL "+name+" = "+value)
			switch errorNumber(err) {
			case needs:
				byRight++
			case readOnly, 1228, 1193, 1230, 1232: // of a session only; unknown here; no default; another type
			default:
				t.Errorf("SET GLOBAL %s = %s: %v", name, value, err)
			}
		}
	}
	if byRight < len(names) {
		t.Errorf("of %d variables only %d attempts were refused for want of a right", len(names), byRight)
	}
}

// sleeper is a session of another account that sleeps, and what ended it.
type sleeper struct {
	conn  *sql.Conn
	id    int64
	ended chan error
}

func (s *sleeper) sleep(ctx context.Context) {
	s.ended = make(chan error, 1)
	go func() {
		_, err := first(ctx, s.conn, "SELECT SLEEP(60)")
		s.ended <- err
	}()
}

func newSleeper(t *testing.T, login enginetest.Login) *sleeper {
	t.Helper()
	pool, err := open(login)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { pool.Close() })
	s := &sleeper{}
	if s.conn, err = pool.Conn(t.Context()); err != nil {
		t.Fatal(err)
	}
	id, err := first(t.Context(), s.conn, "SELECT CONNECTION_ID()")
	if err != nil {
		t.Fatal(err)
	}
	s.id, _ = strconv.ParseInt(id, 10, 64)
	s.sleep(t.Context())
	return s
}

// asleep waits until the statement runs, or a kill of it would miss.
func (s *sleeper) asleep(t *testing.T, b *enginetest.Bed) {
	t.Helper()
	deadline := time.Now().Add(10 * time.Second)
	for b.MustQuery(t, fmt.Sprintf("SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE ID = %d AND STATE = 'User sleep'", s.id)) != "1" {
		if time.Now().After(deadline) {
			t.Fatal("the other session does not sleep")
		}
	}
}

func loginAs(b *enginetest.Bed, user string) enginetest.Login {
	login := b.Login()
	login.User, login.Password, login.Database = user, "Other-password-1", ""
	return login
}

func makeUser(t *testing.T, b *enginetest.Bed, user string, grants ...string) {
	t.Helper()
	b.MustQuery(t, "CREATE USER "+sqltext.Account(user)+" IDENTIFIED BY 'Other-password-1'")
	for _, grant := range grants {
		b.MustQuery(t, "GRANT "+grant+" TO "+sqltext.Account(user))
	}
}

func TestKillProcedures(t *testing.T) {
	b := enginetest.NewBed(t, setup(t, enginetest.Reachable(t)))
	b.Satisfy(t)
	makeUser(t, b, "app", "ALL ON shop.*")
	makeUser(t, b, "operator", "EXECUTE ON PROCEDURE mysql.rds_kill")
	call := func(login enginetest.Login, statement string, want uint16) {
		t.Helper()
		if _, err := query(t.Context(), login, statement); errorNumber(err) != want || (want == 0 && err != nil) {
			t.Errorf("%s by %s: %v, want %d", statement, login.User, err, want)
		}
	}
	s := newSleeper(t, loginAs(b, "app"))
	s.asleep(t, b)
	call(loginAs(b, "operator"), fmt.Sprintf("CALL mysql.rds_kill_query(%d)", s.id), 1370)
	call(b.Login(), fmt.Sprintf("KILL %d", s.id), 1095)
	call(b.Login(), fmt.Sprintf("CALL mysql.rds_kill_query(%d)", s.id), 0)
	if err := <-s.ended; err != nil && errorNumber(err) != 1317 {
		t.Errorf("a killed query: %v", err)
	}
	s.sleep(t.Context())
	s.asleep(t, b) // the session is still there
	call(loginAs(b, "app"), fmt.Sprintf("CALL mysql.rds_kill(%d)", s.id), 1370)
	call(loginAs(b, "operator"), fmt.Sprintf("CALL mysql.rds_kill(%d)", s.id), 0)
	if err := <-s.ended; err == nil || errorNumber(err) != 0 {
		t.Errorf("a killed session: %v", err)
	}
	for _, nobody := range []string{strconv.FormatInt(s.id, 10), "0", "-1", "NULL", "9223372036854775807"} {
		call(b.Login(), "CALL mysql.rds_kill("+nobody+")", 1094)
	}
	if _, err := query(t.Context(), b.Login(), "CALL mysql.rds_kill(CONNECTION_ID())"); err == nil {
		t.Error("one's own session goes on")
	}
	own := newSleeper(t, b.Login())
	own.asleep(t, b)
	call(b.Login(), fmt.Sprintf("KILL %d", own.id), 0) // one's own, as ever
	<-own.ended
}

// What is the service's is not ended: its logins, and threads of the server that
// are there because a setting says so. Its own sessions have no number.
func TestKillSparesTheService(t *testing.T) {
	b := enginetest.NewBed(t, setup(t, enginetest.Reachable(t)))
	b.Satisfy(t)
	restartWith(t, b, map[string]string{"event_scheduler": "ON"})
	makeUser(t, b, conf.ProbePrefix+"0123456789abcdef0123456789abcdef")
	s := newSleeper(t, loginAs(b, conf.ProbePrefix+"0123456789abcdef0123456789abcdef"))
	s.asleep(t, b)
	scheduler := b.MustQuery(t, "SELECT ID FROM information_schema.PROCESSLIST WHERE USER = 'event_scheduler'")
	for _, id := range []string{scheduler, strconv.FormatInt(s.id, 10)} {
		for _, procedure := range []string{"rds_kill", "rds_kill_query"} {
			if _, err := query(t.Context(), b.Login(), "CALL mysql."+procedure+"("+id+")"); errorNumber(err) != 1095 {
				t.Errorf("%s of %s: %v", procedure, id, err)
			}
		}
	}
	inside(t, b, fmt.Sprintf("KILL %d", s.id))
	<-s.ended
	err := guard.With(t.Context(), b.Instance(), func(a *guard.Session) error {
		mine, err := a.Query(t.Context(), "SELECT CONNECTION_ID()")
		if err != nil {
			return err
		}
		listed := b.MustQuery(t, "SELECT GROUP_CONCAT(ID) FROM information_schema.PROCESSLIST")
		for _, id := range append(strings.Split(listed, ","), mine[0][0]) {
			_, _ = query(t.Context(), b.Login(), "CALL mysql.rds_kill("+id+")")
		}
		return a.Exec(t.Context(), "SELECT 1")
	})
	if err != nil {
		t.Errorf("the service's own session: %v", err)
	}
	if got := b.MustQuery(t, "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE USER = 'event_scheduler'"); got != "1" {
		t.Errorf("event schedulers: %s", got)
	}
}

// Many callers at once, some ending each other, leave a server that works.
func TestCallsAtOnce(t *testing.T) {
	enginetest.OnceIsEnough(t)
	b := enginetest.NewBed(t, setup(t, enginetest.Reachable(t)))
	b.Satisfy(t)
	var all sync.WaitGroup
	for n := range 12 {
		all.Go(func() {
			for m := range 30 {
				statement := fmt.Sprintf("CALL mysql.rds_kill(%d)", 10+n*7+m*3)
				if m%3 == 0 {
					statement = "CALL mysql.rds_innodb_buffer_pool_dump_now()"
				}
				_, _ = query(t.Context(), b.Login(), statement)
			}
		})
	}
	all.Wait()
	b.MustQuery(t, "CALL mysql.rds_innodb_buffer_pool_load_now()")
	if err := b.Driver.Probe(t.Context(), b.Instance(), b.Login().CAFile); err != nil {
		t.Error(err)
	}
}

func TestBufferPoolProcedures(t *testing.T) {
	b := enginetest.NewBed(t, setup(t, enginetest.Reachable(t)))
	b.Satisfy(t)
	const dumped = "SELECT VARIABLE_VALUE FROM information_schema.GLOBAL_STATUS WHERE VARIABLE_NAME = 'Innodb_buffer_pool_dump_status'"
	if got := b.MustQuery(t, dumped); strings.Contains(got, "completed") {
		t.Fatalf("before: %s", got)
	}
	b.MustQuery(t, "CALL mysql.rds_innodb_buffer_pool_dump_now()")
	deadline := time.Now().Add(10 * time.Second)
	for !strings.Contains(b.MustQuery(t, dumped), "completed") {
		if time.Now().After(deadline) {
			t.Fatal("no dump")
		}
	}
	makeUser(t, b, "app", "ALL ON shop.*")
	if _, err := query(t.Context(), loginAs(b, "app"), "CALL mysql.rds_innodb_buffer_pool_dump_now()"); errorNumber(err) != 1370 {
		t.Errorf("without EXECUTE: %v", err)
	}
}

// A database of an earlier service has other procedures and rights.
func TestUpkeep(t *testing.T) {
	b := enginetest.NewBed(t, setup(t, enginetest.Reachable(t)))
	b.Satisfy(t)
	makeUser(t, b, "o'neil")
	b.MustQuery(t, "CREATE ROLE operators")
	inside(t, b,
		"DROP PROCEDURE mysql.rds_innodb_buffer_pool_dump_now",
		"CREATE OR REPLACE DEFINER=`mariadb.sys`@`localhost` PROCEDURE mysql.rds_kill(IN thread BIGINT) SQL SECURITY INVOKER KILL CONNECTION thread",
		"REVOKE EXECUTE ON mysql.* FROM 'mariadb.sys'@'localhost'",
		"GRANT CONNECTION ADMIN ON *.* TO master@'%', 'o\\'neil'@'%', operators", "GRANT CONNECTION ADMIN ON *.* TO PUBLIC",
	)
	if _, err := query(t.Context(), b.Login(), "SET GLOBAL max_connections = 21"); err != nil {
		t.Fatalf("the right has no effect, so this proves nothing: %v", err)
	}
	for range 2 {
		if err := b.Driver.Ready(t.Context(), b.Instance()); err != nil {
			t.Fatal(err)
		}
	}
	for _, user := range []enginetest.Login{b.Login(), loginAs(b, "o'neil")} {
		if _, err := query(t.Context(), user, "SET GLOBAL max_connections = 22"); errorNumber(err) != needs {
			t.Errorf("%s still sets variables: %v", user.User, err)
		}
	}
	s := newSleeper(t, loginAs(b, "o'neil"))
	s.asleep(t, b)
	b.MustQuery(t, "CALL mysql.rds_innodb_buffer_pool_dump_now()")
	b.MustQuery(t, fmt.Sprintf("CALL mysql.rds_kill(%d)", s.id))
	<-s.ended
	if rows := inside(t, b, fmt.Sprintf("SELECT User FROM mysql.global_priv WHERE JSON_VALUE(Priv, '$.access') & %d <> 0", uint64(guard.ConnectionAdmin))); len(rows) > 0 {
		t.Errorf("still hold the right: %v", rows)
	}
}

// A server whose clients fill it, or whose group has an init_connect that fails,
// is not one that is down.
func TestProbeTurnedAway(t *testing.T) {
	b := enginetest.NewBed(t, setup(t, enginetest.Reachable(t)))
	b.Satisfy(t)
	restartWith(t, b, map[string]string{"max_connections": "10"})
	login, full := b.Login(), false
	for range 20 {
		pool, err := open(login)
		if err != nil {
			t.Fatal(err)
		}
		defer pool.Close()
		if err = pool.PingContext(t.Context()); errorNumber(err) == tooManyConnections {
			full = true
			break
		}
	}
	if !full {
		t.Fatal("the server is not full, so this proves nothing")
	}
	probe := func() error { return b.Driver.Probe(t.Context(), b.Instance(), login.CAFile) }
	if err := probe(); err != nil {
		t.Errorf("full: %v", err)
	}
	restartWith(t, b, map[string]string{"max_connections": "20", "init_connect": "SELECT nothing FROM nowhere"})
	if _, err := query(t.Context(), login, "SELECT 1"); err == nil {
		t.Error("init_connect lets in, so this proves nothing")
	}
	if err := probe(); err != nil {
		t.Errorf("init_connect: %v", err)
	}
}
