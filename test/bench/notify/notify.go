package notify

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"regexp"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/rds"
	"github.com/aws/aws-sdk-go-v2/service/rds/types"
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

// toldValue finds the number of an event in the message of it.
var toldValue = regexp.MustCompile(`Updated parameter \S+ to 1(\d{4}) `)

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
	if found := toldValue.FindStringSubmatch(d.Message); found != nil {
		d.Message = found[1]
	}
	if n, err := strconv.Atoi(d.Message); err == nil {
		a.at <- arrival{n, now}
	} else if d.Token != "" {
		a.tokens <- d.Token
	}
}

// Measure has notifications made one by one, and sees when a subscriber on this machine has each: from before
// the request that publishes it, or that writes an event, so the write of the state is in it.
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
	err = measure(ctx, r, a, many, "notification to a local subscriber", func(n int) error {
		_, err := c.Publish(ctx, &sns.PublishInput{TopicArn: topic.TopicArn, Message: aws.String(strconv.Itoa(n))})
		return err
	})
	if err == nil {
		err = events(ctx, r, l, topic.TopicArn, a, many)
	}
	_, failed := c.DeleteTopic(ctx, &sns.DeleteTopicInput{TopicArn: topic.TopicArn})
	return errors.Join(err, failed)
}

// events measures an event subscription: each change of a parameter in a group is an event.
func events(ctx context.Context, r *bed.Run, l *bed.Lab, topic *string, a arrivals, many int) (failure error) {
	group, parameter, family := aws.String("bench-events"), "log_temp_files", l.Families[bed.Postgres]
	if family == "" {
		parameter, family = "wait_timeout", l.Families[bed.MariaDB]
	}
	if _, err := l.Api.CreateDBParameterGroup(ctx, &rds.CreateDBParameterGroupInput{DBParameterGroupName: group, DBParameterGroupFamily: &family, Description: group}); err != nil {
		return err
	}
	defer func() {
		_, err := l.Api.DeleteDBParameterGroup(ctx, &rds.DeleteDBParameterGroupInput{DBParameterGroupName: group})
		failure = errors.Join(failure, err)
	}()
	if _, err := l.Api.CreateEventSubscription(ctx, &rds.CreateEventSubscriptionInput{SubscriptionName: group, SnsTopicArn: topic, SourceType: aws.String("db-parameter-group")}); err != nil {
		return err
	}
	defer func() {
		_, err := l.Api.DeleteEventSubscription(ctx, &rds.DeleteEventSubscriptionInput{SubscriptionName: group})
		failure = errors.Join(failure, err)
	}()
	return measure(ctx, r, a, many, "event to a local subscriber", func(n int) error {
		_, err := l.Api.ModifyDBParameterGroup(ctx, &rds.ModifyDBParameterGroupInput{DBParameterGroupName: group, Parameters: []types.Parameter{
			{ParameterName: &parameter, ParameterValue: aws.String(fmt.Sprintf("1%04d", n)), ApplyMethod: types.ApplyMethodImmediate},
		}})
		return err
	})
}

// measure makes notifications, and reports how long they took.
func measure(ctx context.Context, r *bed.Run, a arrivals, many int, what string, send func(n int) error) error {
	took, err := times(ctx, a, many, send)
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	median, tail := stat.Quantile(took, 0.5), stat.Quantile(took, 0.99)
	r.Out.Sample("notify", map[string]any{"what": what, "took_ms": took})
	for _, one := range []struct {
		what  string
		value float64
		bar   time.Duration
	}{{"median", median, medianBar}, {"99th percentile", tail, tailBar}} {
		r.Out.Row(bed.Row{Bench: "notify", What: what + ", " + one.what, Value: fmt.Sprintf("%.1f ms", one.value),
			Bar: fmt.Sprintf("≤ %s", one.bar), Verdict: bed.Verdict(one.value <= float64(one.bar.Milliseconds())), Note: fmt.Sprintf("%d, one each %s", many, each)})
	}
	return nil
}

// times returns the time of each notification in milliseconds.
func times(ctx context.Context, a arrivals, many int, send func(n int) error) ([]float64, error) {
	sent := make([]time.Time, many)
	for n := range many {
		sent[n] = time.Now()
		if err := send(n); err != nil {
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
