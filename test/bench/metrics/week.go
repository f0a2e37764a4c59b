package metrics

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net/http"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch/schemas"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch/types"
	smithyhttp "github.com/aws/smithy-go/transport/http"
	"github.com/aws/smithy-go/transport/http/protocol/awsjson"
	"github.com/aws/smithy-go/transport/http/protocol/awsquery"
	"github.com/aws/smithy-go/transport/http/protocol/rpcv2"

	"kurabe/internal/metrics/catalog"
	"kurabe/internal/metrics/series"
	"kurabe/lab/stat"
	"kurabe/test/bench/bed"
)

const (
	weekBar     = 300 * time.Millisecond
	weekMetrics = 20
	weekRounds  = 9
	weekLong    = 7 * 24 * time.Hour
	weekServer  = "week"
)

// Week measures one question over HTTP, of a store that has that week: 20 metrics of an instance
// by the minute. They take two pages, each of as many data points as CloudWatch answers.
func Week(ctx context.Context, r *bed.Run) error {
	l, err := r.Service(ctx)
	if err != nil {
		return err
	}
	if err := l.Stop(); err != nil {
		return err
	}
	long := bed.Pick(r, weekLong, weekLong/7)
	end := time.Now().Truncate(time.Minute)
	if err := fill(ctx, filepath.Join(l.Data, "metrics"), end.Add(-long), end); err != nil {
		return fmt.Errorf("fill the store: %w", err)
	}
	if _, err := l.Start(ctx); err != nil {
		return err
	}
	for _, p := range []struct {
		name string
		of   smithyhttp.ClientProtocol
	}{
		{"JSON", awsjson.New10(schemas.GraniteServiceVersion20100801)}, {"query", awsquery.New(schemas.GraniteServiceVersion20100801)},
		{"CBOR", rpcv2.NewCBOR(schemas.GraniteServiceVersion20100801)},
	} {
		if err := ask(ctx, r, l, p.name, p.of, end.Add(-long), end); err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
	}
	return nil
}

// asked are the metrics.
func asked() (names []string) {
	for _, d := range catalog.All {
		if d.Namespace == catalog.RDS && len(names) < weekMetrics {
			names = append(names, d.Name)
		}
	}
	return names
}

// fill has a store measure from one time to another, by a clock of its own.
func fill(ctx context.Context, dir string, from, to time.Time) (err error) {
	var clock, looks atomic.Int64
	clock.Store(from.Unix())
	s := series.New(series.Config{
		Dir: dir, BytesMax: 2 << 30, Log: slog.New(slog.DiscardHandler), Free: func() int64 { return -1 },
		Now:  func() time.Time { looks.Add(1); return time.Unix(clock.Load(), 0) },
		Tell: func(reason string) { err = errors.Join(err, errors.New(reason)) },
	})
	run, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- s.Run(run) }()
	defer func() {
		cancel()
		if failed := <-ended; !errors.Is(failed, context.Canceled) {
			err = errors.Join(err, failed)
		}
	}()
	var list []series.Sample
	for _, name := range asked() {
		list = append(list, series.Sample{Labels: series.NewLabels(catalog.Namespace, catalog.RDS, catalog.Metric, name, catalog.Instance, weekServer,
			catalog.Server, "db-WEEK", catalog.Engine, bed.Postgres, catalog.Role, catalog.RolePrimary)})
	}
	const most = 2*time.Hour + 30*time.Minute // the store makes minutes of the last three hours
	for at := from; at.Before(to); {
		// The next second of the store's own has seen the clock, and made the minutes.
		for seen := looks.Load(); looks.Load() < seen+2; {
			if err := bed.Wait(ctx, 10*time.Millisecond); err != nil {
				return err
			}
		}
		for end := min(at.Add(most).Unix(), to.Unix()); at.Unix() < end; at = at.Add(time.Second) {
			for n := range list {
				list[n].Value = value(n, at.Unix())
			}
			if err := s.Append(at, list); err != nil {
				return err
			}
		}
		clock.Store(at.Add(15 * time.Second).Unix())
	}
	return bed.Wait(ctx, 3*time.Second)
}

// value is one of a third of metrics that hardly move, a third that count whole things, and a third
// that have all their digits.
func value(metric int, second int64) float64 {
	noise := math.Sin(float64(second*second%10_007)) * math.Sin(float64(second)/13_000)
	switch metric % 3 {
	case 0:
		return float64(second / 3000)
	case 1:
		return math.Floor(1000 + 500*noise)
	}
	return 40 + 5*noise
}

// timed takes each answer whole, and how long it took to come.
type timed struct {
	next  http.RoundTripper
	took  time.Duration
	bytes int
}

// RoundTrip implements http.RoundTripper.
func (t *timed) RoundTrip(request *http.Request) (*http.Response, error) {
	began := time.Now()
	response, err := t.next.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	raw, err := io.ReadAll(response.Body)
	t.took, t.bytes = t.took+time.Since(began), t.bytes+len(raw)
	response.Body = io.NopCloser(bytes.NewReader(raw))
	return response, err
}

func ask(ctx context.Context, r *bed.Run, l *bed.Lab, name string, protocol smithyhttp.ClientProtocol, from, to time.Time) error {
	clock := &timed{}
	of := l.Api.Options()
	clock.next = of.HTTPClient.(*http.Client).Transport
	c := cloudwatch.New(cloudwatch.Options{
		Region: bed.Region, BaseEndpoint: of.BaseEndpoint, HTTPClient: &http.Client{Transport: clock}, RetryMaxAttempts: 1, Credentials: of.Credentials,
	}, func(o *cloudwatch.Options) { o.Protocol = protocol })
	in := &cloudwatch.GetMetricDataInput{StartTime: &from, EndTime: &to}
	for n, metric := range asked() {
		in.MetricDataQueries = append(in.MetricDataQueries, types.MetricDataQuery{Id: aws.String(fmt.Sprint("m", n)), MetricStat: &types.MetricStat{
			Stat: aws.String("Average"), Period: aws.Int32(60),
			Metric: &types.Metric{Namespace: aws.String(catalog.RDS), MetricName: &metric, Dimensions: []types.Dimension{{Name: aws.String("DBInstanceIdentifier"), Value: aws.String(weekServer)}}},
		}})
	}
	var whole []float64
	// The store reads its log beside the start of everything else.
	for opened := time.Now(); ; {
		_, err := c.GetMetricData(ctx, in)
		if err == nil {
			break
		}
		if bed.ErrorCode(err) != "ServiceUnavailable" || time.Since(opened) > bed.AvailableTime {
			return err
		}
		if err := bed.Wait(ctx, bed.PollPause); err != nil {
			return err
		}
	}
	for round := range bed.Pick(r, weekRounds, 3) {
		points, pages := 0, 0
		clock.took, clock.bytes = 0, 0
		for in.NextToken = nil; pages == 0 || in.NextToken != nil; pages++ {
			out, err := c.GetMetricData(ctx, in)
			if err != nil {
				return err
			}
			for _, one := range out.MetricDataResults {
				points += len(one.Values)
			}
			in.NextToken = out.NextToken
		}
		if want := weekMetrics * int(to.Sub(from)/time.Minute); points != want {
			return fmt.Errorf("%d data points, not %d", points, want)
		}
		r.Out.Sample("week", map[string]any{"protocol": name, "round": round, "seconds": clock.took.Seconds(), "bytes": clock.bytes, "points": points, "pages": pages})
		if round > 0 { // the first one reads the disk
			whole = append(whole, clock.took.Seconds()*1000)
		}
	}
	median := stat.Median(whole)
	r.Out.Row(bed.Row{Bench: "metrics", What: fmt.Sprintf("GetMetricData, %d metrics of %.0f days by the minute, %s", weekMetrics, to.Sub(from).Hours()/24, name),
		Value: fmt.Sprintf("%.0f ms", median), Bar: fmt.Sprintf("≤ %d ms", weekBar.Milliseconds()), Verdict: bed.Verdict(median <= float64(weekBar.Milliseconds())),
		Note: fmt.Sprintf("median of %d, all pages, from the request to the last byte; %d MB", len(whole), clock.bytes>>20)})
	return nil
}
