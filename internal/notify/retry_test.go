package notify

import (
	"encoding/json"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"kurabe/internal/event"
)

// The default outlives a subscriber that answers 500 for an hour, in pauses that never shrink.
func TestDefaultRetriesLastAnHour(t *testing.T) {
	if err := defaultRetry.check(); err != nil {
		t.Fatal(err)
	}
	var at, last time.Duration
	delivered := time.Duration(-1)
	for failed := 1; ; failed++ {
		delay, more := defaultRetry.Delay(failed)
		if !more {
			break
		}
		if delay < last || delay > 5*time.Minute {
			t.Errorf("pause %d is %s after %s", failed, delay, last)
		}
		at, last = at+delay, delay
		if at >= time.Hour && delivered < 0 {
			delivered = at
		}
	}
	if delivered < 0 || at != defaultRetry.Total() || at > 70*time.Minute {
		t.Errorf("the last attempt is after %s, the first one after an hour at %s", at, delivered)
	}
}

func TestDelays(t *testing.T) {
	r := Retry{MinDelayTarget: 1, MaxDelayTarget: 16, NumRetries: 10, NumNoDelayRetries: 2, NumMinDelayRetries: 2, NumMaxDelayRetries: 2}
	for name, want := range map[string][]float64{
		"linear": {4.75, 8.5, 12.25, 16}, "arithmetic": {2.5, 5.5, 10, 16}, "geometric": {2, 4, 8, 16}, "exponential": {2, 4, 8, 16},
	} {
		r.BackoffFunction = name
		want = append(append([]float64{0, 0, 1, 1}, want...), 16, 16)
		for n, seconds := range want {
			got, more := r.Delay(n + 1)
			if !more || got.Round(time.Millisecond) != time.Duration(seconds*float64(time.Second)) {
				t.Errorf("%s %d: %s, %v; want %v s", name, n+1, got, more, seconds)
			}
		}
		if _, more := r.Delay(11); more {
			t.Errorf("%s: one more than ten", name)
		}
	}
}

func TestPolicies(t *testing.T) {
	for text, why := range map[string]string{
		`x`: "form", `{"healthyRetryPolicy":{"minDelayTarget":0}}`: "minDelayTarget", `{"healthyRetryPolicy":{"numRetries":101}}`: "numRetries",
		`{"healthyRetryPolicy":{"numRetries":2,"numNoDelayRetries":3}}`: "parts", `{"healthyRetryPolicy":{"retries":2}}`: "form", `{"healthyRetryPolicy":{"backoffFunction":"x"}}`: "backoffFunction",
		`{"throttlePolicy":{"maxReceivesPerSecond":0}}`: "maxReceivesPerSecond", `{"requestPolicy":{"headerContentType":"a\r\nb"}}`: "none of SNS's",
		`{"other":1}`: "form", `{}{}`: "follows", `{"sicklyRetryPolicy":{}}`: "not offered",
	} {
		if _, err := ParsePolicy(text); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%s: %v; want %q", text, err, why)
		}
	}
	topic := `{"http":{"defaultHealthyRetryPolicy":{"numRetries":30},"disableSubscriptionOverrides":%v}}`
	own := `{"healthyRetryPolicy":{"numRetries":40}}`
	for overriding, want := range map[string]int{"false": 40, "true": 30} {
		if p := Effective(strings.ReplaceAll(topic, "%v", overriding), own); p.Retry.NumRetries != want {
			t.Errorf("overrides disabled %s: %d retries", overriding, p.Retry.NumRetries)
		}
	}
	few := `{"healthyRetryPolicy":{"numRetries":10,"minDelayTarget":1,"maxDelayTarget":2}}`
	if p, err := ParsePolicy(few); err != nil || p.Retry.NumNoDelayRetries != 0 || p.Retry.BackoffFunction != "linear" {
		t.Errorf("the others are SNS's: %+v, %v", p.Retry, err)
	}
	if p := Effective("", ""); *p.Retry != defaultRetry {
		t.Errorf("default %+v", p.Retry)
	}
}

func FuzzPolicy(f *testing.F) {
	f.Add(`{"healthyRetryPolicy":{"numRetries":3}}`, `{"http":{"disableSubscriptionOverrides":true}}`)
	f.Fuzz(func(t *testing.T, own, topic string) {
		_, err := ParsePolicy(own)
		_, err2 := ParseTopicPolicy(topic)
		if err != nil || err2 != nil {
			return
		}
		p := Effective(topic, own)
		for n := 1; n <= p.Retry.NumRetries+1; n++ {
			if d, _ := p.Retry.Delay(n); d < 0 || d > delayTargetMax*time.Second {
				t.Fatalf("pause %s", d)
			}
		}
	})
}

// sick is a subscriber that answers 500 up to a time.
type sick struct {
	until time.Time
	mu    sync.Mutex
	got   []document
}

func (s *sick) RoundTrip(r *http.Request) (*http.Response, error) {
	var d document
	if err := json.NewDecoder(r.Body).Decode(&d); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.got = append(s.got, d)
	code := http.StatusOK
	if time.Now().Before(s.until) {
		code = http.StatusInternalServerError
	}
	return &http.Response{StatusCode: code, Body: http.NoBody, Header: http.Header{}, Request: r}, nil
}

// A subscriber that answers 500 for most of an hour is sent the first notification again and again, with its id, and
// then everything in order. One that goes on for longer is given up, with an event and a count.
func TestHourOf500(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		s := &sick{until: time.Now().Add(50 * time.Minute)}
		w.transport = s
		sub := w.subscribe("s-1", "http://subscriber.example/", nil)
		w.start()
		first := w.publish("1")
		w.publish("2")
		time.Sleep(time.Hour)
		if len(s.got) < 10 || s.got[len(s.got)-1].Message != "2" {
			t.Fatalf("sent %d", len(s.got))
		}
		for n, d := range s.got[:len(s.got)-1] {
			if d.MessageID != first || d.Message != "1" {
				t.Errorf("attempt %d is of %s", n, d.Message)
			}
		}
		s.until, s.got = time.Now().Add(24*time.Hour), nil
		w.publish("3")
		w.publish("4")
		time.Sleep(90 * time.Minute)
		if c := w.view.DeliveryCursor(sub); c.GivenUp != 2 || !w.emptied() || len(s.got) > 2+2*defaultRetry.NumRetries {
			t.Errorf("%d attempts; %+v", len(s.got), c)
		}
		if e := w.eventOf(); e.ID != event.NotificationsGivenUp.ID || !strings.Contains(e.Message, "answered 500") {
			t.Errorf("told %+v", e)
		}
		w.stop()
	})
}
