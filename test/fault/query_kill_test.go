//go:build fault

package fault

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs/types"

	"kurabe/internal/aws/sdkhttp"
	"kurabe/internal/harness"
)

// A service that is killed while queries of logs run has lost them, and says so; the events are
// there, and the query can be started again.
func TestKillDuringQueries(t *testing.T) {
	s := harness.Start(t, harness.Options{})
	c := func() *cloudwatchlogs.Client {
		return cloudwatchlogs.New(cloudwatchlogs.Options{Region: "us-east-1", BaseEndpoint: aws.String(s.URL()), HTTPClient: sdkhttp.Client(), Credentials: s.Client.Options().Credentials})
	}
	const group, count = "killed", 5000
	if _, err := c().CreateLogGroup(t.Context(), &cloudwatchlogs.CreateLogGroupInput{LogGroupName: aws.String(group)}); err != nil {
		t.Fatal(err)
	}
	if _, err := c().CreateLogStream(t.Context(), &cloudwatchlogs.CreateLogStreamInput{LogGroupName: aws.String(group), LogStreamName: aws.String("s")}); err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	var events []types.InputLogEvent
	for n := range count {
		events = append(events, types.InputLogEvent{Timestamp: aws.Int64(now.UnixMilli()), Message: aws.String("line " + itoa(n) + strings.Repeat(" x", 50))})
	}
	if _, err := c().PutLogEvents(t.Context(), &cloudwatchlogs.PutLogEventsInput{LogGroupName: aws.String(group), LogStreamName: aws.String("s"), LogEvents: events}); err != nil {
		t.Fatal(err)
	}
	start := func() *string {
		out, err := c().StartQuery(t.Context(), &cloudwatchlogs.StartQueryInput{
			LogGroupName: aws.String(group), QueryString: aws.String("stats count(*) as c by @message | stats sum(c) as all"),
			StartTime: aws.Int64(now.Add(-time.Hour).Unix()), EndTime: aws.Int64(now.Add(time.Hour).Unix()),
		})
		if err != nil {
			t.Fatal(err)
		}
		return out.QueryId
	}
	var ids []*string
	for range 20 {
		ids = append(ids, start())
	}
	s.Kill(t)
	s.Start(t)
	var gone *types.ResourceNotFoundException
	for _, id := range ids {
		if _, err := c().GetQueryResults(t.Context(), &cloudwatchlogs.GetQueryResultsInput{QueryId: id}); !errors.As(err, &gone) {
			t.Fatalf("the results of a query before the kill: %v", err)
		}
	}
	t.Log(gone.ErrorMessage())
	again := start()
	for end := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		out, err := c().GetQueryResults(t.Context(), &cloudwatchlogs.GetQueryResultsInput{QueryId: again})
		if err != nil {
			t.Fatal(err)
		}
		if out.Status == types.QueryStatusComplete {
			if len(out.Results) != 1 || aws.ToString(out.Results[0][0].Value) != itoa(count) {
				t.Errorf("the events after the kill: %v", out.Results)
			}
			return
		}
		if time.Now().After(end) || out.Status != types.QueryStatusScheduled && out.Status != types.QueryStatusRunning {
			t.Fatalf("the query after the kill is %s", out.Status)
		}
	}
}
