//go:build integration

package proxy

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"kurabe/internal/proxy"
)

// simple has a client speak without preparing, as psql does.
func simple(o *pgx.ConnConfig) { o.DefaultQueryExecMode = pgx.QueryExecModeSimpleProtocol }

func show(t *testing.T, c *pgx.Conn, name string) string {
	t.Helper()
	return one[string](t, c, "SELECT coalesce(current_setting('"+name+"', true), '')")
}

// TestPostgresSettings: what a client sets is there in its next transaction, whoever had the
// connection in between, and nobody else has it (PgBouncer's poisoned search_path).
func TestPostgresSettings(t *testing.T) {
	x := start(t, server(t), 1, nil)
	a := x.connect(t, simple)
	b := x.connect(t, simple)
	cases := []struct {
		name, does, setting, want string
	}{
		{"set", "SET search_path TO one, \"Two\"", "search_path", `one, "Two"`},
		{"an empty list", "SET search_path TO ''", "search_path", `""`},
		{"quotes and backslashes", `SET my.text = 'it''s a \ "x"'`, "my.text", `it's a \ "x"`},
		{"set_config", "SELECT set_config('work_mem', '7MB', false)", "work_mem", "7MB"},
		{"set_config of an expression", "SELECT set_config('work' || '_mem', '8MB', false)", "work_mem", "8MB"},
		{"update of pg_settings", "UPDATE pg_settings SET setting = '9000' WHERE name = 'work_mem'", "work_mem", "9000kB"},
		{"in DO", "DO $$ BEGIN PERFORM set_config('work_mem', '10MB', false); END $$", "work_mem", "10MB"},
		{"local", "BEGIN; SET LOCAL work_mem = '11MB'; COMMIT", "work_mem", "10MB"},
		{"rolled back", "BEGIN; SET work_mem = '12MB'; ROLLBACK", "work_mem", "10MB"},
		{"to a savepoint", "BEGIN; SET work_mem = '13MB'; SAVEPOINT s; SET work_mem = '14MB'; ROLLBACK TO s; COMMIT", "work_mem", "13MB"},
		{"reported", "SET TIME ZONE 'Asia/Tokyo'", "timezone", "Asia/Tokyo"},
		{"reported, rolled back", "BEGIN; SET TIME ZONE 'UTC'; ROLLBACK", "timezone", "Asia/Tokyo"},
		{"date style", "SET datestyle = 'German'", "datestyle", "German, DMY"},
		{"characteristics", "SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL SERIALIZABLE", "transaction_isolation", "serializable"},
		{"in a long statement", "/* " + strings.Repeat("long ", 30_000) + " */ SET work_mem = '15MB'", "work_mem", "15MB"},
		{"reset", "RESET work_mem", "work_mem", "4MB"},
		{"default", "SET search_path TO DEFAULT", "search_path", `"$user", public`},
		{"reset all", "RESET ALL", "timezone", "Etc/UTC"},
		{"discard all", "SET work_mem = '16MB'; RESET my.text", "work_mem", "16MB"},
		{"discard all", "DISCARD ALL", "work_mem", "4MB"},
	}
	unset := map[string]string{}
	for _, c := range cases {
		if _, ok := unset[c.setting]; !ok {
			unset[c.setting] = show(t, b, c.setting)
		}
		exec(t, a, c.does)
		if got := show(t, b, c.setting); got != unset[c.setting] {
			t.Errorf("%s: another client has %q", c.name, got)
		}
		if got := show(t, a, c.setting); got != c.want && !(c.setting == "timezone" && got == unset["timezone"]) {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
		if got := show(t, b, c.setting); got != unset[c.setting] {
			t.Errorf("%s: another client has %q afterwards", c.name, got)
		}
	}
	if log := x.log.String(); strings.Contains(log, "pinned") {
		t.Error(log)
	}
}

// TestPostgresStartupSettings: what a startup message asks for is the session's default.
func TestPostgresStartupSettings(t *testing.T) {
	x := start(t, server(t), 1, nil)
	a := x.connect(t, func(o *pgx.ConnConfig) {
		simple(o)
		o.RuntimeParams["application_name"] = "first"
		o.RuntimeParams["options"] = `-c search_path=x,\ y -c work_mem=5MB`
		o.RuntimeParams["datestyle"] = "iso, ymd"
	})
	b := x.connect(t, func(o *pgx.ConnConfig) { simple(o); o.RuntimeParams["application_name"] = "second" })
	if got := a.PgConn().ParameterStatus("DateStyle"); got != "ISO, YMD" {
		t.Errorf("reported: %q", got)
	}
	for range 3 {
		for c, want := range map[*pgx.Conn]string{a: `first|x, y|5MB|ISO, YMD`, b: `second|"$user", public|4MB|ISO, MDY`} {
			got := one[string](t, c, "SELECT concat_ws('|', current_setting('application_name'), current_setting('search_path'), current_setting('work_mem'), current_setting('datestyle'))")
			if got != want {
				t.Errorf("%q, want %q", got, want)
			}
		}
		exec(t, a, "SET work_mem = '6MB'")
		exec(t, a, "RESET work_mem")
		exec(t, b, "SET datestyle = 'German'")
		exec(t, b, "DISCARD ALL")
	}
	for name, params := range map[string]map[string]string{
		"22023": {"work_mem": "many"}, "42704": {"no_such_setting": "1"}, "0A000": {"replication": "database"}, "08P01": {"options": "-f x"}, "3D000": {"database": "nowhere"},
	} {
		config, err := pgx.ParseConfig(a.Config().ConnString())
		if err != nil {
			t.Fatal(err)
		}
		if params["database"] != "" {
			config.Database = params["database"]
		} else {
			config.RuntimeParams = params
		}
		if c, err := pgx.ConnectConfig(deadline(t), config); err == nil {
			t.Errorf("%v: logged in", params)
			_ = c.Close(t.Context())
		} else if !strings.Contains(err.Error(), name) {
			t.Errorf("%v: %v", params, err)
		}
	}
}

// TestPostgresPins: what cannot be carried to another connection keeps the one it is in, until
// DISCARD ALL, and nobody meets it afterwards.
func TestPostgresPins(t *testing.T) {
	s := server(t)
	x := start(t, s, 2, nil)
	admin := connect(t, s.URL("postgres"), simple)
	exec(t, admin, "DROP SEQUENCE IF EXISTS pins; CREATE SEQUENCE pins")
	cases := []struct {
		reason     proxy.PinReason
		does, sees string
	}{
		{proxy.PinTemporaryTable, "CREATE TEMP TABLE mine (n int)", "SELECT count(*)::text FROM mine"},
		{proxy.PinCursor, "DECLARE mine CURSOR WITH HOLD FOR SELECT n::text FROM generate_series(1, 9) n", "FETCH mine"},
		{proxy.PinListen, "LISTEN mine", "SELECT pg_listening_channels()::text"},
		{proxy.PinSequence, "SELECT nextval('pins')", "SELECT currval('pins')::text"},
		{proxy.PinAdvisoryLock, "SELECT pg_advisory_lock(7)", "SELECT pg_advisory_unlock(7)::text || pg_try_advisory_lock(7)::text"},
		{proxy.PinSQLPrepare, "PREPARE mine AS SELECT 'prepared'::text", "EXECUTE mine"},
		{proxy.PinSetting, "SET SESSION AUTHORIZATION DEFAULT", "SELECT session_user::text"},
	}
	a, b := x.connect(t, simple), x.connect(t, simple)
	for _, c := range cases {
		exec(t, a, c.does)
		for range 3 {
			if got := one[string](t, b, "SELECT 'other'"); got != "other" {
				t.Error(got)
			}
			if got := one[string](t, a, c.sees); got == "" || got == "false" {
				t.Errorf("%s: %q", c.does, got)
			}
		}
		var pins map[proxy.PinReason]uint64
		var pinned int
		x.Do(func() { n := x.Frontend.Count(); pins, pinned = n.Pins, n.Pinned })
		if pins[c.reason] == 0 || pinned != 1 {
			t.Errorf("%s: pins %v, %d pinned", c.does, pins, pinned)
		}
		if !strings.Contains(x.log.String(), c.reason.Words()) || !strings.Contains(x.log.String(), "[dbConnection=") {
			t.Errorf("%s: %s", c.does, x.log.String())
		}
		exec(t, a, "DISCARD ALL")
		x.Do(func() { pinned = x.Frontend.Count().Pinned })
		if pinned != 0 {
			t.Errorf("%s: still pinned after DISCARD ALL", c.does)
		}
	}
	// One who leaves without resetting leaves nothing.
	exec(t, a, "CREATE TEMP TABLE mine (n int)")
	if err := a.Close(deadline(t)); err != nil {
		t.Fatal(err)
	}
	for until := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		var borrowed int
		x.Do(func() { borrowed = x.Pool.Stats().Borrowed })
		if borrowed == 0 {
			break
		}
		if time.Now().After(until) {
			t.Fatal("the connection does not come back")
		}
	}
	for range 4 {
		if _, err := b.Exec(deadline(t), "SELECT * FROM mine"); !is(err, "42P01") {
			t.Errorf("another's table: %v", err)
		}
	}
}

// TestPostgresPrepared: statements of several clients with the same names, and what SQL says
// of them.
func TestPostgresPrepared(t *testing.T) {
	x := start(t, server(t), 1, nil)
	a, b := x.connect(t, simple), x.connect(t, simple)
	for i := range 3 {
		if _, err := a.PgConn().Prepare(deadline(t), "s", "SELECT 'a' || $1::text", nil); err != nil {
			t.Fatal(err)
		}
		if _, err := b.PgConn().Prepare(deadline(t), "s", "SELECT 'b' || $1::text", nil); err != nil {
			t.Fatal(err)
		}
		for c, want := range map[*pgx.Conn]string{a: "a7", b: "b7"} {
			r := c.PgConn().ExecPrepared(deadline(t), "s", [][]byte{[]byte("7")}, nil, nil).Read()
			if r.Err != nil || string(r.Rows[0][0]) != want {
				t.Errorf("%v %q", r.Err, r.Rows)
			}
		}
		if got := one[string](t, a, "EXECUTE s('sql')"); got != "asql" {
			t.Errorf("by SQL: %q", got)
		}
		if _, err := a.PgConn().Prepare(deadline(t), "s", "SELECT 1", nil); !is(err, "42P05") {
			t.Errorf("the same name again: %v", err)
		}
		if _, err := a.PgConn().Prepare(deadline(t), "broken", "SELECT nonsense", nil); !is(err, "42703") {
			t.Errorf("a broken one: %v", err)
		}
		if _, err := a.PgConn().Prepare(deadline(t), "broken", "SELECT 1", nil); err != nil {
			t.Errorf("the name of a broken one: %v", err)
		}
		exec(t, a, []string{"DEALLOCATE s; DEALLOCATE broken", "DEALLOCATE ALL", "DISCARD ALL"}[i])
		if _, err := a.PgConn().ExecPrepared(deadline(t), "s", [][]byte{[]byte("7")}, nil, nil).Close(); !is(err, "26000") {
			t.Errorf("a deallocated one: %v", err)
		}
		if err := b.PgConn().Deallocate(deadline(t), "s"); err != nil {
			t.Error(err)
		}
	}
	// More than a connection keeps.
	for i := range 1200 {
		name := fmt.Sprint("many", i%600)
		if i < 600 {
			if _, err := b.PgConn().Prepare(deadline(t), name, fmt.Sprintf("SELECT %d", i), nil); err != nil {
				t.Fatal(err)
			}
		}
		r := b.PgConn().ExecPrepared(deadline(t), name, nil, nil, nil).Read()
		if r.Err != nil || string(r.Rows[0][0]) != fmt.Sprint(i%600) {
			t.Fatalf("%s: %v %q", name, r.Err, r.Rows)
		}
	}
	if log := x.log.String(); strings.Contains(log, "pinned") || strings.Contains(log, "not understood") {
		t.Error(log)
	}
}
