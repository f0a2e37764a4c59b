//go:build integration

package integration

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/rds"
	"github.com/aws/aws-sdk-go-v2/service/rds/types"

	"kurabe/internal/harness"
)

// TestEventSubscriptionOverFailover: what DescribeEvents shows of a failover by order reaches a subscriber over
// HTTP, in its order and each event once, also when the service is killed in the midst of the failover.
func TestEventSubscriptionOverFailover(t *testing.T) {
	s := harness.Start(t, harness.Options{})
	topic, l := s.Topic(t, "events")
	s.EachEngine(t, func(t *testing.T, engine string) {
		i := s.MustCreate(t, harness.MultiAZRequest("told-"+engine, engine))
		i.WaitWhole(t)
		begin := time.Now()
		if _, err := s.CreateEventSubscription(t.Context(), &rds.CreateEventSubscriptionInput{
			SubscriptionName: aws.String("of-" + engine), SnsTopicArn: &topic, SourceType: aws.String("db-instance"), SourceIds: []string{i.Name},
		}); err != nil {
			t.Fatal(err)
		}
		failover(t, i, false)
		must(t, i.AskFailover(t))
		s.Kill(t)
		s.Start(t)
		harness.Wait(t, 3*time.Minute, "the subscriber has every event", func() string {
			told, got := describedEvents(t, i, begin), arrivedEvents(t, l, i.Name)
			if n := strings.Count(strings.Join(told, "\n"), "failover completed"); n < 2 {
				return fmt.Sprintf("%d failovers are told: %q", n, told)
			}
			if !slices.Equal(told, got) {
				return fmt.Sprintf("told are\n%s\nand there came\n%s", strings.Join(told, "\n"), strings.Join(got, "\n"))
			}
			return ""
		})
		i.Delete(t)
	})
}

// describedEvents are an instance's from a time on, as DescribeEvents shows them.
func describedEvents(t *testing.T, i *harness.Instance, from time.Time) (list []string) {
	t.Helper()
	out, err := i.Service.DescribeEvents(t.Context(), &rds.DescribeEventsInput{SourceType: types.SourceTypeDbInstance, SourceIdentifier: &i.Name, StartTime: &from})
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range out.Events {
		list = append(list, aws.ToTime(e.Date).UTC().Format("15:04:05.000 ")+aws.ToString(e.Message))
	}
	return list
}

// arrivedEvents are those of an instance that a subscriber was sent.
func arrivedEvents(t *testing.T, l *harness.Subscriber, name string) (list []string) {
	t.Helper()
	notifications, _ := l.Arrived()
	for _, n := range notifications {
		var e struct {
			At      string `json:"Event Time"`
			ID      string `json:"Source ID"`
			Message string `json:"Event Message"`
		}
		if json.Unmarshal([]byte(n.Message), &e) != nil || e.ID != name {
			continue // the announcement of the subscription
		}
		_, clock, _ := strings.Cut(e.At, " ")
		list = append(list, clock+" "+e.Message)
	}
	return list
}
