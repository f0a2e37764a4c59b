package monitoring

import (
	"context"
	"slices"
	"time"

	"kurabe"
	evaluating "kurabe/internal/alarm"
	"kurabe/internal/control"
	"kurabe/internal/metrics/series"
)

// maxPoints bounds what one question of the evaluation of alarms asks for.
const maxPoints = 100_000

// AlarmReader reads what alarms watch, as GetMetricData does.
type AlarmReader struct{ service service }

// NewAlarmReader returns a reader of the same metrics as those of API.
func NewAlarmReader(c *control.Control, source Source) AlarmReader {
	return AlarmReader{service{c, source}}
}

// reading is one alarm that is read.
type reading struct {
	*evaluation
	due    evaluating.Due
	points evaluating.Points
}

// Read returns the data points of each alarm. All metrics are asked for at once, but for those
// that together are too many.
func (r AlarmReader) Read(ctx context.Context, due []evaluating.Due) ([]evaluating.Points, error) {
	places := newPlaces(r.service.c)
	list := make([]*reading, len(due))
	for n, d := range due {
		list[n] = &reading{&evaluation{service: r.service, places: places, span: span{
			from: time.Unix(d.Begin(), 0), to: time.Unix(d.End, 0), now: time.Unix(d.End, 0), offset: time.Duration(d.End%d.Period) * time.Second,
		}}, d, evaluating.Points{}}
		if err := list[n].read(dataQueries(d.Alarm, "q")); err != nil {
			list[n].points.Err = err
		} else if err := list[n].collect(ctx); err != nil {
			list[n].points.Err = err
		}
	}
	if err := r.ask(ctx, list); err != nil {
		return nil, err
	}
	points := make([]evaluating.Points, len(list))
	for n, one := range list {
		points[n] = one.points
	}
	return points, nil
}

// ask asks for the metrics of alarms. Where together they are too many, or are refused, it asks
// for each half, so that the alarm that is refused spoils no other.
func (r AlarmReader) ask(ctx context.Context, list []*reading) error {
	list = slices.DeleteFunc(slices.Clone(list), func(one *reading) bool { return one.points.Err != nil })
	var asked []series.Query
	most := int64(0)
	for _, one := range list {
		asked, most = append(asked, one.asked...), most+one.most
	}
	half := len(list) / 2
	if most > maxPoints && half > 0 {
		return r.askHalves(ctx, list, half)
	}
	var answers [][]series.Result
	if len(asked) > 0 {
		var err error
		answers, _, err = r.service.source.Query(ctx, asked) // what a host has that is away is missing
		switch {
		case kurabe.CodeOf(err) == kurabe.CodeInvalidParameterValue && half > 0:
			return r.askHalves(ctx, list, half)
		case kurabe.CodeOf(err) == kurabe.CodeInvalidParameterValue:
			list[0].points.Err = err
			return nil
		case err != nil:
			return err
		}
	}
	for _, one := range list {
		one.take(answers[:len(one.asked)])
		answers = answers[len(one.asked):]
	}
	return nil
}

func (r AlarmReader) askHalves(ctx context.Context, list []*reading, half int) error {
	if err := r.ask(ctx, list[:half]); err != nil {
		return err
	}
	return r.ask(ctx, list[half:])
}

// take makes data points of the answers to what was asked. Of a metric, they tell of how many
// samples each is.
func (one *reading) take(answers [][]series.Result) {
	one.evaluation.take(answers)
	q := one.queries[one.due.Watched]
	if q.metric == nil {
		results, err := one.results()
		if one.points.Err = err; err == nil && len(results) == 1 {
			for _, p := range results[0].points {
				one.points.Points = append(one.points.Points, evaluating.Point{At: p.At + one.shift(), Value: p.Value})
			}
		}
		return
	}
	n := slices.Index(one.into, one.metrics[q.id])
	if n < 0 || len(answers[n]) == 0 {
		return // no metric, or none that has samples
	}
	samples := map[int64]float64{}
	for _, b := range answers[n][0].Buckets {
		samples[b.Start] = b.Count
	}
	for _, p := range one.metrics[q.id].Points {
		at := p.At + one.shift()
		one.points.Points = append(one.points.Points, evaluating.Point{At: at, Value: p.Value, Samples: samples[at]})
	}
}
