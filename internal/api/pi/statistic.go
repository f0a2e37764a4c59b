package pi

import (
	"context"
	"slices"
	"strings"
	"time"

	"kurabe"
	"kurabe/internal/load"
)

// statistic is a metric of a statement, made from a counter.
type statistic struct {
	name, unit, description string // without its prefix and suffix
	of                      kurabe.StatementCounter
	perCall                 bool
	scale                   float64 // of the counter
}

const (
	statisticPrefix = "db.sql_tokenized.stats."
	statisticSuffix = ".avg"
	tokenizedGroup  = "db.sql_tokenized"
)

// statistics are AWS's for PostgreSQL, of the counters that are kept.
var statistics = func() []statistic {
	list := []statistic{
		{"calls_per_sec", "calls/s", "executions per second", kurabe.StatementCalls, false, 1},
		{"rows_per_sec", "rows/s", "rows returned or changed per second", kurabe.StatementRows, false, 1},
		{"rows_per_call", "rows/call", "rows returned or changed per execution", kurabe.StatementRows, true, 1},
		{"total_time_per_sec", "AAE", "average number of executions under way", kurabe.StatementMicroseconds, false, 1e-6},
		{"avg_latency_per_call", "ms/call", "time of an execution", kurabe.StatementMicroseconds, true, 1e-3},
	}
	for n, blocks := range []string{"shared_blks_hit", "shared_blks_read", "shared_blks_dirtied", "shared_blks_written",
		"local_blks_hit", "local_blks_read", "local_blks_dirtied", "local_blks_written", "temp_blks_read", "temp_blks_written"} {
		of := kurabe.SharedBlocksHit + kurabe.StatementCounter(n)
		list = append(list, statistic{blocks + "_per_sec", "blocks/s", "blocks per second, by " + blocks, of, false, 1},
			statistic{blocks + "_per_call", "blocks/call", "blocks per execution, by " + blocks, of, true, 1})
	}
	return list
}()

// statisticOf finds the statistic that a metric names.
func statisticOf(metric string) (statistic, bool) {
	name, is := strings.CutPrefix(metric, statisticPrefix)
	name, average := strings.CutSuffix(name, statisticSuffix)
	n := slices.IndexFunc(statistics, func(s statistic) bool { return s.name == name })
	if !is || !average || n < 0 {
		return statistic{}, false
	}
	return statistics[n], true
}

// value is that of one period; known is false where nothing is.
func (s statistic) value(count, calls, seconds float64) (value float64, known bool) {
	by := seconds
	if s.perCall {
		by = calls
	}
	if seconds == 0 || by == 0 {
		return 0, false
	}
	return count * s.scale / by, true
}

// counted asks for the counters of statistics, of statements: that of calls, then theirs.
func (a API) counted(ctx context.Context, r resource, s span, period int64, list []statistic, ids []string) (load.Counts, error) {
	q := load.CountQuery{Instance: r.id, Alone: r.alone, IDs: ids, From: s.from, To: s.to, Period: period, Counters: []kurabe.StatementCounter{kurabe.StatementCalls}}
	for _, of := range list {
		q.Counters = append(q.Counters, of.of)
	}
	return a.Source.LoadCounts(ctx, q)
}

// in is the value of a statement in a period of what counted told, s being a number of its list. A
// statement that was not executed has none per execution, and 0 per second.
func (s statistic) in(c load.Counts, number int, id string, period int) (float64, bool) {
	lists, ran := c.Of[id]
	if !ran {
		return s.value(0, 0, c.Seconds[period])
	}
	return s.value(lists[number+1][period], lists[0][period], c.Seconds[period])
}

// counts says whether statements of an instance are counted.
func (a API) counts(ctx context.Context, r resource) (bool, error) {
	const within = 3600
	c, err := a.Source.LoadCounts(ctx, load.CountQuery{Instance: r.id, Alone: r.alone, From: a.Now() - within, To: a.Now() + 60})
	return err == nil && len(c.Seconds) > 0 && c.Seconds[0] > 0, err
}

// additional adds AdditionalMetrics to keys, whose statements are those of load.
func (a API) additional(ctx context.Context, r resource, s span, metrics []string, by chosen, keys []load.Group, out []DimensionKeyDescription) error {
	const metricsMax = 30
	if len(metrics) > metricsMax {
		return invalid("AdditionalMetrics must hold at most %d metrics", metricsMax)
	}
	var list []statistic
	for _, metric := range metrics {
		of, known := statisticOf(metric)
		switch {
		case !known || !r.counted:
			return unknownMetric("AdditionalMetrics: ", metric)
		case by.name != tokenizedGroup:
			return invalid("AdditionalMetrics: %s is of statements; group by %s", metric, tokenizedGroup)
		}
		list = append(list, of)
	}
	if len(list) == 0 {
		return nil
	}
	counts, err := a.counted(ctx, r, s, 0, list, statementsOf(keys))
	if err != nil {
		return err
	}
	for n, k := range keys {
		out[n].AdditionalMetrics = map[string]float64{}
		for number, of := range list {
			if v, known := of.in(counts, number, k.Values[0], 0); known && k.Values[0] != "" {
				out[n].AdditionalMetrics[metrics[number]] = v
			}
		}
	}
	return nil
}

// statementsOf are the ids of keys of statements.
func statementsOf(keys []load.Group) (ids []string) {
	for _, k := range keys {
		ids = append(ids, k.Values[0])
	}
	return ids
}

// statisticPoints answers a query for a statistic: of the statements with the most load that a
// filter keeps.
func (a API) statisticPoints(ctx context.Context, r resource, s span, q MetricQuery, of statistic, shift int64) ([]MetricKeyDataPoints, error) {
	if q.GroupBy == nil || deref(q.GroupBy.Group) != tokenizedGroup {
		return nil, invalid("%s is of statements; it needs GroupBy %s", deref(q.Metric), tokenizedGroup)
	}
	keys, by, texts, err := a.largest(ctx, r, s, q)
	if err != nil {
		return nil, err
	}
	counts, err := a.counted(ctx, r, s, s.period, []statistic{of}, statementsOf(keys))
	if err != nil {
		return nil, err
	}
	var list []MetricKeyDataPoints
	for _, k := range keys {
		one := MetricKeyDataPoints{Key: &ResponseResourceMetricKey{q.Metric, by.key(k.Values, texts)}}
		for n := range counts.Seconds {
			if v, known := of.in(counts, 0, k.Values[0], n); known && k.Values[0] != "" {
				at := time.Unix(s.from+int64(n)*s.period+shift, 0)
				one.DataPoints = append(one.DataPoints, DataPoint{&at, &v})
			}
		}
		list = append(list, one)
	}
	return list, nil
}

// largest are the keys with the most load, of a query with a group.
func (a API) largest(ctx context.Context, r resource, s span, q MetricQuery) ([]load.Group, chosen, map[string]load.Text, error) {
	by, err := choose("GroupBy", q.GroupBy)
	if err != nil {
		return nil, by, nil, err
	}
	where, err := conditions(q.Filter)
	if err != nil {
		return nil, by, nil, err
	}
	answer, err := a.Source.Load(ctx, load.Query{Instance: r.id, Alone: r.alone, From: s.from, To: s.to, Where: where, By: by.by, Largest: keysMax})
	if err != nil {
		return nil, by, nil, err
	}
	answer.Largest(by.limit)
	texts, err := a.texts(ctx, r, s, by, answer.Groups)
	return answer.Groups, by, texts, err
}

func unknownMetric(where, metric string) error {
	return invalid("%s%.100q is not available; ListAvailableResourceMetrics names the metrics, and CloudWatch has others", where, metric)
}
