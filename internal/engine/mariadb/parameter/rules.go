package parameter

import (
	_ "embed"
	"strings"
	"sync"
)

// System are the values that Kurabe gives where the engine's own would not do:
// RDS's formulas of the class, and what the service relies on.
//
// RDS gives the buffer pool 3/4 of a memory that leaves out what its host needs.
// Here DBInstanceClassMemory is the class's whole memory, enforced by a control
// group, and 3/4 does not fit: DESIGN.md has the sum and the measurement.
var System = map[string]string{
	"aria_pagecache_buffer_size": "{DBInstanceClassMemory/64}",
	"innodb_buffer_pool_size":    "{DBInstanceClassMemory*5/8}",
	"innodb_log_file_size":       "134217728",
	"key_buffer_size":            "{DBInstanceClassMemory/64}",
	// Rows are logged, not statements, so a trigger or function of anybody is safe in
	// the binary log; keeping a log must not take away the right to make one.
	"log_bin_trust_function_creators": "1",
	"max_connections":                 "LEAST({DBInstanceClassMemory/12582880},12000)",
	"max_heap_table_size":             "LEAST({DBInstanceClassMemory/256},16777216)",
	"tls_version":                     "TLSv1.2,TLSv1.3",
	"tmp_table_size":                  "LEAST({DBInstanceClassMemory/256},16777216)",
}

// narrowed are allowed values that are fewer than the engine's.
var narrowed = map[string]string{
	"lower_case_table_names": "0,1", // 2 is for file systems that Linux has not
	"tls_version":            "TLSv1.2,TLSv1.3",
}

// unset have a value of their own for each instance (see characterSet), so none
// can be shown here.
var unset = map[string]bool{"character_set_server": true, "collation_server": true}

// The reasons why the engine could change something and a user may not.
const (
	whyPlumbing    = "the service sets the server's paths and addresses"
	whyAccess      = "the service controls authentication"
	whyLibraries   = "it would load a library or run a program of the host"
	whyDurability  = "an acknowledged write must survive a crash"
	whyReplication = "the service controls replication and the binary log"
	whyLog         = "restoring to a moment rests on it"
	whyCluster     = "the service does not form clusters of this kind"
	whyEncryption  = "it needs a key management that the service does not offer"
	whyLogs        = "the service reads the logs in their places"
	whyMemory      = "the memory limit of the class would not hold for it"
	whyStop        = "the service controls shutdown and recovery"
	whyMade        = "it is fixed when the data folder is created"
	whySession     = "it holds for one session or statement and has no lasting value"
	whyCommand     = "it is a command in the form of a setting"
	whyAlias       = "it is a second name of a parameter, so two values could conflict"
	whyBuild       = "it shows how the server was built or what it does"
	WhyUnseen      = "nobody has examined yet whether it is safe for users"
)

var fixed = map[string]string{
	"aria_log_dir_path": whyPlumbing, "basedir": whyPlumbing, "bind_address": whyPlumbing, "character_sets_dir": whyPlumbing,
	"core_file": whyPlumbing, "datadir": whyPlumbing, "extra_max_connections": whyPlumbing, "extra_port": whyPlumbing,
	"ignore_db_dirs": whyPlumbing, "init_file": whyPlumbing, "innodb_buffer_pool_filename": whyPlumbing,
	"innodb_data_file_path": whyPlumbing, "innodb_data_home_dir": whyPlumbing, "innodb_log_group_home_dir": whyPlumbing,
	"innodb_temp_data_file_path": whyPlumbing, "innodb_tmpdir": whyPlumbing, "innodb_undo_directory": whyPlumbing,
	"lc_messages": whyLogs, "lc_messages_dir": whyPlumbing, "open_files_limit": whyPlumbing, "pid_file": whyPlumbing,
	"port": whyPlumbing, "skip_external_locking": whyPlumbing, "skip_networking": whyPlumbing, "socket": whyPlumbing, "tmpdir": whyPlumbing,

	"proxy_protocol_networks": whyAccess, "secure_file_priv": whyAccess, "skip_grant_tables": whyAccess, "skip_name_resolve": whyAccess,
	"ssl_ca": whyAccess, "ssl_capath": whyAccess, "ssl_cert": whyAccess, "ssl_cipher": whyAccess, "ssl_crl": whyAccess,
	"ssl_crlpath": whyAccess, "ssl_key": whyAccess,

	"allow_suspicious_udfs": whyLibraries, "plugin_dir": whyLibraries, "plugin_maturity": whyLibraries, "enforce_storage_engine": whyLibraries,
	"ignore_builtin_innodb": whyLibraries, "ft_stopword_file": whyLibraries,

	"binlog_alter_two_phase": whyLog, "binlog_checksum": whyLog, "binlog_format": whyLog, "expire_logs_days": whyLog,
	"max_binlog_size": whyLog, "sync_binlog": whyLog,

	"innodb_checksum_algorithm": whyDurability, "innodb_doublewrite": whyDurability, "innodb_flush_method": whyDurability,
	"innodb_use_atomic_writes": whyDurability, "aria_page_checksum": whyDurability,

	"innodb_fast_shutdown": whyStop, "innodb_force_recovery": whyStop, "innodb_read_only": whyStop,
	"aria_force_start_after_recovery_failures": whyStop, "aria_recover_options": whyStop,

	"aria_block_size": whyMade, "innodb_page_size": whyMade, "innodb_undo_tablespaces": whyMade,

	"aria_encrypt_tables": whyEncryption, "encrypt_binlog": whyEncryption, "encrypt_tmp_disk_tables": whyEncryption, "encrypt_tmp_files": whyEncryption,

	"default_master_connection": whyReplication, "init_slave": whyReplication, "log_slave_updates": whyReplication,
	"master_verify_checksum": whyReplication, "max_relay_log_size": whyReplication, "read_binlog_speed_limit": whyReplication,
	"read_only": whyReplication, "server_id": whyReplication, "sql_slave_skip_counter": whyReplication,
	"sync_master_info": whyReplication, "sync_relay_log": whyReplication, "sync_relay_log_info": whyReplication,

	"general_log_file": whyLogs, "log_error": whyLogs, "log_slow_query_file": whyLogs, "slow_query_log_file": whyLogs,

	// The names of the pair that RDS has not.
	"log_slow_query": whyAlias, "log_slow_query_time": whyAlias, "log_slow_min_examined_row_limit": whyAlias,
	"tmp_memory_table_size": whyAlias, "storage_engine": whyAlias, "binlog_expire_logs_seconds": whyAlias,
	"innodb_use_native_aio": whyPlumbing,

	"large_page_size": whyMemory, "large_pages": whyMemory, "innodb_numa_interleave": whyMemory,

	"innodb_buffer_pool_dump_now": whyCommand, "innodb_buffer_pool_load_abort": whyCommand, "innodb_buffer_pool_load_now": whyCommand,
	"innodb_ft_aux_table": whyCommand, "innodb_log_checkpoint_now": whyCommand, "innodb_max_purge_lag_wait": whyCommand,
}

// families are fixed by how their names begin.
var families = []struct{ prefix, reason string }{
	{"wsrep_", whyCluster},
	{"gtid_", whyReplication}, {"log_bin", whyReplication}, {"relay_log", whyReplication}, {"replicate_", whyReplication},
	{"report_", whyReplication}, {"rpl_semi_sync_", whyReplication}, {"slave_", whyReplication},
	{"innodb_encrypt", whyEncryption}, {"innodb_default_encryption", whyEncryption},
}

// unlike are not what their family is: a user may change them, as on RDS.
var unlike = map[string]bool{
	"log_bin_trust_function_creators": true, "log_bin_compress": true, "log_bin_compress_min_len": true,
}

//go:embed looked.txt
var lookedText string

// Looked are the names of the variables with closed values (numbers, switches,
// words of a list) that somebody has looked at and found a user's to set. One that
// a newer version of the server brings is not among them and stays fixed until
// then: docs/checklists/new-parameter.md.
var Looked = sync.OnceValue(func() map[string]bool {
	names := map[string]bool{}
	for name := range strings.FieldsSeq(lookedText) {
		names[name] = true
	}
	return names
})

// Free are the variables of free text that a user may set, each with what keeps its
// text harmless. No other text is a user's: a path, a command or a library can be in
// it.
var Free = map[string]string{
	"date_format":                     "the server ignores it",
	"datetime_format":                 "the server ignores it",
	"default_storage_engine":          "the name of an engine that is loaded; loading one is the service's",
	"default_tmp_storage_engine":      "the name of an engine that is loaded; loading one is the service's",
	"ft_boolean_syntax":               "signs that the server checks",
	"init_connect":                    "statements that run with the rights of whoever connects",
	"innodb_ft_server_stopword_table": "the name of an InnoDB table, of which one column is compared with words",
	"innodb_ft_user_stopword_table":   "the name of an InnoDB table, of which one column is compared with words",
	"innodb_monitor_disable":          "names of counters",
	"innodb_monitor_enable":           "names of counters",
	"innodb_monitor_reset":            "names of counters",
	"innodb_monitor_reset_all":        "names of counters",
	"session_track_system_variables":  "names of variables, of which a client is told",
	"system_versioning_asof":          "a moment that the server checks",
	"time_format":                     "the server ignores it",
	"time_zone":                       "a zone out of the server's tables",
}

// options are the variables that the server's command line calls otherwise, or
// does not tell of in information_schema.
var options = map[string]string{
	"autocommit": "autocommit", "character_set_filesystem": "character_set_filesystem",
	"character_set_server": "character_set_server", "collation_server": "collation_server",
	"default_storage_engine": "default_storage_engine", "default_tmp_storage_engine": "default_tmp_storage_engine",
	"lc_time_names": "lc_time_names", "time_zone": "default_time_zone", "tx_isolation": "transaction_isolation",
	"tx_read_only": "transaction_read_only",
}

// OptionOf and VariableOf go from one name to the other.
func OptionOf(variable string) string {
	if name, ok := options[variable]; ok {
		return name
	}
	return variable
}

func VariableOf(option string) string {
	for variable, name := range options {
		if name == option {
			return variable
		}
	}
	return option
}

// fixedReason says why a parameter is not modifiable, "" when it is.
func fixedReason(v Variable) string {
	if reason, ok := fixed[v.Name]; ok {
		return reason
	}
	for _, f := range families {
		if strings.HasPrefix(v.Name, f.prefix) && !unlike[v.Name] {
			return f.reason
		}
	}
	switch {
	case v.Scope == "SESSION ONLY":
		return whySession
	case options[v.Name] == "" && v.Argument == nil && v.ReadOnly == "YES":
		return whyBuild
	case options[v.Name] == "" && v.Argument == nil:
		// No file can carry it, so it would be lost with the next start.
		return whySession
	case Looked()[v.Name] && !freeText(v) || Free[v.Name] != "":
		return ""
	}
	return WhyUnseen
}

// freeText says whether the server takes any text for a variable.
func freeText(v Variable) bool { return dataType(v) == "string" && v.Type != "ENUM" }
