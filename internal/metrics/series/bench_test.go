package series

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"path/filepath"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/labels"
)

// measuredLike is a server's 60 series: a third hardly moves, a third counts whole things, and a
// third are numbers with all their digits.
type measuredLike struct {
	list   []Sample
	random *rand.Rand
	second int
}

func newMeasuredLike(instances int) *measuredLike {
	m := &measuredLike{random: rand.New(rand.NewPCG(1, 2))}
	for i := range instances {
		for n := range 60 {
			m.list = append(m.list, Sample{Labels: NewLabels("namespace", "AWS/RDS", "metric", fmt.Sprint("m", n), "instance", fmt.Sprint("i", i), "server", fmt.Sprint("db-", i), "engine", "postgres", "role", "primary")})
		}
	}
	return m
}

func (m *measuredLike) next() []Sample {
	m.second++
	load := 0.5 + 0.4*math.Sin(float64(m.second)/13000)
	for n := range m.list {
		switch v := &m.list[n].Value; n % 3 {
		case 0:
			if m.random.IntN(3000) == 0 {
				*v = float64(m.random.IntN(1 << 30))
			}
		case 1:
			*v = math.Floor(load*2000 + m.random.NormFloat64()*50)
		default:
			*v = load * (40 + 5*m.random.NormFloat64())
		}
	}
	return m.list
}

func BenchmarkAppendSecond(b *testing.B) {
	s := newBedB(b)
	m := newMeasuredLike(50)
	for b.Loop() {
		if err := s.Append(s.now, m.next()); err != nil {
			b.Fatal(err)
		}
		s.now = s.now.Add(time.Second)
	}
}

// BenchmarkLastSeconds asks for what the page of metrics has of 50 servers.
func BenchmarkLastSeconds(b *testing.B) {
	s := newBedB(b)
	m := newMeasuredLike(50)
	for range 600 {
		if err := s.Append(s.now, m.next()); err != nil {
			b.Fatal(err)
		}
		s.now = s.now.Add(time.Second)
	}
	q := Query{Match: []Match{{"namespace", []string{"AWS/RDS"}}}, From: s.now.Add(-15 * time.Second), To: s.now, Period: 15 * time.Second, By: []string{"metric", "instance", "server", "engine", "role"}}
	for b.Loop() {
		if got, err := s.Query(b.Context(), []Query{q}); err != nil || len(got[0]) != len(m.list) {
			b.Fatal(len(got[0]), err)
		}
	}
}

func newBedB(b *testing.B) *bed {
	s := &bed{now: midday}
	s.free = -1
	s.Store = New(Config{Dir: b.TempDir(), BytesMax: 2 << 30, Log: slog.New(slog.DiscardHandler), Now: func() time.Time { return s.now }, Free: func() int64 { return -1 }, Tell: func(r string) { b.Log(r) }})
	s.reopen()
	b.Cleanup(s.close)
	return s
}

// BenchmarkWeekOfMinutes asks for 20 metrics of a week, by the minute, of a store that has 15 days
// of 5 servers. It also tells the size of 15 days of 50 servers, and of 3 hours of seconds.
func BenchmarkWeekOfMinutes(b *testing.B) {
	const instances = 5
	s, m := newBedB(b), newMeasuredLike(instances)
	start := midday.Add(-minutesFor)
	fields := make([]*labels.Builder, len(m.list))
	for n := range fields {
		fields[n] = labels.NewBuilder(inside(m.list[n].Labels, fieldSum))
	}
	for minute := range int(minutesFor / time.Minute) {
		sums := make([]Bucket, len(m.list))
		for range 60 {
			for n, one := range m.next() {
				sums[n].Add(Bucket{Count: 1, Sum: one.Value, Min: one.Value, Max: one.Value})
			}
		}
		at := start.Add(time.Duration(minute) * time.Minute)
		a := s.minutes.db.Appender(context.Background())
		for n := range sums {
			if err := put(a, fields[n], "", at.UnixMilli(), sums[n], 60); err != nil {
				b.Fatal(err)
			}
		}
		if err := a.Commit(); err != nil {
			b.Fatal(err)
		}
		if midday.Sub(at) < fineFor {
			s.done[at.Unix()] = struct{}{}
		}
		if minute%240 == 0 {
			if err := s.minutes.db.Compact(context.Background()); err != nil {
				b.Fatal(err)
			}
		}
	}
	for range int(fineFor / time.Second) {
		if err := s.Append(s.now, m.next()); err != nil {
			b.Fatal(err)
		}
		s.now = s.now.Add(time.Second)
	}
	var queries []Query
	for n := range 20 {
		queries = append(queries, Query{Match: []Match{{"metric", []string{fmt.Sprint("m", n)}}, {"instance", []string{"i1"}}}, From: midday.Add(-7 * 24 * time.Hour), To: midday, Period: time.Minute})
	}
	for _, sums := range []bool{false, true} {
		for n := range queries {
			queries[n].Sums = sums
		}
		b.Run(fmt.Sprint("sums=", sums), func(b *testing.B) {
			for b.Loop() {
				got, err := s.Query(context.Background(), queries)
				if err != nil {
					b.Fatal(err)
				}
				if len(got[19][0].Buckets) != 7*24*60 {
					b.Fatal(len(got[19][0].Buckets))
				}
			}
		})
	}
	b.Logf("%.0f MB for 15 days of 50 servers, %.0f MB for 3 hours of seconds", float64(folderBytes(filepath.Join(s.Dir, "minutes")))/instances*50/(1<<20), float64(folderBytes(filepath.Join(s.Dir, "seconds")))/instances*50/(1<<20))
}
