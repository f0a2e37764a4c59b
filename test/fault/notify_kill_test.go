//go:build fault

package fault

import (
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/rds"
	rdstypes "github.com/aws/aws-sdk-go-v2/service/rds/types"
	"github.com/aws/aws-sdk-go-v2/service/sns"
	"github.com/aws/aws-sdk-go-v2/service/sns/types"

	"kurabe/internal/harness"
)

// await waits for so many notifications.
func await(t *testing.T, l *harness.Subscriber, count int) (list []harness.Notification) {
	t.Helper()
	harness.Wait(t, 5*time.Minute, itoa(count)+" notifications", func() string {
		if list, _ = l.Arrived(); len(list) < count {
			return itoa(len(list)) + " came"
		}
		return ""
	})
	return list
}

// memoryMost is the most memory that the service has had, in kB.
func memoryMost(t *testing.T, s *harness.Service) int {
	t.Helper()
	status, err := os.ReadFile("/proc/" + itoa(s.PID()) + "/status")
	found := regexp.MustCompile(`VmHWM:\s*(\d+) kB`).FindSubmatch(status)
	if err != nil || found == nil {
		t.Fatalf("%v: %s", err, status)
	}
	n, _ := strconv.Atoi(string(found[1]))
	return n
}

// Between a publication and its delivery the service is killed, in the midst of a burst: nothing is
// lost, what comes twice has its id, the order stays, and the service holds little memory.
func TestKillBeforeDelivery(t *testing.T) {
	s := harness.Start(t, harness.Options{})
	topic, l := s.Topic(t, "burst")
	const count = 10_000
	var published []string
	publish := func(n int) {
		for ; n > 0; n -= 10 {
			in := sns.PublishBatchInput{TopicArn: &topic}
			for i := range 10 {
				in.PublishBatchRequestEntries = append(in.PublishBatchRequestEntries, types.PublishBatchRequestEntry{Id: aws.String(itoa(i)), Message: aws.String("event " + itoa(len(published)+i))})
			}
			out, err := s.SNS().PublishBatch(t.Context(), &in)
			if err != nil || len(out.Failed) > 0 {
				t.Fatalf("publish: %v %v", err, out)
			}
			for _, one := range out.Successful {
				published = append(published, *one.MessageId)
			}
		}
	}
	publish(count / 10)
	await(t, l, 100)
	answer := l.Silence()
	publish(count - count/10)
	t.Logf("most memory of the service: %d kB", memoryMost(t, s))
	s.Kill(t)
	answer()
	s.Start(t)
	got := await(t, l, count)
	for n := range got {
		if n >= count || got[n].MessageId != published[n] {
			t.Fatalf("%d came of %d; number %d is another one", len(got), count, n)
		}
	}
	_, repeats := l.Arrived()
	t.Logf("%d came twice", repeats)
}

// burstMemory is much more than the service needs for 10,000 events that wait.
const burstMemory = 400 << 10 // kB

// 10,000 events of RDS come in a burst while the subscriber gives no answer, and the service is killed
// amid them: each reaches the subscriber once, in order, and the service holds little memory.
func TestBurstOfEvents(t *testing.T) {
	s := harness.Start(t, harness.Options{})
	topic, l := s.Topic(t, "events")
	if _, err := s.CreateEventSubscription(t.Context(), &rds.CreateEventSubscriptionInput{
		SubscriptionName: aws.String("burst"), SnsTopicArn: &topic, SourceType: aws.String("db-parameter-group"),
	}); err != nil {
		t.Fatal(err)
	}
	engine := s.Engines(t)[0]
	if _, err := s.CreateDBParameterGroup(t.Context(), &rds.CreateDBParameterGroupInput{
		DBParameterGroupName: aws.String("many"), DBParameterGroupFamily: familyOf(t, s, engine), Description: aws.String("d"),
	}); err != nil {
		t.Fatal(err)
	}
	names := map[string][]string{
		"postgres": {"log_min_duration_statement", "log_temp_files", "log_autovacuum_min_duration", "log_min_duration_sample", "deadlock_timeout"},
		"mariadb":  {"wait_timeout", "interactive_timeout", "net_read_timeout", "net_write_timeout", "lock_wait_timeout"},
	}[engine]
	const count = 10_000
	answer, said := l.Silence(), 0
	say := func(until int) {
		for said < until {
			in := rds.ModifyDBParameterGroupInput{DBParameterGroupName: aws.String("many")}
			for _, name := range names {
				said++
				in.Parameters = append(in.Parameters, rdstypes.Parameter{ParameterName: aws.String(name), ParameterValue: aws.String(itoa(10_000 + said)), ApplyMethod: rdstypes.ApplyMethodImmediate})
			}
			if _, err := s.ModifyDBParameterGroup(t.Context(), &in); err != nil {
				t.Fatal(err)
			}
		}
	}
	say(count / 2)
	s.Kill(t)
	s.Start(t)
	say(count)
	memory := memoryMost(t, s)
	t.Logf("most memory of the service: %d kB", memory)
	if memory > burstMemory {
		t.Errorf("it is more than %d kB", burstMemory)
	}
	s.Kill(t)
	answer()
	s.Start(t)
	// The first notification announces the subscription.
	got := await(t, l, count+1)[1:]
	for n := range got {
		want := "Updated parameter " + names[n%len(names)] + " to " + itoa(10_001+n) + " "
		if n >= count || !strings.Contains(got[n].Message, want) {
			t.Fatalf("%d came of %d; number %d is %s", len(got), count, n, got[n].Message)
		}
	}
	_, repeats := l.Arrived()
	t.Logf("%d came twice, with their ids", repeats)
}
