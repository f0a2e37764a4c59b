package rds

import (
	"slices"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/rds"
	"github.com/aws/aws-sdk-go-v2/service/rds/types"

	"kurabe"
	"kurabe/internal/store"
)

func TestEventSubscriptionsByRealClient(t *testing.T) {
	w, ctx := newTestWorld(t), t.Context()
	const arn = "arn:aws:sns:us-east-1:000000000000:ops"
	commit(t, w.c, store.NewChange().PutTopic(kurabe.Topic{ID: "t", Name: "ops", ARN: arn}, 0))
	create := func(in rds.CreateEventSubscriptionInput) (*types.EventSubscription, error) {
		if in.SnsTopicArn == nil {
			in.SnsTopicArn = aws.String(arn)
		}
		out, err := w.client.CreateEventSubscription(ctx, &in)
		if err != nil {
			return nil, err
		}
		return out.EventSubscription, nil
	}
	e := must(create(rds.CreateEventSubscriptionInput{
		SubscriptionName: aws.String("Ops-1"), SourceType: aws.String("db-instance"), SourceIds: []string{"Orders"},
		EventCategories: []string{"failover", "Low Storage", "failover"}, Tags: []types.Tag{{Key: aws.String("a"), Value: aws.String("b")}},
	}))(t)
	if *e.CustSubscriptionId != "Ops-1" || *e.Status != "creating" || !*e.Enabled || *e.SnsTopicArn != arn || *e.SourceType != "db-instance" ||
		!slices.Equal(e.SourceIdsList, []string{"orders"}) || !slices.Equal(e.EventCategoriesList, []string{"failover", "low storage"}) ||
		*e.EventSubscriptionArn != "arn:aws:rds:us-east-1:000000000000:es:Ops-1" || *e.CustomerAwsId != "000000000000" || len(*e.SubscriptionCreationTime) != 23 {
		t.Errorf("%+v", e)
	}
	if tags := must(w.client.ListTagsForResource(ctx, &rds.ListTagsForResourceInput{ResourceName: e.EventSubscriptionArn}))(t).TagList; len(tags) != 1 || *tags[0].Key != "a" {
		t.Errorf("%+v", tags)
	}
	must(w.client.AddTagsToResource(ctx, &rds.AddTagsToResourceInput{ResourceName: e.EventSubscriptionArn, Tags: []types.Tag{{Key: aws.String("c")}}}))(t)
	if tags := must(w.client.ListTagsForResource(ctx, &rds.ListTagsForResourceInput{ResourceName: e.EventSubscriptionArn}))(t).TagList; len(tags) != 2 {
		t.Errorf("%+v", tags)
	}
	for _, tc := range []struct {
		in         rds.CreateEventSubscriptionInput
		code, text string
	}{
		{rds.CreateEventSubscriptionInput{SubscriptionName: aws.String("ops-1")}, "SubscriptionAlreadyExist", "ops-1"},
		{rds.CreateEventSubscriptionInput{SubscriptionName: aws.String("a b")}, "InvalidParameterValue", "SubscriptionName"},
		{rds.CreateEventSubscriptionInput{SubscriptionName: aws.String("x"), SnsTopicArn: aws.String("ops")}, "SNSInvalidTopic", "ops"},
		{rds.CreateEventSubscriptionInput{SubscriptionName: aws.String("x"), SnsTopicArn: aws.String(arn + ".fifo")}, "SNSInvalidTopic", "FIFO"},
		{rds.CreateEventSubscriptionInput{SubscriptionName: aws.String("x"), SnsTopicArn: aws.String(arn + "2")}, "SNSTopicArnNotFound", "ops2"},
		{rds.CreateEventSubscriptionInput{SubscriptionName: aws.String("x"), EventCategories: []string{"tea"}}, "SubscriptionCategoryNotFound", "tea"},
		{rds.CreateEventSubscriptionInput{SubscriptionName: aws.String("x"), SourceType: aws.String("db-parameter-group"), EventCategories: []string{"backup"}}, "SubscriptionCategoryNotFound", "backup"},
		{rds.CreateEventSubscriptionInput{SubscriptionName: aws.String("x"), SourceType: aws.String("custom-engine-version")}, "InvalidParameterValue", "custom-engine-version"},
		{rds.CreateEventSubscriptionInput{SubscriptionName: aws.String("x"), SourceIds: []string{"orders"}}, "InvalidParameterCombination", "source type"},
		{rds.CreateEventSubscriptionInput{SubscriptionName: aws.String("x"), SourceType: aws.String("db-instance"), SourceIds: []string{"nope"}}, "SourceNotFound", "nope"},
		{rds.CreateEventSubscriptionInput{SubscriptionName: aws.String("x"), SourceType: aws.String("db-cluster"), SourceIds: []string{"orders"}}, "SourceNotFound", "orders"},
	} {
		_, err := create(tc.in)
		wantCode(t, err, tc.code, tc.text)
	}
}

func TestEventSubscriptionChanges(t *testing.T) {
	w, ctx := newTestWorld(t), t.Context()
	const arn = "arn:aws:sns:us-east-1:000000000000:ops"
	commit(t, w.c, store.NewChange().PutTopic(kurabe.Topic{ID: "t", Name: "ops", ARN: arn}, 0))
	must(w.client.CreateEventSubscription(ctx, &rds.CreateEventSubscriptionInput{
		SubscriptionName: aws.String("Ops-1"), SnsTopicArn: aws.String(arn), SourceType: aws.String("db-instance"), SourceIds: []string{"orders"},
	}))(t)
	m := must(w.client.ModifyEventSubscription(ctx, &rds.ModifyEventSubscriptionInput{SubscriptionName: aws.String("ops-1"), Enabled: aws.Bool(false), EventCategories: []string{"creation"}}))(t).EventSubscription
	if *m.Status != "modifying" || *m.Enabled || !slices.Equal(m.EventCategoriesList, []string{"creation"}) {
		t.Errorf("%+v", m)
	}
	_, err := w.client.RemoveSourceIdentifierFromSubscription(ctx, &rds.RemoveSourceIdentifierFromSubscriptionInput{SubscriptionName: aws.String("ops-1"), SourceIdentifier: aws.String("nope")})
	wantCode(t, err, "SourceNotFound", "nope")
	r := must(w.client.RemoveSourceIdentifierFromSubscription(ctx, &rds.RemoveSourceIdentifierFromSubscriptionInput{SubscriptionName: aws.String("ops-1"), SourceIdentifier: aws.String("orders")}))(t)
	if len(r.EventSubscription.SourceIdsList) != 0 {
		t.Errorf("%+v", r.EventSubscription)
	}
	a := must(w.client.AddSourceIdentifierToSubscription(ctx, &rds.AddSourceIdentifierToSubscriptionInput{SubscriptionName: aws.String("ops-1"), SourceIdentifier: aws.String("orders")}))(t)
	if !slices.Equal(a.EventSubscription.SourceIdsList, []string{"orders"}) {
		t.Errorf("%+v", a.EventSubscription)
	}
	status := func() string {
		t.Helper()
		list := must(w.client.DescribeEventSubscriptions(ctx, &rds.DescribeEventSubscriptionsInput{}))(t).EventSubscriptionsList
		if len(list) != 1 {
			t.Fatalf("%+v", list)
		}
		return *list[0].Status
	}
	if got := status(); got != "active" {
		t.Error(got)
	}
	topic, _ := w.c.View.Topic("ops")
	commit(t, w.c, store.NewChange().DeleteTopic("ops", topic.ModRevision))
	if got := status(); got != "topic-not-exist" {
		t.Error(got)
	}
	if d := must(w.client.DeleteEventSubscription(ctx, &rds.DeleteEventSubscriptionInput{SubscriptionName: aws.String("OPS-1")}))(t); *d.EventSubscription.Status != "deleting" {
		t.Errorf("%+v", d.EventSubscription)
	}
	_, err = w.client.DescribeEventSubscriptions(ctx, &rds.DescribeEventSubscriptionsInput{SubscriptionName: aws.String("ops-1")})
	wantCode(t, err, "SubscriptionNotFound", "ops-1")
}
