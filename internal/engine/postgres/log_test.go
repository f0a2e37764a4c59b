package postgres

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"kurabe"
	"kurabe/internal/engine"
	"kurabe/internal/volume"
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

func commitAt(at time.Time) []byte {
	return binary.LittleEndian.AppendUint64(nil, uint64(at.Sub(postgresEpoch).Microseconds()))
}

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

// read returns how the log ends, and what ends in it.
func (w *wal) read(t *testing.T, limit lsn) (ends []time.Time, next lsn, err error) {
	t.Helper()
	log := &scanner{dir: filepath.Join(w.save(t), walDir), segments: segments{testSegment}, timeline: testTimeline, limit: limit}
	defer log.close()
	next, err = log.first(walBegin)
	for err == nil {
		var r record
		if r, err = log.read(next); err != nil {
			break
		}
		next = r.next
		at, ok, endErr := r.transactionEnd()
		if endErr != nil {
			t.Fatal(endErr)
		}
		if ok {
			ends = append(ends, at)
		}
	}
	return ends, next, err
}

func TestPositions(t *testing.T) {
	s := segments{16 << 20}
	for text, want := range map[string]string{
		"0/0": "000000020000000000000000:0", "0/1000000": "000000020000000000000001:0",
		"0/FFFFFF": "000000020000000000000000:16777215", "1A/FF000028": "000000020000001A000000FF:40",
	} {
		at, err := parseLSN(text)
		if err != nil {
			t.Fatal(err)
		}
		p := s.position(2, at)
		timeline, back, err := s.place(p)
		if p.String() != want || back != at || timeline != 2 || err != nil || at.String() != text {
			t.Errorf("%s is %s and back %s of %d, %v", text, p, back, timeline, err)
		}
	}
	for _, p := range []kurabe.LogPosition{
		{}, {File: "000000020000000000000100"}, {File: "000000000000000000000001"}, {File: "00000002000000000000000g"},
		{File: "000000020000000000000001", Offset: 16<<20 + 1}, {File: "000000020000000000000001", Offset: -1},
		{File: "../000020000000000000001"},
	} {
		if _, at, err := s.place(p); err == nil {
			t.Errorf("%s is %s", p, at)
		}
	}
	if _, at, err := s.place(kurabe.LogPosition{File: "000000020000000000000001", Offset: 16 << 20}); at != 0x2000000 || err != nil {
		t.Errorf("the end of a segment is %s, %v", at, err)
	}
	for _, text := range []string{"", "1", "1/", "/1", "1/100000000", "x/1", "-1/1"} {
		if at, err := parseLSN(text); err == nil {
			t.Errorf("%q is %s", text, at)
		}
	}
}

// Records over pages and segments, an early end of a segment, a record that was given
// up, and ends of the log at each place where the server can have one.
func TestScan(t *testing.T) {
	early := postgresEpoch.Add(837_000_000*time.Second + 123456*time.Microsecond)
	w := newWAL()
	w.add(resourceXact, xactCommit, commitAt(early))
	w.add(10, 0, bytes.Repeat([]byte{7}, 3*pageBytes))
	w.add(resourceXact, xactAbortTwo|0x80, commitAt(early.Add(time.Second)))
	w.add(resourceXLOG, xlogSwitch, nil)
	w.put(make([]byte, walBegin+testSegment-w.at))
	w.add(resourceXact, xactPrepare, append(make([]byte, preparedAtOffset), commitAt(early.Add(2*time.Second))...))
	// The server died in a record that goes on to the next page, and began anew there.
	whole := len(w.data)
	w.add(10, 0, bytes.Repeat([]byte{7}, 2*pageBytes))
	w.data = w.data[:whole+pageBytes-whole%pageBytes]
	w.at = walBegin + lsn(len(w.data))
	w.header(pageOverwritten, 0)
	w.add(resourceXact, 0x50, []byte{1}) // an assignment ends nothing
	w.add(resourceXact, xactAbort, commitAt(early.Add(3*time.Second)))
	end := w.at
	long := w.add(10, 0, bytes.Repeat([]byte{7}, 2*pageBytes))
	want := []time.Time{early, early.Add(time.Second), early.Add(2 * time.Second), early.Add(3 * time.Second)}
	for name, limit := range map[string]lsn{
		"after a record": end, "within one, at the end of a page": long + pageBytes - long%pageBytes, "after that one": w.at,
	} {
		ends, next, err := w.read(t, limit)
		if !errors.Is(err, errLogEnds) || len(ends) != len(want) || next != end && next != w.at {
			t.Errorf("%s: %v at %s, %v", name, ends, next, err)
			continue
		}
		for n := range want {
			if !ends[n].Equal(want[n]) {
				t.Errorf("%s: %s is %s", name, want[n], ends[n])
			}
		}
	}
	// A length that was damaged must not look like a record that is not yet whole.
	for name, damage := range map[string]func([]byte){
		"a length": func(b []byte) { b[40+2] = 0x7F }, "a length to behind the end": func(b []byte) { b[40+2] = 0x20 },
		"no length": func(b []byte) { b[40] = 0 },
		"a byte":    func(b []byte) { b[40+30] ^= 1 }, "another page": func(b []byte) { b[2*pageBytes+8] ^= 1 },
		"another magic number": func(b []byte) { b[pageBytes] ^= 1 },
	} {
		broken := &wal{at: w.at, data: bytes.Clone(w.data)}
		damage(broken.data)
		if ends, next, err := broken.read(t, end); err == nil || errors.Is(err, errLogEnds) {
			t.Errorf("%s: %d ends, up to %s, %v", name, len(ends), next, err)
		}
	}
}

// failing is a store that breaks off.
type failing struct{ bytes.Buffer }

func (f *failing) Write([]byte) (int, error) { return 0, os.ErrDeadlineExceeded }

func readerOf(t *testing.T, dir string) *segmentReader {
	t.Helper()
	root, err := volume.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = root.Close() })
	return &segmentReader{root: root, segments: segments{testSegment}}
}

func TestCopyLog(t *testing.T) {
	w := newWAL()
	for w.at < walBegin+testSegment+4*pageBytes {
		w.add(10, 0, bytes.Repeat([]byte{9}, 1000))
	}
	dir := w.save(t)
	s, r := segments{testSegment}, readerOf(t, dir)
	var got bytes.Buffer
	at, to := s.position(testTimeline, walBegin), s.position(testTimeline, w.at)
	// In steps that end within pages, then over the border of the segments.
	for _, stop := range []lsn{walBegin + 100, walBegin + 3*pageBytes, walBegin + 3*pageBytes + 64, w.at, w.at} {
		next, err := r.copy(t.Context(), at, s.position(testTimeline, stop), &got)
		if err != nil {
			t.Fatal(err)
		}
		at = next
	}
	if at != to || !bytes.Equal(got.Bytes(), w.data) {
		t.Fatalf("at %s, %d of %d bytes", at, got.Len(), len(w.data))
	}
	if next, err := r.copy(t.Context(), to, to, &got); next != to || err != nil {
		t.Errorf("nothing to copy: %s, %v", next, err)
	}
	// The next segment does not exist before its first byte does.
	border := s.position(testTimeline, walBegin+9*testSegment)
	if next, err := r.copy(t.Context(), border, border, &got); next != border || err != nil {
		t.Errorf("at a border: %s, %v", next, err)
	}
	begin := s.position(testTimeline, walBegin)
	// A bound may lie behind the end of the file.
	behind := kurabe.LogPosition{File: begin.File, Offset: testSegment + 5000}
	if next, err := r.copy(t.Context(), s.position(testTimeline, walBegin+100), behind, &got); err != nil || next != s.position(testTimeline, walBegin+testSegment) {
		t.Errorf("a bound behind the segment: %s, %v", next, err)
	}
	if next, err := r.copy(t.Context(), begin, to, &failing{}); next != begin || errors.Is(err, engine.ErrLogGone) || err == nil {
		t.Errorf("a store that fails: %s, %v", next, err)
	}
}

// What is not the page that follows is never copied.
func TestCopyRefuses(t *testing.T) {
	w := newWAL()
	for w.at < walBegin+testSegment+4*pageBytes {
		w.add(10, 0, bytes.Repeat([]byte{9}, 1000))
	}
	s, dir := segments{testSegment}, w.save(t)
	begin, to := s.position(testTimeline, walBegin), s.position(testTimeline, w.at)
	other, got := to, bytes.Buffer{}
	other.File = "00000004" + to.File[8:]
	for name, c := range map[string]struct {
		to    kurabe.LogPosition
		wreck func([]byte)
		says  string
	}{
		"another timeline":        {other, func([]byte) {}, "timeline"},
		"a page of another time":  {to, func(b []byte) { b[5*pageBytes+9] ^= 1 }, "is that of"},
		"a page of the future":    {to, func(b []byte) { b[5*pageBytes+4] = 4 }, "is of timeline"},
		"a strange page":          {to, func(b []byte) { b[5*pageBytes] ^= 1 }, "magic"},
		"a page after empty ones": {to, func(b []byte) { clear(b[5*pageBytes : 6*pageBytes]) }, "follows an empty one"},
		"an empty first page":     {to, func(b []byte) { clear(b[:pageBytes]) }, "empty"},
	} {
		segment := bytes.Clone(w.data[:testSegment])
		c.wreck(segment)
		if err := os.WriteFile(filepath.Join(dir, walDir, begin.File), segment, 0o600); err != nil {
			t.Fatal(err)
		}
		next, err := readerOf(t, dir).copy(t.Context(), begin, c.to, &got)
		if !errors.Is(err, engine.ErrLogGone) || !strings.Contains(err.Error(), c.says) || next != begin {
			t.Errorf("%s: %s, %v", name, next, err)
		}
	}
	path := filepath.Join(dir, walDir, begin.File)
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	r := readerOf(t, dir)
	if _, err := r.copy(t.Context(), begin, to, &got); !errors.Is(err, engine.ErrLogGone) {
		t.Errorf("without the segment: %v", err)
	}
	if err := os.Symlink("/etc/passwd", path); err != nil {
		t.Fatal(err)
	}
	if _, err := r.copy(t.Context(), begin, to, &got); err == nil {
		t.Error("a link was followed")
	}
}

func TestSlotKeepBytes(t *testing.T) {
	for storage, want := range map[int64]int64{0: 256 << 20, 20 << 30: 2 << 30, 1 << 40: 16 << 30} {
		if got := slotKeepBytes(storage); got != want {
			t.Errorf("%d of %d, want %d", got, storage, want)
		}
	}
}

func FuzzRecord(f *testing.F) {
	f.Add([]byte{255, 8, 1, 2, 3, 4, 5, 6, 7, 8}, byte(0))
	f.Add([]byte{253, 1, 1, 252, 1, 1, 1, 1, 254, 8, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8}, byte(0x10))
	f.Fuzz(func(t *testing.T, head []byte, info byte) {
		r := record{resource: resourceXact, info: info, head: head[:min(len(head), headBytes)]}
		if at, ok, err := r.transactionEnd(); ok != !at.IsZero() && err == nil {
			t.Errorf("%s, %v", at, ok)
		}
	})
}

// A damaged length that reaches behind the log's end must not pass for a record that
// is not whole yet: the pages between do not go on with it.
func TestScanLongLength(t *testing.T) {
	w := newWAL()
	for w.at < walBegin+4*pageBytes-100 {
		w.add(10, 0, bytes.Repeat([]byte{9}, 50))
	}
	w.put(make([]byte, walBegin+4*pageBytes-w.at))
	w.data[walHeaderBytes+2] = 1 // more by 64 KiB
	if _, next, err := w.read(t, w.at); err == nil || errors.Is(err, errLogEnds) {
		t.Errorf("up to %s, %v", next, err)
	}
}
