package mariadb

import (
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"kurabe/internal/engine"
	"kurabe/internal/engine/mariadb/binlog"
	"kurabe/internal/engine/mariadb/guard"
	"kurabe/internal/engine/mariadb/role"
	"kurabe/internal/engine/scratch"
)

// The files in Home.ConfDir. The folder is the server's plugin folder too, so it
// has no other library to load than ours.
const (
	settingsFile = "my.cnf"
	guardFile    = "kurabe_guard.so"
)

// The logs below Home.LogDir. The API shows them as error/mysql-error.log,
// slowquery/mysql-slowquery.log and general/mysql-general.log.
const (
	errorLog   = "mysql-error.log"
	slowLog    = "mysql-slowquery.log"
	generalLog = "mysql-general.log"
)

// Render implements engine.Driver.
func (d *Driver) Render(i engine.Instance) map[string]string {
	files := map[string]string{settingsFile: renderSettings(i), guardFile: d.guard}
	if plugin := readPassword(i, d.pluginDir); plugin != "" {
		files[passwordFile] = plugin
		files[settingsFile] += "\n# Of the host.\n" + passwordOption.String()
	}
	return files
}

func renderSettings(i engine.Instance) string {
	var b strings.Builder
	b.WriteString("# Rendered by Kurabe. Changes are overwritten.\n" + followsWhom(i) + "[mariadbd]\n\n# The service's own.\n")
	for _, o := range plumbing(i) {
		b.WriteString(o.String())
	}
	b.WriteString("\n# The parameter group's.\n")
	for _, o := range chosen(i) {
		b.WriteString(o.String())
	}
	return b.String()
}

// chosen are the settings of the parameter group, in the order of their names,
// and the character set of the instance unless the group has one.
func chosen(i engine.Instance) []option {
	own := map[string]bool{}
	for _, o := range plumbing(i) {
		own[o.name] = true
	}
	settings := characterSet(i.Assignment)
	maps.Copy(settings, i.Settings)
	var options []option
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		// The service's own wins; both can only meet by a mistake of ours.
		if !own[name] && optionName.MatchString(name) {
			options = append(options, option{optionOf(name), settings[name]})
		}
	}
	return options
}

// plumbing is what the service sets and nobody else may.
func plumbing(i engine.Instance) []option {
	seen := i.Seen()
	share := shareDir(i.Version.BinDir)
	own := append(binlogging(i), []option{
		{"basedir", filepath.Dir(i.Version.BinDir)},
		{"lc_messages_dir", share},
		{"character_sets_dir", filepath.Join(share, "charsets")},
		{"datadir", seen.DataDir()},
		{"tmpdir", filepath.Join(seen.DataDir(), tempDir)},
		{"pid_file", filepath.Join(seen.RunDir(), "mysqld.pid")},
		{"ignore_db_dirs", tempDir},
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

		{"log_error", filepath.Join(seen.LogDir(), errorLog)},
		{"slow_query_log_file", filepath.Join(seen.LogDir(), slowLog)},
		{"general_log_file", filepath.Join(seen.LogDir(), generalLog)},
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
func binlogging(i engine.Instance) []option {
	if !role.KeepsBinlog(i) {
		return nil
	}
	return []option{
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

// Command implements engine.Driver. The options come first in the file's favour:
// --defaults-file keeps the host's own /etc/mysql out.
func (d *Driver) Command(i engine.Instance) engine.Command {
	return engine.Command{
		Argv: []string{serverPath(i.Version.BinDir), "--defaults-file=" + filepath.Join(i.Seen().ConfDir(), settingsFile)},
		Env:  scratch.Env(),
	}
}

// toolEnv is the whole environment of a program: messages in English, so that we
// can read them, and no setting of the caller's that could redirect it.
