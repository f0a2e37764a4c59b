package monitoring

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"kurabe"
	"kurabe/internal/metrics/expression"
	"kurabe/internal/metrics/series"
)

// evaluation is one GetMetricData: its queries are read, then all series are fetched at once,
// then expressions are computed over them.
type evaluation struct {
	service
	span
	places  places
	queries []dataQuery

	asked []series.Query
	into  []*expression.Series // that the answer to each goes to
	stats []statistic
	most  int64 // data points that may come

	away []kurabe.HostID // whose data are missing

	metrics map[string]*expression.Series // by the id of the query
	found   map[*expression.Search][]*expression.Series
	values  map[string]expression.Value // of expressions, once computed
	open    []string                    // the expressions that are being computed
}

// result is one series of the answer.
type result struct {
	id, label string
	points    []expression.Point
}

// narrow leaves out the time of earlier pages. Expressions need it: of their neighbours, and of
// whole series.
func (e *evaluation) narrow(p page) {
	longest := int64(0)
	for _, q := range e.queries {
		if q.math != nil {
			return
		}
		longest = max(longest, q.metric.period)
	}
	switch {
	case p.begin == nil:
	case p.ascending:
		e.from = latest(e.from, time.Unix(p.begin.at, 0))
	case e.to.Unix() > p.begin.at+longest:
		e.to = time.Unix(p.begin.at+longest, 0)
	}
}

// fetch gets the series of all queries.
func (e *evaluation) fetch(ctx context.Context) error {
	if err := e.collect(ctx); err != nil {
		return err
	}
	if e.most > maxEvaluated {
		return validation("You have requested up to %d datapoints, which exceeds the limit of %d. You may reduce the datapoints requested by increasing Period, or decreasing the time range.", e.most, maxEvaluated)
	}
	if len(e.asked) == 0 {
		return nil
	}
	answers, away, err := e.source.Query(ctx, e.asked)
	if e.away = away; err == nil {
		e.take(answers)
	}
	return err
}

// take puts the answers to what is asked where expressions find them.
func (e *evaluation) take(answers [][]series.Result) {
	for n, results := range answers {
		for _, r := range results { // at most one: no query is divided
			e.into[n].Points = points(r.Buckets, e.stats[n], e.shift())
		}
	}
}

// shift is by how many seconds the times that expressions see lie before the real ones: to them,
// every period begins at a multiple of itself.
func (e *evaluation) shift() int64 { return int64(e.offset / time.Second) }

// collect finds what is to be asked.
func (e *evaluation) collect(ctx context.Context) error {
	e.metrics, e.found, e.values = map[string]*expression.Series{}, map[*expression.Search][]*expression.Series{}, map[string]expression.Value{}
	for _, q := range e.queries {
		if q.metric != nil {
			e.metrics[q.id] = e.want(*q.metric, q.name)
			continue
		}
		for _, search := range q.math.Searches {
			if err := e.search(ctx, q, search); err != nil {
				return err
			}
		}
	}
	return nil
}

// want asks for a series, which has no points until the answer is there.
func (e *evaluation) want(q question, label string) *expression.Series {
	one := &expression.Series{Label: label, Period: q.period}
	if q.match != nil { // else it is unknown and has no data
		ask := e.span.query(q)
		ask.Sums = slices.Contains([]string{"Average", "Sum", "SampleCount"}, q.stat.name)
		e.asked, e.into, e.stats = append(e.asked, ask), append(e.into, one), append(e.stats, q.stat)
		e.most += int64(ask.To.Sub(ask.From)/ask.Period) + 1
	}
	return one
}

// search asks for the series of the metrics that a search finds.
func (e *evaluation) search(ctx context.Context, q dataQuery, search *expression.Search) error {
	stat, wrong := parseStatistic(search.Stat)
	period := search.Period
	if period == 0 {
		period = q.period
	}
	switch {
	case wrong != "":
		return wrongExpression(q.id, fmt.Sprintf("Unsupported statistic '%.40s': %s", search.Stat, wrong))
	case !validPeriod(period):
		return wrongExpression(q.id, fmt.Sprintf("The period of SEARCH %s", periodRule))
	}
	all, err := e.list(ctx, e.places, search.Namespace, "", e.now.Add(-listedFor))
	if err != nil {
		return err
	}
	all = slices.DeleteFunc(all, func(m expression.Metric) bool { return !search.Matches(m) })
	if len(all) > maxSeries {
		return wrongExpression(q.id, fmt.Sprintf("SEARCH finds %d metrics, which exceeds the limit of %d", len(all), maxSeries))
	}
	labels := labelsOf(all)
	for n, m := range all {
		match, _ := e.places.matches(m, "")
		e.found[search] = append(e.found[search], e.want(question{match: match, stat: stat, period: period}, labels[n]))
	}
	return nil
}

// labelsOf names metrics by what tells them apart: the values of dimensions and, where they
// differ, the names; a lone metric by its name.
func labelsOf(all []expression.Metric) []string {
	differ := func(of func(expression.Metric) string) bool {
		return slices.ContainsFunc(all, func(m expression.Metric) bool { return of(m) != of(all[0]) })
	}
	byNamespace := differ(func(m expression.Metric) string { return m.Namespace })
	byName := differ(func(m expression.Metric) string { return m.Name })
	labels := make([]string, len(all))
	for n, m := range all {
		var parts []string
		if byNamespace {
			parts = append(parts, m.Namespace)
		}
		for _, d := range m.Dimensions {
			parts = append(parts, d.Value)
		}
		if byName || len(parts) == 0 || len(all) == 1 {
			parts = append(parts, m.Name)
		}
		labels[n] = strings.Join(parts, " ")
	}
	return labels
}

// results are the series of the queries whose data the user wants.
func (e *evaluation) results() ([]result, error) {
	var list []result
	for _, q := range e.queries {
		v, err := e.value(q)
		if err != nil {
			return nil, err
		}
		if !q.returned {
			continue
		}
		if v.Kind == expression.Number {
			return nil, wrongExpression(q.id, "The result is a number, not a time series: return it to another expression with ReturnData false")
		}
		for _, s := range v.Series {
			list = append(list, result{q.id, q.labelOf(v.Kind, s), s.Points})
		}
	}
	return list, nil
}

// labelOf is the user's label, which goes before that of each series of an array.
func (q dataQuery) labelOf(kind expression.Kind, s expression.Series) string {
	switch {
	case kind == expression.Array:
		return strings.TrimSpace(q.label + " " + s.Label)
	case q.label != "":
		return q.label
	case q.metric != nil:
		return q.name
	}
	return q.id
}

// value computes a query once.
func (e *evaluation) value(q dataQuery) (expression.Value, error) {
	if q.metric != nil {
		return expression.Of(*e.metrics[q.id]), nil
	}
	if v, done := e.values[q.id]; done {
		return v, nil
	}
	if slices.Contains(e.open, q.id) {
		return expression.Value{}, wrongExpression(e.open[0], fmt.Sprintf("Circular reference: %s", strings.Join(append(e.open, q.id), ", ")))
	}
	e.open = append(e.open, q.id)
	v, err := q.math.Eval(&expression.Environment{From: e.from.Unix() - e.shift(), To: e.to.Unix() - e.shift(), Lookup: e.lookup, Metrics: e.all, Found: e.searched})
	e.open = e.open[:len(e.open)-1]
	var own *expression.Error
	if errors.As(err, &own) {
		return v, wrongExpression(q.id, err.Error())
	}
	e.values[q.id] = v
	return v, err
}

func (e *evaluation) lookup(id string) (expression.Value, error) {
	n := slices.IndexFunc(e.queries, func(q dataQuery) bool { return q.id == id })
	if n < 0 {
		return expression.Value{}, &expression.Error{Text: fmt.Sprintf("Undefined variable '%.100s'", id)}
	}
	return e.value(e.queries[n])
}

// all are the metrics of the request whose ids contain a part.
func (e *evaluation) all(part string) (list []expression.Series) {
	for _, q := range e.queries {
		if q.metric != nil && strings.Contains(q.id, part) {
			one := *e.metrics[q.id]
			one.Label = q.labelOf(expression.Single, one)
			list = append(list, one)
		}
	}
	return list
}

func (e *evaluation) searched(s *expression.Search) (list []expression.Series) {
	for _, one := range e.found[s] {
		list = append(list, *one)
	}
	return list
}
