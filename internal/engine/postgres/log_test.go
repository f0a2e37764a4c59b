package postgres

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kurabe"
	"kurabe/internal/engine"
	"kurabe/internal/volume"
)

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
