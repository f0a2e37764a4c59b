package sns

import (
	"context"
	"net/url"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sns"
	"github.com/aws/aws-sdk-go-v2/service/sns/types"

	"kurabe"
	"kurabe/internal/api"
	"kurabe/internal/control/topic"
)

// pendingARN is what SNS shows in the place of an ARN before the confirmation.
const (
	pendingARN    = "pending confirmation"
	pendingListed = "PendingConfirmation"
)

func (s service) subscribe(ctx context.Context, in *sns.SubscribeInput) (*sns.SubscribeOutput, error) {
	to, sub, err := s.topics.Subscribe(ctx, aws.ToString(in.TopicArn), aws.ToString(in.Protocol), aws.ToString(in.Endpoint), in.Attributes)
	if err != nil {
		return nil, err
	}
	arn := sub.ARN(to)
	if sub.ConfirmedAt.IsZero() && !in.ReturnSubscriptionArn {
		arn = pendingARN
	}
	return &sns.SubscribeOutput{SubscriptionArn: &arn}, nil
}

// signed says whether a request was signed, and not sent by a link.
func signed(ctx context.Context) bool { return api.IdentityFrom(ctx).AccessKeyID != "" }

func (s service) confirm(ctx context.Context, in *sns.ConfirmSubscriptionInput) (*sns.ConfirmSubscriptionOutput, error) {
	arn, err := s.topics.Confirm(ctx, aws.ToString(in.TopicArn), aws.ToString(in.Token), signed(ctx), aws.ToString(in.AuthenticateOnUnsubscribe) == "true")
	return &sns.ConfirmSubscriptionOutput{SubscriptionArn: &arn}, err
}

func (s service) unsubscribe(ctx context.Context, in *sns.UnsubscribeInput) (*sns.UnsubscribeOutput, error) {
	return &sns.UnsubscribeOutput{}, s.topics.Unsubscribe(ctx, aws.ToString(in.SubscriptionArn), signed(ctx))
}

// shownEndpoint hides the password of a URL, as SNS does.
func shownEndpoint(endpoint string) string {
	u, err := url.Parse(endpoint)
	if err != nil || u.User == nil {
		return endpoint
	}
	if password, has := u.User.Password(); has {
		return strings.Replace(endpoint, ":"+password+"@", ":****@", 1)
	}
	return endpoint
}

func (s service) listOf(topics ...kurabe.Topic) []types.Subscription {
	list := []types.Subscription{}
	for _, t := range topics {
		for _, r := range s.topics.View.Subscriptions(t.ID) {
			if !r.Value.EndedAt.IsZero() {
				continue
			}
			arn := r.Value.ARN(t)
			if r.Value.ConfirmedAt.IsZero() {
				arn = pendingListed
			}
			list = append(list, types.Subscription{
				SubscriptionArn: &arn, TopicArn: aws.String(t.ARN), Owner: aws.String(s.topics.Account), Protocol: aws.String(r.Value.Protocol),
				Endpoint: aws.String(shownEndpoint(r.Value.Endpoint)),
			})
		}
	}
	return list
}

// cut pages a list by the place in it: pending ones have no ARN of their own.
func cut(list []types.Subscription, token *string) ([]types.Subscription, *string) {
	at, _ := strconv.Atoi(aws.ToString(token))
	at = min(max(at, 0), len(list))
	if end := at + pageSize; end < len(list) {
		return list[at:end], aws.String(strconv.Itoa(end))
	}
	return list[at:], nil
}

func (s service) listSubscriptions(_ context.Context, in *sns.ListSubscriptionsInput) (*sns.ListSubscriptionsOutput, error) {
	var topics []kurabe.Topic
	for _, t := range s.topics.View.Topics() {
		topics = append(topics, t.Value)
	}
	list, next := cut(s.listOf(topics...), in.NextToken)
	return &sns.ListSubscriptionsOutput{Subscriptions: list, NextToken: next}, nil
}

func (s service) listByTopic(_ context.Context, in *sns.ListSubscriptionsByTopicInput) (*sns.ListSubscriptionsByTopicOutput, error) {
	t, err := s.topics.Find(aws.ToString(in.TopicArn))
	if err != nil {
		return nil, err
	}
	list, next := cut(s.listOf(t.Value), in.NextToken)
	return &sns.ListSubscriptionsByTopicOutput{Subscriptions: list, NextToken: next}, nil
}

func (s service) getSubscriptionAttributes(_ context.Context, in *sns.GetSubscriptionAttributesInput) (*sns.GetSubscriptionAttributesOutput, error) {
	t, r, err := s.topics.FindSubscription(aws.ToString(in.SubscriptionArn))
	if err != nil {
		return nil, err
	}
	sub := r.Value
	out := map[string]string{
		"SubscriptionArn": sub.ARN(t.Value), "TopicArn": t.Value.ARN, "Owner": s.topics.Account, "Protocol": sub.Protocol, "Endpoint": shownEndpoint(sub.Endpoint),
		"PendingConfirmation": strconv.FormatBool(sub.ConfirmedAt.IsZero()), "ConfirmationWasAuthenticated": strconv.FormatBool(sub.ConfirmedByOwner),
		"RawMessageDelivery": "false", "SubscriptionPrincipal": "arn:aws:iam::" + s.topics.Account + ":root",
	}
	if strings.HasPrefix(sub.Protocol, "http") {
		out["EffectiveDeliveryPolicy"] = topic.EffectivePolicy(t.Value, sub)
	}
	for name, value := range sub.Settings {
		out[name] = value
	}
	if out["FilterPolicy"] != "" && out["FilterPolicyScope"] == "" {
		out["FilterPolicyScope"] = "MessageAttributes"
	}
	return &sns.GetSubscriptionAttributesOutput{Attributes: out}, nil
}

func (s service) setSubscriptionAttributes(ctx context.Context, in *sns.SetSubscriptionAttributesInput) (*sns.SetSubscriptionAttributesOutput, error) {
	err := s.topics.SetSubscription(ctx, aws.ToString(in.SubscriptionArn), aws.ToString(in.AttributeName), aws.ToString(in.AttributeValue))
	return &sns.SetSubscriptionAttributesOutput{}, err
}
