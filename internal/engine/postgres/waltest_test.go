package postgres

import (
	"encoding/binary"
	"hash/crc32"
	"os"
	"path/filepath"
	"testing"
)

const (
	testMagic    = 0xD110
	testSegment  = 1 << 20
	testTimeline = 3
)

// wal builds a log in memory, as the server would.
type wal struct {
	at   lsn
	data []byte // from begin on
	// timeline is that of the pages.
	timeline uint32
}

const walBegin = lsn(5 * testSegment)

func newWAL() *wal { return &wal{at: walBegin, timeline: testTimeline} }

func (w *wal) header(flags uint16, remaining int) {
	le := binary.LittleEndian
	header := make([]byte, segments{testSegment}.skipHeader(w.at)-w.at)
	le.PutUint16(header, testMagic)
	le.PutUint16(header[2:], flags)
	le.PutUint32(header[4:], w.timeline)
	le.PutUint64(header[8:], uint64(w.at))
	le.PutUint32(header[16:], uint32(remaining))
	w.put(header)
}

func (w *wal) put(b []byte) {
	w.data = append(w.data, b...)
	w.at += lsn(len(b))
}

// add writes a record with its own data, over as many pages as it takes, and returns
// where it begins.
func (w *wal) add(resource, info byte, data []byte) lsn {
	le := binary.LittleEndian
	body := append([]byte{254}, le.AppendUint32(nil, uint32(len(data)))...)
	body = append(body, data...)
	header := make([]byte, recordHeaderBytes)
	le.PutUint32(header, uint32(recordHeaderBytes+len(body)))
	header[16], header[17] = info, resource
	le.PutUint32(header[recordCRCAt:], crc32.Update(crc32.Checksum(body, castagnoli), castagnoli, header[:recordCRCAt]))
	if w.at%pageBytes == 0 {
		w.header(0, 0)
	}
	begin := w.at
	for rest := append(header, body...); len(rest) > 0; {
		if w.at%pageBytes == 0 {
			w.header(pageContinues, len(rest))
		}
		n := min(len(rest), int(pageBytes-w.at%pageBytes))
		w.put(rest[:n])
		rest = rest[n:]
	}
	w.put(make([]byte, aligned(w.at)-w.at))
	return begin
}

var testSegments = segments{testSegment}

// save writes the log as segments and returns a server's folder of them.
func (w *wal) save(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, walDir), 0o700); err != nil {
		t.Fatal(err)
	}
	s := segments{testSegment}
	for n := 0; n < len(w.data); n += testSegment {
		segment := make([]byte, testSegment)
		copy(segment, w.data[n:])
		name := s.position(testTimeline, walBegin+lsn(n)).File
		if err := os.WriteFile(filepath.Join(dir, walDir, name), segment, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// endOfRecovery begins a timeline.
func (w *wal) endOfRecovery(into, from uint32) lsn {
	data := make([]byte, 16)
	binary.LittleEndian.PutUint32(data[8:], into)
	binary.LittleEndian.PutUint32(data[12:], from)
	w.timeline = into
	return w.add(resourceXLOG, xlogEndOfRecovery, data)
}

// fill adds records up to a place about there.
func (w *wal) fill(bytes int) {
	for end := w.at + lsn(bytes); w.at < end; {
		w.add(10, 0, make([]byte, 900))
	}
}

// write puts the segments of the timeline that is written into a folder, from a place on.
func (w *wal) write(t *testing.T, dir string, from lsn) {
	t.Helper()
	for at := testSegments.begin(from); at < w.at; at += testSegment {
		segment := make([]byte, testSegment)
		copy(segment, w.data[at-walBegin:])
		if err := os.WriteFile(filepath.Join(dir, testSegments.position(w.timeline, at).File), segment, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

