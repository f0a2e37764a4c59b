package mariadb

import (
	"slices"
	"testing"

	"kurabe/internal/engine"
	"kurabe/internal/engine/enginetest"
	"kurabe/internal/engine/mariadb/mariadbtest"
	"kurabe/internal/engine/mariadb/replica"
)

func TestChanges(t *testing.T) {
	i := mariadbtest.Instance(map[string]string{
		"max_connections": "85", "local_infile": "0", "long_query_time": "2.5", "sql_mode": "ANSI", "innodb_buffer_pool_size": "64M", "time_zone": "Asia/Tokyo",
		"innodb_log_buffer_size": "1",
	})
	variables := []running{
		{name: "max_connections", value: "151", kind: "BIGINT UNSIGNED"},
		{name: "local_infile", value: "OFF", kind: "BOOLEAN"},
		{name: "long_query_time", value: "10.000000", kind: "DOUBLE"},
		{name: "sql_mode", value: "STRICT_TRANS_TABLES", kind: "SET"},
		{name: "innodb_buffer_pool_size", value: "134217728", kind: "BIGINT UNSIGNED"},
		{name: "innodb_log_buffer_size", value: "16777216", kind: "INT UNSIGNED", readOnly: true},
		{name: "time_zone", value: "SYSTEM", kind: "VARCHAR"},
		{name: "wait_timeout", value: "3", origin: "SQL", kind: "BIGINT UNSIGNED"},
		{name: "interactive_timeout", value: "28800", origin: "COMPILE-TIME", kind: "BIGINT UNSIGNED"},
		{name: "back_log", value: "80", origin: "AUTO", kind: "BIGINT UNSIGNED"},
		{name: "general_log_file", value: "/tmp/x", origin: "SQL", kind: "VARCHAR"},
		{name: "log_slow_query_time", value: "10.000000", origin: "CONFIG", kind: "DOUBLE"},
	}
	var text string
	for _, c := range changes(i, variables) {
		text += c.statement() + ";\n"
	}
	enginetest.Golden(t, "changes.sql", text)
}

func TestReloadOfAGroup(t *testing.T) {
	variables := []running{
		{name: replica.WaitingSetting, value: "OFF", origin: "CONFIG", kind: "BOOLEAN"},
		{name: "read_only", value: "OFF", origin: "SQL", kind: "BOOLEAN"},
		{name: "event_scheduler", value: "ON", origin: "SQL", kind: "ENUM"},
		{name: "replicate_wild_ignore_table", value: "a.%,b.%", origin: "CONFIG", kind: "VARCHAR"},
		{name: "sync_relay_log", value: "10000", origin: "COMPILE-TIME", kind: "INT UNSIGNED"},
	}
	statements := func(i engine.Instance) (all []string) {
		for _, c := range changes(i, variables) {
			all = append(all, c.statement())
		}
		return all
	}
	got := statements(mariadbtest.Writer(mariadbtest.Instance(nil).Instance.Member(2)))
	if want := []string{"SET GLOBAL sync_relay_log = 0", "SET GLOBAL " + replica.WaitingSetting + " = 1"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	got = statements(mariadbtest.Instance(nil))
	if want := []string{"SET GLOBAL read_only = DEFAULT", "SET GLOBAL event_scheduler = DEFAULT", "SET GLOBAL " + replica.WaitingSetting + " = DEFAULT"}; !slices.Equal(got, want) {
		t.Errorf("without a group: %q, want %q", got, want)
	}
}
