package load

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"kurabe"
)

// TestCounts counts two statements around midnight, one of which the server counts under two
// numbers, and asks before and after a restart.
func TestCounts(t *testing.T) {
	dir := t.TempDir()
	s := New(dir, false, nothingLost(t))
	midnight := time.Date(2026, 3, 2, 0, 0, 0, 0, time.UTC)
	for n, native := range []string{"11", "12", "-5"} {
		statement := "select 1"
		if native == "-5" {
			statement = "update t set a = 2"
		}
		sample := Sample{At: midnight.Add(time.Duration(n-90) * time.Second), Engine: kurabe.Postgres, Sessions: []kurabe.ActiveSession{{Statement: statement, NativeID: native}}}
		if err := s.Add(shop, sample); err != nil {
			t.Fatal(err)
		}
	}
	counts := func(native string, calls, rows uint64) kurabe.StatementCounts {
		c := kurabe.StatementCounts{NativeID: native}
		c.Counts[kurabe.StatementCalls], c.Counts[kurabe.StatementRows] = calls, rows
		return c
	}
	for _, end := range []time.Duration{-30 * time.Second, 30 * time.Second} {
		c := Counted{At: midnight.Add(end), For: time.Minute, Statements: []kurabe.StatementCounts{counts("11", 60, 6), counts("12", 60, 0), counts("-5", 600, 1200), counts("99", 7, 7)}}
		if err := s.AddCounted(shop, c); err != nil {
			t.Fatal(err)
		}
	}
	text := func(s string) string { return textOf(s, "", dialectOf(kurabe.Postgres), false).TokenizedID }
	selects, updates := text("select 1"), text("update t set a = 2")
	q := CountQuery{Instance: shop, IDs: []string{selects, updates, "", text("never")}, Counters: []kurabe.StatementCounter{kurabe.StatementCalls, kurabe.StatementRows},
		From: midnight.Unix() - 120, To: midnight.Unix() + 60, Period: 60}
	check := func(when string, s *Store) {
		t.Helper()
		got, err := s.Counts(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		// The samples begin 90 s before midnight and end 30 s after it.
		near(t, when+": seconds", got.Seconds, 30, 60, 30)
		if len(got.Of) != 2 {
			t.Fatalf("%s: statements %v", when, got.Of)
		}
		near(t, when+": calls of the select", got.Of[selects][0], 60, 120, 60)
		near(t, when+": rows of the select", got.Of[selects][1], 3, 6, 3)
		near(t, when+": rows of the update", got.Of[updates][1], 600, 1200, 600)
	}
	check("at once", s)
	if err := s.Flush(); err != nil {
		t.Fatal(err)
	}
	check("after a restart", New(dir, false, nothingLost(t)))
	once := q
	once.From, once.To, once.Period = midnight.Unix()-600, midnight.Unix()-60, 0
	if got, err := s.Counts(t.Context(), once); err != nil {
		t.Fatal(err)
	} else {
		near(t, "of one period", got.Of[updates][0], 300)
	}
	texts, err := s.Texts(t.Context(), TextQuery{Instance: shop, IDs: []string{"", selects}, From: q.From, To: q.To})
	if err != nil || len(texts) != 1 || texts[selects].Statement != "select ?" {
		t.Errorf("texts: %v, %v", texts, err)
	}
}

func near(t *testing.T, what string, got []float64, want ...float64) {
	t.Helper()
	same := len(got) == len(want)
	for n := range min(len(got), len(want)) {
		same = same && math.Abs(got[n]-want[n]) < 1e-6
	}
	if !same {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

// The sum of what was counted is true, whatever was left out.
func TestCountedBound(t *testing.T) {
	s := New(t.TempDir(), false, nothingLost(t))
	c := Counted{At: start, For: time.Minute}
	for n := range countedMax + 50 {
		one := kurabe.StatementCounts{NativeID: strings.Repeat("1", n+1)}
		one.Counts[kurabe.StatementMicroseconds], one.Counts[kurabe.StatementCalls] = uint64(n), 2
		c.Statements = append(c.Statements, one)
	}
	if err := s.AddCounted(shop, c); err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(filepath.Join(s.dir, string(shop), name(countForm, start.Unix())))
	if err != nil {
		t.Fatal(err)
	}
	body, _, err := unframe(raw)
	if err != nil {
		t.Fatal(err)
	}
	got, err := decodeCounted(body)
	if err != nil || !got.At.Equal(start) || got.For != time.Minute {
		t.Fatalf("%v, %v", got, err)
	}
	calls := uint64(0)
	for _, one := range got.Statements {
		calls += one.Counts[kurabe.StatementCalls]
	}
	rest := got.Statements[len(got.Statements)-1]
	if len(got.Statements) != countedMax+1 || calls != 2*(countedMax+50) || rest.NativeID != "" || rest.Counts[kurabe.StatementMicroseconds] != 49*50/2 {
		t.Errorf("%d statements with %d calls, the rest %+v", len(got.Statements), calls, rest)
	}
	for cut := range body {
		if _, err := decodeCounted(body[:cut]); err == nil {
			t.Fatalf("a part of %d bytes is taken", cut)
		}
	}
}

// BenchmarkCountsDay asks for two counters of 25 statements over 24 hours, in which 100 statements
// ran in each minute.
func BenchmarkCountsDay(b *testing.B) {
	s := New(b.TempDir(), false, func(kurabe.InstanceID, string) {})
	var ids []string
	for n := range countedMax {
		session := kurabe.ActiveSession{Statement: fmt.Sprintf("select c%d from t", n), NativeID: fmt.Sprint(int64(n)*7_919_000_000_000_123 - 1<<62)}
		if err := s.Add(shop, Sample{At: start, Engine: kurabe.Postgres, Sessions: []kurabe.ActiveSession{session}}); err != nil {
			b.Fatal(err)
		}
		ids = append(ids, textOf(session.Statement, "", dialectOf(kurabe.Postgres), false).TokenizedID)
	}
	const minutes = 24 * 60
	for m := range minutes {
		c := Counted{At: start.Add(time.Duration(m+1) * time.Minute), For: time.Minute}
		for n := range countedMax {
			one := kurabe.StatementCounts{NativeID: fmt.Sprint(int64(n)*7_919_000_000_000_123 - 1<<62)}
			for i := range 7 {
				one.Counts[i] = uint64((n*31 + m*17 + i*101) * 37 % 100_000)
			}
			c.Statements = append(c.Statements, one)
		}
		if err := s.AddCounted(shop, c); err != nil {
			b.Fatal(err)
		}
	}
	var bytes int64
	files, _ := filepath.Glob(filepath.Join(s.dir, "*", "counts-*"))
	for _, f := range files {
		if info, err := os.Stat(f); err == nil {
			bytes += info.Size()
		}
	}
	q := CountQuery{Instance: shop, IDs: ids[:25], Counters: []kurabe.StatementCounter{kurabe.StatementRows, kurabe.StatementCalls}, From: start.Unix(), To: start.Unix() + minutes*60}
	for b.Loop() {
		if c, err := s.Counts(b.Context(), q); err != nil || len(c.Of) != 25 {
			b.Fatal(len(c.Of), err)
		}
	}
	b.ReportMetric(float64(bytes)/(1<<20), "MiB/day")
}
