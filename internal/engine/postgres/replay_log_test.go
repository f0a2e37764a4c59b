package postgres

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"kurabe/internal/engine"
	"kurabe/internal/engine/postgres/wal"
	"kurabe/internal/engine/postgres/wal/waltest"
)

// forked is a log of three timelines, each of which a standby went on with, in a folder as it
// is fetched.
type forked struct {
	dir           string
	second, third wal.LSN // where they begin
	end           wal.LSN
}

// newForked: between the two forks so many bytes are written.
func newForked(t *testing.T, between int) forked {
	t.Helper()
	f := forked{dir: t.TempDir()}
	w := waltest.New()
	w.Fill(waltest.Segment + waltest.Segment/2)
	w.Write(t, f.dir, waltest.Begin)
	f.second = w.At
	// The one that is deposed goes on for itself: nobody is told of that.
	alone := &waltest.Log{At: w.At, Data: slices.Clone(w.Data), Timeline: w.Timeline}
	alone.Fill(waltest.Segment)
	alone.Write(t, f.dir, f.second)
	w.EndOfRecovery(5, waltest.Timeline)
	w.Fill(between)
	w.Write(t, f.dir, f.second)
	f.third = w.At
	w.EndOfRecovery(8, 5)
	w.Fill(waltest.Segment / 4)
	w.Write(t, f.dir, f.third)
	f.end = w.At
	return f
}

// TestLineage: the log itself says which timeline came from which, and where.
func TestLineage(t *testing.T) {
	for name, between := range map[string]int{"a segment between them": waltest.Segment, "both in one segment": 5000} {
		f := newForked(t, between)
		want := wal.Lineage{{Timeline: waltest.Timeline, End: f.second}, {Timeline: 5, End: f.third}, {Timeline: 8, End: wal.Endless}}
		got, err := findLineage(f.dir, waltest.Segments, waltest.Timeline, 8, f.end)
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %v, %v, not %v", name, got, err, want)
		}
		if back, err := wal.ParseHistory(got.Text(), 8); err != nil || !slices.Equal(back, want) {
			t.Errorf("%s: %q is %v, %v", name, got.Text(), back, err)
		}
		// What a recovery reads is whole, and of nobody else.
		log := &wal.Scanner{Dir: f.dir, Segments: waltest.Segments, Past: got, Limit: f.end}
		next, err := log.First(waltest.Begin)
		for err == nil {
			var r wal.Record
			if r, err = log.Read(next); err == nil {
				next = r.Next
			}
		}
		log.Close()
		if next != f.end || !strings.Contains(err.Error(), wal.ErrEnd.Error()) {
			t.Errorf("%s: it is read up to %s of %s: %v", name, next, f.end, err)
		}
		if same, err := findLineage(f.dir, waltest.Segments, 8, 8, f.end); err != nil || len(same) != 1 {
			t.Errorf("%s: %v, %v", name, same, err)
		}
		for _, c := range []struct {
			from, to uint32
			limit    wal.LSN
		}{{4, 8, f.end}, {waltest.Timeline, 7, f.end}, {waltest.Timeline, 8, f.third}} {
			if got, err := findLineage(f.dir, waltest.Segments, c.from, c.to, c.limit); err == nil {
				t.Errorf("%s: from %d to %d: %v", name, c.from, c.to, got)
			}
		}
	}
}

// TestLineageAtTheEnd: the log may end right behind the record that began the timeline, in the
// midst of a page, and that record may lie on two pages.
func TestLineageAtTheEnd(t *testing.T) {
	for more := range 8 { // so that the record begins at each place near a page's end
		dir, w := t.TempDir(), waltest.New()
		w.Fill(5 * wal.PageBytes)
		for w.At%wal.PageBytes < wal.PageBytes-200 {
			w.Add(10, 0, nil)
		}
		for range more {
			w.Add(10, 0, nil)
		}
		w.Write(t, dir, waltest.Begin)
		at := w.At
		w.EndOfRecovery(5, waltest.Timeline)
		w.Write(t, dir, waltest.Begin)
		if err := os.Truncate(filepath.Join(dir, waltest.Segments.Position(5, w.At).File), int64(w.At%waltest.Segment)); err != nil {
			t.Fatal(err)
		}
		got, err := findLineage(dir, waltest.Segments, waltest.Timeline, 5, w.At)
		if want := (wal.Lineage{{Timeline: waltest.Timeline, End: at}, {Timeline: 5, End: wal.Endless}}); err != nil || !slices.Equal(got, want) {
			t.Errorf("%v, %v, not %v", got, err, want)
		}
	}
}

// TestKeepTo: a recovery that ends before a timeline began has nothing of that in its folder,
// for the server would begin one of that number and find segments of it.
func TestKeepTo(t *testing.T) {
	f := newForked(t, waltest.Segment)
	past, err := findLineage(f.dir, waltest.Segments, waltest.Timeline, 8, f.end)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		target wal.LSN
		last   uint32
	}{
		"in a segment of the first one's alone":    {waltest.Begin + 5000, waltest.Timeline},
		"in that in which the second one began":    {f.second - 100, waltest.Timeline},
		"at the second one's first record":         {f.second, 5},
		"in that in which the last one began":      {f.third - 100, 5},
		"in the last one":                          {f.third + 200, 8},
		"after all that there is, without a place": {0, 8},
	} {
		p := &private{data: t.TempDir(), control: control{segments: waltest.Segments}}
		dir := filepath.Join(p.data, wal.Dir)
		if err := os.CopyFS(dir, os.DirFS(f.dir)); err != nil {
			t.Fatal(err)
		}
		s, err := p.keepTo(span{past: past}, goal{target: c.target})
		if err != nil {
			t.Fatal(err)
		}
		if got := s.past[len(s.past)-1]; got != (wal.Stretch{Timeline: c.last, End: wal.Endless}) {
			t.Errorf("%s: it is %v", name, s.past)
		}
		entries, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			if newest := waltest.Segments.Position(c.last, 0).File[:8]; e.Name()[:8] > newest {
				t.Errorf("%s: %s is left", name, e.Name())
			}
		}
		if c.target == 0 {
			continue
		}
		log := &wal.Scanner{Dir: dir, Segments: waltest.Segments, Past: s.past, Limit: c.target}
		if _, err := log.First(c.target - c.target%wal.PageBytes); err != nil {
			t.Errorf("%s: the page of the place: %v", name, err)
		}
		log.Close()
		if err := p.writeHistory(s.past); err != nil {
			t.Fatal(err)
		}
		if text, err := os.ReadFile(filepath.Join(p.data, wal.HistoryFile(c.last))); (err == nil) != (len(s.past) > 1) || err == nil && string(text) != s.past.Text() {
			t.Errorf("%s: history %q, %v", name, text, err)
		}
	}
}

// TestJoinedSpan: the mark before the moment can lie behind what the former writer's log
// counts for, and a snapshot cannot.
func TestJoinedSpan(t *testing.T) {
	f := newForked(t, waltest.Segment)
	r := engine.ReplayRequest{Dir: f.dir, Joined: []string{t.TempDir()}, From: waltest.Segments.Position(waltest.Timeline, waltest.Begin+8192)}
	r.After.Position = waltest.Segments.Position(8, f.end)
	r.Before.Position = waltest.Segments.Position(waltest.Timeline, f.second+500)
	c := control{segments: waltest.Segments, timeline: waltest.Timeline}
	s, err := spanOf(r, c)
	if err != nil || s.before != f.second || s.after != f.end || s.from != waltest.Begin+8192 {
		t.Errorf("%+v, %v", s, err)
	}
	r.From = waltest.Segments.Position(waltest.Timeline, f.second+8)
	if s, err = spanOf(r, c); err == nil {
		t.Errorf("the snapshot has what nobody else has: %+v", s)
	}
	r.From, r.Joined = waltest.Segments.Position(waltest.Timeline, waltest.Begin), nil
	if s, err = spanOf(r, c); err == nil {
		t.Errorf("one server's log has two timelines: %+v", s)
	}
}

// TestCopyAcross: a server that was promoted has the old timeline in its own segments, and then
// that in which the new one began; a bound within the old one's file does not hide that.
func TestCopyAcross(t *testing.T) {
	f := newForked(t, waltest.Segment)
	data := t.TempDir()
	if err := os.CopyFS(filepath.Join(data, wal.Dir), os.DirFS(f.dir)); err != nil {
		t.Fatal(err)
	}
	past := wal.Lineage{{Timeline: waltest.Timeline, End: f.second}, {Timeline: 5, End: f.third}, {Timeline: 8, End: wal.Endless}}
	if err := os.WriteFile(filepath.Join(data, wal.HistoryFile(8)), []byte(past.Text()), 0o600); err != nil {
		t.Fatal(err)
	}
	r := readerOf(t, data)
	r.newest = 8
	at, to := waltest.Segments.Position(waltest.Timeline, waltest.Begin), waltest.Segments.Position(8, f.end)
	var files []string
	for at != to {
		if len(files) == 0 || files[len(files)-1] != at.File {
			files = append(files, at.File)
		}
		limit := to
		if at.File != to.File {
			limit.File, limit.Offset = at.File, waltest.Segment
		}
		var got bytes.Buffer
		next, err := r.copy(t.Context(), at, limit, &got)
		if err != nil || next == at {
			t.Fatalf("from %s: %s, %v", at, next, err)
		}
		at = next
	}
	var want []string
	for place := waltest.Begin; place < f.end; place += waltest.Segment {
		want = append(want, waltest.Segments.Position(past.At(waltest.Segments, place), place).File)
	}
	if !slices.Equal(files, want) {
		t.Errorf("%v, not %v", files, want)
	}
	alone := waltest.Segments.Position(waltest.Timeline, f.second+waltest.Segment)
	alone.Offset = 0
	if next, err := r.copy(t.Context(), alone, to, io.Discard); !errors.Is(err, engine.ErrLogGone) {
		t.Errorf("what the former writer had alone is copied: %s, %v", next, err)
	}
}
