package waltest

import (
	"encoding/binary"
	"hash/crc32"
	"os"
	"path/filepath"
	"testing"

	"kurabe/internal/engine/postgres/wal"
)

// What a new log has.
const (
	Segment  = 1 << 20 // bytes
	Timeline = 3
	Begin    = wal.LSN(5 * Segment)
)

// Segments are the log's.
var Segments = wal.Segments{Bytes: Segment}

// The form of pages and records.
const (
	magic             = 0xD110
	pageContinues     = 0x0001
	recordHeaderBytes = 24
	recordCRCAt       = 20
	resourceXLOG      = 0
	xlogEndOfRecovery = 0x90
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Log builds a log in memory, as the server would.
type Log struct {
	At       wal.LSN
	Data     []byte // from Begin on
	Timeline uint32 // of the pages
}

// New is a log without a record.
func New() *Log { return &Log{At: Begin, Timeline: Timeline} }

// Page writes the header of a page, which has so many bytes of an unfinished record before it.
func (w *Log) Page(flags uint16, remaining int) {
	le := binary.LittleEndian
	header := make([]byte, wal.Segments{Bytes: Segment}.SkipHeader(w.At)-w.At)
	le.PutUint16(header, magic)
	le.PutUint16(header[2:], flags)
	le.PutUint32(header[4:], w.Timeline)
	le.PutUint64(header[8:], uint64(w.At))
	le.PutUint32(header[16:], uint32(remaining))
	w.Put(header)
}

// Put writes bytes as they are.
func (w *Log) Put(b []byte) {
	w.Data = append(w.Data, b...)
	w.At += wal.LSN(len(b))
}

// Add writes a record with its own data, over as many pages as it takes, and returns
// where it begins.
func (w *Log) Add(resource, info byte, data []byte) wal.LSN {
	le := binary.LittleEndian
	body := append([]byte{254}, le.AppendUint32(nil, uint32(len(data)))...)
	body = append(body, data...)
	header := make([]byte, recordHeaderBytes)
	le.PutUint32(header, uint32(recordHeaderBytes+len(body)))
	header[16], header[17] = info, resource
	le.PutUint32(header[recordCRCAt:], crc32.Update(crc32.Checksum(body, castagnoli), castagnoli, header[:recordCRCAt]))
	if w.At%wal.PageBytes == 0 {
		w.Page(0, 0)
	}
	begin := w.At
	for rest := append(header, body...); len(rest) > 0; {
		if w.At%wal.PageBytes == 0 {
			w.Page(pageContinues, len(rest))
		}
		n := min(len(rest), int(wal.PageBytes-w.At%wal.PageBytes))
		w.Put(rest[:n])
		rest = rest[n:]
	}
	w.Put(make([]byte, -w.At&7))
	return begin
}

// Save writes the log as segments and returns a server's folder of them.
func (w *Log) Save(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, wal.Dir), 0o700); err != nil {
		t.Fatal(err)
	}
	s := wal.Segments{Bytes: Segment}
	for n := 0; n < len(w.Data); n += Segment {
		segment := make([]byte, Segment)
		copy(segment, w.Data[n:])
		name := s.Position(Timeline, Begin+wal.LSN(n)).File
		if err := os.WriteFile(filepath.Join(dir, wal.Dir, name), segment, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// EndOfRecovery begins a timeline.
func (w *Log) EndOfRecovery(into, from uint32) wal.LSN {
	data := make([]byte, 16)
	binary.LittleEndian.PutUint32(data[8:], into)
	binary.LittleEndian.PutUint32(data[12:], from)
	w.Timeline = into
	return w.Add(resourceXLOG, xlogEndOfRecovery, data)
}

// Fill adds records up to a place about there.
func (w *Log) Fill(bytes int) {
	for end := w.At + wal.LSN(bytes); w.At < end; {
		w.Add(10, 0, make([]byte, 900))
	}
}

// Write puts the segments of the timeline that is written into a folder, from a place on.
func (w *Log) Write(t *testing.T, dir string, from wal.LSN) {
	t.Helper()
	for at := Segments.Begin(from); at < w.At; at += Segment {
		segment := make([]byte, Segment)
		copy(segment, w.Data[at-Begin:])
		if err := os.WriteFile(filepath.Join(dir, Segments.Position(w.Timeline, at).File), segment, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}
