//go:build integration

package integration

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch/types"
	"github.com/aws/aws-sdk-go-v2/service/rds"

	"kurabe/internal/harness"
	"kurabe/internal/metrics/catalog"
)

// sampleTime is how long a sample may take to show, on a busy machine.
const sampleTime = 2 * time.Minute

// monitoring is a client of a service's metrics.
func monitoring(s *harness.Service) *cloudwatch.Client {
	like := s.Client.Options() // its connections as well
	return cloudwatch.New(cloudwatch.Options{Region: like.Region, BaseEndpoint: aws.String(s.URL()), Credentials: like.Credentials, HTTPClient: like.HTTPClient, Retryer: aws.NopRetryer{}})
}

// newestSample is the newest value of a metric of the last minutes, and when it was measured.
func newestSample(t *testing.T, i *harness.Instance, metric string) (at time.Time, value float64) {
	t.Helper()
	now := time.Now()
	out, err := monitoring(i.Service).GetMetricData(t.Context(), &cloudwatch.GetMetricDataInput{
		StartTime: aws.Time(now.Add(-2 * sampleTime)), EndTime: aws.Time(now.Add(time.Second)), ScanBy: types.ScanByTimestampDescending,
		MetricDataQueries: []types.MetricDataQuery{{Id: aws.String("m"), MetricStat: &types.MetricStat{Period: aws.Int32(1), Stat: aws.String("Maximum"), Metric: &types.Metric{
			Namespace: aws.String(catalog.Of(metric).Namespace), MetricName: aws.String(metric), Dimensions: []types.Dimension{{Name: aws.String("DBInstanceIdentifier"), Value: aws.String(i.Name)}},
		}}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if r := out.MetricDataResults[0]; len(r.Values) > 0 {
		return r.Timestamps[0], r.Values[0]
	}
	return time.Time{}, -1
}

// waitSample waits for a value that was measured after a time.
func waitSample(t *testing.T, i *harness.Instance, metric string, after time.Time, good func(float64) bool) {
	t.Helper()
	harness.Wait(t, sampleTime, fmt.Sprintf("%s of %s", metric, i.Name), func() string {
		at, value := newestSample(t, i, metric)
		if at.After(after) && good(value) {
			return ""
		}
		return fmt.Sprintf("%v at %v", value, at)
	})
}

func isMeasured(float64) bool { return true }

// The metrics of both engines are what clients do: sessions, bytes, writes. A server that hangs
// has none of the engine's, and goes on to have the others; so it is after a death of the service.
func TestMetrics(t *testing.T) {
	s := harness.Start(t, harness.Options{})
	list := one(t, s)
	for _, i := range list {
		const sessions = 4
		began := time.Now().Truncate(time.Second)
		for range sessions {
			i.Open(t)
		}
		waitSample(t, i, "DatabaseConnections", began, func(v float64) bool { return v == sessions })
		harness.Wait(t, sampleTime, "the page of metrics of "+i.Name, func() string {
			page := metricsOf(t, s)
			of := fmt.Sprintf(`{instance="%s",server="1",engine="%s",role="primary"}`, i.Name, i.Engine)
			if v, has := page["kurabe_database_connections"+of]; !has || v <= 0 {
				return fmt.Sprintf("%v %v of %d", of, v, len(page))
			}
			return ""
		})
		client := i.Open(t)
		if err := client.Exec(t.Context(), "CREATE TABLE metrics (text TEXT)"); err != nil {
			t.Fatal(err)
		}
		began = time.Now().Truncate(time.Second)
		for range 3 {
			if err := client.Exec(t.Context(), "INSERT INTO metrics VALUES ('"+strings.Repeat("x", 60_000)+"')"); err != nil {
				t.Fatal(err)
			}
		}
		waitSample(t, i, "DatabaseConnections", began, func(v float64) bool { return v == sessions+1 })
		harness.Wait(t, sampleTime, "bytes and writes of "+i.Name, func() string {
			_, received := newestSample(t, i, "NetworkReceiveThroughput")
			_, written := newestSample(t, i, "WriteThroughput")
			if received > 0 && written > 0 {
				return ""
			}
			if err := client.Exec(t.Context(), "INSERT INTO metrics VALUES ('"+strings.Repeat("x", 60_000)+"')"); err != nil {
				t.Fatal(err)
			}
			return fmt.Sprintf("%v received, %v written", received, written)
		})
		pid := i.Server(t)
		if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		defer syscall.Kill(pid, syscall.SIGCONT)
		at, _ := newestSample(t, i, "DatabaseConnections")
		waitSample(t, i, "CPUUtilization", at.Add(10*time.Second), isMeasured)
		if again, _ := newestSample(t, i, "DatabaseConnections"); again.After(at.Add(5 * time.Second)) {
			t.Errorf("%s is stopped, and had sessions at %v and %v", i.Name, at, again)
		}
		if err := syscall.Kill(pid, syscall.SIGCONT); err != nil {
			t.Fatal(err)
		}
		waitSample(t, i, "DatabaseConnections", at.Add(10*time.Second), func(v float64) bool { return v == sessions+1 })
	}
	backed := list[0]
	if _, err := s.Client.CreateDBSnapshot(t.Context(), &rds.CreateDBSnapshotInput{DBInstanceIdentifier: aws.String(backed.Name), DBSnapshotIdentifier: aws.String("kept")}); err != nil {
		t.Fatal(err)
	}
	waitSample(t, backed, "BackupAge", time.Now().Add(-sampleTime), func(age float64) bool { return age >= 0 && age < (2*sampleTime).Seconds() })
	s.Kill(t)
	s.Start(t)
	began := time.Now()
	for _, i := range list {
		waitSample(t, i, "DatabaseConnections", began, func(v float64) bool { return v >= 0 })
		waitSample(t, i, "CPUUtilization", began, func(v float64) bool { return v >= 0 && v < 200 })
	}
}
