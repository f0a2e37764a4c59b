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
		"a warning is all": {
			banner + "2026-11-21  4:43:12 0 [Warning] Can't create test file '/h/data/m.lower-test' (Errcode: 13 \"Permission denied\")\n2026-11-21  4:43:12 0 [ERROR] Aborting\n",
			kurabe.FailureOther, `Aborting; it had warned: Can't create test file '/h/data/m.lower-test' (Errcode: 13 "Permission denied")`,
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

// aborts is how a server ends that cannot open InnoDB, whatever the cause.
const aborts = "2026-11-26  0:03:43 0 [ERROR] Plugin 'InnoDB' registration as a STORAGE ENGINE failed.\n" +
	"2026-11-26  0:03:43 0 [ERROR] Unknown/unsupported storage engine: InnoDB\n2026-11-26  0:03:43 0 [ERROR] Aborting\n"

// TestStartFailureOfData has what MariaDB 10.11.19 said when its files had been overwritten,
// cut or removed, and when it was given parameters that it cannot start with. Only the first
// is helped by another copy of the data, only the second by other parameters.
func TestStartFailureOfData(t *testing.T) {
	const (
		data, parameters = kurabe.FailureOther, kurabe.FailureParameters
		structure        = "InnoDB: Plugin initialization aborted with error Data structure corruption"
		generic          = "InnoDB: Plugin initialization aborted with error Generic error"
		otherPage        = "InnoDB: Space id and page no stored in the page, read in from ./ibdata1 are [page id: space=1740438559, page number=4095722303], should be [page id: space=0, page number=5]"
	)
	cases := map[string]struct {
		kind   kurabe.FailureKind
		reason string
		said   []string // without the end that is common to all
	}{
		"the system tablespace is zeros": {data, "InnoDB: The data file './ibdata1' has the wrong space ID. It should be 0, but 0 was found", []string{structure}},
		"a page is another one":          {data, otherPage, []string{otherPage, generic}},
		"a page that the log changes": {data, otherPage, []string{"InnoDB: Unable to apply log to corrupted page 7 in file ./ibdata1",
			"InnoDB: Plugin initialization aborted with error Failed, retry may succeed"}},
		"a page that is read": {data, otherPage, []string{"InnoDB: Plugin initialization aborted with error Page read from tablespace is corrupted."}},
		"a file is shorter":   {data, "InnoDB: The Auto-extending data file './ibdata1' is of a different size 192 pages than specified by innodb_data_file_path", []string{generic}},
		"a file is not there": {data, "InnoDB: undo tablespace './/undo001' exists. Creating system tablespace with existing undo tablespaces is not supported. Please delete all undo tablespaces before creating new system tablespace.",
			[]string{"InnoDB: Database creation was aborted with error Generic error. You may need to delete the ibdata1 file before trying to start up again."}},
		"an undo tablespace is zeros":     {data, "InnoDB: Inconsistent tablespace ID in file .//undo001", []string{"InnoDB: Unable to read first page of file .//undo001", structure}},
		"an undo tablespace is not there": {data, "InnoDB: Failed to open the undo tablespace undo002", []string{generic}},
		"one that the log changes":        {data, "InnoDB: Missing FILE_DELETE or FILE_MODIFY for [page id: space=1, page number=3] at 45219; set innodb_force_recovery=1 to ignore the record.", []string{generic}},
		"the redo log is not there":       {data, "InnoDB: File ./ib_logfile0 was not found", []string{generic}},
		"the redo log is empty":           {data, "InnoDB: ib_logfile0 is empty, and LSN is unknown.", []string{structure}},
		"the redo log has no header": {data, "InnoDB: Upgrade after a crash is not supported. This redo log was created before MariaDB 10.2.2, and we did not find a valid checkpoint. Please follow the instructions at https://mariadb.com/docs/",
			[]string{generic}},
		"the redo log has no checkpoint": {data, "InnoDB: No valid checkpoint was found; the log was created with MariaDB 10.11.19.", []string{generic}},
		"the redo log is another one":    {data, "InnoDB: Missing FILE_CHECKPOINT(45613) at 45613", []string{"InnoDB: Log scan aborted at LSN 45613", generic}},
		"the data is of another size": {data, "InnoDB: Data file './ibdata1' uses page size 4096, but the innodb_page_size start-up parameter is 16384",
			[]string{"InnoDB: The data file './ibdata1' has the wrong space ID. It should be 0, but 0 was found", structure}},
		"no cause": {data, "Plugin 'InnoDB' registration as a STORAGE ENGINE failed.", nil},
		"Aria's control file": {data, "Got error 'Missing valid id at start of file. File is not a valid aria control file' when trying to use aria control file '/h/data/aria_log_control'",
			[]string{"Plugin 'Aria' registration as a STORAGE ENGINE failed.", `Could not open mysql.plugin table: "Unknown storage engine 'Aria'". Some plugins may be not loaded`}},
		"the accounts": {data, "Fatal error: Can't open and lock privilege tables: Incorrect file format 'global_priv'", nil},

		"a pool that cannot be":     {parameters, "InnoDB: Cannot map innodb_buffer_pool_size_max=94371840m", []string{generic}},
		"a log that cannot be":      {parameters, "InnoDB: Cannot set log file ./ib_logfile101 size to 100.000TiB", []string{generic}},
		"a value that is none":      {parameters, "Error while setting value 'foo' to 'innodb-flush-method'", []string{"Parsing options for plugin 'InnoDB' failed. Disabling plugin"}},
		"a size that is none":       {parameters, "Unknown suffix 'a' used for variable 'innodb-log-file-size' (value 'abc'). Legal suffix characters are: K, M, G, T, P, E", nil},
		"an engine that is none":    {parameters, "Unknown/unsupported storage engine: foo", nil},
		"a cache that has no place": {parameters, "Out of memory (Needed 3292635136 bytes)", []string{"Failed to initialize plugins."}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			log := "2026-11-26  0:03:43 0 [Note] Starting MariaDB 10.11.19-MariaDB-0+deb12u1-log source revision 5843d847 as process 13\n"
			for _, words := range append([]string{c.reason}, c.said...) {
				log += "2026-11-26  0:03:43 0 [ERROR] " + words + "\n"
			}
			if kind, reason := (&Driver{}).StartFailure(log + aborts); kind != c.kind || reason != c.reason {
				t.Errorf("%s, %q", kind, reason)
			}
		})
	}
	const asserts = "2026-11-26  0:03:43 0x7f1c2effd6c0  InnoDB: Assertion failure in file ./storage/innobase/trx/trx0purge.cc line 277\nInnoDB: Failing assertion: a\n" +
		"261126  0:03:43 [ERROR] mariadbd got signal 6 ;\n"
	if kind, reason := (&Driver{}).StartFailure(asserts); kind != data || reason != "InnoDB: Assertion failure in file ./storage/innobase/trx/trx0purge.cc line 277" {
		t.Errorf("%s, %q", kind, reason)
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
