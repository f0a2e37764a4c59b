package postgres

import (
	"cmp"
	"hash/crc32"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

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
