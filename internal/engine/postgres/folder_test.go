package postgres

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kurabe/internal/engine"
	"kurabe/internal/engine/enginetest"
	"kurabe/internal/engine/postgres/wal"
)

// layBytes is a segment of a folder that no server reads.
const layBytes = 8 << 10

// layData makes what a data folder has that the service looks at while no server runs.
func layData(t *testing.T, dir string) {
	t.Helper()
	const id = 0x0102030405060708
	control := binary.LittleEndian.AppendUint64(nil, id)
	control = append(control, make([]byte, controlBytesMin-len(control))...)
	control = binary.LittleEndian.AppendUint32(control, crc32.Checksum(control, castagnoli))
	segment := make([]byte, layBytes)
	binary.LittleEndian.PutUint16(segment[walInfoAt:], walLongHeader)
	binary.LittleEndian.PutUint64(segment[walSystemIDAt:], id)
	files := map[string]string{
		"global/pg_control": string(control), "pg_wal/000000010000000000000001": string(segment), "pg_wal/00000002.history": "1\t0/1000\tno reason\n",
		"pg_replslot/one/state": "slot", "postgresql.conf": "port = 1\n", "pg_hba.conf": "trust\n", "log/postgresql.log.2026-01-01-00": "LOG\n",
	}
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.MkdirAll(filepath.Join(dir, "pg_tblspc"), 0o700); err != nil {
		t.Fatal(err)
	}
}

// TestFolderOfATenant does what the service does in a data folder while no server runs.
func TestFolderOfATenant(t *testing.T) {
	d := &Driver{}
	user := enginetest.Nobody()
	i := engine.Instance{User: user}
	log := filepath.Join("pg_wal", "000000010000000000000001")
	enginetest.RunFolderDeeds(t, layData, []enginetest.FolderDeed{
		{
			Name: "adopt", Do: func(dir string) error { return d.Adopt(i, dir) },
			Places: []string{
				"postgresql.conf", "postgresql.auto.conf", "pg_hba.conf", "pg_ident.conf", "recovery.signal", "standby.signal", "postmaster.pid",
				"backup_manifest", "pg_replslot", "pg_replslot/one", "pg_replslot/one/state",
			},
		},
		{Name: "individualize", Do: d.GiveIdentity, Places: []string{"global/pg_control", log, "pg_wal"}},
		{Name: "history", Places: []string{"pg_wal/00000002.history", "pg_wal"}, Do: func(dir string) error {
			p := &private{i: i, data: dir}
			return p.writeHistory(wal.Lineage{{Timeline: 1, End: 0x1000}, {Timeline: 2, End: wal.Endless}})
		}},
		{Name: "standby", Places: []string{"standby.signal"}, Do: func(dir string) error { return putStandbySignal(dir, user) }},
		{Name: "signal", Places: []string{signalFile}, Do: func(dir string) error { return (&private{i: i, data: dir}).signal() }},
		{Name: "add a file", Places: []string{"backup_label"}, Do: func(dir string) error { _, err := writeFile(dir, "backup_label", []byte("text")); return err }},
		{Name: "slots", Places: []string{"pg_replslot", "pg_replslot/one"}, Do: dropSlots},
		{Name: "take a segment", Places: []string{log, "pg_wal/000000010000000000000002"}, Do: func(dir string) error {
			p := &private{i: i, data: dir, control: control{segments: wal.Segments{Bytes: layBytes}}}
			return p.takeSegment(filepath.Join(dir, log), filepath.Join(dir, "pg_wal", "000000010000000000000002"), 100)
		}},
		{Name: "tablespaces", Places: []string{"pg_tblspc"}, Do: refuseTablespaces},
	})
}

// TestNothingOfOthersIsRead: what links and pipes lead to is not what an answer says.
func TestNothingOfOthersIsRead(t *testing.T) {
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("hunter2\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for _, name := range []string{"00000002.history", "postgresql.log.2026-01-01-00"} {
		if err := os.Symlink(secret, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	if text, err := newestHistory(dir); err == nil || strings.Contains(text, "hunter2") {
		t.Errorf("history: %q, %v", text, err)
	}
	if text := engine.Tail(filepath.Join(dir, "postgresql.log.2026-01-01-00"), 1000); strings.Contains(text, "hunter2") {
		t.Errorf("log: %q", text)
	}
	if raw, err := readControl(filepath.Join(dir, "00000002.history")); err == nil || strings.Contains(string(raw), "hunter2") {
		t.Errorf("control: %q, %v", raw, err)
	}
}
