package rds

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/rds"
	"github.com/aws/aws-sdk-go-v2/service/rds/types"

	"kurabe"
	"kurabe/internal/api"
)

// tagRows are the actions on the tags of any resource.
func (s *Service) tagRows() []row {
	return []row{
		api.Write("AddTagsToResource", s.addTagsToResource),
		api.Write("RemoveTagsFromResource", s.removeTagsFromResource),
		api.Read("ListTagsForResource", s.listTagsForResource),
	}
}

// tagsOf reads tags; a tag without a value has an empty one.
func tagsOf(tags []types.Tag) []kurabe.Tag {
	return mapped(tags, func(t types.Tag) kurabe.Tag { return kurabe.Tag{Key: str(t.Key), Value: str(t.Value)} })
}

func tagList(tags []kurabe.Tag) []types.Tag {
	return mapped(tags, func(t kurabe.Tag) types.Tag { return types.Tag{Key: aws.String(t.Key), Value: aws.String(t.Value)} })
}

// createTags reads the tags of a create request. TagSpecifications are for what
// comes into being beside the resource itself; kind is that of the resource.
func createTags(tags []types.Tag, specifications []types.TagSpecification, kind string) ([]kurabe.Tag, error) {
	out := tagsOf(tags)
	for _, t := range specifications {
		if str(t.ResourceType) != kind {
			return nil, kurabe.Errorf(kurabe.CodeInvalidParameterCombo, "TagSpecifications cannot be honoured: nothing of type %q comes with it", str(t.ResourceType))
		}
		out = append(out, tagsOf(t.Tags)...)
	}
	return out, nil
}

func (s *Service) addTagsToResource(ctx context.Context, in *rds.AddTagsToResourceInput) (*rds.AddTagsToResourceOutput, error) {
	return &rds.AddTagsToResourceOutput{}, s.c.AddTags(ctx, str(in.ResourceName), tagsOf(in.Tags))
}

func (s *Service) removeTagsFromResource(ctx context.Context, in *rds.RemoveTagsFromResourceInput) (*rds.RemoveTagsFromResourceOutput, error) {
	return &rds.RemoveTagsFromResourceOutput{}, s.c.RemoveTags(ctx, str(in.ResourceName), in.TagKeys)
}

func (s *Service) listTagsForResource(_ context.Context, in *rds.ListTagsForResourceInput) (*rds.ListTagsForResourceOutput, error) {
	if _, err := filterValues(in.Filters); err != nil {
		return nil, err
	}
	tags, err := s.c.Tags(str(in.ResourceName))
	if err != nil {
		return nil, err
	}
	return &rds.ListTagsForResourceOutput{TagList: tagList(tags)}, nil
}
