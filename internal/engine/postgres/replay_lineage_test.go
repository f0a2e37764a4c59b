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
)

// forked is a log of three timelines, each of which a standby went on with, in a folder as it
// is fetched.
type forked struct {
	dir           string
	second, third lsn // where they begin
	end           lsn
}

// newForked: between the two forks so many bytes are written.
func newForked(t *testing.T, between int) forked {
	t.Helper()
	f := forked{dir: t.TempDir()}
	w := newWAL()
	w.fill(testSegment + testSegment/2)
	w.write(t, f.dir, walBegin)
	f.second = w.at
	// The one that is deposed goes on for itself: nobody is told of that.
	alone := &wal{w.at, slices.Clone(w.data), w.timeline}
	alone.fill(testSegment)
	alone.write(t, f.dir, f.second)
	w.endOfRecovery(5, testTimeline)
	w.fill(between)
	w.write(t, f.dir, f.second)
	f.third = w.at
	w.endOfRecovery(8, 5)
	w.fill(testSegment / 4)
	w.write(t, f.dir, f.third)
	f.end = w.at
	return f
}

// TestLineage: the log itself says which timeline came from which, and where.
func TestLineage(t *testing.T) {
	for name, between := range map[string]int{"a segment between them": testSegment, "both in one segment": 5000} {
		f := newForked(t, between)
		want := lineage{{testTimeline, f.second}, {5, f.third}, {8, endless}}
		got, err := findLineage(f.dir, testSegments, testTimeline, 8, f.end)
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %v, %v, not %v", name, got, err, want)
		}
		if back, err := parseHistory(got.text(), 8); err != nil || !slices.Equal(back, want) {
			t.Errorf("%s: %q is %v, %v", name, got.text(), back, err)
		}
		// What a recovery reads is whole, and of nobody else.
		log := &scanner{dir: f.dir, segments: testSegments, past: got, limit: f.end}
		next, err := log.first(walBegin)
		for err == nil {
			var r record
			if r, err = log.read(next); err == nil {
				next = r.next
			}
		}
		log.close()
		if next != f.end || !strings.Contains(err.Error(), errLogEnds.Error()) {
			t.Errorf("%s: it is read up to %s of %s: %v", name, next, f.end, err)
		}
		if same, err := findLineage(f.dir, testSegments, 8, 8, f.end); err != nil || len(same) != 1 {
			t.Errorf("%s: %v, %v", name, same, err)
		}
		for _, c := range []struct {
			from, to uint32
			limit    lsn
		}{{4, 8, f.end}, {testTimeline, 7, f.end}, {testTimeline, 8, f.third}} {
			if got, err := findLineage(f.dir, testSegments, c.from, c.to, c.limit); err == nil {
				t.Errorf("%s: from %d to %d: %v", name, c.from, c.to, got)
			}
		}
	}
}

// TestLineageAtTheEnd: the log may end right behind the record that began the timeline, in the
// midst of a page, and that record may lie on two pages.
func TestLineageAtTheEnd(t *testing.T) {
	for more := range 8 { // so that the record begins at each place near a page's end
		dir, w := t.TempDir(), newWAL()
		w.fill(5 * pageBytes)
		for w.at%pageBytes < pageBytes-200 {
			w.add(10, 0, nil)
		}
		for range more {
			w.add(10, 0, nil)
		}
		w.write(t, dir, walBegin)
		at := w.at
		w.endOfRecovery(5, testTimeline)
		w.write(t, dir, walBegin)
		if err := os.Truncate(filepath.Join(dir, testSegments.position(5, w.at).File), int64(w.at%testSegment)); err != nil {
			t.Fatal(err)
		}
		got, err := findLineage(dir, testSegments, testTimeline, 5, w.at)
		if want := (lineage{{testTimeline, at}, {5, endless}}); err != nil || !slices.Equal(got, want) {
			t.Errorf("%v, %v, not %v", got, err, want)
		}
	}
}

// TestKeepTo: a recovery that ends before a timeline began has nothing of that in its folder,
// for the server would begin one of that number and find segments of it.
func TestKeepTo(t *testing.T) {
	f := newForked(t, testSegment)
	past, err := findLineage(f.dir, testSegments, testTimeline, 8, f.end)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		target lsn
		last   uint32
	}{
		"in a segment of the first one's alone":    {walBegin + 5000, testTimeline},
		"in that in which the second one began":    {f.second - 100, testTimeline},
		"at the second one's first record":         {f.second, 5},
		"in that in which the last one began":      {f.third - 100, 5},
		"in the last one":                          {f.third + 200, 8},
		"after all that there is, without a place": {0, 8},
	} {
		p := &private{data: t.TempDir(), control: control{segments: testSegments}}
		dir := filepath.Join(p.data, walDir)
		if err := os.CopyFS(dir, os.DirFS(f.dir)); err != nil {
			t.Fatal(err)
		}
		s, err := p.keepTo(span{past: past}, goal{target: c.target})
		if err != nil {
			t.Fatal(err)
		}
		if got := s.past[len(s.past)-1]; got != (stretch{c.last, endless}) {
			t.Errorf("%s: it is %v", name, s.past)
		}
		entries, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			if newest := testSegments.position(c.last, 0).File[:8]; e.Name()[:8] > newest {
				t.Errorf("%s: %s is left", name, e.Name())
			}
		}
		if c.target == 0 {
			continue
		}
		log := &scanner{dir: dir, segments: testSegments, past: s.past, limit: c.target}
		if _, err := log.load(c.target - c.target%pageBytes); err != nil {
			t.Errorf("%s: the page of the place: %v", name, err)
		}
		log.close()
		if err := p.writeHistory(s.past); err != nil {
			t.Fatal(err)
		}
		if text, err := os.ReadFile(filepath.Join(p.data, historyFile(c.last))); (err == nil) != (len(s.past) > 1) || err == nil && string(text) != s.past.text() {
			t.Errorf("%s: history %q, %v", name, text, err)
		}
	}
}

// TestJoinedSpan: the mark before the moment can lie behind what the former writer's log
// counts for, and a snapshot cannot.
func TestJoinedSpan(t *testing.T) {
	f := newForked(t, testSegment)
	r := engine.ReplayRequest{Dir: f.dir, Joined: []string{t.TempDir()}, From: testSegments.position(testTimeline, walBegin+8192)}
	r.After.Position = testSegments.position(8, f.end)
	r.Before.Position = testSegments.position(testTimeline, f.second+500)
	c := control{segments: testSegments, timeline: testTimeline}
	s, err := spanOf(r, c)
	if err != nil || s.before != f.second || s.after != f.end || s.from != walBegin+8192 {
		t.Errorf("%+v, %v", s, err)
	}
	r.From = testSegments.position(testTimeline, f.second+8)
	if s, err = spanOf(r, c); err == nil {
		t.Errorf("the snapshot has what nobody else has: %+v", s)
	}
	r.From, r.Joined = testSegments.position(testTimeline, walBegin), nil
	if s, err = spanOf(r, c); err == nil {
		t.Errorf("one server's log has two timelines: %+v", s)
	}
}

// TestCopyAcross: a server that was promoted has the old timeline in its own segments, and then
// that in which the new one began; a bound within the old one's file does not hide that.
func TestCopyAcross(t *testing.T) {
	f := newForked(t, testSegment)
	data := t.TempDir()
	if err := os.CopyFS(filepath.Join(data, walDir), os.DirFS(f.dir)); err != nil {
		t.Fatal(err)
	}
	past := lineage{{testTimeline, f.second}, {5, f.third}, {8, endless}}
	if err := os.WriteFile(filepath.Join(data, historyFile(8)), []byte(past.text()), 0o600); err != nil {
		t.Fatal(err)
	}
	r := readerOf(t, data)
	r.newest = 8
	at, to := testSegments.position(testTimeline, walBegin), testSegments.position(8, f.end)
	var files []string
	for at != to {
		if len(files) == 0 || files[len(files)-1] != at.File {
			files = append(files, at.File)
		}
		limit := to
		if at.File != to.File {
			limit.File, limit.Offset = at.File, testSegment
		}
		var got bytes.Buffer
		next, err := r.copy(t.Context(), at, limit, &got)
		if err != nil || next == at {
			t.Fatalf("from %s: %s, %v", at, next, err)
		}
		at = next
	}
	var want []string
	for place := walBegin; place < f.end; place += testSegment {
		want = append(want, testSegments.position(past.at(testSegments, place), place).File)
	}
	if !slices.Equal(files, want) {
		t.Errorf("%v, not %v", files, want)
	}
	alone := testSegments.position(testTimeline, f.second+testSegment)
	alone.Offset = 0
	if next, err := r.copy(t.Context(), alone, to, io.Discard); !errors.Is(err, engine.ErrLogGone) {
		t.Errorf("what the former writer had alone is copied: %s, %v", next, err)
	}
}
