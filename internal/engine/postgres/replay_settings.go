package postgres

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"kurabe/internal/engine"
	"kurabe/internal/engine/postgres/wal"
	"kurabe/internal/volume"
)

const (
	// privateBuffers without a memory limit; a quarter of it otherwise, as the class's
	// own formula has it.
	privateBuffers    = 256 << 20
	privateBuffersMin = 16 << 20
	privateBuffersMax = 8 << 30
	// privatePrepared is room for prepared transactions: pg_control tells how many the
	// snapshot's server had room for, and the log can go on with one that had more.
	privatePrepared = 200
)

// plain settings of a private server: what it does is for nobody but us, and it is
// thrown away when it fails, so it writes no checkpoint on the way. fsync is on where
// what it leaves is kept.
func (p *private) settings() []line {
	buffers := int64(privateBuffers)
	if p.i.Limits.MemoryBytes > 0 {
		buffers = min(max(p.i.Limits.MemoryBytes/4, privateBuffersMin), privateBuffersMax)
	}
	files := func(name string) string { return p.Seen(filepath.Join(p.work, name)) }
	lines := []line{
		{"listen_addresses", ""},
		{"port", strconv.Itoa(privatePort)},
		{"unix_socket_directories", filepath.Join("..", filepath.Base(p.work), filepath.Base(p.home().RunDir()))},
		{"unix_socket_permissions", "0700"},
		{"hba_file", files(accessFile)},
		{"ident_file", files(identFile)},
		{"ssl", "off"},
		{"logging_collector", "off"},
		{"log_destination", "stderr"},
		{"log_line_prefix", logLinePrefix},
		{"log_timezone", "UTC"},
		{"lc_messages", "C"},
		{"timezone", "UTC"},
		{"shared_preload_libraries", ""},
		{"session_preload_libraries", ""},
		{"shared_buffers", strconv.FormatInt(buffers>>10, 10) + "kB"},
		{"huge_pages", "off"},
		{"jit", "off"},
		{"autovacuum", "off"},
		// A subscription of the data would go on with the work of its source's, elsewhere.
		{"max_logical_replication_workers", "0"},
		{"hot_standby", "off"},
		{"wal_level", "replica"},
		{"archive_mode", "off"},
		{"restart_after_crash", "off"},
		{"checkpoint_timeout", "1d"},
		{"max_wal_size", "1TB"},
	}
	for _, name := range slices.Sorted(maps.Keys(p.control.settings)) {
		value := p.control.settings[name]
		if n, err := strconv.Atoi(value); name == "max_prepared_transactions" && (err != nil || n < privatePrepared) {
			value = strconv.Itoa(privatePrepared)
		}
		lines = append(lines, line{name, value})
	}
	if p.copied {
		lines = append(lines, line{"fsync", "off"})
	}
	const eventTriggersMajor = 17
	if majorOf(p.i.Version) >= eventTriggersMajor {
		lines = append(lines, line{"event_triggers", "off"})
	}
	return lines
}

// writeFiles writes what the server reads, for it to read and not to write.
func (p *private) writeFiles(extra []line) error {
	var b strings.Builder
	for _, l := range append(p.settings(), extra...) {
		writeLine(&b, l)
	}
	files := map[string]string{
		settingsFile: b.String(),
		accessFile:   "local all " + adminRole + " peer map=kurabe\nlocal all all reject\nlocal replication all reject\n",
		identFile:    fmt.Sprintf("kurabe %s %s\n", quoteAccess(p.d.serviceUser), adminRole),
	}
	for name, text := range files {
		path := filepath.Join(p.work, name)
		if err := volume.AtomicWrite(path, []byte(text), 0o640); err != nil {
			return err
		}
		if u := p.i.User; u != nil {
			if err := volume.Give(path, volume.Owner{UID: os.Getuid(), GID: u.GID}); err != nil {
				return err
			}
		}
	}
	return nil
}

// signalFile asks a server that starts for recovery from an archive.
const signalFile = "recovery.signal"

// signal puts it there; the server removes it when recovery is over.
func (p *private) signal() error {
	root, err := volume.OpenRoot(p.data)
	if err != nil {
		return err
	}
	defer root.Close()
	file, err := root.OpenFile(signalFile, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	if owner := engine.OwnerFor(p.i.User); owner != nil {
		err = owner.Own(file)
	}
	return cmp.Or(err, file.Close())
}

// recovery are the settings of a replay. There is nothing to fetch: the whole log is
// in its folder already, and the server insists on a command.
func recovery(g goal, past wal.Lineage) []line {
	timeline := "current"
	if n := len(past); n > 1 {
		timeline = strconv.FormatUint(uint64(past[n-1].Timeline), 10)
	}
	lines := []line{
		{"restore_command", "/bin/false"},
		{"recovery_target_timeline", timeline},
		{"recovery_target_action", "promote"},
	}
	if g.target != 0 {
		lines = append(lines, line{"recovery_target_lsn", g.target.String()}, line{"recovery_target_inclusive", strconv.FormatBool(g.inclusive)})
	}
	return lines
}
