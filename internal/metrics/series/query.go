package series

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunkenc"

	"kurabe"
)

// What one call may ask of a host. The answer to one query fits into a frame between hosts, of 8 MB.
const (
	periodsMost = 100_800 // of one query: each period of each result, as many as CloudWatch answers
	allMost     = 1_000_000
	valuesMost  = 150_000 // of a distinct query
)

// NumbersMost bounds the numbers of the answer to a query.
func (q Query) NumbersMost() int {
	if q.Distinct || len(q.By) > 0 || q.Period < time.Second {
		return 4*periodsMost + 2*valuesMost
	}
	return 4 * int(q.To.Sub(q.From)/q.Period+2)
}

// Query answers each query, several at once. Minutes serve a period that is a multiple of one; samples of seconds
// serve the others, which have no buckets before the last 3 hours, except of users' own data.
// The minute that From is in counts where it begins at From or later. The error has
// CodeInvalidParameterValue when a query asks for too much, CodeUnavailable while the store is not
// open.
func (s *Store) Query(ctx context.Context, queries []Query) ([][]Result, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if err := s.usable(); err != nil {
		return nil, err
	}
	if err := s.flushNow(); err != nil {
		return nil, err
	}
	answers, errs := make([][]Result, len(queries)), make([]error, len(queries))
	var next, all atomic.Int64
	var wait sync.WaitGroup
	for range min(len(queries), runtime.GOMAXPROCS(0)) {
		wait.Go(func() {
			for n := next.Add(1) - 1; n < int64(len(queries)); n = next.Add(1) - 1 {
				answers[n], errs[n] = s.answer(ctx, queries[n], &all)
			}
		})
	}
	wait.Wait()
	for _, err := range errs {
		if err != nil {
			return nil, s.readFailed(ctx, err)
		}
	}
	return answers, nil
}

// answer answers one query; all counts the periods of the request.
func (s *Store) answer(ctx context.Context, q Query, all *atomic.Int64) ([]Result, error) {
	c, err := newCollector(q)
	if err == nil {
		err = s.collect(ctx, q, c)
	}
	if err == nil && all.Add(int64(len(c.groups)*c.periods)) > allMost {
		err = kurabe.Errorf(kurabe.CodeInvalidParameterValue, "the request asks for more than %d periods of metrics; ask for fewer metrics, a shorter time or a longer period", allMost)
	}
	if err != nil {
		return nil, err
	}
	return c.results(), nil
}

// readFailed passes on what is said to the asker; anything else is a damage.
func (s *Store) readFailed(ctx context.Context, err error) error {
	var said *kurabe.Error
	if errors.As(err, &said) || ctx.Err() != nil {
		return err
	}
	s.breaks(err, true)
	return s.usable()
}

// collect reads each part of the time where it is kept.
func (s *Store) collect(ctx context.Context, q Query, c *collector) error {
	from, to := q.From.UnixMilli(), q.To.UnixMilli()-1
	match, now := matchers(q.Match), s.Now()
	seconds := from // where seconds begin to serve
	if q.Period%time.Minute == 0 {
		seconds = s.rolledUntil(now)
		if q.Distinct {
			first := max(min(s.fine.begin(), now.UnixMilli()), now.Add(-fineFor).UnixMilli())
			seconds = min(seconds, (first+59_999)/60_000*60_000)
		}
		if err := s.minutes.points(ctx, from, min(to, seconds-1), match, 60, c); err != nil {
			return err
		}
	}
	if err := s.fine.points(ctx, max(from, seconds), to, match, 1, c); err != nil {
		return err
	}
	// Late data are anywhere in their minute.
	return s.own.points(ctx, floor(from, 60_000), floor(to, 60_000)+59_999, match, 1, c)
}

// begin is the time of the oldest sample.
func (p *part) begin() int64 {
	first := p.db.Head().MinTime()
	for _, b := range p.db.Blocks() {
		first = min(first, b.MinTime())
	}
	return first
}

func equal(name, value string) *labels.Matcher {
	return labels.MustNewMatcher(labels.MatchEqual, name, value)
}

func matchers(list []Match) []*labels.Matcher {
	var all []*labels.Matcher
	for _, m := range list {
		if len(m.Values) == 1 {
			all = append(all, equal(m.Label, m.Values[0]))
			continue
		}
		quoted := make([]string, len(m.Values))
		for n, v := range m.Values {
			quoted[n] = regexp.QuoteMeta(v)
		}
		one, err := labels.NewMatcher(labels.MatchRegexp, m.Label, strings.Join(quoted, "|"))
		if err != nil || len(m.Values) == 0 { // nothing has one of no values
			one = labels.MustNewMatcher(labels.MatchRegexp, m.Label, "[^\\s\\S]")
		}
		all = append(all, one)
	}
	return all
}

// each calls do with the series that match and have samples from one time to another, both in ms
// and included; the iterator may have earlier and later ones.
func (p *part) each(ctx context.Context, from, to int64, sorted bool, match []*labels.Matcher, do func(labels.Labels, chunkenc.Iterator) error) error {
	if from > to {
		return nil
	}
	return p.guard(func() error { return p.eachOf(ctx, from, to, sorted, match, do) })
}

func (p *part) eachOf(ctx context.Context, from, to int64, sorted bool, match []*labels.Matcher, do func(labels.Labels, chunkenc.Iterator) error) error {
	q, err := p.db.Querier(from, to)
	if err != nil {
		return err
	}
	defer q.Close()
	set := q.Select(ctx, sorted, &storage.SelectHints{Start: from, End: to, DisableTrimming: true}, match...)
	var it chunkenc.Iterator
	for set.Next() {
		if err := ctx.Err(); err != nil {
			return err
		}
		one := set.At()
		it = one.Iterator(it)
		if err := do(one.Labels(), it); err != nil {
			return err
		}
	}
	return set.Err()
}

// points reads samples, or buckets whose count is usual where none is kept, into c.
func (p *part) points(ctx context.Context, from, to int64, match []*labels.Matcher, usual float64, c *collector) error {
	unwanted := fieldDone
	if c.q.Sums {
		unwanted = strings.Join([]string{fieldDone, fieldMin, fieldMax, lateField + fieldMin, lateField + fieldMax}, "|")
	}
	match = append(slices.Clip(match), labels.MustNewMatcher(labels.MatchNotRegexp, fieldLabel, unwanted))
	r := &c.run
	err := p.each(ctx, from, to, true, match, func(in labels.Labels, it chunkenc.Iterator) error {
		l, field := outside(in)
		late := strings.HasPrefix(field, lateField)
		field = strings.TrimPrefix(field, lateField)
		if field == fieldValue || field == fieldSum {
			if err := c.add(r); err != nil {
				return err
			}
			r.labels, r.late = l, late
		}
		n := 0
		for it.Next() != chunkenc.ValNone {
			t, v := it.At()
			switch {
			case t < from || t > to:
			case field == fieldValue:
				r.points = append(r.points, point{t, 1, v, v, v})
			case field == fieldSum:
				r.points = append(r.points, point{t, usual, v, math.NaN(), math.NaN()})
			default:
				for n < len(r.points) && r.points[n].ms < t {
					n++
				}
				if n < len(r.points) && r.points[n].ms == t {
					r.points[n].set(field, v)
				}
			}
		}
		return it.Err()
	})
	if err != nil {
		return err
	}
	return c.add(r)
}

// run is what was read of a series.
type run struct {
	labels Labels
	late   bool
	points []point
}

// point is a sample or a minute. Without pointers, it costs the collector of garbage nothing.
type point struct {
	ms                   int64
	count, sum, min, max float64
}

func (p *point) set(field string, v float64) {
	switch field {
	case fieldMin:
		p.min = v
	case fieldMax:
		p.max = v
	case fieldCount:
		p.count = v
	}
}

// collector sums up what was read, by group and period.
type collector struct {
	q       Query
	first   int64 // Unix time of the first period, seconds
	step    int64
	periods int
	values  int
	groups  map[string]*Result
	run     run
}

func newCollector(q Query) (*collector, error) {
	if q.Period < time.Second || q.Period%time.Second != 0 {
		return nil, kurabe.Errorf(kurabe.CodeInvalidParameterValue, "period %s is no whole number of seconds", q.Period)
	}
	c := &collector{q: q, step: int64(q.Period / time.Second), groups: map[string]*Result{}}
	offset := int64(q.Offset / time.Second)
	c.first = floor(q.From.Unix()-offset, c.step) + offset
	c.periods = int(max(0, (q.To.Add(-1).Unix()-c.first)/c.step+1))
	return c, c.check()
}

func floor(v, step int64) int64 { return v - (v%step+step)%step }

func (c *collector) check() error {
	if n := c.periods * max(1, len(c.groups)); n > periodsMost {
		return kurabe.Errorf(kurabe.CodeInvalidParameterValue, "the query asks for %d periods of %d metrics, more than %d in all; ask for a shorter time or a longer period", c.periods, max(1, len(c.groups)), periodsMost)
	}
	if c.values > valuesMost {
		return kurabe.Errorf(kurabe.CodeInvalidParameterValue, "the percentiles of the query need more than %d values; ask for fewer metrics or a shorter time", valuesMost)
	}
	return nil
}

// add adds what was read of a series to its group.
func (c *collector) add(r *run) error {
	if len(r.points) == 0 {
		return nil
	}
	group := Labels{}
	for _, name := range c.q.By {
		if v := r.labels.Get(name); v != "" {
			group = append(group, Label{name, v})
		}
	}
	slices.SortFunc(group, func(a, b Label) int { return cmp.Compare(a.Name, b.Name) })
	key := group.key()
	g := c.groups[key]
	if g == nil {
		g = &Result{Labels: group}
		c.groups[key] = g
		if err := c.check(); err != nil {
			return err
		}
		g.Buckets = make([]Bucket, c.periods)
	}
	for _, p := range r.points {
		second := floor(p.ms, 1000) / 1000
		if r.late {
			second = floor(second, 60)
		}
		if second*1000+999 < c.q.From.UnixMilli() || second*1000 >= c.q.To.UnixMilli() {
			continue
		}
		b := Bucket{Count: p.count, Sum: p.sum, Min: p.min, Max: p.max}
		if math.IsNaN(p.min) {
			b.Min = p.sum / p.count
		}
		if math.IsNaN(p.max) {
			b.Max = p.sum / p.count
		}
		if c.q.Distinct {
			b.Values = spread(b)
			c.values += len(b.Values)
		}
		if n := (second - c.first) / c.step; n < int64(len(g.Buckets)) {
			g.Buckets[n].Add(b)
		}
	}
	r.points = r.points[:0]
	return c.check()
}

// spread returns the values of a bucket, of which only count, sum and extremes are known.
func spread(b Bucket) []Weighted {
	switch {
	case b.Min == b.Max:
		return []Weighted{{b.Min, b.Count}}
	case b.Count <= 2:
		return []Weighted{{b.Min, b.Count / 2}, {b.Max, b.Count / 2}}
	}
	return []Weighted{{b.Min, 1}, {(b.Sum - b.Min - b.Max) / (b.Count - 2), b.Count - 2}, {b.Max, 1}}
}

// results returns the groups without the periods that have no sample.
func (c *collector) results() []Result {
	list := make([]Result, 0, len(c.groups))
	for _, g := range c.groups {
		for n := range g.Buckets {
			g.Buckets[n].Start = c.first + int64(n)*c.step
			if c.q.Distinct {
				g.Buckets[n].Values = merged(g.Buckets[n].Values)
			}
		}
		g.Buckets = slices.DeleteFunc(g.Buckets, func(b Bucket) bool { return b.Count == 0 })
		list = append(list, *g)
	}
	slices.SortFunc(list, func(a, b Result) int { return cmp.Compare(a.Labels.key(), b.Labels.key()) })
	return list
}

// merged returns values by size, each once.
func merged(list []Weighted) (out []Weighted) {
	slices.SortFunc(list, func(a, b Weighted) int { return cmp.Compare(a.Value, b.Value) })
	for _, v := range list {
		if last := len(out) - 1; last >= 0 && out[last].Value == v.Value {
			out[last].Count += v.Count
			continue
		}
		out = append(out, v)
	}
	return out
}

// listMost bounds the answer of List: what a host measures, and what users put.
const listMost = measuredMost + ownMost

// List returns the labels of the series that match and have samples since then, to some two hours.
func (s *Store) List(ctx context.Context, match []Match, since time.Time) ([]Labels, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if err := s.usable(); err != nil {
		return nil, err
	}
	if err := s.flushNow(); err != nil {
		return nil, err
	}
	seen := map[string]Labels{}
	for _, p := range s.parts() {
		if err := p.guard(func() error { return p.list(ctx, matchers(match), since.UnixMilli(), seen) }); err != nil {
			return nil, s.readFailed(ctx, err)
		}
	}
	list := make([]Labels, 0, len(seen))
	for _, l := range seen {
		list = append(list, l)
	}
	slices.SortFunc(list, func(a, b Labels) int { return cmp.Compare(a.key(), b.key()) })
	return list, nil
}

func (p *part) list(ctx context.Context, match []*labels.Matcher, since int64, seen map[string]Labels) error {
	q, err := p.db.Querier(since, math.MaxInt64)
	if err != nil {
		return err
	}
	defer q.Close()
	match = append(match, labels.MustNewMatcher(labels.MatchRegexp, fieldLabel, strings.Join([]string{fieldValue, fieldSum, lateField + fieldSum}, "|")))
	set := q.Select(ctx, false, &storage.SelectHints{Start: since, End: math.MaxInt64, Func: "series"}, match...)
	for set.Next() {
		l, _ := outside(set.At().Labels())
		seen[l.key()] = l
		if len(seen) > listMost {
			return kurabe.Errorf(kurabe.CodeInvalidParameterValue, "more than %d metrics match", listMost)
		}
	}
	return set.Err()
}

// String tells a label set in errors and tests.
func (l Labels) String() string {
	var b strings.Builder
	for _, one := range l {
		fmt.Fprintf(&b, "%s=%q ", one.Name, one.Value)
	}
	return strings.TrimSpace(b.String())
}
