package target

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"kurabe/lab/dial"
	"kurabe/lab/study"
)

// setting is a parameter as the server tells it.
type setting struct {
	value string // in its unit
	shown string // as people read it
	unit  string // of value: "8kB", "ms"; MariaDB has none
	kind  string // PostgreSQL: bool, integer, real, enum, string
	// context says how PostgreSQL lets it be changed: postmaster, sighup, superuser, ...
	context string
}

const postgresSettings = `SELECT name, setting, current_setting(name), coalesce(unit, ''), vartype, context FROM pg_settings`

// settings asks for every parameter, by name in lower case.
func settings(ctx context.Context, s *dial.Session, engine string) (map[string]setting, error) {
	all := map[string]setting{}
	if engine == study.Postgres {
		rows, err := s.Rows(ctx, postgresSettings)
		if err != nil {
			return nil, fmt.Errorf("ask for the settings: %w", err)
		}
		for _, r := range rows {
			all[strings.ToLower(r[0])] = setting{r[1], r[2], r[3], r[4], r[5]}
		}
		return all, nil
	}
	rows, err := s.Rows(ctx, "SHOW GLOBAL VARIABLES")
	if err != nil {
		return nil, fmt.Errorf("ask for the settings: %w", err)
	}
	for _, r := range rows {
		all[strings.ToLower(r[0])] = setting{value: r[1], shown: r[1]}
	}
	return all, nil
}

// own are settings that name one server or one moment, so that they differ between any
// two servers and say nothing of a variant.
var own = []string{
	"port", "data_directory", "config_file", "hba_file", "ident_file", "external_pid_file", "unix_socket_directories", "listen_addresses",
	"cluster_name", "log_directory", "log_filename", "transaction_read_only", "ssl_ca_file", "ssl_cert_file", "ssl_key_file", "ssl_crl_file", "ssl_crl_dir",
	"application_name", "archive_library",
	"hostname", "pid_file", "socket", "datadir", "server_id", "server_uid", "server_uuid", "timestamp", "rand_seed1", "rand_seed2", "pseudo_thread_id",
	"last_insert_id", "insert_id", "identity", "log_error", "general_log_file", "slow_query_log_file", "log_slow_query_file", "bind_address", "report_host", "report_port",
	"tmpdir", "basedir", "plugin_dir", "lc_messages_dir", "character_sets_dir", "secure_file_priv", "ssl_ca", "ssl_cert", "ssl_key", "ssl_capath", "ssl_crlpath", "ssl_crl",
	"innodb_data_home_dir", "innodb_log_group_home_dir", "innodb_undo_directory", "aria_log_dir_path", "init_file", "log_bin_basename", "log_bin_index",
	"relay_log", "relay_log_basename", "relay_log_index", "relay_log_info_file", "wsrep_node_name", "wsrep_data_home_dir",
	"slave_load_tmpdir", "innodb_tmpdir", "gtid_binlog_pos", "gtid_binlog_state", "gtid_current_pos", "gtid_slave_pos", "gtid_executed", "gtid_purged",
}

// secrets are parts of the names of settings whose value may hold a password; open are
// names that sound so and hold none.
var (
	secrets = []string{"password", "passphrase", "secret", "conninfo", "_command", "sst_auth", "provider_options", "init_connect"}
	open    = []string{"password_encryption", "old_passwords", "strict_password_validation", "default_password_lifetime", "disconnect_on_expired_password"}
)

// hidden stands for the value of a secret.
const hidden = "***"

// show gives the settings for the file: what may be seen and says something.
func show(all map[string]setting) map[string]string {
	out := map[string]string{}
	for name, s := range all {
		if slices.Contains(own, name) {
			continue
		}
		value := s.shown
		secret := slices.ContainsFunc(secrets, func(part string) bool { return strings.Contains(name, part) })
		if secret && !slices.Contains(open, name) && value != "" {
			value = hidden
		}
		out[name] = value
	}
	return out
}

// aliases are the names of the RDS API that MariaDB's variables do not bear.
var aliases = map[string]string{
	"transaction_isolation": "tx_isolation", "transaction_read_only": "tx_read_only", "default_time_zone": "time_zone",
}

func findSetting(all map[string]setting, name string) (setting, bool) {
	name = strings.ToLower(name)
	s, ok := all[name]
	if !ok {
		s, ok = all[aliases[name]]
	}
	return s, ok
}

// verify says which parameters of a variant are not what the server says.
func verify(all map[string]setting, wanted map[string]string) error {
	var wrong []error
	for _, name := range sortedKeys(wanted) {
		want := wanted[name]
		have, known := findSetting(all, name)
		switch {
		case formula(want):
			// Its value is the service's arithmetic, which only the service knows.
		case !known && strings.HasPrefix(name, "rds."):
			// A parameter of the service, not of the engine.
		case !known:
			wrong = append(wrong, fmt.Errorf("parameter %s was accepted, and the server knows no such setting", name))
		case !equal(have, name, want):
			wrong = append(wrong, fmt.Errorf("parameter %s was set to %q and accepted, and the server says %q", name, want, have.shown))
		}
	}
	return errors.Join(wrong...)
}

// formula says whether a value is one that the service computes of the class.
func formula(value string) bool {
	return strings.ContainsAny(value, "{}") || strings.HasPrefix(value, "GREATEST(") || strings.HasPrefix(value, "LEAST(") || strings.HasPrefix(value, "SUM(")
}

// equal compares as the engines read values: words without regard to case, numbers as
// numbers with their units, lists as sets. Libraries may be more than were asked for: a
// service has its own among them.
func equal(have setting, name, want string) bool {
	if strings.EqualFold(have.value, want) || have.shown != "" && strings.EqualFold(have.shown, want) || truth(have.value) != "" && truth(have.value) == truth(want) {
		return true
	}
	if a, ok := quantity(want, have.unit); ok {
		if b, ok := quantity(have.value, have.unit); ok {
			// The engine keeps whole units of what was given in smaller ones.
			const half = 0.5
			return a == b || have.unit != "" && math.Abs(a-b) <= half || math.Abs(a-b) <= 1e-9*math.Abs(a)
		}
	}
	if have.kind != "" && have.kind != "string" {
		return false
	}
	wanted, got := items(want), items(have.value)
	if len(wanted) == 0 || !strings.HasSuffix(name, "_preload_libraries") && len(wanted) != len(got) {
		return false
	}
	return !slices.ContainsFunc(wanted, func(x string) bool { return !slices.Contains(got, x) })
}

// truth is "on" or "off" of the words for them, "" of others.
func truth(value string) string {
	switch strings.ToLower(value) {
	case "1", "on", "true", "yes":
		return "on"
	case "0", "off", "false", "no":
		return "off"
	}
	return ""
}

// units are of bytes and of milliseconds.
var units = map[string]float64{
	"b": 1, "kb": 1 << 10, "mb": 1 << 20, "gb": 1 << 30, "tb": 1 << 40, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40,
	"us": 1e-3, "ms": 1, "s": 1e3, "min": 60e3, "h": 3600e3, "d": 86400e3,
}

// quantity is a number in a base unit, such as "8kB".
func quantity(text, base string) (float64, bool) {
	number, suffix := cutUnit(text)
	value, err := strconv.ParseFloat(number, 64)
	if err != nil {
		return 0, false
	}
	if suffix == "" {
		return value, true
	}
	factor, ok := units[strings.ToLower(suffix)]
	if !ok {
		return 0, false
	}
	if base == "" {
		return value * factor, true
	}
	number, suffix = cutUnit(base)
	count, err := strconv.ParseFloat(number, 64)
	if err != nil {
		count = 1 // "kB" is one of them
	}
	one, ok := units[strings.ToLower(suffix)]
	return value * factor / (count * one), ok && count > 0
}

// cutUnit divides "128 MB".
func cutUnit(text string) (number, unit string) {
	n := strings.LastIndexAny(text, "0123456789.") + 1
	return strings.TrimSpace(text[:n]), strings.TrimSpace(text[n:])
}

// items of a list, in lower case.
func items(list string) []string {
	var out []string
	for item := range strings.SplitSeq(list, ",") {
		if item = strings.ToLower(strings.Trim(strings.TrimSpace(item), `"'`)); item != "" {
			out = append(out, item)
		}
	}
	return out
}
