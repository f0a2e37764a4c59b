package notify

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
)

// Retry is SNS's policy of retries, by its names. Delays are seconds.
type Retry struct {
	MinDelayTarget     int    `json:"minDelayTarget"`
	MaxDelayTarget     int    `json:"maxDelayTarget"`
	NumRetries         int    `json:"numRetries"`
	NumNoDelayRetries  int    `json:"numNoDelayRetries"`
	NumMinDelayRetries int    `json:"numMinDelayRetries"`
	NumMaxDelayRetries int    `json:"numMaxDelayRetries"`
	BackoffFunction    string `json:"backoffFunction"`
}

// defaultRetry tries for an hour: at once three times, twice after five seconds, then in pauses
// that grow to five minutes. SNS's own tries three times in a minute, which is less than a
// machine takes to start.
var defaultRetry = Retry{MinDelayTarget: 5, MaxDelayTarget: 300, NumRetries: 25, NumNoDelayRetries: 3, NumMinDelayRetries: 2, NumMaxDelayRetries: 9, BackoffFunction: "geometric"}

// snsRetry is SNS's own, of which a policy has the members that it does not name.
var snsRetry = Retry{MinDelayTarget: 20, MaxDelayTarget: 20, NumRetries: 3, BackoffFunction: "linear"}

// UnmarshalJSON reads a policy of retries. Without SNS's members for those that are missing, a policy of
// ten retries would contradict the default's fourteen with a fixed delay.
func (r *Retry) UnmarshalJSON(data []byte) error {
	type plain Retry
	read := plain(snsRetry)
	err := strict(string(data), &read)
	*r = Retry(read)
	return err
}

// backoffs give a part from 0 to 1 of the way from the least delay to the longest one, at step n
// of last. Geometric is apart.
var backoffs = map[string]func(n, last float64) float64{
	"linear":      func(n, last float64) float64 { return n / last },
	"arithmetic":  func(n, last float64) float64 { return n * (n + 1) / (last * (last + 1)) },
	"geometric":   nil,
	"exponential": func(n, last float64) float64 { return (math.Exp2(n) - 1) / (math.Exp2(last) - 1) },
}

// Delay is the pause after a number of failed attempts, from 1 on; false when there are no more.
func (r Retry) Delay(failed int) (time.Duration, bool) {
	least, longest := float64(r.MinDelayTarget), float64(r.MaxDelayTarget)
	seconds := longest
	last := r.NumRetries - r.NumNoDelayRetries - r.NumMinDelayRetries - r.NumMaxDelayRetries
	switch n := failed - r.NumNoDelayRetries - r.NumMinDelayRetries; {
	case failed > r.NumRetries:
		return 0, false
	case failed <= r.NumNoDelayRetries:
		seconds = 0
	case n <= 0:
		seconds = least
	case n <= last && r.BackoffFunction == "geometric":
		seconds = least * math.Pow(longest/least, float64(n)/float64(last))
	case n <= last:
		seconds = least + (longest-least)*backoffs[r.BackoffFunction](float64(n), float64(last))
	}
	return time.Duration(seconds * float64(time.Second)), true
}

// Total is for how long attempts are made, their own time not counted.
func (r Retry) Total() (sum time.Duration) {
	for n := 1; n <= r.NumRetries; n++ {
		d, _ := r.Delay(n)
		sum += d
	}
	return sum
}

// SNS's bounds.
const (
	delayTargetMax = 3600
	retriesMax     = 100
)

func (r Retry) check() error {
	switch {
	case r.MinDelayTarget < 1 || r.MaxDelayTarget > delayTargetMax || r.MinDelayTarget > r.MaxDelayTarget:
		return fmt.Errorf("minDelayTarget and maxDelayTarget are from 1 to %d seconds, the first one not above the second", delayTargetMax)
	case r.NumRetries < 0 || r.NumRetries > retriesMax:
		return fmt.Errorf("numRetries is from 0 to %d", retriesMax)
	case r.NumNoDelayRetries < 0 || r.NumMinDelayRetries < 0 || r.NumMaxDelayRetries < 0 || r.NumNoDelayRetries+r.NumMinDelayRetries+r.NumMaxDelayRetries > r.NumRetries:
		return errors.New("numNoDelayRetries, numMinDelayRetries and numMaxDelayRetries are parts of numRetries")
	}
	if _, known := backoffs[r.BackoffFunction]; !known {
		return errors.New("backoffFunction is arithmetic, exponential, geometric or linear")
	}
	return nil
}

// Throttle is how often a subscriber is sent something; nil is as often as it can take it.
type Throttle struct {
	MaxReceivesPerSecond int `json:"maxReceivesPerSecond"`
}

// Request is how it is sent.
type Request struct {
	HeaderContentType string `json:"headerContentType"`
}

// Policy is how notifications are delivered to a subscription, by SNS's names.
type Policy struct {
	Retry    *Retry    `json:"healthyRetryPolicy,omitempty"`
	Sick     *Retry    `json:"sicklyRetryPolicy,omitempty"` // SNS shows null, and takes nothing else
	Throttle *Throttle `json:"throttlePolicy,omitempty"`
	Request  *Request  `json:"requestPolicy,omitempty"`
	Raw      bool      `json:"guaranteed,omitempty"` // SNS shows false, and takes nothing else
}

// TopicPolicy is that of a topic, in force where a subscription has none of its own.
type TopicPolicy struct {
	HTTP struct {
		Retry             *Retry    `json:"defaultHealthyRetryPolicy,omitempty"`
		Sick              *Retry    `json:"defaultSicklyRetryPolicy,omitempty"`
		DisableOverriding bool      `json:"disableSubscriptionOverrides"`
		Throttle          *Throttle `json:"defaultThrottlePolicy,omitempty"`
		Request           *Request  `json:"defaultRequestPolicy,omitempty"`
	} `json:"http"`
}

// contentTypes are those that SNS sends.
var contentTypes = []string{
	"text/plain; charset=UTF-8", "text/plain", "text/css", "text/csv", "text/html", "text/xml", "application/atom+xml", "application/json",
	"application/octet-stream", "application/soap+xml", "application/x-www-form-urlencoded", "application/xml",
}

func (p Policy) check() error {
	switch {
	case p.Sick != nil || p.Raw:
		return errors.New("sicklyRetryPolicy and guaranteed are not offered")
	case p.Throttle != nil && p.Throttle.MaxReceivesPerSecond < 1:
		return errors.New("maxReceivesPerSecond is 1 or more")
	case p.Request != nil && p.Request.HeaderContentType != "" && !slices.Contains(contentTypes, p.Request.HeaderContentType):
		return fmt.Errorf("headerContentType %.60q is none of SNS's", p.Request.HeaderContentType)
	case p.Retry == nil:
		return nil
	}
	return p.Retry.check()
}

// ParsePolicy reads the DeliveryPolicy of a subscription, "" for none. Without a retry policy it is the default's.
func ParsePolicy(text string) (p Policy, err error) {
	if text == "" {
		return p, nil
	}
	retry := defaultRetry
	p.Retry = &retry
	if err := strict(text, &p); err != nil {
		return p, err
	}
	return p, p.check()
}

// ParseTopicPolicy reads the DeliveryPolicy of a topic.
func ParseTopicPolicy(text string) (p TopicPolicy, err error) {
	retry := defaultRetry
	p.HTTP.Retry = &retry
	if text == "" {
		return p, nil
	}
	if err := strict(text, &p); err != nil {
		return p, err
	}
	return p, Policy{Retry: p.HTTP.Retry, Sick: p.HTTP.Sick, Throttle: p.HTTP.Throttle, Request: p.HTTP.Request}.check()
}

// Effective is the policy that is in force for a subscription.
func Effective(topic, subscription string) Policy {
	t, _ := ParseTopicPolicy(topic) // checked when they were set
	p, _ := ParsePolicy(subscription)
	if t.HTTP.DisableOverriding || subscription == "" {
		p = Policy{Retry: t.HTTP.Retry, Throttle: t.HTTP.Throttle, Request: t.HTTP.Request}
	}
	if p.Retry == nil {
		p.Retry = &defaultRetry
	}
	return p
}

// strict reads JSON of which every member is known.
func strict(text string, into any) error {
	const most = 10 << 10
	if len(text) > most {
		return fmt.Errorf("it has more than %d bytes", most)
	}
	d := json.NewDecoder(strings.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return fmt.Errorf("it is not of the form that SNS documents: %w", err)
	}
	if d.More() {
		return errors.New("something follows the JSON object")
	}
	return nil
}
