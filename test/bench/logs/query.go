package logs

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs/types"

	"kurabe/internal/logevents"
	"kurabe/lab/stat"
	"kurabe/test/bench/bed"
)

const (
	queryBar         = 5 * time.Second
	queryResidentBar = 200 << 20
	queryBytes       = 1 << 30
	queryGroup       = "bench"
)

// Queries measures queries of Logs Insights over a gigabyte of log, by HTTP.
func Queries(ctx context.Context, r *bed.Run) error {
	l, err := r.Service(ctx)
	if err != nil {
		return err
	}
	if err := l.Stop(); err != nil {
		return err
	}
	end := time.Now().Truncate(time.Second)
	size := bed.Pick(r, queryBytes, queryBytes/50)
	count, err := fill(filepath.Join(l.Data, "log-groups"), end, size)
	if err != nil {
		return fmt.Errorf("fill the store: %w", err)
	}
	if _, err := l.Start(ctx); err != nil {
		return err
	}
	of := l.Api.Options()
	c := cloudwatchlogs.New(cloudwatchlogs.Options{Region: bed.Region, BaseEndpoint: of.BaseEndpoint, HTTPClient: of.HTTPClient, RetryMaxAttempts: 1, Credentials: of.Credentials})
	if err := adopted(ctx, c); err != nil {
		return err
	}
	for _, q := range []struct{ name, query string }{
		{"a regular expression and stats", `filter @message like /duration: \d{2}\.\d+ ms/ | stats count(*), max(@timestamp) by bin(1m)`},
		{"a regular expression whose literals are in every line", `filter @message like /\d+-\d+ SSL|worker-[37] / | stats count(*) by bin(1m)`},
		{"parse and percentiles", `parse @message /duration: (?<d>[0-9.]+) ms/ | stats avg(d), pct(d, 99), count(d) by bin(1m)`},
		{"the newest 20 events", `fields @timestamp, @message | sort @timestamp desc | limit 20`},
	} {
		if err := measure(ctx, r, l, c, q.name, q.query, end, int64(size), count); err != nil {
			return fmt.Errorf("%s: %w", q.name, err)
		}
	}
	return nil
}

// fill puts lines as PostgreSQL writes them into the store of a service that does not run.
func fill(dir string, end time.Time, size int) (count int, err error) {
	s, err := logevents.Open(logevents.Config{Dir: dir, GroupBytes: 4 << 30, TotalBytes: 8 << 30, Now: time.Now, Lost: func(string, string, int64, string) {}})
	if err != nil {
		return 0, err
	}
	defer s.Close()
	if err := s.Create(queryGroup, "s"); err != nil {
		return 0, err
	}
	at := end.Add(-3 * time.Hour).UnixMilli()
	const batch = 8000
	for size > 0 {
		var list []logevents.Event
		for range batch {
			count++
			m := fmt.Sprintf("2026-03-01 10:%02d:%02d.%03d UTC [%d] app@db LOG:  connection authorized: user=app database=db application_name=worker-%d SSL enabled (TLSv1.3, cipher=%x)",
				count/60000%60, count/1000%60, count%1000, 1000+count*7%3000, count%11, count*2654435761)
			if count%20 == 0 {
				m = fmt.Sprintf("2026-03-01 10:00:00.000 UTC [%d] app@db LOG:  duration: %d.%03d ms  statement: select * from orders where id = %d and state = 'open'", 1000+count%30, count*7%90, count%1000, count)
			}
			size -= len(m)
			list = append(list, logevents.Event{Time: at + int64(count)/1000, Ingested: at, Message: []byte(m)})
		}
		if err := s.Append(queryGroup, "s", list, nil); err != nil {
			return 0, err
		}
	}
	return count, nil
}

// adopted waits until the service has a record of the group.
func adopted(ctx context.Context, c *cloudwatchlogs.Client) error {
	for {
		out, err := c.DescribeLogGroups(ctx, &cloudwatchlogs.DescribeLogGroupsInput{LogGroupNamePrefix: aws.String(queryGroup)})
		if err != nil {
			return err
		}
		if len(out.LogGroups) > 0 {
			return nil
		}
		if err := bed.Wait(ctx, 100*time.Millisecond); err != nil {
			return err
		}
	}
}

// measure asks a query some times.
func measure(ctx context.Context, r *bed.Run, l *bed.Lab, c *cloudwatchlogs.Client, name, query string, end time.Time, size int64, count int) error {
	var seconds []float64
	var resident int64
	for range bed.Pick(r, 5, 2) {
		began := time.Now()
		started, err := c.StartQuery(ctx, &cloudwatchlogs.StartQueryInput{
			LogGroupName: aws.String(queryGroup), QueryString: &query, StartTime: aws.Int64(end.Add(-4 * time.Hour).Unix()), EndTime: aws.Int64(end.Unix()),
		})
		if err != nil {
			return err
		}
		for done := false; !done; {
			out, err := c.GetQueryResults(ctx, &cloudwatchlogs.GetQueryResultsInput{QueryId: started.QueryId})
			if err != nil {
				return err
			}
			usage, err := bed.ReadUsage(l.Cmd.Process.Pid)
			if err != nil {
				return err
			}
			resident = max(resident, usage.Resident)
			switch out.Status {
			case types.QueryStatusScheduled, types.QueryStatusRunning:
				if err := bed.Wait(ctx, 20*time.Millisecond); err != nil {
					return err
				}
			case types.QueryStatusComplete:
				if got := out.Statistics.RecordsScanned; got != float64(count) {
					return fmt.Errorf("%.0f of %d events were looked at", got, count)
				}
				done = true
			default:
				return errors.New("the query ended as " + string(out.Status))
			}
		}
		seconds = append(seconds, time.Since(began).Seconds())
	}
	middle := stat.Median(seconds)
	r.Out.Sample("query", map[string]any{"query": query, "seconds": seconds, "bytes": size, "events": count, "residentBytes": resident})
	r.Out.Row(bed.Row{Bench: "queries", What: fmt.Sprintf("query of %.2f GB of log: %s", float64(size)/1e9, name), Value: fmt.Sprintf("%.2f s", middle), Bar: "≤ 5 s",
		Verdict: bed.Verdict(middle <= queryBar.Seconds()), Note: fmt.Sprintf("median of %d; %d events", len(seconds), count)})
	r.Out.Row(bed.Row{Bench: "queries", What: "memory of the service meanwhile: " + name, Value: fmt.Sprintf("%d MiB resident", resident>>20), Bar: "≤ 200 MB",
		Verdict: bed.Verdict(resident <= queryResidentBar), Note: "the whole process"})
	return nil
}
