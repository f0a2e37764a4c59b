package monitoring

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch/types"

	"kurabe/internal/metrics/expression"
)

// Bounds of one GetMetricData. CloudWatch has the first three.
const (
	maxQueries    = 500
	maxDatapoints = 100800 // of one page
	maxSeries     = 500    // of one search
	maxEvaluated  = 1 << 20
)

// defaultPeriod is that of a search that names none, in seconds.
const defaultPeriod = 300

// dataQuery is one query of a request.
type dataQuery struct {
	id, label string
	returned  bool
	metric    *question // or
	math      *expression.Expression
	name      string // of the metric, its label by default
	period    int64  // of searches without one
}

var (
	idPattern       = regexp.MustCompile(`^[a-z][a-zA-Z0-9_]{0,254}$`)
	timezonePattern = regexp.MustCompile(`^[+-]\d{4}$`)
)

func (s service) getMetricData(ctx context.Context, in *cloudwatch.GetMetricDataInput) (*cloudwatch.GetMetricDataOutput, error) {
	p, err := pageOf(in)
	if err != nil {
		return nil, err
	}
	e := &evaluation{service: s, places: newPlaces(s.c), span: span{*in.StartTime, *in.EndTime, s.c.Now(), 0}}
	if err := e.read(in.MetricDataQueries); err != nil {
		return nil, err
	}
	e.narrow(p)
	if err := e.fetch(ctx); err != nil {
		return nil, err
	}
	results, err := e.results()
	if err != nil {
		return nil, err
	}
	out := p.cut(results)
	for _, host := range e.away {
		out.Messages = append(out.Messages, types.MessageData{Code: aws.String("HostUnavailable"), Value: aws.String(fmt.Sprintf("Host %s does not answer; the results lack the data that it may hold.", host))})
	}
	for n := range out.MetricDataResults {
		if len(e.away) > 0 {
			out.MetricDataResults[n].StatusCode = types.StatusCodePartialData
		}
	}
	return out, nil
}

// read checks the queries of a request.
func (e *evaluation) read(list []types.MetricDataQuery) error {
	switch {
	case len(list) == 0:
		return validation("The collection MetricDataQueries must not have a size less than 1.")
	case len(list) > maxQueries:
		return validation("The collection MetricDataQueries must not have a size greater than %d.", maxQueries)
	}
	for n, q := range list {
		at := fmt.Sprintf("MetricDataQueries.member.%d", n+1)
		one, err := e.readOne(q, at)
		if err != nil {
			return err
		}
		if slices.ContainsFunc(e.queries, func(other dataQuery) bool { return other.id == one.id }) {
			return validation("The values for parameter id in MetricDataQueries are not unique.")
		}
		e.queries = append(e.queries, one)
	}
	return nil
}

func (e *evaluation) readOne(q types.MetricDataQuery, at string) (one dataQuery, err error) {
	one = dataQuery{id: aws.ToString(q.Id), label: aws.ToString(q.Label), returned: q.ReturnData == nil || *q.ReturnData, period: defaultPeriod}
	switch {
	case !idPattern.MatchString(one.id):
		return one, validation("The value %.100s for parameter %s.Id does not match the required pattern: it begins with a lower-case letter, and has letters, digits and underscores.", one.id, at)
	case q.Expression != nil && q.MetricStat != nil:
		return one, validation("The parameters %s.Expression and %s.MetricStat are mutually exclusive and you have specified both.", at, at)
	case q.Expression == nil && q.MetricStat == nil:
		return one, validation("The parameter %s.MetricStat is required.\n", at)
	case q.MetricStat != nil && q.Period != nil:
		return one, validation("The parameters %s.Period and %s.MetricStat are mutually exclusive and you have specified both.", at, at)
	case q.AccountId != nil && *q.AccountId != e.service.c.Account:
		return one, validation("The value %.20s for parameter %s.AccountId is not supported: there is one account.", *q.AccountId, at)
	case strings.Contains(one.label, "${"):
		return one, validation("The value %.100s for parameter %s.Label is not supported: labels are not dynamic.", one.label, at)
	case q.Period != nil && !validPeriod(int64(*q.Period)):
		return one, validation("The parameter %s.Period %s.", at, periodRule)
	case q.MetricStat != nil:
		return one, e.readMetric(&one, *q.MetricStat, at+".MetricStat")
	}
	if q.Period != nil {
		one.period = int64(*q.Period)
	}
	if one.math, err = expression.Parse(*q.Expression); err != nil {
		return one, wrongExpression(one.id, err.Error())
	}
	return one, nil
}

func (e *evaluation) readMetric(one *dataQuery, m types.MetricStat, at string) error {
	namespace, name := aws.ToString(m.Metric.Namespace), aws.ToString(m.Metric.MetricName)
	stat, wrong := parseStatistic(*m.Stat)
	switch {
	case namespace == "":
		return validation("The parameter %s.Metric.Namespace is required.", at)
	case name == "":
		return validation("The parameter %s.Metric.MetricName is required.", at)
	case wrong != "":
		return validation("The value %.40s for parameter %s.Stat is not supported: %s.", *m.Stat, at, wrong)
	case !validPeriod(int64(*m.Period)):
		return validation("The parameter %s.Period %s.", at, periodRule)
	}
	one.name, one.metric = name, &question{stat: stat, period: int64(*m.Period)}
	metric := expression.Metric{Namespace: namespace, Name: name, Dimensions: dimensionsOf(m.Metric.Dimensions)}
	if match, ok := e.places.matches(metric, m.Unit); ok {
		one.metric.match = match
	}
	return nil
}

// wrongExpression says why an expression cannot be evaluated; why is a sentence, as CloudWatch's.
func wrongExpression(id, why string) error {
	return validation("Error in expression '%s' [%s]", id, why)
}

// checkTimes refuses what CloudWatch refuses.
func checkTimes(from, to time.Time) error {
	switch {
	case from.After(to):
		return validation("The parameter EndTime must be greater than StartTime.")
	case from.Equal(to):
		return validation("The parameter StartTime must not equal parameter EndTime.")
	case from.Unix() < 0:
		return validation("The parameter StartTime must not be before 1970.")
	}
	return nil
}
