package ec2

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"kurabe"
	"kurabe/internal/api"
	"kurabe/internal/aws/fault"
)

// tagRows are the actions on tags, which security groups and their rules have.
func (s service) tagRows() []api.Operation {
	return []api.Operation{
		api.Write("CreateTags", s.createTags),
		api.Write("DeleteTags", s.deleteTags),
		api.Read("DescribeTags", s.describeTags),
	}
}

type tag struct {
	Key   string `xml:"key"`
	Value string `xml:"value"`
}

// tagSpecification is the tags of a resource that is about to be made.
type tagSpecification struct {
	ResourceType string
	Tag          []tagInput
}

// tagInput is a tag of a request. Value is nil where it was left out.
type tagInput struct {
	Key   string
	Value *string
}

func tagsOf(in []tagInput) []kurabe.Tag {
	var tags []kurabe.Tag
	for _, t := range in {
		tags = append(tags, kurabe.Tag{Key: t.Key})
		if t.Value != nil {
			tags[len(tags)-1].Value = *t.Value
		}
	}
	return tags
}

// tagsFor are the tags of a request that makes resources of one type.
func tagsFor(in []tagSpecification, kind string) (tags []kurabe.Tag, err error) {
	for _, spec := range in {
		if spec.ResourceType != kind {
			return nil, invalid("'%.100s' is not a valid taggable resource type for this operation.", spec.ResourceType)
		}
		tags = append(tags, tagsOf(spec.Tag)...)
	}
	return tags, kurabe.CheckTags(tags)
}

// tagSet is nil where there are none, as EC2 leaves it out.
func tagSet(tags []kurabe.Tag) *set[tag] {
	if len(tags) == 0 {
		return nil
	}
	var out set[tag]
	for _, t := range tags {
		out.Items = append(out.Items, tag{t.Key, t.Value})
	}
	return &out
}

// tagTexts are the texts of a filter of tags: the values of a key, or the keys.
func tagTexts(tags *set[tag], filter string) (texts []string, known bool) {
	key, values := strings.CutPrefix(filter, "tag:")
	if !values && filter != "tag-key" {
		return nil, false
	}
	if tags == nil {
		return nil, true
	}
	for _, t := range tags.Items {
		switch {
		case !values:
			texts = append(texts, t.Key)
		case t.Key == key:
			texts = append(texts, t.Value)
		}
	}
	return texts, true
}

type tagsInput struct {
	ResourceId []string
	Tag        []tagInput
	DryRun     bool
}

func (s service) createTags(ctx context.Context, in *tagsInput) (*returnOutput, error) {
	if len(in.Tag) == 0 {
		return nil, missing("Tags")
	}
	return s.editTags(ctx, in, func(have []kurabe.Tag) []kurabe.Tag { return kurabe.WithTags(have, tagsOf(in.Tag)) })
}

// deleteTags takes tags away: those of a key, with the value where one is given; all where no tag
// is named.
func (s service) deleteTags(ctx context.Context, in *tagsInput) (*returnOutput, error) {
	return s.editTags(ctx, in, func(have []kurabe.Tag) []kurabe.Tag {
		return slices.DeleteFunc(have, func(t kurabe.Tag) bool {
			return len(in.Tag) == 0 || slices.ContainsFunc(in.Tag, func(o tagInput) bool { return o.Key == t.Key && (o.Value == nil || *o.Value == t.Value) })
		})
	})
}

func (s service) editTags(ctx context.Context, in *tagsInput, edit func([]kurabe.Tag) []kurabe.Tag) (*returnOutput, error) {
	switch {
	case len(in.ResourceId) == 0:
		return nil, missing("ResourceId")
	case in.DryRun:
		return nil, errDryRun
	}
	for _, id := range in.ResourceId {
		if !strings.HasPrefix(id, "sg-") && !strings.HasPrefix(id, "sgr-") {
			return nil, fault.New(http.StatusBadRequest, "InvalidID", "The ID '%.100s' is not valid: only security groups and their rules have tags", id)
		}
		if err := s.c.EditTags(ctx, id, edit); err != nil {
			return nil, err
		}
	}
	return &returnOutput{true}, nil
}

type describeTagsInput struct {
	Filter     []filter
	DryRun     bool
	MaxResults *int32
	NextToken  string
}

type describeTagsOutput struct {
	Tags set[tagOf] `xml:"tagSet"`
	page
}

type tagOf struct {
	Key   string `xml:"key"`
	ID    string `xml:"resourceId"`
	Kind  string `xml:"resourceType"`
	Value string `xml:"value"`
}

var tagFields = fields[tagOf]{
	"key": func(t tagOf) string { return t.Key }, "value": func(t tagOf) string { return t.Value },
	"resource-id": func(t tagOf) string { return t.ID }, "resource-type": func(t tagOf) string { return t.Kind },
	"": func(t tagOf) string { return t.ID + " " + t.Key }, // of tokens
}

// texts are those of the filter tag:KEY.
func (t tagOf) texts(filter string) ([]string, bool) {
	key, ok := strings.CutPrefix(filter, "tag:")
	if ok && key == t.Key {
		return []string{t.Value}, true
	}
	return nil, ok
}

func (s service) describeTags(_ context.Context, in *describeTagsInput) (*describeTagsOutput, error) {
	var all []tagOf
	for _, g := range s.c.SecurityGroups() {
		for _, t := range g.Tags {
			all = append(all, tagOf{t.Key, g.ID, "security-group", t.Value})
		}
		for _, r := range g.Rules {
			for _, t := range r.Tags {
				all = append(all, tagOf{t.Key, r.ID, "security-group-rule", t.Value})
			}
		}
	}
	got, next, err := find(all, request{filters: in.Filter, dryRun: in.DryRun, maxResults: in.MaxResults, nextToken: in.NextToken}, "", tagFields, nil)
	return &describeTagsOutput{set[tagOf]{got}, next}, err
}
