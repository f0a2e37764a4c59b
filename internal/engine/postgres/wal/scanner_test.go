package wal_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"kurabe/internal/engine/postgres/wal"
	"kurabe/internal/engine/postgres/wal/waltest"
)

// The form of what the tests write.
const (
	pageOverwritten  = 0x0008
	resourceXLOG     = 0
	xlogSwitch       = 0x40
	resourceXact     = 1
	xactCommit       = 0x00
	xactPrepare      = 0x10
	xactAbort        = 0x20
	xactAbortTwo     = 0x40
	preparedAtOffset = 16
)

var postgresEpoch = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

func commitAt(at time.Time) []byte {
	return binary.LittleEndian.AppendUint64(nil, uint64(at.Sub(postgresEpoch).Microseconds()))
}

// readAll returns how the log ends, and what ends in it.
func readAll(t *testing.T, w *waltest.Log, limit wal.LSN) (ends []time.Time, next wal.LSN, err error) {
	t.Helper()
	log := &wal.Scanner{Dir: filepath.Join(w.Save(t), wal.Dir), Segments: waltest.Segments, Timeline: waltest.Timeline, Limit: limit}
	defer log.Close()
	next, err = log.First(waltest.Begin)
	for err == nil {
		var r wal.Record
		if r, err = log.Read(next); err != nil {
			break
		}
		next = r.Next
		at, ok, endErr := r.TransactionEnd()
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
	w := waltest.New()
	w.Add(resourceXact, xactCommit, commitAt(early))
	w.Add(10, 0, bytes.Repeat([]byte{7}, 3*wal.PageBytes))
	w.Add(resourceXact, xactAbortTwo|0x80, commitAt(early.Add(time.Second)))
	w.Add(resourceXLOG, xlogSwitch, nil)
	w.Put(make([]byte, waltest.Begin+waltest.Segment-w.At))
	w.Add(resourceXact, xactPrepare, append(make([]byte, preparedAtOffset), commitAt(early.Add(2*time.Second))...))
	// The server died in a record that goes on to the next page, and began anew there.
	whole := len(w.Data)
	w.Add(10, 0, bytes.Repeat([]byte{7}, 2*wal.PageBytes))
	w.Data = w.Data[:whole+wal.PageBytes-whole%wal.PageBytes]
	w.At = waltest.Begin + wal.LSN(len(w.Data))
	w.Page(pageOverwritten, 0)
	w.Add(resourceXact, 0x50, []byte{1}) // an assignment ends nothing
	w.Add(resourceXact, xactAbort, commitAt(early.Add(3*time.Second)))
	end := w.At
	long := w.Add(10, 0, bytes.Repeat([]byte{7}, 2*wal.PageBytes))
	want := []time.Time{early, early.Add(time.Second), early.Add(2 * time.Second), early.Add(3 * time.Second)}
	for name, limit := range map[string]wal.LSN{
		"after a record": end, "within one, at the end of a page": long + wal.PageBytes - long%wal.PageBytes, "after that one": w.At,
	} {
		ends, next, err := readAll(t, w, limit)
		if !errors.Is(err, wal.ErrEnd) || len(ends) != len(want) || next != end && next != w.At {
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
		"a byte":    func(b []byte) { b[40+30] ^= 1 }, "another page": func(b []byte) { b[2*wal.PageBytes+8] ^= 1 },
		"another magic number": func(b []byte) { b[wal.PageBytes] ^= 1 },
	} {
		broken := &waltest.Log{At: w.At, Data: bytes.Clone(w.Data)}
		damage(broken.Data)
		if ends, next, err := readAll(t, broken, end); err == nil || errors.Is(err, wal.ErrEnd) {
			t.Errorf("%s: %d ends, up to %s, %v", name, len(ends), next, err)
		}
	}
}

// A damaged length that reaches behind the log's end must not pass for a record that
// is not whole yet: the pages between do not go on with it.
func TestScanLongLength(t *testing.T) {
	w := waltest.New()
	for w.At < waltest.Begin+4*wal.PageBytes-100 {
		w.Add(10, 0, bytes.Repeat([]byte{9}, 50))
	}
	w.Put(make([]byte, waltest.Begin+4*wal.PageBytes-w.At))
	w.Data[wal.SegmentHeaderBytes+2] = 1 // more by 64 KiB
	if _, next, err := readAll(t, w, w.At); err == nil || errors.Is(err, wal.ErrEnd) {
		t.Errorf("up to %s, %v", next, err)
	}
}
