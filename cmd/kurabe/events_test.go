package main

import (
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/rds/types"
)

func TestEventsAreWrittenOnce(t *testing.T) {
	var out strings.Builder
	noon := time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)
	w := eventWriter{out: &out, name: "shop", from: noon.Add(-time.Hour), seen: map[string]time.Time{}}
	at := func(d time.Duration, name, message string) types.Event {
		return types.Event{
			Date: aws.Time(noon.Add(d)), SourceIdentifier: aws.String(name), SourceType: "db-instance", Message: aws.String(message),
			EventCategories: []string{"failover", "notification"}, SourceArn: aws.String("arn:" + name),
		}
	}
	for _, e := range []types.Event{
		at(0, "shop", "a"), at(0, "shop", "a"), at(0, "other", "a"), at(0, "shop", "b\tc\nd"), at(2*time.Minute, "shop", "e"), at(90*time.Second, "shop", "late"),
	} {
		if err := w.write(e); err != nil {
			t.Fatal(err)
		}
	}
	if got := out.String(); got != "2026-03-02T12:00:00Z\tdb-instance\tshop\tfailover, notification\ta\n"+
		"2026-03-02T12:00:00Z\tdb-instance\tshop\tfailover, notification\tb c d\n"+
		"2026-03-02T12:02:00Z\tdb-instance\tshop\tfailover, notification\te\n"+
		"2026-03-02T12:01:30Z\tdb-instance\tshop\tfailover, notification\tlate\n" {
		t.Errorf("%s", got)
	}
	if !w.from.Equal(noon.Add(time.Minute)) {
		t.Errorf("the next look begins at %v", w.from)
	}
}
