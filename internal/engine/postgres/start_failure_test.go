package postgres

import (
	"strings"
	"testing"

	"kurabe"
)

const prefix = "2026-11-21 04:08:00 UTC::@:[77]:"

func TestStartFailure(t *testing.T) {
	const opened = prefix + "LOG:  redirecting log output to logging collector process"
	const began = prefix + "LOG:  starting PostgreSQL 15.18 (Debian 15.18-0+deb12u1) on x86_64"
	cases := []struct {
		name string
		log  []string
		kind kurabe.FailureKind
		want string
	}{
		{"a value out of range", []string{
			`2026-11-21 03:50:31.284 GMT [12969] LOG:  invalid value for parameter "work_mem": "x"`,
			`2026-11-21 03:50:31.284 GMT [12969] FATAL:  configuration file "/c/postgresql.conf" contains errors`,
		}, kurabe.FailureParameters, `invalid value for parameter "work_mem": "x"`},
		{"too much memory, with an older log behind", []string{
			prefix + "FATAL:  could not map anonymous shared memory: Cannot allocate memory",
			prefix + "HINT:  This error usually means that PostgreSQL's request exceeded available memory.",
			prefix + "LOG:  database system is shut down", "", began,
			prefix + "FATAL:  something of yesterday",
		}, kurabe.FailureParameters, "could not map anonymous shared memory: Cannot allocate memory"},
		{"a taken port", []string{
			opened, "", began,
			prefix + `LOG:  could not bind IPv4 address "127.66.0.7": Address already in use`,
			prefix + "FATAL:  could not create any TCP/IP sockets",
		}, kurabe.FailureNetwork, `could not bind IPv4 address "127.66.0.7": Address already in use`},
		{"a full disk", []string{
			opened, began, prefix + `FATAL:  could not write lock file "postmaster.pid": No space left on device`,
		}, kurabe.FailureStorage, `could not write lock file "postmaster.pid": No space left on device`},
		{"a missing module", []string{
			prefix + `FATAL:  could not access file "nothing": No such file or directory`,
		}, kurabe.FailureParameters, `could not access file "nothing": No such file or directory`},
		{"a crash among sessions that failed", []string{
			opened, began, prefix + "LOG:  server process (PID 9) was terminated by signal 9: Killed",
			`2026-11-21 04:08:09 UTC:10.0.0.1(999):bob@shop:[80]:FATAL:  password authentication failed for user "bob"`,
		}, kurabe.FailureOther, "server process (PID 9) was terminated by signal 9: Killed"},
		{"a crash of a process that says why", []string{
			opened, began, prefix + "LOG:  database system was interrupted; last known up at 2026-11-25 03:21:10 UTC",
			prefix + "PANIC:  could not locate a valid checkpoint record",
			prefix + "LOG:  startup process (PID 9) was terminated by signal 6: Aborted",
			prefix + "LOG:  terminating any other active server processes",
			prefix + "LOG:  shutting down due to startup process failure",
		}, kurabe.FailureOther, "could not locate a valid checkpoint record"},
		{"an end of recovery by itself", []string{
			opened, began, prefix + "LOG:  redo starts at 0/3000028",
			prefix + "FATAL:  WAL ends before end of online backup",
			prefix + "HINT:  All WAL generated while online backup was taken must be available at recovery.",
			prefix + "LOG:  startup process (PID 9) exited with exit code 1",
			prefix + "LOG:  terminating any other active server processes",
		}, kurabe.FailureOther, "WAL ends before end of online backup"},
		{"a process that was killed, with a statement that nobody may read here", []string{
			opened, began, prefix + "LOG:  database system is ready to accept connections",
			prefix + "LOG:  server process (PID 9) was terminated by signal 9: Killed",
			prefix + "DETAIL:  Failed process was running: ALTER ROLE bob PASSWORD 'secret'",
			prefix + "LOG:  terminating any other active server processes",
		}, kurabe.FailureOther, "server process (PID 9) was terminated by signal 9: Killed"},
		{"a follower that lost its source", []string{
			opened, began, prefix + "FATAL:  could not receive data from WAL stream: server closed the connection unexpectedly",
			prefix + `FATAL:  could not connect to the primary server: connection to server at "127.66.0.7", port 5432 failed: Connection refused`,
			prefix + "FATAL:  terminating walreceiver due to timeout",
		}, kurabe.FailureOther, "the server ended without a reason in its log"},
		{"nothing said", nil, kurabe.FailureOther, "the server ended without a reason in its log"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			kind, reason := New(Config{ServiceUser: "root"}).StartFailure(strings.Join(c.log, "\n"))
			if kind != c.kind || reason != c.want {
				t.Errorf("got %s, %q", kind, reason)
			}
		})
	}
}

// Any text gives an answer.
func FuzzStartFailure(f *testing.F) {
	f.Add("FATAL:  \n\n:::@:[1]:")
	f.Fuzz(func(t *testing.T, text string) {
		if kind, reason := New(Config{ServiceUser: "root"}).StartFailure(text); kind == "" || (reason == "" && text == "") {
			t.Errorf("%q, %q", kind, reason)
		}
	})
}
