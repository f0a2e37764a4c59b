package parameter

import (
	_ "embed"
	"strings"
	"sync"

	"kurabe"
)

// Modules are the libraries that a user may have loaded with the server. Each
// is inert by itself and none lets a session reach beyond its own rights.
var Modules = []string{"auto_explain", "pg_hint_plan", "pg_prewarm", "pg_stat_statements", "pgaudit"}

// defaultModule is loaded unless a user says otherwise, as on RDS.
const defaultModule = "pg_stat_statements"

// pageCompression is that of full page images in the log where the server was built
// with it (15 and later). After a checkpoint they are most of the log: a sixth of the
// bytes is left to write, sync, keep and replay (decision 19).
const pageCompression = "lz4"

// preloads are the parameters that name modules. local_preload_libraries is not
// among them: it finds only what is in a folder that does not exist.
var preloads = map[string]bool{"shared_preload_libraries": true, "session_preload_libraries": true}

// WithServer are modules that refuse to be loaded later than the server starts. In
// session_preload_libraries such a one would end every session at its begin, the
// service's own too.
var WithServer = []string{"pgaudit"}

// system are the values that Kurabe gives where the engine's own would not do:
// RDS's formulas of the class, and what the service relies on.
var system = map[string]string{
	"autovacuum_analyze_scale_factor":     "0.05",
	"autovacuum_max_workers":              "GREATEST({DBInstanceClassMemory/64371566592},3)",
	"autovacuum_naptime":                  "15",
	"autovacuum_vacuum_scale_factor":      "0.1",
	"effective_cache_size":                "{DBInstanceClassMemory/16384}",
	"huge_pages":                          "off",
	"idle_in_transaction_session_timeout": "86400000",
	"lc_messages":                         "C",
	"lc_monetary":                         "C",
	"lc_numeric":                          "C",
	"lc_time":                             "C",
	"log_line_prefix":                     LogLinePrefix,
	"log_timezone":                        "UTC",
	"maintenance_work_mem":                "GREATEST({DBInstanceClassMemory*1024/63963136},65536)",
	"max_connections":                     "LEAST({DBInstanceClassMemory/9531392},5000)",
	"password_encryption":                 "scram-sha-256",
	"shared_buffers":                      "{DBInstanceClassMemory/32768}",
	"ssl_min_protocol_version":            "TLSv1.2",
	"timezone":                            "UTC",
	"track_activity_query_size":           "4096",
	"track_io_timing":                     "1",
}

// narrowed are allowed values that are fewer than the engine's.
var narrowed = map[string]string{
	"log_destination":          "stderr,csvlog",
	"ssl_max_protocol_version": ",TLSv1.2,TLSv1.3",
	"ssl_min_protocol_version": "TLSv1.2,TLSv1.3",
	"timezone_abbreviations":   "Default,Australia,India", // the files of timezonesets that are whole by themselves
}

// The reasons why the engine could change something and a user may not.
const (
	whyPlumbing    = "the service sets the server's paths and addresses"
	whyAccess      = "who may log in and how is the service's business"
	whyPrograms    = "it would run a program on the host"
	whyLibraries   = "it would load a library from the host"
	whyDurability  = "an acknowledged write must survive a crash"
	whyReplication = "replication and the log archive are the service's business"
	whyLogs        = "the service reads the logs by this form"
	whyMemory      = "the memory limit of the class would not hold for it"
	whyReserve     = "the service needs its own way in"
	whyFormat      = "dumps and the service's sessions rely on it"
	whySession     = "it holds for one session or transaction and has no lasting value"
	whyDeveloper   = "it is for developers of the engine"
	whyBuild       = "it shows how the server was built or its data folder made"
	WhyUnseen      = "nobody has examined yet whether it is safe for users"
)

var Fixed = map[string]string{
	"plperl.on_init": whyPrograms, "plperl.on_plperl_init": whyPrograms, "plperl.on_plperlu_init": whyPrograms,
	"pltcl.start_proc": whyPrograms, "pltclu.start_proc": whyPrograms,

	"allow_alter_system": whyPlumbing, "cluster_name": whyPlumbing, "config_file": whyPlumbing, "data_directory": whyPlumbing,
	"data_directory_mode": whyPlumbing, "external_pid_file": whyPlumbing, "listen_addresses": whyPlumbing, "port": whyPlumbing,
	"stats_temp_directory": whyPlumbing, "unix_socket_directories": whyPlumbing, "unix_socket_group": whyPlumbing,
	"unix_socket_permissions": whyPlumbing, "event_source": whyPlumbing, "bonjour": whyPlumbing, "bonjour_name": whyPlumbing,
	"file_extend_method": whyPlumbing, "restart_after_crash": whyPlumbing, "exit_on_error": whyPlumbing,

	"hba_file": whyAccess, "ident_file": whyAccess, "ssl": whyAccess, "ssl_ca_file": whyAccess, "ssl_cert_file": whyAccess,
	"ssl_crl_dir": whyAccess, "ssl_crl_file": whyAccess, "ssl_dh_params_file": whyAccess, "ssl_key_file": whyAccess,
	"password_encryption": whyAccess, "db_user_namespace": whyAccess, "krb_caseins_users": whyAccess, "krb_server_keyfile": whyAccess,
	"gss_accept_delegation": whyAccess, "oauth_validator_libraries": whyLibraries,

	"archive_cleanup_command": whyPrograms, "archive_command": whyPrograms, "recovery_end_command": whyPrograms,
	"restore_command": whyPrograms, "ssl_passphrase_command": whyPrograms, "ssl_passphrase_command_supports_reload": whyPrograms,
	"archive_library": whyLibraries, "dynamic_library_path": whyLibraries, "extension_control_path": whyLibraries,
	"extension_destdir": whyLibraries, // Debian's patch: control files and libraries of extensions from below it
	"jit_provider":      whyLibraries, "local_preload_libraries": whyLibraries,

	"fsync": whyDurability, "full_page_writes": whyDurability, "wal_sync_method": whyDurability, "data_sync_retry": whyDurability,
	"recovery_init_sync_method": whyDurability,

	"archive_mode": whyReplication, "archive_timeout": whyReplication, "hot_standby": whyReplication,
	"idle_replication_slot_timeout": whyReplication, "max_active_replication_origins": whyReplication,
	"max_replication_slots": whyReplication, "max_slot_wal_keep_size": whyReplication, "max_wal_senders": whyReplication,
	"primary_conninfo": whyReplication, "primary_slot_name": whyReplication, "promote_trigger_file": whyReplication,
	"recovery_min_apply_delay": whyReplication, "recovery_target": whyReplication,
	"recovery_target_action": whyReplication, "recovery_target_inclusive": whyReplication, "recovery_target_lsn": whyReplication,
	"recovery_target_name": whyReplication, "recovery_target_time": whyReplication, "recovery_target_timeline": whyReplication,
	"recovery_target_xid": whyReplication, "summarize_wal": whyReplication, "sync_replication_slots": whyReplication,
	"synchronized_standby_slots": whyReplication, "synchronous_standby_names": whyReplication, "wal_keep_size": whyReplication,
	"wal_level": whyReplication, "wal_log_hints": whyReplication, "wal_summary_keep_time": whyReplication,

	"lc_messages": whyLogs, "log_directory": whyLogs, "log_file_mode": whyLogs, "log_filename": whyLogs, "log_line_prefix": whyLogs,
	"log_rotation_age": whyLogs, "log_rotation_size": whyLogs, "log_timezone": whyLogs, "log_truncate_on_rotation": whyLogs,
	"logging_collector": whyLogs, "syslog_facility": whyLogs, "syslog_ident": whyLogs, "syslog_sequence_numbers": whyLogs,
	"syslog_split_messages": whyLogs,

	"dynamic_shared_memory_type": whyMemory, "huge_page_size": whyMemory, "huge_pages": whyMemory,
	"min_dynamic_shared_memory": whyMemory, "shared_memory_type": whyMemory, "max_stack_depth": whyMemory,
	"superuser_reserved_connections": whyReserve,

	"client_encoding": whyFormat, "standard_conforming_strings": whyFormat,
}

//go:embed looked.txt
var lookedText string

// looked are the names of the parameters with closed values (numbers, switches,
// words of a list) that somebody has looked at and found a user's to set. One that
// a newer version of the engine or of a module brings is not among them and stays
// fixed until then: docs/checklists/new-parameter.md.
var looked = sync.OnceValue(func() map[string]bool {
	names := map[string]bool{}
	for name := range strings.FieldsSeq(lookedText) {
		names[name] = true
	}
	return names
})

// Free are the parameters of free text that a user may set, each with what keeps
// its text harmless. No other text is a user's: a path, a command or a library can
// be in it.
var Free = map[string]string{
	"application_name":                 "a label of sessions; the form of log lines has no place for it",
	"createrole_self_grant":            "words that the server checks, about what a role that it makes grants itself",
	"datestyle":                        "words that the server checks",
	"default_table_access_method":      "a name, looked up in the catalogue of the database",
	"default_tablespace":               "a name, looked up in the catalogue; only the service could make another tablespace",
	"default_text_search_config":       "a name, looked up in the catalogue of the database",
	"lc_monetary":                      "a locale of the host; the C library takes no name with a slash",
	"lc_numeric":                       "a locale of the host; the C library takes no name with a slash",
	"lc_time":                          "a locale of the host; the C library takes no name with a slash",
	"log_destination":                  "narrowed to the logs that the service reads",
	"pgaudit.log":                      "words that the module checks",
	"pgaudit.log_level":                "words that the module checks",
	"pgaudit.role":                     "the name of a role, compared and not obeyed",
	"restrict_nonsystem_relation_kind": "words that the server checks",
	"search_path":                      "names of schemas; the service's sessions have a path of their own",
	"session_preload_libraries":        "narrowed to the modules on offer",
	"shared_preload_libraries":         "narrowed to the modules on offer",
	"ssl_ciphers":                      "names that OpenSSL checks",
	"ssl_ecdh_curve":                   "a name that OpenSSL checks",
	"ssl_groups":                       "names that OpenSSL checks",
	"ssl_tls13_ciphers":                "names that OpenSSL checks",
	"temp_tablespaces":                 "names, looked up in the catalogue; only the service could make another tablespace",
	"timezone":                         "a zone of the server's own list; it takes no path out of its folder",
	"timezone_abbreviations":           "narrowed to the files that the server brings",
}

// fixedReason says why a parameter is not modifiable, "" when it is. What nobody has
// looked at is not.
func fixedReason(row Setting) string {
	if reason, ok := Fixed[row.Name]; ok {
		return reason
	}
	switch {
	case row.Context == "internal":
		return whyBuild
	case strings.HasPrefix(row.Name, "transaction_") && row.Name != "transaction_timeout":
		return whySession
	case row.Category == "Developer Options":
		return whyDeveloper
	}
	name := strings.ToLower(row.Name)
	if looked()[name] && (row.VarType != "string" || len(row.Enum) > 0) || Free[name] != "" {
		return ""
	}
	return WhyUnseen
}

// Kurabe's own parameters.
const (
	ForceSSL       = "rds.force_ssl"
	ExtensionsList = "rds.extensions"
)

// ownParameters are those that Kurabe honours and the engine does not know.
func ownParameters(o Offer) []kurabe.Parameter {
	return []kurabe.Parameter{
		{
			Name: ForceSSL, Type: "boolean", Allowed: "0,1", Apply: kurabe.ApplyDynamic, Modifiable: true,
			Default: "0", HasDefault: true, System: true, Description: "Forces clients to connect with TLS.",
		},
		{
			Name: ExtensionsList, Type: "list", Apply: kurabe.ApplyStatic, Default: strings.Join(o.Extensions, ","),
			HasDefault: true, System: true, Description: "Lists the extensions that a master user may create.",
			Fixed: "it shows what is installed on the host",
		},
	}
}

// LogLinePrefix is ours, so that entries of the log can be told from their text.
const LogLinePrefix = "%t:%r:%u@%d:[%p]:"
