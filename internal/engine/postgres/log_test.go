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
	"kurabe/internal/engine/postgres/wal"
	"kurabe/internal/engine/postgres/wal/waltest"
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
	return &segmentReader{root: root, segments: wal.Segments{Bytes: waltest.Segment}}
}

func TestCopyLog(t *testing.T) {
	w := waltest.New()
	for w.At < waltest.Begin+waltest.Segment+4*wal.PageBytes {
		w.Add(10, 0, bytes.Repeat([]byte{9}, 1000))
	}
	dir := w.Save(t)
	s, r := wal.Segments{Bytes: waltest.Segment}, readerOf(t, dir)
	var got bytes.Buffer
	at, to := s.Position(waltest.Timeline, waltest.Begin), s.Position(waltest.Timeline, w.At)
	// In steps that end within pages, then over the border of the segments.
	for _, stop := range []wal.LSN{waltest.Begin + 100, waltest.Begin + 3*wal.PageBytes, waltest.Begin + 3*wal.PageBytes + 64, w.At, w.At} {
		next, err := r.copy(t.Context(), at, s.Position(waltest.Timeline, stop), &got)
		if err != nil {
			t.Fatal(err)
		}
		at = next
	}
	if at != to || !bytes.Equal(got.Bytes(), w.Data) {
		t.Fatalf("at %s, %d of %d bytes", at, got.Len(), len(w.Data))
	}
	if next, err := r.copy(t.Context(), to, to, &got); next != to || err != nil {
		t.Errorf("nothing to copy: %s, %v", next, err)
	}
	// The next segment does not exist before its first byte does.
	border := s.Position(waltest.Timeline, waltest.Begin+9*waltest.Segment)
	if next, err := r.copy(t.Context(), border, border, &got); next != border || err != nil {
		t.Errorf("at a border: %s, %v", next, err)
	}
	begin := s.Position(waltest.Timeline, waltest.Begin)
	// A bound may lie behind the end of the file.
	behind := kurabe.LogPosition{File: begin.File, Offset: waltest.Segment + 5000}
	if next, err := r.copy(t.Context(), s.Position(waltest.Timeline, waltest.Begin+100), behind, &got); err != nil || next != s.Position(waltest.Timeline, waltest.Begin+waltest.Segment) {
		t.Errorf("a bound behind the segment: %s, %v", next, err)
	}
	if next, err := r.copy(t.Context(), begin, to, &failing{}); next != begin || errors.Is(err, engine.ErrLogGone) || err == nil {
		t.Errorf("a store that fails: %s, %v", next, err)
	}
}

// What is not the page that follows is never copied.
func TestCopyRefuses(t *testing.T) {
	w := waltest.New()
	for w.At < waltest.Begin+waltest.Segment+4*wal.PageBytes {
		w.Add(10, 0, bytes.Repeat([]byte{9}, 1000))
	}
	s, dir := wal.Segments{Bytes: waltest.Segment}, w.Save(t)
	begin, to := s.Position(waltest.Timeline, waltest.Begin), s.Position(waltest.Timeline, w.At)
	other, got := to, bytes.Buffer{}
	other.File = "00000004" + to.File[8:]
	for name, c := range map[string]struct {
		to    kurabe.LogPosition
		wreck func([]byte)
		says  string
	}{
		"another timeline":        {other, func([]byte) {}, "timeline"},
		"a page of another time":  {to, func(b []byte) { b[5*wal.PageBytes+9] ^= 1 }, "is that of"},
		"a page of the future":    {to, func(b []byte) { b[5*wal.PageBytes+4] = 4 }, "is of timeline"},
		"a strange page":          {to, func(b []byte) { b[5*wal.PageBytes] ^= 1 }, "magic"},
		"a page after empty ones": {to, func(b []byte) { clear(b[5*wal.PageBytes : 6*wal.PageBytes]) }, "follows an empty one"},
		"an empty first page":     {to, func(b []byte) { clear(b[:wal.PageBytes]) }, "empty"},
	} {
		segment := bytes.Clone(w.Data[:waltest.Segment])
		c.wreck(segment)
		if err := os.WriteFile(filepath.Join(dir, wal.Dir, begin.File), segment, 0o600); err != nil {
			t.Fatal(err)
		}
		next, err := readerOf(t, dir).copy(t.Context(), begin, c.to, &got)
		if !errors.Is(err, engine.ErrLogGone) || !strings.Contains(err.Error(), c.says) || next != begin {
			t.Errorf("%s: %s, %v", name, next, err)
		}
	}
	path := filepath.Join(dir, wal.Dir, begin.File)
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
