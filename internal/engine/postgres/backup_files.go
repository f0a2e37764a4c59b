package postgres

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"kurabe/internal/engine/postgres/wal"
	"kurabe/internal/volume"
)

const (
	controlFile  = "global/pg_control"
	manifestFile = "backup_manifest"
)

// emptied are folders whose content means something to a running server only: the
// list of the manual ("Backing Up the Data Directory").
var emptied = []string{"pg_dynshmem", "pg_notify", "pg_replslot", "pg_serial", "pg_snapshots", "pg_stat_tmp", "pg_subtrans"}

// droppedFiles are files at the top of the folder that speak of a running server, of
// another backup, or of settings in the making.
var droppedFiles = []string{
	"postmaster.pid", "postmaster.opts", "postgresql.auto.conf.tmp", "current_logfiles", "current_logfiles.tmp",
	"backup_label", "backup_label.old", "tablespace_map", "tablespace_map.old", manifestFile,
	// A follower's: a copy of one is the data of a server of its own.
	"standby.signal", "recovery.signal",
}

// tempRelation is a temporary table's file: of backend 3, relation 16384.
var tempRelation = regexp.MustCompile(`^t\d+_\d+(_(fsm|vm|init))?(\.\d+)?$`)

// leftOutStopped says what a copy of a stopped server's folder does without.
func leftOutStopped(rel string) bool {
	base := filepath.Base(rel)
	return slices.Contains(droppedFiles, rel) || strings.HasPrefix(base, "pgsql_tmp") ||
		strings.HasPrefix(base, "pg_internal.init") || tempRelation.MatchString(base)
}

// leftOutLive says what the copy of a running one does without: also the log, which
// follows when the rest is copied, and pg_control, which is read with care.
func leftOutLive(rel string) bool {
	dir := filepath.Dir(rel)
	return leftOutStopped(rel) || rel == controlFile || slices.Contains(emptied, dir) || dir == wal.Dir
}

// writeFile adds a file of our own to a copy.
func writeFile(dir, rel string, content []byte) (volume.File, error) {
	err := volume.WriteNew(filepath.Join(dir, rel), content, 0o600, nil)
	return volume.File{Path: rel, Size: int64(len(content)), Sum: crc32.Checksum(content, castagnoli), Summed: true}, err
}

func sorted(parts ...[]volume.File) []volume.File {
	all := slices.Concat(parts...)
	slices.SortFunc(all, func(a, b volume.File) int { return cmp.Compare(a.Path, b.Path) })
	return all
}

// The form of a manifest that pg_verifybackup of every version reads. Its order of
// fields is that of the server's own, since its reader is strict.

// logRange is a part of the log that a copy needs to become whole.
type logRange struct {
	Timeline int    `json:"Timeline"`
	Start    string `json:"Start-LSN"`
	End      string `json:"End-LSN"`
}

type manifestEntry struct {
	Path      string `json:"Path,omitempty"`
	PathHex   string `json:"Encoded-Path,omitempty"`
	Size      int64  `json:"Size"`
	Modified  string `json:"Last-Modified"`
	Algorithm string `json:"Checksum-Algorithm,omitempty"`
	Checksum  string `json:"Checksum,omitempty"`
}

// writeManifest writes what PostgreSQL's own tool checks the folder with. Files that
// have no sum yet are checked by their size.
func writeManifest(dir string, files []volume.File, ranges []logRange) error {
	var b bytes.Buffer
	b.WriteString("{ \"PostgreSQL-Backup-Manifest-Version\": 1,\n\"Files\": [")
	now, between := time.Now().UTC().Format("2006-01-02 15:04:05 GMT"), "\n"
	for _, f := range files {
		if strings.HasPrefix(f.Path, wal.Dir+"/") {
			continue // The log is checked by its own records.
		}
		raw, err := json.Marshal(entryOf(f, now))
		if err != nil {
			return fmt.Errorf("write manifest: %w", err)
		}
		b.WriteString(between)
		b.Write(raw)
		between = ",\n"
	}
	if ranges == nil {
		ranges = []logRange{}
	}
	raw, err := json.Marshal(ranges)
	if err != nil {
		return fmt.Errorf("write manifest: %w", err)
	}
	fmt.Fprintf(&b, "\n],\n\"WAL-Ranges\": %s,\n", raw)
	// The sum is of all before its own line.
	sum := sha256.Sum256(b.Bytes())
	fmt.Fprintf(&b, "\"Manifest-Checksum\": %q}\n", hex.EncodeToString(sum[:]))
	return volume.AtomicWrite(filepath.Join(dir, manifestFile), b.Bytes(), 0o600)
}

func entryOf(f volume.File, modified string) manifestEntry {
	e := manifestEntry{Path: f.Path, Size: f.Size, Modified: modified}
	if !utf8.ValidString(f.Path) {
		e.Path, e.PathHex = "", hex.EncodeToString([]byte(f.Path))
	}
	if f.Summed {
		// The server writes the number as it lies in memory.
		e.Algorithm, e.Checksum = "CRC32C", hex.EncodeToString(binary.LittleEndian.AppendUint32(nil, f.Sum))
	}
	return e
}

// Seal implements engine.Copier: the manifest again, with sums.
func (d *Driver) Seal(dataDir string, files []volume.File) error {
	raw, err := volume.ReadFile(filepath.Join(dataDir, manifestFile))
	if err != nil {
		return err
	}
	var old struct {
		Ranges []logRange `json:"WAL-Ranges"`
	}
	if err := json.Unmarshal(raw, &old); err != nil {
		return fmt.Errorf("read %s: %w", manifestFile, err)
	}
	return writeManifest(dataDir, files, old.Ranges)
}
