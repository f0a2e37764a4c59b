package service

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"kurabe"
	"kurabe/internal/hostread"
	"kurabe/internal/metrics/series"
)

// A host that is away or hangs leaves a gap, and is not waited for beyond the bound.
func TestHostsAreNotWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ask := func(ctx context.Context, host kurabe.HostID) (string, error) {
			switch host {
			case "hangs":
				<-ctx.Done()
				return "", ctx.Err()
			case "away":
				return "", kurabe.Errorf(kurabe.CodeUnavailable, "it is away")
			case "refuses":
				return "", kurabe.Errorf(kurabe.CodeInvalidParameterValue, "too much")
			}
			return string(host), nil
		}
		for _, c := range []struct {
			name  string
			hosts []kurabe.HostID
			taken int
			away  string
			code  kurabe.Code
			time  time.Duration
		}{
			{"all answer", []kurabe.HostID{"a", "b"}, 2, "[]", "", 0},
			{"one away", []kurabe.HostID{"a", "away"}, 1, "[away]", "", 0},
			{"one hangs", []kurabe.HostID{"hangs", "a"}, 1, "[hangs]", "", seriesTime},
			{"none answers", []kurabe.HostID{"hangs", "away"}, 0, "[away hangs]", kurabe.CodeUnavailable, seriesTime},
			{"one refuses", []kurabe.HostID{"a", "refuses"}, 1, "[]", kurabe.CodeInvalidParameterValue, 0},
		} {
			began, taken := time.Now(), 0
			away, err := hostread.AskAll(t.Context(), c.hosts, seriesTime, ask, func(string) { taken++ })
			if taken != c.taken || fmt.Sprint(away) != c.away || kurabe.CodeOf(err) != c.code || time.Since(began) != c.time {
				t.Errorf("%s: %d answers, without %v, %v, %s", c.name, taken, away, err, time.Since(began))
			}
		}
	})
}

// openSeries is the series of a host with a value a second of half a minute.
func openSeries(t *testing.T, host kurabe.HostID) *node {
	n := &node{base: t.TempDir(), log: slog.New(slog.DiscardHandler), reads: hostread.NewHandlers(host)}
	n.lost = newLosses(filepath.Join(n.base, "metrics-lost.json"), n.log)
	n.series = n.newSeries()
	n.handleSeries()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- n.series.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
	at := time.Now()
	sample := []series.Sample{{Labels: series.NewLabels("metric", "m", "host", string(host)), Value: 2}}
	for deadline := time.Now().Add(time.Minute); n.series.Append(at, sample) != nil; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the store does not open")
		}
	}
	for second := range 29 {
		if err := n.series.Append(at.Add(time.Duration(second+1)*time.Second), sample); err != nil {
			t.Fatal(err)
		}
	}
	return n
}

func TestSeriesOfTwoHostsJoin(t *testing.T) {
	here, there := openSeries(t, "here"), openSeries(t, "there")
	all := allSeries{here.series, hostread.Hosts{Here: here.reads, Far: func(ctx context.Context, q hostread.Frame) (hostread.Frame, error) {
		if q.Host != "there" {
			return hostread.Frame{}, errors.New("no such host")
		}
		back := make(chan hostread.Frame, 1)
		q.ID = "1"
		there.reads.Take(ctx, q, func(_ context.Context, a hostread.Frame) { back <- a })
		select {
		case a := <-back:
			return a, nil
		case <-ctx.Done():
			return hostread.Frame{}, ctx.Err()
		}
	}}, func() []kurabe.HostID { return []kurabe.HostID{"away", "here", "there"} }}
	q := series.Query{Match: []series.Match{{Label: "metric", Values: []string{"m"}}}, From: time.Now().Add(-time.Hour), To: time.Now().Add(time.Hour), Period: time.Hour, Distinct: true}
	apart := q
	apart.By = []string{"host"}
	got, away, err := all.Query(t.Context(), []series.Query{q, apart})
	if err != nil || !slices.Equal(away, []kurabe.HostID{"away"}) {
		t.Fatal(away, err)
	}
	var sum series.Bucket
	for _, r := range got[0] {
		for _, b := range r.Buckets {
			sum.Add(b)
		}
	}
	if len(got[0]) != 1 || sum.Count != 60 || sum.Sum != 120 || len(got[1]) != 2 {
		t.Errorf("%v", got)
	}
	list, err := all.List(t.Context(), nil, time.Now().Add(-time.Hour))
	if err != nil || len(list) != 2 {
		t.Errorf("%v %v", list, err)
	}
}

// One incident is noted once for each instance, and a restart forgets none.
func TestLosses(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lost.json")
	l := newLosses(path, slog.New(slog.DiscardHandler))
	l.note("metrics", "a block is damaged", "db-A", "db-B")
	l.note("metrics", "another one is", "db-A")
	l.note("database load", "a file is damaged", "db-A")
	for _, l := range []*losses{l, newLosses(path, slog.New(slog.DiscardHandler))} {
		if a := l.of("db-A"); len(a) != 2 || a[0].Reason != "a block is damaged" || a[1].What != "database load" || a[0].At.IsZero() {
			t.Errorf("%+v", a)
		}
		if b := l.of("db-B"); len(b) != 1 {
			t.Errorf("%+v", b)
		}
		if c := l.of("db-C"); c != nil {
			t.Errorf("%+v", c)
		}
	}
	if err := os.WriteFile(path, []byte("null"), 0o600); err != nil {
		t.Fatal(err)
	}
	newLosses(path, slog.New(slog.DiscardHandler)).note("metrics", "x", kurabe.InstanceID("db-A"))
}
