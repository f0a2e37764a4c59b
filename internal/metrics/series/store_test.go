package series

import (
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// bed is a store with a clock of the test's.
type bed struct {
	*testing.T
	*Store
	now  time.Time
	told []string
	free int64
}

func newBed(t *testing.T, dir string, now time.Time) *bed {
	b := &bed{T: t, now: now, free: -1}
	b.Store = New(Config{Dir: dir, BytesMax: 1 << 30, Log: slog.New(slog.DiscardHandler), Now: func() time.Time { return b.now }, Free: func() int64 { return b.free }, Tell: func(r string) { b.told = append(b.told, r); t.Log("told:", r) }})
	b.Store.reopen()
	t.Cleanup(b.Store.close)
	return b
}

func (b *bed) append(l Labels, v float64) {
	b.Helper()
	if err := b.Append(b.now, []Sample{{l, v}}); err != nil {
		b.Fatal(err)
	}
}

func (b *bed) buckets(q Query) []Bucket {
	b.Helper()
	a, err := b.Query(b.Context(), []Query{q})
	if err != nil {
		b.Fatal(err)
	}
	if len(a[0]) == 0 {
		return nil
	}
	if len(a[0]) > 1 {
		b.Fatalf("%d results", len(a[0]))
	}
	return a[0][0].Buckets
}

var (
	midday = time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)
	cpu    = NewLabels("metric", "cpu", "instance", "a")
)

// run appends one sample a second of a value that is told by the time, and ticks.
func (b *bed) run(d time.Duration, value func(time.Time) float64) {
	b.Helper()
	for end := b.now.Add(d); b.now.Before(end); b.now = b.now.Add(time.Second) {
		b.append(cpu, value(b.now))
		b.tick()
	}
}

func second(t time.Time) float64 { return float64(t.Unix() % 60) }

func TestMinutesAndSecondsJoin(t *testing.T) {
	b := newBed(t, t.TempDir(), midday)
	b.run(5*time.Minute+30*time.Second, second)
	got := b.buckets(Query{Match: []Match{{"metric", []string{"cpu"}}}, From: midday, To: b.now, Period: time.Minute})
	if len(got) != 6 {
		t.Fatalf("%d buckets: %v", len(got), got)
	}
	for n, g := range got {
		want := Bucket{Start: midday.Unix() + int64(n)*60, Count: 60, Sum: 59 * 30, Max: 59}
		if n == 5 {
			want.Count, want.Sum, want.Max = 30, 29*15, 29
		}
		if g.Start != want.Start || g.Count != want.Count || g.Sum != want.Sum || g.Min != 0 || g.Max != want.Max {
			t.Errorf("bucket %d: %v, not %v", n, g, want)
		}
	}
	fine := b.buckets(Query{From: midday.Add(time.Second), To: midday.Add(4 * time.Second), Period: time.Second})
	if len(fine) != 3 || fine[0].Sum != 1 || fine[2].Sum != 3 {
		t.Errorf("seconds: %v", fine)
	}
	values := b.buckets(Query{From: midday, To: midday.Add(time.Minute), Period: time.Minute, Distinct: true})
	if len(values) != 1 || len(values[0].Values) != 60 {
		t.Errorf("values: %v", values)
	}
}

// A process that ends within a minute leaves it to the next, which rolls it up once.
func TestStopWithinMinute(t *testing.T) {
	dir := t.TempDir()
	b := newBed(t, dir, midday)
	b.run(150*time.Second, second)
	b.close()
	b = newBed(t, dir, b.now.Add(2*time.Hour))
	b.tick()
	b.tick()
	b.close()
	b = newBed(t, dir, b.now.Add(2*time.Hour)) // seconds are too old now
	b.tick()
	got := b.buckets(Query{From: midday, To: b.now, Period: time.Minute})
	if len(got) != 3 || got[1].Count != 60 || got[2].Count != 30 || got[2].Sum != 29*15 {
		t.Errorf("%v", got)
	}
	if len(b.told) != 0 {
		t.Errorf("told %q", b.told)
	}
}

func TestLabels(t *testing.T) {
	b := newBed(t, t.TempDir(), midday)
	for _, l := range []Labels{NewLabels("metric", "m", "instance", "a"), NewLabels("metric", "m", "instance", "b"), NewLabels("metric", "m"), NewLabels("metric", "n")} {
		b.append(l, 1)
	}
	b.now = b.now.Add(time.Second)
	ask := func(by []string, m ...Match) []Result {
		t.Helper()
		a, err := b.Query(t.Context(), []Query{{Match: m, From: midday, To: b.now, Period: time.Second, By: by}})
		if err != nil {
			t.Fatal(err)
		}
		return a[0]
	}
	if r := ask(nil, Match{"metric", []string{"m"}}); len(r) != 1 || r[0].Buckets[0].Count != 3 {
		t.Errorf("all: %v", r)
	}
	if r := ask([]string{"instance"}, Match{"metric", []string{"m"}}); len(r) != 3 || r[1].Labels.Get("instance") != "a" {
		t.Errorf("by: %v", r)
	}
	if r := ask(nil, Match{"metric", []string{"m"}}, Match{"instance", []string{"", "b"}}); len(r) != 1 || r[0].Buckets[0].Count != 2 {
		t.Errorf("one or none: %v", r)
	}
	if r := ask(nil, Match{"metric", nil}); len(r) != 0 {
		t.Errorf("of no values: %v", r)
	}
	list, err := b.List(t.Context(), []Match{{"metric", []string{"m"}}}, midday)
	if err != nil || len(list) != 3 {
		t.Errorf("%v %v", list, err)
	}
	if list, err = b.List(t.Context(), nil, midday.Add(time.Hour)); err != nil || len(list) != 0 {
		t.Errorf("of the future: %v %v", list, err)
	}
}

func TestUsersData(t *testing.T) {
	dir := t.TempDir()
	b := newBed(t, dir, midday)
	one := func(at time.Time, v float64) {
		t.Helper()
		if err := b.Put(t.Context(), []Datum{{cpu, Bucket{Start: at.Unix(), Count: 1, Sum: v, Min: v, Max: v}}}); err != nil {
			t.Fatal(err)
		}
	}
	old, ahead := midday.Add(-13*24*time.Hour), midday.Add(2*time.Hour)
	for range 1500 { // more flushes than a second has slots
		for _, at := range []time.Time{old, midday, ahead} {
			one(at, 1)
			one(at, 2)
		}
		if err := b.flushNow(); err != nil {
			t.Fatal(err)
		}
		b.now = b.now.Add(time.Second)
	}
	b.close()
	b = newBed(t, dir, b.now)
	for _, at := range []time.Time{old, midday, ahead} {
		got := b.buckets(Query{From: at, To: at.Add(time.Second), Period: time.Second})
		if len(got) != 1 || got[0].Start != at.Unix() || got[0].Count != 3000 || got[0].Sum != 4500 || got[0].Max != 2 {
			t.Errorf("%s: %v", at, got)
		}
	}
	for _, at := range []time.Time{midday.Add(-16 * 24 * time.Hour), midday.Add(5 * time.Hour)} {
		if err := b.Put(t.Context(), []Datum{{cpu, Bucket{Start: at.Unix(), Count: 1}}}); err == nil {
			t.Errorf("%s was taken", at)
		}
	}
}

func TestTooMuchIsRefused(t *testing.T) {
	b := newBed(t, t.TempDir(), midday)
	b.append(cpu, 1)
	for _, q := range []Query{
		{From: midday.Add(-40 * 24 * time.Hour), To: midday, Period: time.Second},
		{From: midday, To: midday.Add(time.Hour), Period: time.Millisecond},
	} {
		if _, err := b.Query(t.Context(), []Query{q}); err == nil {
			t.Errorf("%v was answered", q)
		} else {
			t.Log(err)
		}
	}
	if b.broken.Load() != nil {
		t.Error("the store counts as broken")
	}
}

func TestTwoSamplesOfASecond(t *testing.T) {
	b := newBed(t, t.TempDir(), midday.Add(100*time.Millisecond))
	b.append(cpu, 1)
	b.now = midday.Add(900 * time.Millisecond)
	b.append(cpu, 2)
	if got := b.buckets(Query{From: midday, To: midday.Add(time.Second), Period: time.Second}); len(got) != 1 || got[0].Count != 2 || got[0].Sum != 3 || math.IsNaN(got[0].Min) {
		t.Errorf("%v", got)
	}
}

// Where the seconds are lost, minutes serve percentiles too.
func TestMinutesWithoutSeconds(t *testing.T) {
	dir := t.TempDir()
	now := filled(t, dir).now
	if err := os.RemoveAll(filepath.Join(dir, "seconds")); err != nil {
		t.Fatal(err)
	}
	b := newBed(t, dir, now)
	got := b.buckets(Query{From: midday, To: midday.Add(30 * time.Minute), Period: time.Minute, Distinct: true})
	if len(got) != 30 || len(got[0].Values) != 3 || got[0].Count != 60 {
		t.Errorf("%d minutes: %v", len(got), got)
	}
}
