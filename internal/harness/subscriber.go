package harness

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sns"

	"kurabe/internal/aws/sdkhttp"
)

// Notification is what a subscriber was sent.
type Notification struct{ Type, MessageId, Subject, Message, SubscribeURL string }

// Subscriber is one of a topic over HTTP, which can be made to give no answer.
type Subscriber struct {
	server  *httptest.Server
	mu      sync.Mutex // guards what follows
	arrived []Notification
	repeats int
	known   map[string]bool // by id
	silent  chan struct{}   // closed: it answers
	confirm string
}

// Topic makes a topic with a subscriber who has confirmed.
func (s *Service) Topic(t testing.TB, name string) (arn string, l *Subscriber) {
	t.Helper()
	l = &Subscriber{known: map[string]bool{}, silent: make(chan struct{})}
	close(l.silent)
	l.server = httptest.NewServer(http.HandlerFunc(l.take))
	t.Cleanup(l.server.Close)
	topic, err := s.SNS().CreateTopic(t.Context(), &sns.CreateTopicInput{Name: &name})
	if err == nil {
		_, err = s.SNS().Subscribe(t.Context(), &sns.SubscribeInput{TopicArn: topic.TopicArn, Protocol: aws.String("http"), Endpoint: &l.server.URL})
	}
	if err != nil {
		t.Fatal(err)
	}
	Wait(t, time.Minute, "the request to confirm", func() string {
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
	return *topic.TopicArn, l
}

// SNS is a client of the service as it is reached now.
func (s *Service) SNS() *sns.Client {
	return sns.New(sns.Options{Region: "us-east-1", BaseEndpoint: aws.String(s.URL()), HTTPClient: sdkhttp.Client(), Credentials: s.Client.Options().Credentials})
}

func (l *Subscriber) take(_ http.ResponseWriter, r *http.Request) {
	var n Notification
	body, _ := io.ReadAll(r.Body)
	if json.Unmarshal(body, &n) != nil {
		return
	}
	l.mu.Lock()
	switch {
	case n.Type != "Notification":
		l.confirm = n.SubscribeURL
	case l.known[n.MessageId]:
		l.repeats++
	default:
		l.known[n.MessageId] = true
		l.arrived = append(l.arrived, n)
	}
	silent := l.silent
	l.mu.Unlock()
	select {
	case <-silent:
	case <-r.Context().Done():
	}
}

// Silence has it take what comes and give no answer until answer is called.
func (l *Subscriber) Silence() (answer func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	silent := make(chan struct{})
	l.silent = silent
	return func() { close(silent) }
}

// Arrived are the notifications, each once, in the order in which they came first. Repeats says how many came again.
func (l *Subscriber) Arrived() (list []Notification, repeats int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.arrived), l.repeats
}
