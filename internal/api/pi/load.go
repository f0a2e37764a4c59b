package pi

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"kurabe/internal/load"
)

const (
	// keptSeconds is for how long load is kept, fineSeconds for how long each second.
	keptSeconds = 7 * 24 * 3600
	fineSeconds = 3 * 3600
	// pointsMax bounds the data points of one metric.
	pointsMax = 11_000 // a week of minutes
)

var periods = []int64{1, 60, 300, 3600, 86400}

// span is the time of a request in whole periods.
type span struct{ from, to, period int64 }

// spanOf reads the time of a request. Without a period one is chosen with which there are some
// hundred periods.
func (a API) spanOf(start, end *time.Time, period *int32) (s span, err error) {
	s.from, s.to, s.period = start.Unix(), end.Unix(), int64(deref(period))
	switch {
	case s.to <= s.from:
		return s, invalid("EndTime must be later than StartTime")
	case s.from < a.Now()-keptSeconds-86400:
		return s, invalid("StartTime is too early: database load is kept for 7 days")
	case period == nil:
		const most = 500
		for _, s.period = range periods {
			if (s.to-s.from)/s.period <= most {
				break
			}
		}
	case !slices.Contains(periods, s.period):
		return s, invalid("PeriodInSeconds must be one of 1, 60, 300, 3600 and 86400")
	}
	if s.period < 60 && s.from < a.Now()-fineSeconds-3600 {
		return s, invalid("PeriodInSeconds: seconds are kept for 3 hours; ask for 60 before that")
	}
	s.from -= s.from % s.period
	if over := s.to % s.period; over != 0 {
		s.to += s.period - over
	}
	if (s.to-s.from)/s.period > pointsMax {
		return s, invalid("the time has more than %d periods; ask for a longer period or a shorter time", pointsMax)
	}
	return s, nil
}

func (s span) times() (start, end *time.Time) {
	from, to := time.Unix(s.from, 0), time.Unix(s.to, 0)
	return &from, &to
}

// average is active sessions: counts by the seconds that were sampled.
func average(count, sampled uint64) float64 {
	if sampled == 0 {
		return 0
	}
	return float64(count) / float64(sampled)
}

func total(list []uint64) (n uint64) {
	for _, one := range list {
		n += one
	}
	return n
}

// How many keys a host tells, and how many pairs of two groups: the largest of all hosts are
// among the largest of each.
const (
	keysMax  = 100
	pairsMax = 10_000
)

func (a API) getResourceMetrics(ctx context.Context, in *GetResourceMetricsInput) (*GetResourceMetricsOutput, error) {
	r, err := a.find(in.ServiceType, in.Identifier)
	if err != nil {
		return nil, err
	}
	s, err := a.spanOf(in.StartTime, in.EndTime, in.PeriodInSeconds)
	if err != nil {
		return nil, err
	}
	const queriesMax = 15
	shift := s.period
	switch alignment := deref(in.PeriodAlignment); {
	case len(in.MetricQueries) == 0 || len(in.MetricQueries) > queriesMax:
		return nil, invalid("MetricQueries must hold from 1 to %d queries", queriesMax)
	case alignment == "START_TIME":
		shift = 0
	case alignment != "" && alignment != "END_TIME":
		return nil, invalid("PeriodAlignment must be END_TIME or START_TIME")
	}
	out := &GetResourceMetricsOutput{Identifier: in.Identifier}
	out.AlignedStartTime, out.AlignedEndTime = s.times()
	for _, q := range in.MetricQueries {
		list, err := a.metric(ctx, r, s, q, shift)
		if err != nil {
			return nil, err
		}
		out.MetricList = append(out.MetricList, list...)
	}
	out.MetricList, out.NextToken, err = page(out.MetricList, in.MaxResults, in.NextToken)
	return out, err
}

// metric answers one query: the load of all, then that of the largest keys.
func (a API) metric(ctx context.Context, r resource, s span, q MetricQuery, shift int64) ([]MetricKeyDataPoints, error) {
	metric := deref(q.Metric)
	if of, known := statisticOf(metric); known && r.counted {
		return a.statisticPoints(ctx, r, s, q, of, shift)
	}
	if !isLoad(metric) {
		return nil, unknownMetric("Metric ", metric)
	}
	where, err := conditions(q.Filter)
	if err != nil {
		return nil, err
	}
	ask := load.Query{Instance: r.id, Alone: r.alone, From: s.from, To: s.to, Period: s.period, Where: where, Largest: keysMax}
	var by chosen
	if q.GroupBy != nil {
		if by, err = choose("GroupBy", q.GroupBy); err != nil {
			return nil, err
		}
		ask.By = by.by
	}
	answer, err := a.Source.Load(ctx, ask)
	if err != nil {
		return nil, err
	}
	points := func(counts []uint64) (list []DataPoint) {
		for n, sampled := range answer.Sampled {
			if sampled == 0 || n >= len(counts) {
				continue // nothing is known of the time: there is no value
			}
			at, value := time.Unix(s.from+int64(n)*s.period+shift, 0), average(counts[n], sampled)
			list = append(list, DataPoint{&at, &value})
		}
		return list
	}
	list := []MetricKeyDataPoints{{&ResponseResourceMetricKey{Metric: q.Metric}, points(answer.All)}}
	if q.GroupBy == nil {
		return list, nil
	}
	answer.Largest(by.limit)
	texts, err := a.texts(ctx, r, s, by, answer.Groups)
	if err != nil {
		return nil, err
	}
	for _, g := range answer.Groups {
		list = append(list, MetricKeyDataPoints{&ResponseResourceMetricKey{q.Metric, by.key(g.Values, texts)}, points(g.Counts)})
	}
	return list, nil
}

// texts finds the statements of the groups of a choice.
func (a API) texts(ctx context.Context, r resource, s span, c chosen, groups []load.Group) (map[string]load.Text, error) {
	var ids []string
	for n, d := range c.by {
		if d != load.Statement && d != load.Tokenized && d != load.BlockingTokenized {
			continue
		}
		for _, g := range groups {
			ids = append(ids, g.Values[n])
		}
	}
	if len(ids) == 0 {
		return nil, nil
	}
	return a.Source.LoadTexts(ctx, load.TextQuery{Instance: r.id, Alone: r.alone, IDs: ids, From: s.from, To: s.to})
}

func (a API) describeDimensionKeys(ctx context.Context, in *DescribeDimensionKeysInput) (*DescribeDimensionKeysOutput, error) {
	r, err := a.find(in.ServiceType, in.Identifier)
	if err != nil {
		return nil, err
	}
	s, err := a.spanOf(in.StartTime, in.EndTime, in.PeriodInSeconds)
	if err != nil {
		return nil, err
	}
	if !isLoad(deref(in.Metric)) {
		return nil, invalid("Metric %.100q is not available; %s is", deref(in.Metric), loadMetric)
	}
	where, err := conditions(in.Filter)
	if err != nil {
		return nil, err
	}
	by, err := choose("GroupBy", in.GroupBy)
	if err != nil {
		return nil, err
	}
	ask := load.Query{Instance: r.id, Alone: r.alone, From: s.from, To: s.to, Where: where, Largest: pairsMax, By: by.by}
	var second chosen
	if in.PartitionBy != nil {
		if second, err = choose("PartitionBy", in.PartitionBy); err != nil {
			return nil, err
		}
		ask.By = slices.Concat(by.by, second.by)
	}
	both, err := a.Source.Load(ctx, ask)
	if err != nil {
		return nil, err
	}
	out := &DescribeDimensionKeysOutput{}
	out.AlignedStartTime, out.AlignedEndTime = s.times()
	keys := sums(both, 0, len(by.by), by.limit)
	texts, err := a.texts(ctx, r, s, by, keys)
	if err != nil {
		return nil, err
	}
	sampled := total(both.Sampled)
	for _, g := range keys {
		sum := average(g.Total, sampled)
		out.Keys = append(out.Keys, DimensionKeyDescription{Dimensions: by.key(g.Values, texts), Total: &sum})
	}
	if err := a.additional(ctx, r, s, in.AdditionalMetrics, by, keys, out.Keys); err != nil {
		return nil, err
	}
	if in.PartitionBy != nil {
		if err := a.partition(ctx, r, s, second, both, keys, out); err != nil {
			return nil, err
		}
	}
	out.Keys, out.NextToken, err = page(out.Keys, in.MaxResults, in.NextToken)
	return out, err
}

// sums adds up groups that have the same values from one number to another, the largest first.
func sums(a load.Answer, from, to, most int) []load.Group {
	byName := map[string]int{}
	var sum load.Answer
	for _, g := range a.Groups {
		values := g.Values[from:to]
		name := strings.Join(values, "\x00")
		n, known := byName[name]
		if !known {
			n = len(sum.Groups)
			byName[name] = n
			sum.Groups = append(sum.Groups, load.Group{Values: values})
		}
		sum.Groups[n].Total += g.Total
	}
	sum.Largest(most)
	return sum.Groups
}

// partition tells for each key how its load divides by a second group.
func (a API) partition(ctx context.Context, r resource, s span, second chosen, both load.Answer, keys []load.Group, out *DescribeDimensionKeysOutput) error {
	width := len(second.by)
	parts := both.Groups
	if len(parts) > 0 {
		first := len(parts[0].Values) - width
		parts = sums(both, first, first+width, second.limit)
	}
	texts, err := a.texts(ctx, r, s, second, parts)
	if err != nil {
		return err
	}
	for _, p := range parts {
		out.PartitionKeys = append(out.PartitionKeys, ResponsePartitionKey{second.key(p.Values, texts)})
	}
	sampled := total(both.Sampled)
	for n, k := range keys {
		out.Keys[n].Partitions = make([]float64, len(parts))
		for m, p := range parts {
			pair := slices.Concat(k.Values, p.Values)
			if at := slices.IndexFunc(both.Groups, func(g load.Group) bool { return slices.Equal(g.Values, pair) }); at >= 0 {
				out.Keys[n].Partitions[m] = average(both.Groups[at].Total, sampled)
			}
		}
	}
	return nil
}

// page cuts a list. The token of the next page is where it begins.
func page[T any](list []T, most *int32, token *string) ([]T, *string, error) {
	begin, whole := 0, len(list)
	if token != nil {
		n, err := strconv.Atoi(*token)
		if err != nil || n < 0 || n > whole {
			return nil, nil, invalid("NextToken is not one of this request")
		}
		begin = n
	}
	end := whole
	if most != nil {
		if *most < 0 || *most > limitMax {
			return nil, nil, invalid("MaxResults must be from 0 to %d", limitMax)
		}
		if *most > 0 {
			end = min(whole, begin+int(*most))
		}
	}
	if end == whole {
		return list[begin:], nil, nil
	}
	next := strconv.Itoa(end)
	return list[begin:end], &next, nil
}
