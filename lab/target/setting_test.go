package target

import (
	"maps"
	"strings"
	"testing"
)

func TestEqual(t *testing.T) {
	cases := map[string]struct {
		have setting
		name string
		want string
		not  bool
	}{
		"same":                       {have: setting{value: "all"}, want: "all"},
		"words in capitals":          {have: setting{value: "all"}, want: "ALL"},
		"one is on":                  {have: setting{value: "on", kind: "bool"}, want: "1"},
		"off is not on":              {have: setting{value: "off", kind: "bool"}, want: "1", not: true},
		"pages":                      {have: setting{value: "16384", shown: "128MB", unit: "8kB", kind: "integer"}, want: "16384"},
		"as shown":                   {have: setting{value: "16384", shown: "128MB", unit: "8kB", kind: "integer"}, want: "128MB"},
		"another unit":               {have: setting{value: "131072", shown: "1GB", unit: "8kB", kind: "integer"}, want: "1024 MB"},
		"time":                       {have: setting{value: "300", shown: "5min", unit: "s", kind: "integer"}, want: "5min"},
		"rounded to the unit":        {have: setting{value: "1", unit: "kB", kind: "integer"}, want: "1025B"},
		"too little":                 {have: setting{value: "4096", unit: "8kB", kind: "integer"}, want: "128MB", not: true},
		"a float":                    {have: setting{value: "0.90", kind: "real"}, want: "0.9"},
		"MariaDB's suffix":           {have: setting{value: "134217728"}, want: "128M"},
		"a list in another order":    {have: setting{value: "FILE,TABLE"}, name: "log_output", want: "table, file"},
		"a list that is longer":      {have: setting{value: "FILE,TABLE"}, name: "log_output", want: "FILE", not: true},
		"libraries may be more":      {have: setting{value: "rdsutils,pgaudit", kind: "string"}, name: "shared_preload_libraries", want: "pgaudit"},
		"a library that is missing":  {have: setting{value: "rdsutils", kind: "string"}, name: "shared_preload_libraries", want: "pgaudit", not: true},
		"enum":                       {have: setting{value: "remote_write", kind: "enum"}, want: "on", not: true},
		"a unit that nobody knows":   {have: setting{value: "1", kind: "integer"}, want: "1 furlong", not: true},
		"nothing is not everything":  {have: setting{value: "pgaudit", kind: "string"}, name: "shared_preload_libraries", want: "", not: true},
		"numbers beyond 2^53 differ": {have: setting{value: "18446744073709551615"}, want: "1", not: true},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if got := equal(c.have, c.name, c.want); got == c.not {
				t.Errorf("equal(%+v, %q) = %v", c.have, c.want, got)
			}
		})
	}
}

func TestVerifyNamesWhatIsNotTrue(t *testing.T) {
	have := map[string]setting{"work_mem": {value: "4096", shown: "4MB", unit: "kB", kind: "integer"}, "tx_isolation": {value: "REPEATABLE-READ"}}
	err := verify(have, map[string]string{
		"work_mem": "8MB", "transaction_isolation": "repeatable-read", "rds.force_ssl": "0", "gone": "1", "max_connections": "LEAST({DBInstanceClassMemory/9531392},5000)",
	})
	if err == nil {
		t.Fatal("no error")
	}
	for _, words := range []string{`work_mem was set to "8MB"`, `says "4MB"`, "gone was accepted"} {
		if !strings.Contains(err.Error(), words) {
			t.Errorf("%q is not in: %v", words, err)
		}
	}
	for _, words := range []string{"isolation", "rds.", "max_connections"} {
		if strings.Contains(err.Error(), words) {
			t.Errorf("%q is in: %v", words, err)
		}
	}
}

func TestShowHidesSecrets(t *testing.T) {
	got := show(map[string]setting{
		"primary_conninfo": {shown: "password=x"}, "archive_command": {shown: "cp %p"}, "ssl_passphrase_command": {shown: ""},
		"password_encryption": {shown: "scram-sha-256"}, "port": {shown: "5432"}, "work_mem": {shown: "4MB"},
	})
	want := map[string]string{"primary_conninfo": "***", "archive_command": "***", "ssl_passphrase_command": "", "password_encryption": "scram-sha-256", "work_mem": "4MB"}
	if !maps.Equal(got, want) {
		t.Errorf("got %v", got)
	}
}

func TestValues(t *testing.T) {
	mysql := map[string]string{
		"1": "1", "128M": "134217728", "1.5G": "1610612736", "0.5": "0.5", "18446744073709551615": "18446744073709551615", "FILE": "'FILE'", "": "''", "+00:00": "'+00:00'",
		"1; DROP DATABASE x": "'1; DROP DATABASE x'", `it's \`: `'it''s \\'`, "NaN": "'NaN'", "Inf": "'Inf'",
	}
	for value, want := range mysql {
		if got := mysqlValue(value); got != want {
			t.Errorf("mysqlValue(%q) = %s, want %s", value, got, want)
		}
	}
	postgres := map[[2]string]string{
		{"pgaudit.log", "ddl, role"}:               "'ddl, role'",
		{"search_path", `"$user", public`}:         "'$user', 'public'",
		{"session_preload_libraries", "a,b"}:       "'a', 'b'",
		{"log_line_prefix", "%m, '%u'"}:            "'%m, ''%u'''",
		{"shared_preload_libraries", ""}:           "''",
		{"work_mem", "4MB'; DROP DATABASE x; --"}:  "'4MB''; DROP DATABASE x; --'",
		{"Session_Preload_Libraries", "x'y, z"}:    "'x''y', 'z'",
		{"temp_tablespaces", "fast"}:               "'fast'",
		{"unix_socket_directories", "/a, /b"}:      "'/a', '/b'",
		{"default_transaction_isolation", "a b,c"}: "'a b,c'",
	}
	for in, want := range postgres {
		if got := postgresValue(in[0], in[1]); got != want {
			t.Errorf("postgresValue(%q) = %s, want %s", in, got, want)
		}
	}
}

func FuzzEqual(f *testing.F) {
	f.Add("16384", "8kB", "integer", "128MB")
	f.Add("on", "", "bool", "1")
	f.Fuzz(func(t *testing.T, value, unit, kind, want string) {
		have := setting{value: value, shown: value, unit: unit, kind: kind}
		equal(have, "x", want)
		if !equal(have, "x", value) {
			t.Errorf("%q is not itself", value)
		}
	})
}
