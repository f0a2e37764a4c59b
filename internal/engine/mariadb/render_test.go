package mariadb

import (
	"strings"
	"testing"

	"kurabe"
	"kurabe/internal/engine"
	"kurabe/internal/engine/enginetest"
	"kurabe/internal/engine/mariadb/role"
	"kurabe/internal/proc"
)

func instance(settings map[string]string) engine.Instance {
	return engine.Instance{
		Assignment: kurabe.Assignment{
			Instance: "db-AAAAAAAAAAAAAAAAAAAAAAAAAA", Name: "shop", Engine: kurabe.MariaDB, Version: "10.11.19",
			Address: "127.66.0.7", Port: 3306, MasterUsername: "admin", Locale: "utf8mb4", Settings: settings,
			Password: kurabe.Password{Seq: 1, Verifier: "*2470C0C06DEE42FD1618BB99005ADCA2EC9D1E19"},
		},
		Home: engine.Home{Dir: "/var/lib/kurabe/homes/db-A"}, SeenDir: "/run/kurabe/a",
		Version: kurabe.EngineVersion{Version: "10.11.19", BinDir: "/nowhere/sbin"},
		User:    &proc.Credential{UID: 102, GID: 105},
	}
}

func TestRender(t *testing.T) {
	cases := map[string]engine.Instance{
		"plain.cnf": instance(nil),
		"group.cnf": instance(map[string]string{
			"max_connections": "85", "innodb_buffer_pool_size": "671088640", "sql_mode": "", "time_zone": "Asia/Tokyo", "tx_isolation": "READ-COMMITTED",
		}),
		"hostile.cnf": instance(map[string]string{
			"init_connect":      "SELECT \"a\" # b\n!include /etc/passwd\r\n[mariadbd]\nskip_grant_tables",
			"bad name":          "1",
			"a\nplugin_dir":     "/tmp",
			"datadir":           "/elsewhere",
			"plugin_load_add":   "evil",
			"ft_boolean_syntax": `+ -><()~*:""&|\`,
			"optimizer_switch":  strings.Repeat("x", optionBytesMax),
		}),
		"collation.cnf": instance(map[string]string{"collation_server": "latin1_swedish_ci"}),
	}
	logged := instance(map[string]string{"binlog_format": "STATEMENT", "sync_binlog": "0"})
	logged.Log = true
	cases["log.cnf"] = logged
	driver := &Driver{guard: "the plugin"}
	for name, i := range cases {
		t.Run(name, func(t *testing.T) {
			files := driver.Render(i)
			enginetest.Golden(t, "render/"+name, files[settingsFile])
			if files[guardFile] != "the plugin" || len(files) != 2 {
				t.Errorf("files: %v", files)
			}
		})
	}
}

func TestCharacterSet(t *testing.T) {
	cases := map[string]struct {
		locale   string
		settings map[string]string
		want     string
	}{
		"the default sorts by code point": {"utf8mb4", nil, "utf8mb4/utf8mb4_bin"},
		"another set has its own":         {"sjis", nil, "sjis/"},
		"the group's set comes first":     {"utf8mb4", map[string]string{"character_set_server": "latin1"}, "/"},
		"a collation brings its set":      {"utf8mb4", map[string]string{"collation_server": "latin1_bin"}, "latin1/"},
		"one of any Unicode set":          {"utf8mb4", map[string]string{"collation_server": "uca1400_ai_ci"}, "utf8mb4/"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got := characterSet(kurabe.Assignment{Locale: c.locale, Settings: c.settings})
			if text := got["character_set_server"] + "/" + got["collation_server"]; text != c.want {
				t.Errorf("%s, want %s", text, c.want)
			}
		})
	}
}

func TestServerIDsDiffer(t *testing.T) {
	seen := map[string]bool{"0": true}
	for range 1000 {
		id := role.ServerID(kurabe.NewInstanceID())
		if seen[id] {
			t.Fatalf("server_id %s twice", id)
		}
		seen[id] = true
	}
}

func TestCommand(t *testing.T) {
	argv := (&Driver{}).Command(instance(nil)).Argv
	// The server obeys --defaults-file in the first place only.
	if got := strings.Join(argv, " "); got != "/nowhere/sbin/mariadbd --defaults-file=/run/kurabe/a/conf/my.cnf" {
		t.Error(got)
	}
}
