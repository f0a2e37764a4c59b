package binlog

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"
)

// relay is a file as a follower receives it: events name places of another file.
func relay(seqs ...uint64) (text []byte, starts []int64) {
	text = []byte(Magic)
	add := func(kind byte, server uint32, body []byte) {
		head := make([]byte, headerBytes)
		head[4] = kind
		binary.LittleEndian.PutUint32(head[5:], server)
		binary.LittleEndian.PutUint32(head[9:], uint32(headerBytes+len(body)))
		binary.LittleEndian.PutUint32(head[13:], 4711)
		text = append(append(text, head...), body...)
	}
	add(formatEvent, 1, make([]byte, 200))
	for _, seq := range seqs {
		starts = append(starts, int64(len(text)))
		add(GTIDEvent, 7, binary.LittleEndian.AppendUint64(nil, seq))
		binary.LittleEndian.PutUint32(text[len(text)-8-headerBytes+9:], headerBytes+GTIDBodyBytesLeast+4)
		text = append(text, make([]byte, GTIDBodyBytesLeast+4-8)...)
		add(16, 7, make([]byte, 12)) // XID
	}
	return text, starts
}

// One begins behind the last transaction that was applied, in whichever file that is.
func TestLeftFrom(t *testing.T) {
	one, oneAt := relay(11, 12, 13)
	two, twoAt := relay(14, 15)
	noted := RelayPlace{RelayFile(2), 4}
	of := func(seq uint64) []GTID { return []GTID{{0, 7, seq}} }
	for _, c := range []struct {
		name string
		last []GTID
		cut  int // of the end of the second file
		from RelayPlace
		left bool
	}{
		{name: "none of them is applied", last: of(10), from: noted, left: true},
		{name: "some", last: of(11), from: RelayPlace{RelayFile(2), oneAt[1]}, left: true},
		{name: "up to the end of a file", last: of(13), from: RelayPlace{RelayFile(3), twoAt[0]}, left: true},
		{name: "the later of two counts", last: append(of(14), of(12)...), from: RelayPlace{RelayFile(3), twoAt[1]}, left: true},
		{name: "all", last: of(15)},
		{name: "all that was received in full", last: of(14), cut: len(two) - int(twoAt[1]) - 5},
		{name: "another server's number", last: []GTID{{0, 8, 13}}, from: noted, left: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			for name, text := range map[string][]byte{RelayFile(2): one, RelayFile(3): two[:len(two)-c.cut]} {
				if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			from, left, err := FirstUnapplied(dir, noted, c.last)
			if err != nil || left != c.left || left && from != c.from {
				t.Errorf("%+v, %v, %v; want %+v, %v", from, left, err, c.from, c.left)
			}
		})
	}
	dir := t.TempDir()
	if _, left, err := FirstUnapplied(dir, noted, of(1)); err != nil || left {
		t.Errorf("there is no file, and it says %v, %v", left, err)
	}
	if err := os.WriteFile(filepath.Join(dir, RelayFile(2)), append([]byte(Magic), make([]byte, 40)...), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, err := FirstUnapplied(dir, noted, of(1)); err == nil {
		t.Error("an event without a length is read")
	}
	if _, _, err := FirstUnapplied(dir, RelayPlace{File: "mysql-bin.000001"}, of(1)); err == nil {
		t.Error("any file is read")
	}
}
