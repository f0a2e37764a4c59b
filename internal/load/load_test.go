package load

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"kurabe"
)

const shop = kurabe.InstanceID("db-A")

var start = time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC)

// feed adds a sample a second: one session computes, and in every second second one waits.
func feed(t testing.TB, s *Store, from time.Time, seconds int) {
	t.Helper()
	for n := range seconds {
		sessions := []kurabe.ActiveSession{{WaitType: kurabe.WaitCPU, Wait: kurabe.WaitCPU, Statement: fmt.Sprintf("select %d", n%7), User: "app"}}
		if n%2 == 0 {
			sessions = append(sessions, kurabe.ActiveSession{WaitType: "Lock", Wait: "transactionid", Statement: "update t set a = 1", User: "job", Blocker: 7, BlockerStatement: "delete from t where a = 5"})
		}
		if err := s.Add(shop, Sample{At: from.Add(time.Duration(n) * time.Second), Engine: kurabe.Postgres, Sessions: sessions}); err != nil {
			t.Fatal(err)
		}
	}
}

func ask(t *testing.T, s *Store, q Query) Answer {
	t.Helper()
	q.Instance = shop
	a, err := s.Query(context.Background(), q)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// nothingLost fails the test when something was lost.
func nothingLost(t *testing.T) func(kurabe.InstanceID, string) {
	return func(id kurabe.InstanceID, reason string) { t.Errorf("lost of %s: %s", id, reason) }
}

func sum(list []uint64) (n uint64) {
	for _, one := range list {
		n += one
	}
	return n
}

// TestQuery asks for what was added at once, after a restart and when only minutes are left.
func TestQuery(t *testing.T) {
	dir := t.TempDir()
	s := New(dir, false, nothingLost(t))
	const seconds = 3*3600 + 90
	feed(t, s, start, seconds)
	check := func(when string, s *Store) {
		t.Helper()
		from := start.Unix()
		a := ask(t, s, Query{From: from, To: from + seconds, Period: 60, By: []Dimension{Wait}})
		if sum(a.Sampled) != seconds || sum(a.All) != seconds*3/2 {
			t.Errorf("%s: %d seconds sampled with %d active sessions, want %d and %d", when, sum(a.Sampled), sum(a.All), seconds, seconds*3/2)
		}
		if len(a.Groups) != 2 || a.Groups[0].Values[0] != kurabe.WaitCPU || a.Groups[0].Total != seconds || a.Groups[1].Total != seconds/2 {
			t.Errorf("%s: groups %+v", when, a.Groups)
		}
		for n, c := range a.Groups[1].Counts[:180] {
			if c != 30 {
				t.Errorf("%s: minute %d has %d, want 30", when, n, c)
			}
		}
	}
	check("at once", s)
	if a := ask(t, s, Query{From: start.Unix(), To: start.Unix() + 10, Period: 1, Where: []Condition{{User, []string{"job"}}}}); !slices.Equal(a.All, []uint64{1, 0, 1, 0, 1, 0, 1, 0, 1, 0}) {
		t.Errorf("seconds of a user: %v", a.All)
	}
	if a := ask(t, s, Query{From: start.Unix() + 1, To: start.Unix() + 2, By: []Dimension{Wait}}); len(a.Groups) != 1 {
		t.Errorf("a second in which nothing waited: %+v", a.Groups)
	}
	if err := s.Flush(); err != nil {
		t.Fatal(err)
	}
	check("after a restart", New(dir, false, nothingLost(t)))
	seconds1 := filepath.Join(dir, string(shop), name(fineForm, start.Unix()))
	if err := os.Remove(seconds1); err != nil {
		t.Fatal(err)
	}
	check("with minutes of the first hour", New(dir, false, nothingLost(t)))
}

func TestTexts(t *testing.T) {
	s := New(t.TempDir(), false, nothingLost(t))
	feed(t, s, start, 20)
	from := start.Unix()
	a := ask(t, s, Query{From: from, To: from + 20, By: []Dimension{Tokenized, Statement}})
	if len(a.Groups) != 8 { // seven texts of one statement, and one
		t.Fatalf("groups %+v", a.Groups)
	}
	texts, err := s.Texts(context.Background(), TextQuery{Instance: shop, IDs: a.Groups[0].Values, From: from, To: from + 20})
	if err != nil {
		t.Fatal(err)
	}
	if got := texts[a.Groups[0].Values[0]].Statement; got != "update t set a = ?" {
		t.Errorf("without literals: %q", got)
	}
	if got := texts[a.Groups[0].Values[1]].Statement; got != "update t set a = 1" {
		t.Errorf("with literals: %q", got)
	}
	b := ask(t, s, Query{From: from, To: from + 20, By: []Dimension{BlockingTokenized}, Where: []Condition{{Wait, []string{"transactionid"}}}})
	texts, err = s.Texts(context.Background(), TextQuery{Instance: shop, IDs: b.Groups[0].Values, From: from, To: from + 20})
	if err != nil || texts[b.Groups[0].Values[0]].Statement != "delete from t where a = ?" {
		t.Errorf("the statement that blocks: %v %+v", err, texts)
	}
}

// TestTornTail cuts each file at each length: what is whole before stays, and the next samples
// are kept.
func TestTornTail(t *testing.T) {
	dir := t.TempDir()
	s := New(dir, false, nothingLost(t))
	feed(t, s, start, 30)
	if err := s.Flush(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, string(shop), name(fineForm, start.Unix()))
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for cut := range whole {
		if err := os.WriteFile(path, whole[:cut], 0o600); err != nil {
			t.Fatal(err)
		}
		var told []string
		s := New(dir, false, func(id kurabe.InstanceID, reason string) { told = append(told, string(id)+": "+reason) })
		a := ask(t, s, Query{From: start.Unix(), To: start.Unix() + 60})
		had := sum(a.Sampled)
		left, err := os.Stat(path)
		if torn := err == nil && left.Size() < int64(cut); err != nil || torn != (len(told) == 1) || len(told) > 1 {
			t.Fatalf("cut at %d: told %q, %v", cut, told, err)
		}
		if had%chunkSeconds != 0 || had >= 30 {
			t.Fatalf("cut at %d: %d seconds", cut, had)
		}
		feed(t, s, start.Add(30*time.Second), 10)
		if a := ask(t, s, Query{From: start.Unix(), To: start.Unix() + 60}); sum(a.Sampled) != had+10 {
			t.Fatalf("cut at %d: %d seconds after ten more than %d", cut, sum(a.Sampled), had)
		}
	}
}

// TestBounds feeds thousands of statements a minute: the sum stays true.
func TestBounds(t *testing.T) {
	s := New(t.TempDir(), false, nothingLost(t))
	for n := range 90 {
		sample := Sample{At: start.Add(time.Duration(n) * time.Second), Engine: kurabe.MariaDB}
		for i := range sampleMax + 500 {
			sample.Sessions = append(sample.Sessions, kurabe.ActiveSession{WaitType: kurabe.WaitCPU, Wait: kurabe.WaitCPU, Statement: fmt.Sprintf("select a%d from t%d", i, n)})
		}
		if err := s.Add(shop, sample); err != nil {
			t.Fatal(err)
		}
	}
	from := start.Unix()
	if err := s.Add(shop, Sample{At: start.Add(time.Hour)}); err != nil {
		t.Fatal(err)
	}
	for _, period := range []int64{1, 60} {
		a := ask(t, s, Query{From: from, To: from + 120, Period: period, By: []Dimension{Tokenized}})
		if sum(a.All) != 90*(sampleMax+500) {
			t.Errorf("periods of %d s: %d sessions", period, sum(a.All))
		}
	}
	found, err := s.servers[shop].find(map[string]bool{}, from, from)
	if err != nil || len(found) != 0 || len(s.servers[shop].texts.ids) > textsHourly+tokenizedHourly {
		t.Errorf("%v: %d texts", err, len(s.servers[shop].texts.ids))
	}
}

func TestSweep(t *testing.T) {
	dir := t.TempDir()
	s := New(dir, false, nothingLost(t))
	feed(t, s, start, 60)
	for _, after := range []time.Duration{0, 5 * time.Hour, 9 * 24 * time.Hour} {
		if err := s.Sweep(start.Add(after)); err != nil {
			t.Fatal(err)
		}
		files, _ := filepath.Glob(filepath.Join(dir, "*", "*"))
		switch {
		case after == 0 && len(files) != 2, after == 5*time.Hour && len(files) != 2, after > 24*time.Hour && len(files) != 0:
			t.Errorf("after %v: %v", after, files)
		}
		if after == 5*time.Hour {
			if a := ask(t, s, Query{From: start.Unix(), To: start.Unix() + 60, Period: 60}); sum(a.Sampled) != 60 {
				t.Errorf("minutes of a server that was stopped: %+v", a)
			}
		}
	}
}

func FuzzChunk(f *testing.F) {
	b := newBuilder(start.Unix(), 1, 10)
	b.add(start.Unix(), Key{kurabe.WaitCPU, kurabe.WaitCPU}, 3)
	f.Add(b.chunk(keysMax).encode())
	f.Fuzz(func(t *testing.T, raw []byte) {
		c, err := decodeChunk(raw)
		if err != nil {
			return
		}
		g := &grouping{Query: Query{From: 0, To: 1 << 40, Period: 1 << 40}, index: map[string]int{}}
		g.answer.Sampled, g.answer.All = make([]uint64, 1), make([]uint64, 1)
		g.add(c, 0, 1<<40)
	})
}

// BenchmarkDay asks for the load of 24 hours of a busy server by statement and by wait event:
// 8 active sessions, 60 statements, 12 wait events, 6 users.
func BenchmarkDay(b *testing.B) {
	s := New(b.TempDir(), false, func(kurabe.InstanceID, string) {})
	const hours = 24
	for n := range hours * 3600 {
		sample := Sample{At: start.Add(time.Duration(n) * time.Second), Engine: kurabe.Postgres}
		for i := range 8 {
			x := n*31 + i*7919
			sample.Sessions = append(sample.Sessions, kurabe.ActiveSession{WaitType: "IO", Wait: fmt.Sprint("w", x%12),
				Statement: fmt.Sprintf("select c%d from t where a = %d", x/3%60, x%1000), User: fmt.Sprint("u", x/5%6)})
		}
		if err := s.Add(shop, sample); err != nil {
			b.Fatal(err)
		}
	}
	if err := s.Sweep(start.Add(hours * time.Hour)); err != nil {
		b.Fatal(err)
	}
	var bytes int64
	files, _ := filepath.Glob(filepath.Join(s.dir, "*", "*"))
	for _, f := range files {
		if info, err := os.Stat(f); err == nil {
			bytes += info.Size()
		}
	}
	q := Query{Instance: shop, From: start.Unix(), To: start.Unix() + hours*3600, By: []Dimension{Tokenized, Wait}, Largest: 1000}
	for b.Loop() {
		if a, err := s.Query(context.Background(), q); err != nil || len(a.Groups) == 0 {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(bytes)/(1<<20), "MiB/day")
}

// The last seconds are told without the files.
func TestLastSeconds(t *testing.T) {
	dir := t.TempDir()
	s := New(dir, false, nothingLost(t))
	feed(t, s, start, 40)
	q := Query{From: start.Unix() + 15, To: start.Unix() + 40, By: []Dimension{WaitType}}
	check := func() {
		t.Helper()
		a := ask(t, s, q)
		if sum(a.Sampled) != 25 || len(a.Groups) != 2 || a.Groups[0].Total != 25 || a.Groups[1].Total != 12 {
			t.Errorf("%+v", a)
		}
	}
	check()
	if err := os.RemoveAll(filepath.Join(dir, string(shop))); err != nil {
		t.Fatal(err)
	}
	check()
	q.From = start.Unix() + 5 // of files that are no more
	if a := ask(t, s, q); sum(a.Sampled) != 10 {
		t.Errorf("%+v", a)
	}
}

// BenchmarkLastSeconds asks one instance for its load by type of wait, at the end of an hour.
func BenchmarkLastSeconds(b *testing.B) {
	s := New(b.TempDir(), false, func(kurabe.InstanceID, string) {})
	feed(b, s, start, 3590)
	to := start.Unix() + 3590
	for b.Loop() {
		if a, err := s.Query(b.Context(), Query{Instance: shop, From: to - 15, To: to, By: []Dimension{WaitType}}); err != nil || sum(a.Sampled) != 15 {
			b.Fatal(a, err)
		}
	}
}
