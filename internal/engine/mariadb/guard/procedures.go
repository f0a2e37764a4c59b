package guard

import "fmt"

// procedure is one of RDS's, in the system schema. It runs with the rights of
// mariadb.sys, which are none, and asks kurabe_guard (procedures.c) by setting a
// variable that takes a value from that account alone. So who may call it is who
// may execute it, and nobody needs a right that also changes settings.
type procedure struct{ name, parameters, variable, value string }

var Procedures = []procedure{
	{"rds_kill", "IN thread BIGINT", "kill", "IFNULL(thread, 0)"},
	{"rds_kill_query", "IN thread BIGINT", "kill_query", "IFNULL(thread, 0)"},
	{"rds_innodb_buffer_pool_dump_now", "", "buffer_pool", "QUOTE('dump_now')"},
	{"rds_innodb_buffer_pool_load_now", "", "buffer_pool", "QUOTE('load_now')"},
	{"rds_innodb_buffer_pool_load_abort", "", "buffer_pool", "QUOTE('load_abort')"},
}

// body is dynamic: when a template is made, the plugin is not there to have the
// variable.
func (p procedure) body() string {
	return fmt.Sprintf("EXECUTE IMMEDIATE CONCAT('SET SESSION kurabe_guard_%s = ', %s)", p.variable, p.value)
}

func (p procedure) SQL() string {
	return fmt.Sprintf("CREATE OR REPLACE DEFINER=`mariadb.sys`@`localhost` PROCEDURE mysql.%s(%s) SQL SECURITY DEFINER %s", p.name, p.parameters, p.body())
}

// OwnerSQL restores the owner of the server's own views and of the guards'
// triggers and procedures, which TRUNCATE can take away. Without it they refuse
// everybody.
var OwnerSQL = []string{
	"CREATE USER IF NOT EXISTS 'mariadb.sys'@'localhost' ACCOUNT LOCK PASSWORD EXPIRE",
	"GRANT SELECT, DELETE ON mysql.global_priv TO 'mariadb.sys'@'localhost'",
	OwnerGrant,
}

const OwnerGrant = "GRANT TRIGGER, EXECUTE ON mysql.* TO 'mariadb.sys'@'localhost'"
