package postgres

import (
	"bytes"
	"encoding/binary"
	"errors"
	"path/filepath"
	"testing"
	"time"
)

func commitAt(at time.Time) []byte {
	return binary.LittleEndian.AppendUint64(nil, uint64(at.Sub(postgresEpoch).Microseconds()))
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
