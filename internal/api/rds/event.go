package rds

import (
	"context"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/rds"
	"github.com/aws/aws-sdk-go-v2/service/rds/types"

	"kurabe"
	"kurabe/internal/api"
	"kurabe/internal/control"
)

// eventRows are the actions on events.
func (s *Service) eventRows() []row {
	return []row{
		api.Read("DescribeEvents", s.describeEvents),
		api.Read("DescribeEventCategories", s.describeEventCategories),
	}
}

func (s *Service) describeEvents(_ context.Context, in *rds.DescribeEventsInput) (*rds.DescribeEventsOutput, error) {
	if _, err := filterValues(in.Filters); err != nil {
		return nil, err
	}
	filter := control.EventFilter{
		SourceType: string(in.SourceType), Source: str(in.SourceIdentifier), Categories: in.EventCategories,
		From: aws.ToTime(in.StartTime), To: aws.ToTime(in.EndTime),
	}
	if in.Duration != nil {
		if *in.Duration < 1 {
			return nil, kurabe.Errorf(kurabe.CodeInvalidParameterValue, "Duration must be at least 1 minute, not %d", *in.Duration)
		}
		filter.Span = time.Duration(*in.Duration) * time.Minute
	}
	list, err := s.c.Events(filter)
	if err != nil {
		return nil, err
	}
	list, marker, err := page(list, func(e kurabe.Event) string { return e.Seq }, in.Marker, in.MaxRecords)
	if err != nil {
		return nil, err
	}
	return &rds.DescribeEventsOutput{Events: mapped(list, s.event), Marker: marker}, nil
}

func (s *Service) event(e kurabe.Event) types.Event {
	return types.Event{
		SourceIdentifier: aws.String(e.Source), SourceType: types.SourceType(e.SourceType), SourceArn: optional(s.c.SourceARN(e)),
		Date: aws.Time(e.At), Message: aws.String(e.Message), EventCategories: append([]string{}, e.Categories...),
	}
}

func (s *Service) describeEventCategories(_ context.Context, in *rds.DescribeEventCategoriesInput) (*rds.DescribeEventCategoriesOutput, error) {
	if _, err := filterValues(in.Filters); err != nil {
		return nil, err
	}
	list, err := control.EventCategories(str(in.SourceType))
	if err != nil {
		return nil, err
	}
	out := &rds.DescribeEventCategoriesOutput{}
	for _, c := range list {
		out.EventCategoriesMapList = append(out.EventCategoriesMapList, types.EventCategoriesMap{SourceType: aws.String(c.SourceType), EventCategories: c.Categories})
	}
	return out, nil
}
