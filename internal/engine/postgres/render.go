package postgres

import (
	"fmt"
	"maps"
	"net"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"kurabe"
	"kurabe/internal/engine"
	"kurabe/internal/engine/postgres/parameter"
	"kurabe/internal/engine/scratch"
)

// The files in Home.ConfDir.
const (
	settingsFile = "postgresql.conf"
	accessFile   = "pg_hba.conf"
	identFile    = "pg_ident.conf"
)

const (
	logNamePrefix = "postgresql.log."
	logName       = logNamePrefix + "%Y-%m-%d-%H"
	// socketDir is relative to the data folder, where the server works. An
	// absolute path would meet the 107 bytes that a socket address can hold.
	socketDir = "../run"
)

// line is one setting of the rendered file.
type line struct{ name, value string }

// Render implements engine.Driver.
func (d *Driver) Render(i engine.Instance) map[string]string {
	return map[string]string{
		settingsFile: renderSettings(i),
		accessFile:   renderAccess(i),
		identFile:    d.renderIdent(i),
	}
}

func renderSettings(i engine.Instance) string {
	var b strings.Builder
	b.WriteString("# Rendered by Kurabe. Changes are overwritten.\n\n# The service's own.\n")
	own := plumbing(i)
	taken := map[string]bool{}
	for _, l := range own {
		taken[l.name] = true
		writeLine(&b, l)
	}
	b.WriteString("\n# The parameter group's.\n")
	for _, name := range slices.Sorted(maps.Keys(i.Settings)) {
		// The service's own wins; both can only meet by a mistake of ours.
		if !taken[name] && settingName.MatchString(name) {
			writeLine(&b, line{name, i.Settings[name]})
		}
	}
	return b.String()
}

// settingName is what may stand before an equals sign. The catalogue holds no
// other name; a record that does must not be able to write a second line.
var settingName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_$]*(\.[A-Za-z_][A-Za-z0-9_$]*)?$`)

func writeLine(b *strings.Builder, l line) {
	fmt.Fprintf(b, "%s = %s\n", l.name, quoteSetting(l.value))
}

// plumbing is what the service sets and nobody else may.
func plumbing(i engine.Instance) []line {
	seen := i.Seen()
	lines := []line{
		{"cluster_name", clusterName(i)},
		{"listen_addresses", i.Listens()},
		{"port", strconv.Itoa(i.Port)},
		{"unix_socket_directories", socketDir},
		{"unix_socket_permissions", "0700"},
		{"hba_file", filepath.Join(seen.ConfDir(), accessFile)},
		{"ident_file", filepath.Join(seen.ConfDir(), identFile)},
		{"ssl", "on"},
		{"ssl_cert_file", filepath.Join(seen.TLSDir(), "server.crt")},
		{"ssl_key_file", filepath.Join(seen.TLSDir(), "server.key")},
		{"password_encryption", "scram-sha-256"},
		{"logging_collector", "on"},
		{"log_directory", seen.LogDir()},
		{"log_filename", logName},
		{"log_file_mode", "0600"},
		{"log_rotation_age", "60"},
		{"log_rotation_size", "0"}, // The name changes by the hour only; a rotation by size would reopen the same file.
		{"log_truncate_on_rotation", "off"},
		{"log_line_prefix", parameter.LogLinePrefix},
		{"log_timezone", "UTC"},
		{"lc_messages", "C"},
		{"wal_level", "replica"},
		// The server's own defaults, for a group: a line that goes away while the server runs
		// is a static setting that changed.
		{"hot_standby", "on"},
		{"max_wal_senders", "10"},
		{"max_replication_slots", "10"},
		{"archive_mode", "off"},
		{"max_slot_wal_keep_size", strconv.FormatInt(slotKeepBytes(i.Limits.StorageBytes)>>20, 10) + "MB"},
		{"huge_pages", "off"},
		{parameter.ExtensionsList, strings.Join(i.Version.Extensions, ",")},
	}
	const allowAlterSystemMajor = 17
	if majorOf(i.Version) >= allowAlterSystemMajor {
		lines = append(lines, line{"allow_alter_system", "off"})
	}
	return append(append(lines, topologySettings(i)...), groupSettings(i)...)
}

// slotKeepBytes is how much log may wait for whoever stores it elsewhere. When that
// stands still, the server must not fill the instance's storage for it: beyond a tenth
// of it the log is given up, with a gap that the next snapshot closes. The least is
// what a burst of some seconds writes, the most what a store can catch up with.
func slotKeepBytes(storageBytes int64) int64 {
	const least, most = 256 << 20, 16 << 30
	return min(max(storageBytes/10, least), most)
}

// clusterName shows which instance a process belongs to. The engine cuts names
// at 63 bytes.
func clusterName(i engine.Instance) string {
	const nameBytesMax = 63
	return i.Name[:min(len(i.Name), nameBytesMax)]
}

// renderAccess is first match wins. Nobody but the service comes in by the
// socket, and the service's role by nothing else, but for those who follow.
func renderAccess(i engine.Instance) string {
	rules := []string{
		"# Rendered by Kurabe. Changes are overwritten.",
		"local all " + adminRole + " peer map=kurabe",
		"local replication " + adminRole + " peer map=kurabe",
		"local all all reject",
		"local replication all reject",
	}
	rules = append(append(rules, memberRules(i)...),
		"host all "+adminRole+" all reject",
		// The word all does not include physical replication, which would copy
		// the whole data folder.
		"host replication all all reject",
	)
	return strings.Join(append(rules, clientRules(i)...), "\n") + "\n"
}

// on reads a boolean as the engine does.
func on(value string) bool {
	return slices.Contains([]string{"1", "on", "true", "yes", "t", "y"}, strings.ToLower(strings.TrimSpace(value)))
}

// endpoint is the advertised address.
func endpoint(i engine.Instance) string { return net.JoinHostPort(i.Address, strconv.Itoa(i.Port)) }

// listening is where the server itself is reached.
func listening(i engine.Instance) string { return net.JoinHostPort(i.Listens(), strconv.Itoa(i.Port)) }

// postmasterOOM spares the postmaster, as the manual's "Linux Memory Overcommit"
// advises: it survives a killed session and restarts the others by itself.
const postmasterOOM = -900

// Command implements engine.Driver.
func (d *Driver) Command(i engine.Instance) engine.Command {
	seen := i.Seen()
	return engine.Command{
		Argv: []string{
			filepath.Join(i.Version.BinDir, "postgres"),
			"-D", seen.DataDir(), "-c", "config_file=" + filepath.Join(seen.ConfDir(), settingsFile),
		},
		Env: append(scratch.Env(),
			// Sessions can open connections of their own (dblink, postgres_fdw);
			// no file of the engine's account may add a password or a service.
			"PGPASSFILE=/dev/null", "PGSERVICEFILE=/dev/null", "PGSYSCONFDIR=/nonexistent",
			// PostGIS's PROJ would look for its database in /tmp/proj first, where
			// any user of the host can put one; and it must not fetch grids.
			"PROJ_SKIP_READ_USER_WRITABLE_DIRECTORY=YES", "PROJ_NETWORK=OFF",
			// When memory is short a session goes first, not the postmaster.
			"PG_OOM_ADJUST_FILE=/proc/self/oom_score_adj", "PG_OOM_ADJUST_VALUE=0"),
		OOMScoreAdj: postmasterOOM,
	}
}

// quoteLiteral writes an SQL string. Our sessions and single-user runs have
// standard_conforming_strings on, so a backslash is a character like any other.
func quoteLiteral(s string) string {
	return "'" + strings.ReplaceAll(strings.ReplaceAll(s, "\x00", ""), "'", "''") + "'"
}

// quoteName writes an SQL name that keeps its case.
func quoteName(s string) string {
	return `"` + strings.ReplaceAll(strings.ReplaceAll(s, "\x00", ""), `"`, `""`) + `"`
}

// settingEscapes are those of guc-file.l. A raw newline would end the line and
// let a value set further parameters.
var settingEscapes = strings.NewReplacer("\x00", "", `\`, `\\`, "'", "''", "\n", `\n`, "\r", `\r`, "\b", `\b`, "\f", `\f`, "\t", `\t`)

// quoteSetting writes a value of postgresql.conf.
func quoteSetting(s string) string { return "'" + settingEscapes.Replace(s) + "'" }

// quoteAccess writes a word of pg_hba.conf or pg_ident.conf, where quotes also
// take the special meaning from words like all.
func quoteAccess(s string) string {
	return `"` + strings.NewReplacer("\x00", "", "\n", "", "\r", "", `"`, `""`).Replace(s) + `"`
}

// topologySettings are what the functions of rds_tools say. Their names are of no module, so
// the server takes them as they come; a session that sets them deceives only itself.
func topologySettings(i engine.Instance) []line {
	if len(i.Topology) == 0 {
		return nil
	}
	servers := make([]string, len(i.Topology))
	for n, s := range i.Topology {
		servers[n] = s.ID + "=" + s.Endpoint
	}
	own := shownID(i, i.Instance)
	source := own
	if i.Role != nil && i.Role.Source != nil && i.Role.Source.ID.Owner() == i.Instance.Owner() {
		source = shownID(i, i.Role.Source.ID)
	}
	return []line{
		{"kurabe.resource_id", own}, {"kurabe.source_resource_id", source}, {"kurabe.topology", strings.Join(servers, " ")},
	}
}

// shownID is the DbiResourceId under which users know a server: of a cluster each has its own.
func shownID(i engine.Instance, server kurabe.InstanceID) string {
	if i.ReaderAddress == "" {
		return string(server.Owner())
	}
	return kurabe.ServerResourceID(server)
}
