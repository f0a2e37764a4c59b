package mariadb

import (
	"testing"

	"kurabe"
	"kurabe/internal/engine"
)

const earlierRun = `2026-11-21  4:20:08 0 [Note] Starting MariaDB 10.11.19-MariaDB-0+deb12u1 source revision 5843d847 as process 12
2026-11-21  4:20:08 0 [ERROR] Can't start server: Bind on TCP/IP port. Got error: 98: Address already in use
`

func TestStartFailure(t *testing.T) {
	const banner = "2026-11-21  4:43:12 0 [Note] Starting MariaDB 10.11.19-MariaDB-0+deb12u1 source revision 5843d847 as process 13\n"
	cases := map[string]struct {
		log    string
		kind   kurabe.FailureKind
		reason string
	}{
		"unknown variable": {
			banner + "2026-11-21  4:43:12 0 [ERROR] /usr/sbin/mariadbd: unknown variable 'nosuch=1'\n2026-11-21  4:43:12 0 [ERROR] Aborting\n",
			kurabe.FailureParameters, "unknown variable 'nosuch=1'",
		},
		"options refused before the log opens, older trouble in the log": {
			"2026-11-21  4:43:12 0 [ERROR] mariadbd: Error while setting value 'FOO' to 'sql_mode'\n\n" + earlierRun,
			kurabe.FailureParameters, "Error while setting value 'FOO' to 'sql_mode'",
		},
		"a cut-off log begins with older trouble": {
			"\n2026-11-21  4:10:00 0 [ERROR] mariadbd: Error while setting value 'old' to 'sql_mode'\n" + earlierRun + banner +
				"2026-11-21  4:43:12 0 [ERROR] Fatal error: Illegal or unknown default time zone 'Foo/Bar'\n",
			kurabe.FailureParameters, "Fatal error: Illegal or unknown default time zone 'Foo/Bar'",
		},
		"port taken": {
			banner + "2026-11-21  4:43:12 0 [ERROR] Can't start server: Bind on TCP/IP port. Got error: 98: Address already in use\n2026-11-21  4:43:12 0 [ERROR] Do you already have another server running on port: 3306 ?\n2026-11-21  4:43:12 0 [ERROR] Aborting\n",
			kurabe.FailureNetwork, "Can't start server: Bind on TCP/IP port. Got error: 98: Address already in use",
		},
		"no memory for the buffer pool": {
			banner + "2026-11-21  4:43:12 0 [ERROR] mariadbd: Out of memory (Needed 0 bytes)\n2026-11-21  4:43:12 0 [ERROR] InnoDB: Cannot map innodb_buffer_pool_size_max=8388608m\n2026-11-21  4:43:12 0 [ERROR] InnoDB: Plugin initialization aborted with error Generic error\n2026-11-21  4:43:12 0 [ERROR] Unknown/unsupported storage engine: InnoDB\n",
			kurabe.FailureParameters, "Out of memory (Needed 0 bytes)",
		},
		"no time stamp": {
			"mariadbd: Character set 'foo' is not a compiled character set\n2026-11-21  4:43:12 0 [ERROR] COLLATION 'latin1_bin' is not valid for CHARACTER SET 'utf8mb4'\n2026-11-21  4:43:12 0 [ERROR] Aborting\n",
			kurabe.FailureParameters, "COLLATION 'latin1_bin' is not valid for CHARACTER SET 'utf8mb4'",
		},
		"the guard": {
			banner + "[ERROR] kurabe_guard: the guard is missing from mysql/db.TRG: No such file or directory\n2026-11-21  4:43:12 0 [ERROR] Plugin 'kurabe_guard' init function returned error.\n",
			kurabe.FailureOther, "kurabe_guard: the guard is missing from mysql/db.TRG: No such file or directory",
		},
		"disk full": {
			banner + "2026-11-21  4:43:12 0 [ERROR] InnoDB: Error number 28 means 'No space left on device'\n",
			kurabe.FailureStorage, "InnoDB: Error number 28 means 'No space left on device'",
		},
		"a crash": {
			banner + "261121  4:43:12 [ERROR] mariadbd got signal 11 ;\nSorry, we probably made a mistake\n",
			kurabe.FailureOther, "mariadbd got signal 11 ;",
		},
		"nothing": {"", kurabe.FailureOther, "the server ended without a reason in its log"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			kind, reason := (&Driver{}).StartFailure(c.log)
			if kind != c.kind || reason != c.reason {
				t.Errorf("%s, %q", kind, reason)
			}
		})
	}
}

func TestErrorLog(t *testing.T) {
	i := engine.Instance{Home: engine.Home{Dir: "/h"}}
	if got := (&Driver{}).ErrorLog(i, []string{"mysql-error.log.2026-11-21.04", "mysql-error.log"}); got != "/h/log/mysql-error.log" {
		t.Error(got)
	}
	if got := (&Driver{}).ErrorLog(i, nil); got != i.Home.StartLog() {
		t.Error(got)
	}
}

func TestParseVersion(t *testing.T) {
	cases := map[string]string{
		"mariadbd  Ver 10.11.19-MariaDB-0+deb12u1 for debian-linux-gnu on x86_64 (Debian 12)": "10.11.19",
		"/usr/sbin/mysqld  Ver 8.0.36 for Linux on x86_64 (MySQL Community Server - GPL)":     "",
		"": "",
	}
	for text, want := range cases {
		if got, ok := parseVersion(text); got != want || ok != (want != "") {
			t.Errorf("%q: %q, %v", text, got, ok)
		}
	}
}
