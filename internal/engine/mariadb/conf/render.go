package conf

import (
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"kurabe/internal/engine"
	"kurabe/internal/engine/mariadb/binlog"
	"kurabe/internal/engine/mariadb/guard"
	"kurabe/internal/engine/mariadb/parameter"
	"kurabe/internal/engine/mariadb/role"
)

// The files in Home.ConfDir. The folder is the server's plugin folder too, so it
// has no other library to load than ours.
const (
	SettingsFile = "my.cnf"
	guardFile    = "kurabe_guard.so"
)

// The logs below Home.LogDir. The API shows them as error/mysql-error.log,
// slowquery/mysql-slowquery.log and general/mysql-general.log.
const (
	ErrorLog   = "mysql-error.log"
	SlowLog    = "mysql-slowquery.log"
	GeneralLog = "mysql-general.log"
)

// Render are the files of an instance's settings folder, by name. pluginDir is where other
// plugins of the host may be.
func Render(i engine.Instance, guardPlugin, pluginDir string) map[string]string {
	files := map[string]string{SettingsFile: renderSettings(i), guardFile: guardPlugin}
	if plugin := ReadPassword(i, pluginDir); plugin != "" {
		files[PasswordFile] = plugin
		files[SettingsFile] += "\n# Of the host.\n" + PasswordOption.String()
	}
	return files
}

func renderSettings(i engine.Instance) string {
	var b strings.Builder
	b.WriteString("# Rendered by Kurabe. Changes are overwritten.\n" + followsWhom(i) + "[mariadbd]\n\n# The service's own.\n")
	for _, o := range Plumbing(i) {
		b.WriteString(o.String())
	}
	b.WriteString("\n# The parameter group's.\n")
	for _, o := range Chosen(i) {
		b.WriteString(o.String())
	}
	return b.String()
}

// Chosen are the settings of the parameter group, in the order of their names,
// and the character set of the instance unless the group has one.
func Chosen(i engine.Instance) []Option {
	own := map[string]bool{}
	for _, o := range Plumbing(i) {
		own[o.Name] = true
	}
	settings := characterSet(i.Assignment)
	maps.Copy(settings, i.Settings)
	var options []Option
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		// The service's own wins; both can only meet by a mistake of ours.
		if !own[name] && optionName.MatchString(name) {
			options = append(options, Option{parameter.OptionOf(name), settings[name]})
		}
	}
	return options
}

// Plumbing is what the service sets and nobody else may.
func Plumbing(i engine.Instance) []Option {
	seen := i.Seen()
	share := ShareDir(i.Version.BinDir)
	own := append(binlogging(i), []Option{
		{"basedir", filepath.Dir(i.Version.BinDir)},
		{"lc_messages_dir", share},
		{"character_sets_dir", filepath.Join(share, "charsets")},
		{"datadir", seen.DataDir()},
		{"tmpdir", filepath.Join(seen.DataDir(), TempDir)},
		{"pid_file", filepath.Join(seen.RunDir(), "mysqld.pid")},
		{"ignore_db_dirs", TempDir},
		// No local socket: a client on it would be at host "localhost".
		{"socket", ""},
		{"bind_address", i.Listens()},
		{"port", strconv.Itoa(i.Port)},
		{"extra_port", "0"},
		{"skip_name_resolve", "1"},
		{"server_id", role.ServerID(i.Instance)},

		{"plugin_dir", seen.ConfDir()},
		{"plugin_load_add", strings.TrimSuffix(guardFile, ".so")},
		{"kurabe_guard", "FORCE_PLUS_PERMANENT"},
		{"kurabe_guard_socket", guard.SocketSetting},
		{"kurabe_guard_peer_uid", peerUID(i)},
		// A folder that the server can neither write nor find data in.
		{"secure_file_priv", seen.ConfDir()},
		{"symbolic_links", "0"},

		{"ssl_key", filepath.Join(seen.TLSDir(), "server.key")},
		{"ssl_cert", filepath.Join(seen.TLSDir(), "server.crt")},
		{"ssl_ca", filepath.Join(seen.TLSDir(), "ca.pem")},

		{"log_error", filepath.Join(seen.LogDir(), ErrorLog)},
		{"slow_query_log_file", filepath.Join(seen.LogDir(), SlowLog)},
		{"general_log_file", filepath.Join(seen.LogDir(), GeneralLog)},
		{"innodb_checksum_algorithm", "full_crc32"},
		{"innodb_doublewrite", "1"},
	}...)
	return append(own, groupSettings(i)...)
}

// binlogging are the options of the binary log, none without one: the continuous log is
// taken from it, and followers are. Row format is exact whatever a statement does; nothing
// but the service purges, so that what is not kept elsewhere yet is there after any time;
// and where it is 1, sync_binlog means that an acknowledged commit is on the disk in the
// log too.
func binlogging(i engine.Instance) []Option {
	if !role.KeepsBinlog(i) {
		return nil
	}
	return []Option{
		// Relative to the data folder: the index then names files of its own folder,
		// also in a copy.
		{"log_bin", binlog.BaseName},
		{"log_bin_index", binlog.BaseName + ".index"},
		{"sync_binlog", "1"},
		{"binlog_format", "ROW"},
		{"binlog_checksum", "CRC32"},
		{"max_binlog_size", strconv.Itoa(binlogBytes)},
		{"expire_logs_days", "0"},
		{"encrypt_binlog", "0"},
		{"binlog_alter_two_phase", "0"},
	}
}

// binlogBytes is when the server begins another file: some seconds of a busy one.
const binlogBytes = 64 << 20

// peerUID is whom the guard listens to: root where the engine has a user of its
// own, else the server's own.
func peerUID(i engine.Instance) string {
	if i.User == nil {
		return "-1"
	}
	return "0"
}
