package sns

import (
	"context"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sns"
	"github.com/aws/aws-sdk-go-v2/service/sns/types"

	"kurabe"
	"kurabe/internal/api"
	"kurabe/internal/aws/fault"
	"kurabe/internal/aws/shape"
	"kurabe/internal/control"
	"kurabe/internal/control/topic"
)

type service struct{ topics topic.Topics }

// API returns the service.
func API(topics topic.Topics) api.Service {
	s := service{topics}
	return api.Service{
		Name: shape.SNS.Service, Protocols: []api.Protocol{api.Query{Model: shape.SNS}},
		Ops: api.Table(
			api.Write("CreateTopic", s.createTopic),
			api.Write("DeleteTopic", s.deleteTopic),
			api.Read("ListTopics", s.listTopics),
			api.Read("GetTopicAttributes", s.getTopicAttributes),
			api.Write("SetTopicAttributes", s.setTopicAttributes),
			api.Write("Subscribe", s.subscribe),
			api.Opened(api.Write("ConfirmSubscription", s.confirm)),
			api.Opened(api.Write("Unsubscribe", s.unsubscribe)),
			api.Read("ListSubscriptions", s.listSubscriptions),
			api.Read("ListSubscriptionsByTopic", s.listByTopic),
			api.Read("GetSubscriptionAttributes", s.getSubscriptionAttributes),
			api.Write("SetSubscriptionAttributes", s.setSubscriptionAttributes),
			api.Write("Publish", s.publish),
			api.Write("PublishBatch", s.publishBatch),
			api.Write("TagResource", s.tag),
			api.Write("UntagResource", s.untag),
			api.Read("ListTagsForResource", s.listTags),
		),
		Errors: api.Errors{
			kurabe.CodeInvalidParameterValue: {Code: "InvalidParameter", Status: 400},
			kurabe.CodeInvalidParameterCombo: {Code: "ParameterValueInvalid", Status: 400},
			kurabe.CodeResourceNotFound:      {Code: "NotFound", Status: 404},
			kurabe.CodeThrottled:             {Code: "Throttled", Status: 429},
			kurabe.CodeInternal:              {Code: "InternalError", Status: 500},
			kurabe.CodeInvalidInstanceState:  {Code: "AuthorizationError", Status: 403}, // the subscription ends by a signed request only
			kurabe.CodeInsufficientCapacity:  {Code: "TopicLimitExceeded", Status: 403},
			kurabe.CodeInstanceQuota:         {Code: "SubscriptionLimitExceeded", Status: 403},
		},
		NotOffered: func(action string) string {
			switch {
			case strings.Contains(action, "Permission"):
				return "whoever has the service's credentials may do everything, and nobody else may do anything"
			case strings.Contains(action, "DataProtection"):
				return "notifications are not searched for personal data"
			}
			return "notifications go to http, https, email and email-json; there are no text messages and no push services of mobile systems"
		},
	}
}

// pageSize is SNS's.
const pageSize = 100

// page cuts a page out of a list; the token is the name that it starts after.
func page[T any](list []T, name func(T) string, token *string) ([]T, *string) {
	out, next := control.MarkerPage(list, name, aws.ToString(token), pageSize)
	if next == "" {
		return out, nil
	}
	return out, &next
}

func tagsOf(list []types.Tag) (out []kurabe.Tag) {
	for _, tag := range list {
		out = append(out, kurabe.Tag{Key: aws.ToString(tag.Key), Value: aws.ToString(tag.Value)})
	}
	return out
}

func (s service) createTopic(ctx context.Context, in *sns.CreateTopicInput) (*sns.CreateTopicOutput, error) {
	settings := in.Attributes
	if aws.ToString(in.DataProtectionPolicy) != "" {
		settings = map[string]string{"DataProtectionPolicy": *in.DataProtectionPolicy}
	}
	arn, err := s.topics.Create(ctx, aws.ToString(in.Name), settings, tagsOf(in.Tags))
	return &sns.CreateTopicOutput{TopicArn: &arn}, err
}

func (s service) deleteTopic(ctx context.Context, in *sns.DeleteTopicInput) (*sns.DeleteTopicOutput, error) {
	return &sns.DeleteTopicOutput{}, s.topics.Delete(ctx, aws.ToString(in.TopicArn))
}

func (s service) listTopics(_ context.Context, in *sns.ListTopicsInput) (*sns.ListTopicsOutput, error) {
	list := []types.Topic{}
	for _, t := range s.topics.View.Topics() {
		list = append(list, types.Topic{TopicArn: aws.String(t.Value.ARN)})
	}
	list, next := page(list, func(t types.Topic) string { return *t.TopicArn }, in.NextToken)
	return &sns.ListTopicsOutput{Topics: list, NextToken: next}, nil
}

func (s service) getTopicAttributes(_ context.Context, in *sns.GetTopicAttributesInput) (*sns.GetTopicAttributesOutput, error) {
	t, err := s.topics.Find(aws.ToString(in.TopicArn))
	if err != nil {
		return nil, err
	}
	confirmed, pending, deleted := 0, 0, 0
	for _, sub := range s.topics.View.Subscriptions(t.Value.ID) {
		switch {
		case !sub.Value.EndedAt.IsZero():
			deleted++
		case sub.Value.ConfirmedAt.IsZero():
			pending++
		default:
			confirmed++
		}
	}
	out := map[string]string{
		"TopicArn": t.Value.ARN, "Owner": s.topics.Account, "DisplayName": "", "Policy": s.defaultPolicy(t.Value),
		"SubscriptionsConfirmed": strconv.Itoa(confirmed), "SubscriptionsPending": strconv.Itoa(pending), "SubscriptionsDeleted": strconv.Itoa(deleted),
		"EffectiveDeliveryPolicy": topic.EffectiveTopicPolicy(t.Value),
	}
	for name, value := range t.Value.Settings {
		out[name] = value
	}
	return &sns.GetTopicAttributesOutput{Attributes: out}, nil
}

// defaultPolicy is SNS's policy of a topic that was given none.
func (s service) defaultPolicy(t kurabe.Topic) string {
	text, _ := json.Marshal(map[string]any{ // of strings
		"Version": "2008-10-17", "Id": "__default_policy_ID",
		"Statement": []any{map[string]any{
			"Sid": "__default_statement_ID", "Effect": "Allow", "Principal": map[string]string{"AWS": "*"},
			"Action": []string{
				"SNS:GetTopicAttributes", "SNS:SetTopicAttributes", "SNS:AddPermission", "SNS:RemovePermission", "SNS:DeleteTopic",
				"SNS:Subscribe", "SNS:ListSubscriptionsByTopic", "SNS:Publish",
			},
			"Resource": t.ARN, "Condition": map[string]any{"StringEquals": map[string]string{"AWS:SourceOwner": s.topics.Account}},
		}},
	})
	return string(text)
}

func (s service) setTopicAttributes(ctx context.Context, in *sns.SetTopicAttributesInput) (*sns.SetTopicAttributesOutput, error) {
	return &sns.SetTopicAttributesOutput{}, s.topics.Set(ctx, aws.ToString(in.TopicArn), aws.ToString(in.AttributeName), aws.ToString(in.AttributeValue))
}

// topicOf tells tags of a topic that is not there as SNS does.
func topicOf(err error) error {
	if kurabe.CodeOf(err) == kurabe.CodeResourceNotFound {
		return fault.New(http.StatusNotFound, "ResourceNotFound", "Resource does not exist")
	}
	return err
}

func (s service) tag(ctx context.Context, in *sns.TagResourceInput) (*sns.TagResourceOutput, error) {
	return &sns.TagResourceOutput{}, topicOf(s.topics.Tag(ctx, aws.ToString(in.ResourceArn), tagsOf(in.Tags)))
}

func (s service) untag(ctx context.Context, in *sns.UntagResourceInput) (*sns.UntagResourceOutput, error) {
	return &sns.UntagResourceOutput{}, topicOf(s.topics.Untag(ctx, aws.ToString(in.ResourceArn), in.TagKeys))
}

func (s service) listTags(_ context.Context, in *sns.ListTagsForResourceInput) (*sns.ListTagsForResourceOutput, error) {
	t, err := s.topics.Find(aws.ToString(in.ResourceArn))
	if err != nil {
		return nil, topicOf(err)
	}
	out := &sns.ListTagsForResourceOutput{Tags: []types.Tag{}}
	for _, tag := range t.Value.Tags {
		out.Tags = append(out.Tags, types.Tag{Key: &tag.Key, Value: &tag.Value})
	}
	return out, nil
}

func (s service) publish(ctx context.Context, in *sns.PublishInput) (*sns.PublishOutput, error) {
	arn := aws.ToString(in.TopicArn)
	switch {
	case in.PhoneNumber != nil:
		return nil, fault.New(http.StatusBadRequest, "InvalidParameter", "Invalid parameter: PhoneNumber Reason: text messages are not offered")
	case in.TargetArn != nil && arn != "":
		return nil, fault.New(http.StatusBadRequest, "InvalidParameter", "Invalid parameter: TargetArn and TopicArn exclude each other")
	case in.TargetArn != nil:
		arn = *in.TargetArn
	}
	// MessageGroupId of a standard topic is for queues, which share their consumers by it: nobody else sees it.
	if in.MessageDeduplicationId != nil {
		return nil, fault.New(http.StatusBadRequest, "InvalidParameter", "Invalid parameter: MessageDeduplicationId Reason: The request includes MessageDeduplicationId parameter that is not valid for this topic type")
	}
	id, err := s.topics.Publish(ctx, kurabe.Notification{
		TopicARN: arn, Subject: aws.ToString(in.Subject), Message: aws.ToString(in.Message), MessageStructure: aws.ToString(in.MessageStructure),
		Attributes: attributesOf(in.MessageAttributes),
	})
	return &sns.PublishOutput{MessageId: &id}, err
}

func attributesOf(in map[string]types.MessageAttributeValue) map[string]kurabe.MessageAttribute {
	out := map[string]kurabe.MessageAttribute{}
	for name, a := range in {
		out[name] = kurabe.MessageAttribute{Type: aws.ToString(a.DataType), Text: aws.ToString(a.StringValue), Binary: a.BinaryValue}
	}
	return out
}

// batchMax is SNS's bound of a batch; all of its messages together have that of one.
const batchMax = 10

func (s service) publishBatch(ctx context.Context, in *sns.PublishBatchInput) (*sns.PublishBatchOutput, error) {
	seen, size := map[string]bool{}, 0
	for _, e := range in.PublishBatchRequestEntries {
		id := aws.ToString(e.Id)
		if id == "" || len(id) > 80 || strings.Trim(id, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_") != "" {
			return nil, fault.New(http.StatusBadRequest, "InvalidBatchEntryId", "The Id of a batch entry has 1 to 80 letters, digits, - and _.")
		}
		if seen[id] {
			return nil, fault.New(http.StatusBadRequest, "BatchEntryIdsNotDistinct", "Two or more batch entries in the request have the same Id.")
		}
		seen[id] = true
		size += len(aws.ToString(e.Message)) + len(aws.ToString(e.Subject))
	}
	switch n := len(seen); {
	case n == 0:
		return nil, fault.New(http.StatusBadRequest, "EmptyBatchRequest", "The batch request doesn't contain any entries.")
	case n > batchMax:
		return nil, fault.New(http.StatusBadRequest, "TooManyEntriesInBatchRequest", "The batch request contains more entries than permissible.")
	case size > kurabe.NotificationBytesMax:
		return nil, fault.New(http.StatusBadRequest, "BatchRequestTooLong", "The length of all the batch messages put together is more than the limit.")
	}
	if _, err := s.topics.Find(aws.ToString(in.TopicArn)); err != nil {
		return nil, err
	}
	out := &sns.PublishBatchOutput{Successful: []types.PublishBatchResultEntry{}, Failed: []types.BatchResultErrorEntry{}}
	for _, e := range in.PublishBatchRequestEntries {
		one, err := s.publish(ctx, &sns.PublishInput{
			TopicArn: in.TopicArn, Message: e.Message, Subject: e.Subject, MessageStructure: e.MessageStructure, MessageAttributes: e.MessageAttributes,
			MessageGroupId: e.MessageGroupId, MessageDeduplicationId: e.MessageDeduplicationId,
		})
		if err == nil {
			out.Successful = append(out.Successful, types.PublishBatchResultEntry{Id: e.Id, MessageId: one.MessageId})
			continue
		}
		code, ours := "InvalidParameter", false
		switch kurabe.CodeOf(err) {
		case kurabe.CodeThrottled:
			code = "Throttled"
		case kurabe.CodeInvalidParameterCombo:
			code = "ParameterValueInvalid"
		case kurabe.CodeUnavailable:
			code, ours = "InternalError", true
		case kurabe.CodeInternal:
			if _, is := err.(*fault.Fault); !is {
				return nil, err
			}
		}
		out.Failed = append(out.Failed, types.BatchResultErrorEntry{Id: e.Id, Code: aws.String(code), Message: aws.String(err.Error()), SenderFault: !ours})
	}
	return out, nil
}
