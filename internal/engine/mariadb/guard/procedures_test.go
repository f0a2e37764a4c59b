package guard

import "testing"

func TestProcedureSQL(t *testing.T) {
	want := map[string]string{
		"rds_kill": "CREATE OR REPLACE DEFINER=`mariadb.sys`@`localhost` PROCEDURE mysql.rds_kill(IN thread BIGINT) SQL SECURITY DEFINER " +
			"EXECUTE IMMEDIATE CONCAT('SET SESSION kurabe_guard_kill = ', IFNULL(thread, 0))",
		"rds_innodb_buffer_pool_dump_now": "CREATE OR REPLACE DEFINER=`mariadb.sys`@`localhost` PROCEDURE mysql.rds_innodb_buffer_pool_dump_now() SQL SECURITY DEFINER " +
			"EXECUTE IMMEDIATE CONCAT('SET SESSION kurabe_guard_buffer_pool = ', QUOTE('dump_now'))",
	}
	seen := 0
	for _, p := range Procedures {
		if text, ok := want[p.name]; ok {
			seen++
			if got := p.SQL(); got != text {
				t.Errorf("%s\n got %s\nwant %s", p.name, got, text)
			}
		}
	}
	if seen != len(want) {
		t.Errorf("%d of %d procedures exist", seen, len(want))
	}
}

func TestHolder(t *testing.T) {
	for _, c := range []struct {
		name, user, host string
		role             bool
		want             string
	}{
		{"account", "o'neil", "%", false, `'o\'neil'@'%'`},
		{"role", "oper`ators", "", true, "`oper``ators`"},
		{"everybody", "PUBLIC", "", true, "PUBLIC"},
		{"account of that name", "PUBLIC", "%", false, "'PUBLIC'@'%'"},
		{"nameless account", "", "", false, "''@''"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := holder(c.user, c.host, c.role); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}
