package rds

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/rds"
	"github.com/aws/aws-sdk-go-v2/service/rds/types"

	"kurabe"
	"kurabe/internal/api"
	"kurabe/internal/control/eventsub"
)

// eventSubscriptionRows are the actions on event subscriptions.
func (s *Service) eventSubscriptionRows() []row {
	return []row{
		api.Write("CreateEventSubscription", s.createEventSubscription),
		api.Read("DescribeEventSubscriptions", s.describeEventSubscriptions),
		api.Write("ModifyEventSubscription", s.modifyEventSubscription),
		api.Write("DeleteEventSubscription", s.deleteEventSubscription),
		api.Write("AddSourceIdentifierToSubscription", s.addSourceIdentifierToSubscription),
		api.Write("RemoveSourceIdentifierFromSubscription", s.removeSourceIdentifierFromSubscription),
	}
}

// eventSubscription translates a subscription, with the status that RDS shows after an action.
func (s *Service) eventSubscription(e kurabe.EventSubscription, status string) *types.EventSubscription {
	return &types.EventSubscription{
		CustSubscriptionId: aws.String(e.Name), CustomerAwsId: aws.String(s.c.Account), EventSubscriptionArn: aws.String(s.c.ARN("es", e.Name)),
		SnsTopicArn: aws.String(e.TopicARN), SourceType: optional(e.SourceType), SourceIdsList: e.Sources, EventCategoriesList: e.Categories,
		Enabled: aws.Bool(!e.Disabled), Status: aws.String(status),
		SubscriptionCreationTime: aws.String(e.CreatedAt.UTC().Format("2006-01-02 15:04:05.000")),
	}
}

func (s *Service) createEventSubscription(ctx context.Context, in *rds.CreateEventSubscriptionInput) (*rds.CreateEventSubscriptionOutput, error) {
	e, err := s.c.CreateEventSubscription(ctx, kurabe.EventSubscription{
		Name: str(in.SubscriptionName), TopicARN: str(in.SnsTopicArn), SourceType: str(in.SourceType), Sources: in.SourceIds,
		Categories: in.EventCategories, Disabled: in.Enabled != nil && !*in.Enabled, Tags: tagsOf(in.Tags),
	})
	if err != nil {
		return nil, err
	}
	return &rds.CreateEventSubscriptionOutput{EventSubscription: s.eventSubscription(e, "creating")}, nil
}

func (s *Service) describeEventSubscriptions(_ context.Context, in *rds.DescribeEventSubscriptionsInput) (*rds.DescribeEventSubscriptionsOutput, error) {
	if _, err := filterValues(in.Filters); err != nil {
		return nil, err
	}
	list, err := oneOrAll(in.SubscriptionName, s.c.EventSubscription, s.c.EventSubscriptions)
	if err != nil {
		return nil, err
	}
	list, marker, err := page(list, kurabe.EventSubscription.Key, in.Marker, in.MaxRecords)
	if err != nil {
		return nil, err
	}
	return &rds.DescribeEventSubscriptionsOutput{Marker: marker, EventSubscriptionsList: mapped(list, func(e kurabe.EventSubscription) types.EventSubscription {
		return *s.eventSubscription(e, s.c.SubscriptionStatus(e))
	})}, nil
}

func (s *Service) modifyEventSubscription(ctx context.Context, in *rds.ModifyEventSubscriptionInput) (*rds.ModifyEventSubscriptionOutput, error) {
	e, err := s.c.ModifyEventSubscription(ctx, str(in.SubscriptionName), eventsub.Edit{
		TopicARN: in.SnsTopicArn, SourceType: in.SourceType, Categories: in.EventCategories, Enabled: in.Enabled,
	})
	if err != nil {
		return nil, err
	}
	return &rds.ModifyEventSubscriptionOutput{EventSubscription: s.eventSubscription(e, "modifying")}, nil
}

func (s *Service) deleteEventSubscription(ctx context.Context, in *rds.DeleteEventSubscriptionInput) (*rds.DeleteEventSubscriptionOutput, error) {
	e, err := s.c.DeleteEventSubscription(ctx, str(in.SubscriptionName))
	if err != nil {
		return nil, err
	}
	return &rds.DeleteEventSubscriptionOutput{EventSubscription: s.eventSubscription(e, "deleting")}, nil
}

func (s *Service) addSourceIdentifierToSubscription(ctx context.Context, in *rds.AddSourceIdentifierToSubscriptionInput) (*rds.AddSourceIdentifierToSubscriptionOutput, error) {
	e, err := s.c.AddSource(ctx, str(in.SubscriptionName), str(in.SourceIdentifier))
	if err != nil {
		return nil, err
	}
	return &rds.AddSourceIdentifierToSubscriptionOutput{EventSubscription: s.eventSubscription(e, "modifying")}, nil
}

func (s *Service) removeSourceIdentifierFromSubscription(ctx context.Context, in *rds.RemoveSourceIdentifierFromSubscriptionInput) (*rds.RemoveSourceIdentifierFromSubscriptionOutput, error) {
	e, err := s.c.RemoveSource(ctx, str(in.SubscriptionName), str(in.SourceIdentifier))
	if err != nil {
		return nil, err
	}
	return &rds.RemoveSourceIdentifierFromSubscriptionOutput{EventSubscription: s.eventSubscription(e, "modifying")}, nil
}
