//go:build fault

package fault

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sns"
	"github.com/aws/aws-sdk-go-v2/service/sns/types"

	"kurabe/internal/aws/sdkhttp"
	"kurabe/internal/harness"
)

// listener is a subscriber over HTTP, which can be made to give no answer.
type listener struct {
	*httptest.Server
	mu      sync.Mutex // guards what follows
	arrived []string   // the ids of notifications, in the order in which they came first
	times   map[string]int
	silent  chan struct{} // closed: it answers
	confirm string
}

func newListener(t *testing.T) *listener {
	l := &listener{times: map[string]int{}, silent: make(chan struct{})}
	close(l.silent)
	l.Server = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		var d struct{ Type, MessageId, SubscribeURL string }
		body, _ := io.ReadAll(r.Body)
		if json.Unmarshal(body, &d) != nil {
			return
		}
		l.mu.Lock()
		if d.Type == "Notification" {
			if l.times[d.MessageId]++; l.times[d.MessageId] == 1 {
				l.arrived = append(l.arrived, d.MessageId)
			}
		} else {
			l.confirm = d.SubscribeURL
		}
		silent := l.silent
		l.mu.Unlock()
		select {
		case <-silent:
		case <-r.Context().Done():
		}
	}))
	t.Cleanup(l.Close)
	return l
}

func (l *listener) got() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.arrived)
}

// subscribe waits for the request to confirm, and follows its link.
func (l *listener) subscribe(t *testing.T) {
	t.Helper()
	harness.Wait(t, time.Minute, "the request to confirm", func() string {
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.confirm == "" {
			return "none came"
		}
		return ""
	})
	answer, err := http.Get(l.confirm)
	if err != nil {
		t.Fatal(err)
	}
	_ = answer.Body.Close()
}

func (l *listener) await(t *testing.T, count int) {
	t.Helper()
	harness.Wait(t, 3*time.Minute, itoa(count)+" notifications", func() string {
		if n := len(l.got()); n < count {
			return itoa(n) + " came"
		}
		return ""
	})
}

// Between a publication and its delivery the service is killed, in the midst of a burst: nothing is
// lost, what comes twice has its id, the order stays, and the service holds little memory.
func TestKillBeforeDelivery(t *testing.T) {
	s := harness.Start(t, harness.Options{})
	c := func() *sns.Client {
		return sns.New(sns.Options{Region: "us-east-1", BaseEndpoint: aws.String(s.URL()), HTTPClient: sdkhttp.Client(), Credentials: s.Client.Options().Credentials})
	}
	l := newListener(t)
	topic, err := c().CreateTopic(t.Context(), &sns.CreateTopicInput{Name: aws.String("burst")})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c().Subscribe(t.Context(), &sns.SubscribeInput{TopicArn: topic.TopicArn, Protocol: aws.String("http"), Endpoint: aws.String(l.URL)}); err != nil {
		t.Fatal(err)
	}
	l.subscribe(t)

	const count = 10_000
	var published []string
	publish := func(n int) {
		for ; n > 0; n -= 10 {
			in := sns.PublishBatchInput{TopicArn: topic.TopicArn}
			for i := range 10 {
				in.PublishBatchRequestEntries = append(in.PublishBatchRequestEntries, types.PublishBatchRequestEntry{Id: aws.String(itoa(i)), Message: aws.String("event " + itoa(len(published)+i))})
			}
			out, err := c().PublishBatch(t.Context(), &in)
			if err != nil || len(out.Failed) > 0 {
				t.Fatalf("publish: %v %v", err, out)
			}
			for _, one := range out.Successful {
				published = append(published, *one.MessageId)
			}
		}
	}
	publish(count / 10)
	l.await(t, 100)
	l.mu.Lock()
	silent := make(chan struct{})
	l.silent = silent
	l.mu.Unlock()
	publish(count - count/10)
	memory := regexp.MustCompile(`VmHWM:\s*(\d+ kB)`)
	status, _ := os.ReadFile("/proc/" + itoa(s.PID()) + "/status")
	t.Logf("most memory of the service: %s", memory.FindSubmatch(status)[1])
	s.Kill(t)
	close(silent)
	s.Start(t)
	l.await(t, count)
	if got := l.got(); !slices.Equal(got, published) {
		for n := range published {
			if n >= len(got) || got[n] != published[n] {
				t.Fatalf("%d came of %d; number %d is another one", len(got), count, n)
			}
		}
		t.Fatalf("%d came of %d", len(got), count)
	}
	twice := 0
	for _, n := range l.times {
		twice += n - 1
	}
	t.Logf("%d came twice", twice)
}
