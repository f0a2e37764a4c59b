package service

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"kurabe"
	"kurabe/internal/hostread"
	"kurabe/internal/logkey"
	"kurabe/internal/metrics/series"
	"kurabe/internal/volume"
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
	// chunkNumbersMax bounds a chunk of an answer that is to several queries, which are answered at
	// once: each number is up to 12 bytes, and a chunk has to fit into a frame of 8 MB.
	chunkNumbersMax = 500_000
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
		Tell: func(reason string) { n.lost.note("metrics", reason, n.instanceIDs()...) },
	})
}

// rehearseSeries opens the series in a process of its own first, which an error of the disk may end.
func (n *node) rehearseSeries(ctx context.Context) ([]string, error) {
	rehearsal := exec.CommandContext(ctx, "/proc/self/exe", series.RehearsalArgs(n.series.Config)...)
	rehearsal.Env = []string{} // it needs no secrets
	rehearsal.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	var words strings.Builder
	rehearsal.Stderr = &words
	told, err := rehearsal.Output()
	if err != nil {
		first, _, _ := strings.Cut(words.String(), "\n")
		err = fmt.Errorf("%w: %s", err, first)
	}
	return slices.DeleteFunc(strings.Split(string(told), "\n"), func(line string) bool { return line == "" }), err
}

// handleSeries has this host answer for what it measured.
func (n *node) handleSeries() {
	hostread.Handle(n.reads, metricsQuery, func(ctx context.Context, q seriesQuestion) (a seriesAnswer, err error) {
		if q.From >= len(q.Queries) {
			return a, errors.New("there is no such query")
		}
		numbers := 0
		for a.Next = q.From; a.Next < len(q.Queries); a.Next++ {
			if numbers += q.Queries[a.Next].NumbersMost(); numbers > chunkNumbersMax && a.Next > q.From {
				break
			}
		}
		a.Results, err = n.series.Query(ctx, q.Queries[q.From:a.Next])
		return a, err
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

// Query joins the answers of all hosts but those that are away. CodeUnavailable when none answers.
func (a allSeries) Query(ctx context.Context, queries []series.Query) (joined [][]series.Result, away []kurabe.HostID, err error) {
	joined = make([][]series.Result, len(queries))
	away, err = hostread.AskAll(ctx, a.hosts(), seriesTime, func(ctx context.Context, host kurabe.HostID) ([][]series.Result, error) {
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
	return joined, away, err
}

// List joins the answers of all hosts. CodeUnavailable when none answers.
func (a allSeries) List(ctx context.Context, match []series.Match, since time.Time) ([]series.Labels, error) {
	var joined []series.Labels
	_, err := hostread.AskAll(ctx, a.hosts(), seriesTime, func(ctx context.Context, host kurabe.HostID) ([]series.Labels, error) {
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

const (
	// sameLossTime is for how long what is noticed of one kind is the same incident: one is often
	// noticed in several files.
	sameLossTime = 10 * time.Minute
	lossKept     = 15 * 24 * time.Hour
)

// losses remember what this host has lost of its measurements, over restarts of the service: the
// planner may hear of them only later.
type losses struct {
	path string
	log  *slog.Logger

	mu   sync.Mutex // guards the rest
	said string     // logged last
	list map[kurabe.InstanceID][]kurabe.LostMeasurements
}

func newLosses(path string, log *slog.Logger) *losses {
	l := &losses{path: path, log: log, list: map[kurabe.InstanceID][]kurabe.LostMeasurements{}}
	raw, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(raw, &l.list)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		log.Warn("lost measurements not known", logkey.Error, err)
	}
	if l.list == nil {
		l.list = map[kurabe.InstanceID][]kurabe.LostMeasurements{}
	}
	return l
}

// note takes down a loss of instances.
func (l *losses) note(what, reason string, ids ...kurabe.InstanceID) {
	now := time.Now().UTC()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.said != reason { // what cannot be read is tried each second
		l.said = reason
		l.log.Warn("lost "+what, logkey.Reason, reason)
	}
	changed := false
	for _, id := range ids {
		have := slices.IndexFunc(l.list[id], func(m kurabe.LostMeasurements) bool { return m.What == what })
		if have >= 0 && now.Sub(l.list[id][have].At).Abs() < sameLossTime {
			continue
		}
		changed = true
		// A new list: the one before is in a report.
		list := slices.DeleteFunc(slices.Clone(l.list[id]), func(m kurabe.LostMeasurements) bool { return m.What == what })
		l.list[id] = append(list, kurabe.LostMeasurements{What: what, At: now, Reason: reason})
	}
	if !changed {
		return
	}
	for id, list := range l.list {
		if !slices.ContainsFunc(list, func(m kurabe.LostMeasurements) bool { return now.Sub(m.At) < lossKept }) {
			delete(l.list, id)
		}
	}
	raw, err := json.Marshal(l.list)
	if err == nil {
		err = volume.AtomicWrite(l.path, raw, 0o600)
	}
	if err != nil {
		l.log.Warn("lost measurements not remembered", logkey.Error, err)
	}
}

func (l *losses) of(id kurabe.InstanceID) []kurabe.LostMeasurements {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.list[id]
}

// instanceIDs are the instances that have a folder on this host.
func (n *node) instanceIDs() (list []kurabe.InstanceID) {
	entries, _ := os.ReadDir(placeIn(n.base, "instances")) // none before the first instance
	for _, e := range entries {
		if e.IsDir() {
			list = append(list, kurabe.InstanceID(e.Name()))
		}
	}
	return list
}
