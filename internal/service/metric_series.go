package service

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"kurabe"
	"kurabe/internal/hostread"
	"kurabe/internal/logkey"
	"kurabe/internal/metrics/series"
)

// The questions that hosts are asked about what they measured.
var (
	metricsQuery = hostread.Kind[seriesQuestion, seriesAnswer]{Name: "metrics-query", Class: hostread.Query}
	metricsList  = hostread.Kind[listQuestion, []series.Labels]{Name: "metrics-list", Class: hostread.Query}
)

const (
	// seriesTime bounds how long a host is waited for: of one that is away, there is a gap.
	seriesTime = 2 * time.Second
	// seriesBytesMax bounds the series that a host keeps.
	seriesBytesMax = 2 << 30
	// chunkNumbersMax ends a chunk of an answer: each number is up to 12 bytes, and the largest
	// answer to one query must fit behind them into a frame.
	chunkNumbersMax = 50_000
)

// seriesQuestion asks the queries from one on; the answer ends before Next.
type seriesQuestion struct {
	Queries []series.Query
	From    int
}

type seriesAnswer struct {
	Results [][]series.Result
	Next    int
}

type listQuestion struct {
	Match []series.Match
	Since time.Time
}

// newSeries returns the series of this host, which are opened by their Run.
func (n *node) newSeries() *series.Store {
	return series.New(series.Config{
		Dir: placeIn(n.base, "metrics"), BytesMax: seriesBytesMax, Log: n.log, Now: time.Now, Free: func() int64 { return freeBytes(n.base) },
		Tell: func(reason string) { n.log.Warn("metrics", logkey.Reason, reason) },
	})
}

// handleSeries has this host answer for what it measured.
func (n *node) handleSeries() {
	hostread.Handle(n.reads, metricsQuery, func(ctx context.Context, q seriesQuestion) (a seriesAnswer, err error) {
		a.Next = q.From
		for numbers := 0; a.Next < len(q.Queries) && numbers < chunkNumbersMax; a.Next++ {
			results, err := n.series.Query(ctx, q.Queries[a.Next:a.Next+1])
			if err != nil {
				return a, err
			}
			a.Results = append(a.Results, results[0])
			for _, r := range results[0] {
				for _, b := range r.Buckets {
					numbers += 4 + 2*len(b.Values)
				}
			}
		}
		return a, nil
	})
	hostread.Handle(n.reads, metricsList, func(ctx context.Context, q listQuestion) ([]series.Labels, error) {
		return n.series.List(ctx, q.Match, q.Since)
	})
}

// allSeries asks all hosts for what they measured; what users put is kept here. It implements
// monitoring.Source.
type allSeries struct {
	*series.Store
	ask   hostread.Hosts
	hosts func() []kurabe.HostID
}

func (s *Service) allSeries() allSeries {
	return allSeries{s.series, s.hosts(), s.hostIDs}
}

// hostIDs are all hosts of the service.
func (s *Service) hostIDs() (list []kurabe.HostID) {
	for _, h := range s.view.Hosts() {
		list = append(list, h.Host)
	}
	return list
}

// Query joins the answers of all hosts. CodeUnavailable when none answers.
func (a allSeries) Query(ctx context.Context, queries []series.Query) ([][]series.Result, error) {
	joined := make([][]series.Result, len(queries))
	return joined, askHosts(ctx, a.hosts(), func(ctx context.Context, host kurabe.HostID) ([][]series.Result, error) {
		q := seriesQuestion{Queries: queries}
		var all [][]series.Result
		for q.From < len(queries) {
			// Not hostread.Stream, which waits for a host to come back.
			part, err := hostread.Ask(ctx, a.ask, host, metricsQuery, q)
			if err != nil {
				return nil, err
			}
			if part.Next <= q.From || len(part.Results) != part.Next-q.From {
				return nil, errors.New("the chunk of an answer is empty")
			}
			all, q.From = append(all, part.Results...), part.Next
		}
		return all, nil
	}, func(all [][]series.Result) {
		for n, results := range all {
			joined[n] = series.Join(joined[n], results)
		}
	})
}

// List joins the answers of all hosts. CodeUnavailable when none answers.
func (a allSeries) List(ctx context.Context, match []series.Match, since time.Time) ([]series.Labels, error) {
	var joined []series.Labels
	err := askHosts(ctx, a.hosts(), func(ctx context.Context, host kurabe.HostID) ([]series.Labels, error) {
		return hostread.Ask(ctx, a.ask, host, metricsList, listQuestion{match, since})
	}, func(list []series.Labels) { joined = append(joined, list...) })
	compare := func(a, b series.Labels) int {
		return slices.CompareFunc(a, b, func(a, b series.Label) int {
			return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Value, b.Value))
		})
	}
	slices.SortFunc(joined, compare)
	return slices.CompactFunc(joined, func(a, b series.Labels) bool { return compare(a, b) == 0 }), err
}

// askHosts asks all hosts at once and takes the answers one by one. A host that does not answer is
// left out, unless none does; one that refuses the question ends it.
func askHosts[A any](ctx context.Context, hosts []kurabe.HostID, ask func(context.Context, kurabe.HostID) (A, error), take func(A)) error {
	ctx, cancel := context.WithTimeout(ctx, seriesTime)
	defer cancel()
	var mu sync.Mutex // guards the rest, and what take changes
	var refused, away error
	answered := false
	var wait sync.WaitGroup
	for _, host := range hosts {
		wait.Go(func() {
			answer, err := ask(ctx, host)
			mu.Lock()
			defer mu.Unlock()
			switch code := kurabe.CodeOf(err); code {
			case "":
				answered = true
				take(answer)
			case kurabe.CodeUnavailable, kurabe.CodeInternal:
				away = err
			default:
				refused = err
			}
		})
	}
	wait.Wait()
	switch {
	case refused != nil:
		return refused
	case answered:
		return nil
	case kurabe.CodeOf(away) == kurabe.CodeUnavailable:
		return away
	}
	return &kurabe.Error{Code: kurabe.CodeUnavailable, Message: "no host answers; try again", Err: away}
}
