//go:build integration

package integration

import (
	"fmt"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch/types"

	"kurabe/internal/aws/sdkhttp"
	"kurabe/internal/harness"
)

// cloudWatch is the SDK's client, which speaks CBOR.
func cloudWatch(s *harness.Service) *cloudwatch.Client {
	return cloudwatch.New(cloudwatch.Options{Region: "us-east-1", BaseEndpoint: aws.String(s.URL()), HTTPClient: sdkhttp.Client(), Credentials: s.Client.Options().Credentials})
}

// seconds asks for a metric of an instance of the last ten minutes, by second.
func seconds(t *testing.T, c *cloudwatch.Client, name, instance, stat string) map[int64]float64 {
	t.Helper()
	out, err := c.GetMetricData(t.Context(), &cloudwatch.GetMetricDataInput{
		StartTime: aws.Time(time.Now().Add(-10 * time.Minute)), EndTime: aws.Time(time.Now().Add(time.Minute)),
		MetricDataQueries: []types.MetricDataQuery{{Id: aws.String("m1"), MetricStat: &types.MetricStat{
			Period: aws.Int32(1), Stat: aws.String(stat), Metric: &types.Metric{
				Namespace: aws.String("AWS/RDS"), MetricName: aws.String(name),
				Dimensions: []types.Dimension{{Name: aws.String("DBInstanceIdentifier"), Value: aws.String(instance)}},
			}}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	values := map[int64]float64{}
	for n, at := range out.MetricDataResults[0].Timestamps {
		values[at.Unix()] = out.MetricDataResults[0].Values[n]
	}
	return values
}

// TestMetricsOverFailover: the instance of two servers has one series, that of its primary,
// before a failover and after it.
func TestMetricsOverFailover(t *testing.T) {
	eachPair(t, "measured", func(t *testing.T, b *pairBed) {
		c := cloudWatch(b.Service)
		after := func(what string, begin time.Time) {
			t.Helper()
			harness.Wait(t, 2*time.Minute, what, func() string {
				fresh := 0
				for at := range seconds(t, c, "DatabaseConnections", b.Name, "Average") {
					if at > begin.Unix() {
						fresh++
					}
				}
				if fresh < 3 {
					return fmt.Sprintf("%d values", fresh)
				}
				return ""
			})
		}
		begin := time.Now()
		after("the primary is measured", begin)
		writer, _ := b.Pair(t)
		if err := b.AskFailover(t); err != nil {
			t.Fatal(err)
		}
		harness.Wait(t, 2*time.Minute, "the standby is the primary", func() string {
			if now, _ := b.Pair(t); now.ID == writer.ID {
				return "it is not"
			}
			return ""
		})
		changed := time.Now()
		after("the new primary is measured", changed)
		before := 0
		for at := range seconds(t, c, "DatabaseConnections", b.Name, "Average") {
			if at < changed.Unix() {
				before++
			}
		}
		if before < 3 {
			t.Errorf("%d values are left from before the failover", before)
		}
	})
}
