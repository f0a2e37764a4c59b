package result

import (
	"maps"
	"slices"
	"strings"
)

// Difference is a setting that two sides do not have the same, "" where one does not
// have it.
type Difference struct{ Name, Baseline, Value string }

// byNature are settings that differ between any two servers, or between two moments of
// one, and tell nothing of a variant: where the server lives and listens, what it is
// called, what time it is.
var byNature = []string{
	// PostgreSQL
	"archive_command", "cluster_name", "config_file", "data_directory", "external_pid_file", "hba_file", "ident_file",
	"listen_addresses", "log_directory", "log_filename", "port", "primary_conninfo", "primary_slot_name", "restore_command",
	"recovery_target_time", "ssl_ca_file", "ssl_cert_file", "ssl_crl_file", "ssl_key_file", "stats_temp_directory",
	"unix_socket_directories", "application_name", "in_hot_standby",
	// MariaDB and MySQL
	"admin_port", "aria_log_dir_path", "bind_address", "datadir", "error_count", "external_user", "general_log_file",
	"hostname", "identity", "in_transaction", "init_file", "innodb_data_home_dir", "innodb_log_group_home_dir",
	"innodb_temp_data_file_path", "innodb_tmpdir", "innodb_undo_directory", "insert_id", "last_gtid", "last_insert_id",
	"log_bin_basename", "log_bin_index", "log_error", "pid_file", "proxy_user", "pseudo_thread_id", "rand_seed1",
	"rand_seed2", "relay_log", "relay_log_basename", "relay_log_index", "relay_log_info_file", "report_host",
	"report_port", "secure_file_priv", "server_id", "server_uid", "server_uuid", "skip_replication",
	"slave_load_tmpdir", "slow_query_log_file", "socket", "ssl_ca", "ssl_cert", "ssl_key", "timestamp", "tls_ca",
	"tmpdir", "warning_count", "wsrep_node_address", "wsrep_node_name",
}

// byNaturePrefixes begin the names of positions in the log, which every write moves.
var byNaturePrefixes = []string{"gtid_", "recovery_target_lsn"}

// EnvironmentDiff says by variant which settings differ from the baseline's, by name:
// it should be what the variant changes and nothing else. A variant without a record of
// its settings, or with none of the baseline's, is not in it; one without a difference
// has an empty list.
func EnvironmentDiff(f *File) map[string][]Difference {
	all := map[string][]Difference{}
	baseline := f.Study.Definition.Baseline
	if f.Settings[baseline] == nil {
		return all
	}
	for variant, values := range f.Settings {
		if variant != baseline {
			all[variant] = differences(f.Settings[baseline], values)
		}
	}
	return all
}

// differences leaves out what differs by nature.
func differences(a, b map[string]string) []Difference {
	names := map[string]bool{}
	for name := range a {
		names[name] = true
	}
	for name := range b {
		names[name] = true
	}
	diff := []Difference{}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if a[name] != b[name] && !differsByNature(name) {
			diff = append(diff, Difference{name, a[name], b[name]})
		}
	}
	return diff
}

func differsByNature(name string) bool {
	name = strings.ToLower(name)
	return slices.Contains(byNature, name) || slices.ContainsFunc(byNaturePrefixes, func(p string) bool { return strings.HasPrefix(name, p) })
}
