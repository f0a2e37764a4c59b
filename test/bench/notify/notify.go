package notify

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sns"

	"kurabe/lab/stat"
	"kurabe/test/bench/bed"
)

const (
	medianBar = 300 * time.Millisecond
	tailBar   = 2 * time.Second
	each      = 20 * time.Millisecond // between two notifications
	count     = 1000
	arriveMax = 30 * time.Second
)

// arrivals is a subscriber that notes when which notification came.
type arrivals struct {
	tokens chan string
	at     chan arrival
}

type arrival struct {
	n  int
	at time.Time
}

// ServeHTTP implements http.Handler.
func (a arrivals) ServeHTTP(_ http.ResponseWriter, r *http.Request) {
	now := time.Now()
	var d struct{ Token, Message string }
	if json.NewDecoder(r.Body).Decode(&d) != nil {
		return
	}
	if n, err := strconv.Atoi(d.Message); err == nil {
		a.at <- arrival{n, now}
	} else if d.Token != "" {
		a.tokens <- d.Token
	}
}

// Measure publishes notifications one by one, and sees when a subscriber on this machine has each:
// from before the request that publishes it, so the write of the state is in it.
func Measure(ctx context.Context, r *bed.Run) error {
	l, err := r.Service(ctx)
	if err != nil {
		return err
	}
	of := l.Api.Options()
	c := sns.New(sns.Options{Region: bed.Region, BaseEndpoint: of.BaseEndpoint, HTTPClient: of.HTTPClient, RetryMaxAttempts: 1, Credentials: of.Credentials})
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	many := bed.Pick(r, count, count/5)
	a := arrivals{make(chan string, 1), make(chan arrival, 2*many)}
	server := &http.Server{Handler: a, ReadHeaderTimeout: arriveMax}
	go func() { _ = server.Serve(listener) }() // until it is closed
	defer server.Close()
	topic, err := c.CreateTopic(ctx, &sns.CreateTopicInput{Name: aws.String("bench")})
	if err != nil {
		return err
	}
	_, err = c.Subscribe(ctx, &sns.SubscribeInput{TopicArn: topic.TopicArn, Protocol: aws.String("http"), Endpoint: aws.String("http://" + listener.Addr().String())})
	if err != nil {
		return err
	}
	select {
	case token := <-a.tokens:
		if _, err := c.ConfirmSubscription(ctx, &sns.ConfirmSubscriptionInput{TopicArn: topic.TopicArn, Token: &token}); err != nil {
			return err
		}
	case <-time.After(arriveMax):
		return fmt.Errorf("the subscriber was not asked within %s", arriveMax)
	}
	took, err := publish(ctx, c, topic.TopicArn, a, many)
	if err != nil {
		return err
	}
	_, err = c.DeleteTopic(ctx, &sns.DeleteTopicInput{TopicArn: topic.TopicArn})
	median, tail := stat.Quantile(took, 0.5), stat.Quantile(took, 0.99)
	r.Out.Sample("notify", map[string]any{"took_ms": took})
	for _, one := range []struct {
		what  string
		value float64
		bar   time.Duration
	}{{"median", median, medianBar}, {"99th percentile", tail, tailBar}} {
		r.Out.Row(bed.Row{Bench: "notify", What: "notification to a local subscriber, " + one.what, Value: fmt.Sprintf("%.1f ms", one.value),
			Bar: fmt.Sprintf("≤ %s", one.bar), Verdict: bed.Verdict(one.value <= float64(one.bar.Milliseconds())), Note: fmt.Sprintf("%d, one each %s", many, each)})
	}
	return err
}

// publish returns the time of each notification in milliseconds.
func publish(ctx context.Context, c *sns.Client, topic *string, a arrivals, many int) ([]float64, error) {
	sent := make([]time.Time, many)
	for n := range many {
		sent[n] = time.Now()
		if _, err := c.Publish(ctx, &sns.PublishInput{TopicArn: topic, Message: aws.String(strconv.Itoa(n))}); err != nil {
			return nil, err
		}
		if err := bed.Wait(ctx, each); err != nil {
			return nil, err
		}
	}
	var took []float64
	for len(took) < many {
		select {
		case one := <-a.at:
			took = append(took, one.at.Sub(sent[one.n]).Seconds()*1000)
		case <-time.After(arriveMax):
			return nil, fmt.Errorf("%d of %d notifications have arrived", len(took), many)
		}
	}
	return took, nil
}
