package tagging

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"slices"
	"strings"

	"kurabe"
	"kurabe/internal/api"
	"kurabe/internal/aws/fault"
	"kurabe/internal/aws/shape"
	"kurabe/internal/control"
)

// AWS's bounds.
const (
	maxPerPage = 100
	maxARNs    = 100 // that GetResources is asked for by name
	maxChanged = 20  // resources of one TagResources or UntagResources
	maxTags    = 50
	maxFilters = 50
	maxValues  = 20 // of one filter
)

// API returns the service.
func API(c *control.Control) api.Service {
	s := service{c}
	return api.Service{
		Name: shape.Tagging.Service, Protocols: []api.Protocol{api.JSON{Target: "ResourceGroupsTaggingAPI_20170126", Version: "1.1", Model: shape.Tagging}},
		Ops: api.Table(
			api.Read("GetResources", s.getResources),
			api.Read("GetTagKeys", s.getTagKeys),
			api.Read("GetTagValues", s.getTagValues),
			api.Write("TagResources", s.tagResources),
			api.Write("UntagResources", s.untagResources),
		),
		NotOffered: func(string) string { return "tag policies and reports on them are not supported" },
	}
}

type service struct{ c *control.Control }

func invalid(format string, args ...any) error {
	return fault.New(http.StatusBadRequest, "InvalidParameterException", format, args...)
}

// Tag is one tag on the wire.
type Tag struct{ Key, Value string }

type tagFilter struct {
	Key    string
	Values []string
}

type getResourcesInput struct {
	PaginationToken     string
	TagFilters          []tagFilter
	ResourcesPerPage    *int
	TagsPerPage         *int
	ResourceTypeFilters []string
	ResourceARNList     []string

	IncludeComplianceDetails, ExcludeCompliantResources bool
}

type mapping struct {
	ResourceARN string
	Tags        []Tag
}

type getResourcesOutput struct {
	PaginationToken        string
	ResourceTagMappingList []mapping
}

// check refuses what AWS refuses.
func (in *getResourcesInput) check() error {
	narrowed := len(in.TagFilters) > 0 || len(in.ResourceTypeFilters) > 0 || in.ResourcesPerPage != nil || in.TagsPerPage != nil || in.PaginationToken != ""
	switch {
	case in.IncludeComplianceDetails || in.ExcludeCompliantResources:
		return invalid("Tag policies are not supported.")
	case in.TagsPerPage != nil:
		return invalid("TagsPerPage is not supported; use ResourcesPerPage.")
	case len(in.ResourceARNList) > maxARNs:
		return invalid("ResourceARNList can have at most %d members.", maxARNs)
	case len(in.ResourceARNList) > 0 && narrowed:
		return invalid("ResourceARNList cannot be combined with other parameters.")
	case len(in.TagFilters) > maxFilters:
		return invalid("TagFilters can have at most %d members.", maxFilters)
	case in.ResourcesPerPage != nil && (*in.ResourcesPerPage < 1 || *in.ResourcesPerPage > maxPerPage):
		return invalid("ResourcesPerPage must be between 1 and %d.", maxPerPage)
	}
	for _, f := range in.TagFilters {
		if f.Key == "" || len(f.Values) > maxValues {
			return invalid("A tag filter must have a Key and at most %d values.", maxValues)
		}
	}
	return nil
}

// matches says whether a resource is asked for: it is of one of the types, and each filter
// finds its key, with one of its values where it has some.
func (in *getResourcesInput) matches(r control.Tagged) bool {
	if len(in.ResourceARNList) > 0 && !slices.Contains(in.ResourceARNList, r.ARN) {
		return false
	}
	if len(in.ResourceTypeFilters) > 0 && !slices.Contains(in.ResourceTypeFilters, "rds") && !slices.Contains(in.ResourceTypeFilters, "rds:"+r.Kind) {
		return false
	}
	for _, f := range in.TagFilters {
		if !slices.ContainsFunc(r.Tags, func(t kurabe.Tag) bool {
			return t.Key == f.Key && (len(f.Values) == 0 || slices.Contains(f.Values, t.Value))
		}) {
			return false
		}
	}
	return true
}

func (s service) getResources(_ context.Context, in *getResourcesInput) (*getResourcesOutput, error) {
	if err := in.check(); err != nil {
		return nil, err
	}
	size := maxPerPage
	if in.ResourcesPerPage != nil {
		size = *in.ResourcesPerPage
	}
	list := slices.DeleteFunc(s.c.Tagged(), func(r control.Tagged) bool { return !in.matches(r) })
	// The token is the ARN that the page starts after: what comes and goes meanwhile moves nothing else.
	page, next := control.MarkerPage(list, func(r control.Tagged) string { return r.ARN }, in.PaginationToken, size)
	out := &getResourcesOutput{PaginationToken: next, ResourceTagMappingList: []mapping{}}
	for _, r := range page {
		m := mapping{ResourceARN: r.ARN}
		for _, t := range r.Tags {
			m.Tags = append(m.Tags, Tag(t))
		}
		out.ResourceTagMappingList = append(out.ResourceTagMappingList, m)
	}
	return out, nil
}

type getTagKeysInput struct{ PaginationToken string }

type getTagKeysOutput struct {
	PaginationToken string
	TagKeys         []string
}

func (s service) getTagKeys(_ context.Context, in *getTagKeysInput) (*getTagKeysOutput, error) {
	keys, next := s.distinct(in.PaginationToken, func(t kurabe.Tag) (string, bool) { return t.Key, true })
	return &getTagKeysOutput{next, keys}, nil
}

type getTagValuesInput struct{ Key, PaginationToken string }

type getTagValuesOutput struct {
	PaginationToken string
	TagValues       []string
}

func (s service) getTagValues(_ context.Context, in *getTagValuesInput) (*getTagValuesOutput, error) {
	if in.Key == "" {
		return nil, invalid("Key is missing.")
	}
	values, next := s.distinct(in.PaginationToken, func(t kurabe.Tag) (string, bool) { return t.Value, t.Key == in.Key })
	return &getTagValuesOutput{next, values}, nil
}

// distinct returns a page of the texts that are wanted of all tags, each once, sorted. An
// empty text comes first, so that no token has to name it.
func (s service) distinct(after string, of func(kurabe.Tag) (string, bool)) ([]string, string) {
	seen := map[string]bool{}
	for _, r := range s.c.Tagged() {
		for _, t := range r.Tags {
			if text, wanted := of(t); wanted {
				seen[text] = true
			}
		}
	}
	list := slices.AppendSeq(make([]string, 0, len(seen)), maps.Keys(seen))
	slices.Sort(list)
	return control.MarkerPage(list, func(text string) string { return text }, after, maxPerPage)
}

type tagResourcesInput struct {
	ResourceARNList []string
	Tags            map[string]string
}

type untagResourcesInput struct {
	ResourceARNList []string
	TagKeys         []string
}

type changedOutput struct {
	FailedResourcesMap map[string]failure // by ARN
}

// failure is a resource that was not changed, and why.
type failure struct {
	StatusCode   int
	ErrorCode    string
	ErrorMessage string
}

func (s service) tagResources(ctx context.Context, in *tagResourcesInput) (*changedOutput, error) {
	if len(in.Tags) < 1 || len(in.Tags) > maxTags {
		return nil, invalid("Tags must have 1 to %d members.", maxTags)
	}
	var tags []kurabe.Tag
	for _, key := range slices.Sorted(maps.Keys(in.Tags)) {
		tags = append(tags, kurabe.Tag{Key: key, Value: in.Tags[key]})
	}
	return change(in.ResourceARNList, func(arn string) error { return s.c.AddTags(ctx, arn, tags) })
}

func (s service) untagResources(ctx context.Context, in *untagResourcesInput) (*changedOutput, error) {
	if len(in.TagKeys) < 1 || len(in.TagKeys) > maxTags {
		return nil, invalid("TagKeys must have 1 to %d members.", maxTags)
	}
	return change(in.ResourceARNList, func(arn string) error { return s.c.RemoveTags(ctx, arn, in.TagKeys) })
}

// change edits one resource after the other and tells which failed. A failure of our own ends
// the request, which may be repeated as it was.
func change(arns []string, edit func(arn string) error) (*changedOutput, error) {
	if len(arns) < 1 || len(arns) > maxChanged {
		return nil, invalid("ResourceARNList must have 1 to %d members.", maxChanged)
	}
	out := &changedOutput{map[string]failure{}}
	for _, arn := range arns {
		err := edit(arn)
		var e *kurabe.Error
		switch {
		case err == nil:
		case !errors.As(err, &e) || ours(e.Code):
			return nil, err
		default:
			out.FailedResourcesMap[arn] = failure{http.StatusBadRequest, "InvalidParameterException", strings.TrimSpace(e.Message)}
		}
	}
	return out, nil
}

// ours says whether a failure is not the sender's.
func ours(code kurabe.Code) bool {
	return code == kurabe.CodeInternal || code == kurabe.CodeUnavailable || code == kurabe.CodeThrottled
}
