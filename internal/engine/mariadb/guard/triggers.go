package guard

import (
	"fmt"
	"strings"
)

// Guarded are the tables that say who may do what, load libraries or hold code;
// the list is kurabe_guard's too. An account statement writes to them directly,
// every other statement through the row interface that fires triggers.
var Guarded = []string{
	"columns_priv", "db", "event", "func", "global_priv", "plugin", "proc", "procs_priv", "proxies_priv",
	"roles_mapping", "servers", "tables_priv",
}

// TriggerFiles are the trigger files of the guarded tables, by name. They are
// written by hand: the server makes none in its own schema, but obeys them.
//
// The .TRN files that go with triggers are left out on purpose. They are how DROP
// TRIGGER finds its table; with one, in the closed folder, it fails to change the
// .TRG file but forgets the trigger in memory, which under LOCK TABLES is a hole
// (DESIGN.md, "what nearly worked").
func TriggerFiles() map[string]string {
	files := map[string]string{}
	for _, table := range Guarded {
		files[table+".TRG"] = triggerFile(table)
	}
	return files
}

var events = []string{"INSERT", "UPDATE", "DELETE"}

func triggerFile(table string) string {
	var bodies []string
	for _, event := range events {
		bodies = append(bodies, fmt.Sprintf("CREATE DEFINER=`mariadb.sys`@`localhost` TRIGGER kurabe_%s_%s BEFORE %s ON %s FOR EACH ROW "+
			`SIGNAL SQLSTATE \'42000\' SET MYSQL_ERRNO = 1142, MESSAGE_TEXT = \'mysql.%s is changed by account statements only\'`,
			table, strings.ToLower(event), event, table, table))
	}
	// One value for each trigger. The format is that of parse_file.cc.
	each := func(value string) string { return strings.TrimSpace(strings.Repeat(value+" ", len(events))) }
	lines := []string{
		"TYPE=TRIGGERS",
		"triggers='" + strings.Join(bodies, "' '") + "'",
		"sql_modes=" + each("0"),
		"definers=" + each("'mariadb.sys@localhost'"),
		"client_cs_names=" + each("'utf8mb3'"),
		"connection_cl_names=" + each("'utf8mb3_general_ci'"),
		"db_cl_names=" + each("'utf8mb3_general_ci'"),
		"created=" + each("0"),
	}
	return strings.Join(lines, "\n") + "\n"
}
