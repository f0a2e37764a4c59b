package conf

import (
	"strings"
	"testing"

	"kurabe/internal/engine"
	"kurabe/internal/engine/enginetest"
	"kurabe/internal/engine/mariadb/mariadbtest"
)

func TestRender(t *testing.T) {
	cases := map[string]engine.Instance{
		"plain.cnf": mariadbtest.Instance(nil),
		"group.cnf": mariadbtest.Instance(map[string]string{
			"max_connections": "85", "innodb_buffer_pool_size": "671088640", "sql_mode": "", "time_zone": "Asia/Tokyo", "tx_isolation": "READ-COMMITTED",
		}),
		"hostile.cnf": mariadbtest.Instance(map[string]string{
			"init_connect":      "SELECT \"a\" # b\n!include /etc/passwd\r\n[mariadbd]\nskip_grant_tables",
			"bad name":          "1",
			"a\nplugin_dir":     "/tmp",
			"datadir":           "/elsewhere",
			"plugin_load_add":   "evil",
			"ft_boolean_syntax": `+ -><()~*:""&|\`,
			"optimizer_switch":  strings.Repeat("x", optionBytesMax),
		}),
		"collation.cnf": mariadbtest.Instance(map[string]string{"collation_server": "latin1_swedish_ci"}),
	}
	logged := mariadbtest.Instance(map[string]string{"binlog_format": "STATEMENT", "sync_binlog": "0"})
	logged.Log = true
	cases["log.cnf"] = logged
	for name, i := range cases {
		t.Run(name, func(t *testing.T) {
			files := Render(i, "the plugin", "")
			enginetest.Golden(t, "render/"+name, files[SettingsFile])
			if files[guardFile] != "the plugin" || len(files) != 2 {
				t.Errorf("files: %v", files)
			}
		})
	}
}
