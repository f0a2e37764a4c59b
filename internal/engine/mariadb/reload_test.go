package mariadb

import (
	"testing"

	"kurabe/internal/engine/enginetest"
	"kurabe/internal/engine/mariadb/mariadbtest"
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
