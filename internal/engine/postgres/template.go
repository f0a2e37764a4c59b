package postgres

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"kurabe"
	"kurabe/internal/engine"
	"kurabe/internal/engine/postgres/tree"
	"kurabe/internal/engine/postgres/wal"
	"kurabe/internal/engine/scratch"
	"kurabe/internal/proc"
	"kurabe/internal/volume"
)

// MakeTemplate implements engine.Driver: initdb, then the service's roles and
// database in single-user mode, which needs no socket, port or password and
// ends with a clean shutdown. The folder gets its name when it is complete.
func (d *Driver) MakeTemplate(ctx context.Context, r engine.TemplateRequest) error {
	if !slices.Contains(r.Version.Locales, r.Locale) {
		return kurabe.Errorf(kurabe.CodeInvalidParameterValue, "PostgreSQL %s has no character set %q here", r.Version.Version, r.Locale)
	}
	w, err := openInitializer(r)
	if err != nil {
		return fmt.Errorf("make template: %w", err)
	}
	defer w.Remove()
	if err := w.initdb(ctx, r.Locale); err != nil {
		return fmt.Errorf("make template: %w", err)
	}
	statements := slices.Concat(roleSQL(majorOf(r.Version)), adminDatabaseSQL())
	if err := w.singleUser(ctx, single{database: "postgres", statements: statements}); err != nil {
		return fmt.Errorf("make template: roles: %w", err)
	}
	if err := w.singleUser(ctx, single{database: adminDatabase, statements: slices.Concat(probeTableSQL(), markerTableSQL())}); err != nil {
		return fmt.Errorf("make template: own database: %w", err)
	}
	if err := errors.Join(bareSettings(w.Data(), engine.OwnerFor(w.User)), volume.SyncFS(w.Dir)); err != nil {
		return fmt.Errorf("make template: %w", err)
	}
	if err := volume.Rename(w.Data(), r.Dir); err != nil {
		return fmt.Errorf("make template: %w", err)
	}
	return nil
}

// bareSettings removes what initdb guessed. The server is always started with
// the rendered files; one started by hand without them admits nobody.
func bareSettings(dir string, owner *volume.Owner) error {
	files := map[string]string{
		"postgresql.conf":      "# Kurabe renders the settings of an instance into its conf folder.\nlisten_addresses = ''\n",
		"postgresql.auto.conf": "# ALTER SYSTEM is not used.\n",
		"pg_hba.conf":          "local all all reject\n",
		"pg_ident.conf":        "",
	}
	for name, text := range files {
		if err := volume.WriteNew(filepath.Join(dir, name), []byte(text), 0o600, owner); err != nil {
			return err
		}
	}
	return nil
}

// initializer makes a data folder.
type initializer struct {
	scratch.Folder
	version kurabe.EngineVersion
}

func openInitializer(r engine.TemplateRequest) (*initializer, error) {
	f, err := scratch.Make(r.Scratch, r.User, tree.Programs(r.Version.BinDir, majorOf(r.Version)))
	return &initializer{f, r.Version}, err
}

func (w *initializer) run(ctx context.Context, name string, argv []string, stdin string) error {
	argv = append([]string{filepath.Join(w.version.BinDir, argv[0])}, argv[1:]...)
	_, err := w.Run(ctx, proc.Tool{Name: name, Argv: argv, Stdin: []byte(stdin)})
	return err
}

func (w *initializer) initdb(ctx context.Context, locale string) error {
	return w.run(ctx, "initdb", append([]string{
		"initdb", "--pgdata=" + w.Seen(w.Data()), "--username=" + adminRole,
		"--encoding=UTF8", "--data-checksums", "--auth-local=peer", "--auth-host=reject",
		"--no-instructions", "--no-sync", // Synced once when complete.
	}, localeArgs(locale)...), "")
}

// single is one run of the server in single-user mode.
type single struct {
	database   string
	statements []string
	settings   []string // name=value
}

// singleUser runs statements as the bootstrap superuser. The first error ends
// the server, so success means all of them.
func (w *initializer) singleUser(ctx context.Context, s single) error {
	argv := []string{"postgres", "--single", "-j", "-D", w.Seen(w.Data())}
	settings := append([]string{"exit_on_error=on", "search_path=pg_catalog", "log_checkpoints=off", "fsync=off"}, s.settings...)
	for _, setting := range settings {
		argv = append(argv, "-c", setting)
	}
	// With -j a statement ends at a semicolon and an empty line.
	input := strings.Join(s.statements, ";\n\n") + ";\n\n"
	if err := w.run(ctx, "postgres --single", append(argv, s.database), input); err != nil {
		return fmt.Errorf("run statements in %s: %w", s.database, err)
	}
	return nil
}

// Copies of one template share its system identifier, by which PostgreSQL tells
// whether a log segment, a standby or a backup belongs to a cluster. Running
// initdb for each instance would give each its own, at 0.6 s and two CPU-heavy
// bootstraps a time; writing eight bytes into two files does it in a
// millisecond. Both places are the same since PostgreSQL 9.3:
//
//   - pg_control begins with it, and ends its content with a CRC-32C whose
//     position depends on the version, so it is found by being right;
//   - the first page of each log segment has it at byte 24, in a page header
//     that has no checksum.

const (
	walSystemIDAt    = 24
	walInfoAt        = 2
	walLongHeader    = 0x0002 // XLP_LONG_HEADER
	controlBytesMin  = 64
	controlBytesMax  = 512 // PG_CONTROL_MAX_SAFE_SIZE
	controlAlignment = 4
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// GiveIdentity implements engine.Identifier. The server must be stopped. Cut
// off half-way it leaves a folder that does not start, and that is made anew.
func (d *Driver) GiveIdentity(dataDir string) error {
	path := filepath.Join(dataDir, "global", "pg_control")
	control, err := volume.ReadFile(path)
	if err != nil {
		return fmt.Errorf("give a system identifier: %w", err)
	}
	crcAt, err := controlCRC(control)
	if err != nil {
		return fmt.Errorf("give a system identifier: %w", err)
	}
	old, fresh := binary.LittleEndian.Uint64(control), newSystemID(time.Now())
	if err := stampSegments(filepath.Join(dataDir, "pg_wal"), old, fresh); err != nil {
		return fmt.Errorf("give a system identifier: %w", err)
	}
	binary.LittleEndian.PutUint64(control, fresh)
	binary.LittleEndian.PutUint32(control[crcAt:], crc32.Checksum(control[:crcAt], castagnoli))
	if err := overwrite(path, 0, control); err != nil {
		return fmt.Errorf("give a system identifier: %w", err)
	}
	return nil
}

// newSystemID has the time in its upper half, as initdb's: people read it.
func newSystemID(now time.Time) uint64 {
	var low [4]byte
	rand.Read(low[:]) // never fails since Go 1.24
	return uint64(now.Unix())<<32 | uint64(binary.LittleEndian.Uint32(low[:]))
}

// controlCRC finds the checksum in a control file: the one position whose value
// is the checksum of all before it.
func controlCRC(control []byte) (int, error) {
	for at := controlBytesMin; at+4 <= min(len(control), controlBytesMax); at += controlAlignment {
		if crc32.Checksum(control[:at], castagnoli) == binary.LittleEndian.Uint32(control[at:]) {
			return at, nil
		}
	}
	return 0, errors.New("pg_control has no valid checksum")
}

// stampSegments puts the new identifier into every log segment. Segments that
// were only preallocated have no header yet.
func stampSegments(dir string, old, fresh uint64) error {
	entries, err := volume.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if !wal.SegmentName.MatchString(entry.Name()) {
			continue
		}
		path := filepath.Join(dir, entry.Name())
		header, err := readHead(path, wal.SegmentHeaderBytes)
		if err != nil {
			return err
		}
		if binary.LittleEndian.Uint16(header[walInfoAt:])&walLongHeader == 0 {
			continue
		}
		if found := binary.LittleEndian.Uint64(header[walSystemIDAt:]); found != old {
			return fmt.Errorf("%s is of another cluster", entry.Name())
		}
		if err := overwrite(path, walSystemIDAt, binary.LittleEndian.AppendUint64(nil, fresh)); err != nil {
			return err
		}
	}
	return nil
}

func readHead(path string, n int) ([]byte, error) {
	file, err := volume.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	head := make([]byte, n)
	_, err = file.ReadAt(head, 0)
	return head, err
}

// overwrite keeps owner, mode and length of the file.
func overwrite(path string, at int64, data []byte) error {
	file, err := volume.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = file.WriteAt(data, at)
	return errors.Join(err, file.Sync(), file.Close())
}
