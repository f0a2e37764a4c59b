package ec2

import (
	"encoding/base64"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"kurabe/internal/aws/fault"
)

// EC2's bounds.
const (
	maxValues  = 200 // of one filter
	maxPerPage = 1000
)

// filter lets through what has one of the values.
type filter struct {
	Name  string
	Value []string
}

// request is the common part of every question.
type request struct {
	ids        []string
	filters    []filter
	dryRun     bool
	maxResults *int32
	nextToken  string
}

// fields are the filters of a kind of resource: by name, the text that is compared.
type fields[T any] map[string]func(T) string

// texter is a resource with filters of several texts, such as tags.
type texter interface {
	texts(filter string) (texts []string, known bool)
}

// page says where a list goes on that does not fit one page.
type page struct {
	NextToken string `xml:"nextToken,omitempty"`
}

var errDryRun = fault.New(http.StatusPreconditionFailed, "DryRunOperation", "Request would have succeeded, but DryRun flag is set.")

// find returns the resources that a request asks for; absent makes the error about an id that is
// not there. A token is the id of the last resource of the page before.
func find[T any](all []T, r request, id string, of fields[T], absent func(id string) error) ([]T, page, error) {
	list, err := match(all, r, id, of, absent)
	if err != nil {
		return nil, page{}, err
	}
	if r.nextToken != "" {
		raw, err := base64.RawURLEncoding.DecodeString(r.nextToken)
		at := slices.IndexFunc(list, func(one T) bool { return of[id](one) == string(raw) })
		if err != nil || at < 0 {
			return nil, page{}, fault.New(http.StatusBadRequest, "InvalidNextToken", "Invalid NextToken.")
		}
		list = list[at+1:]
	}
	most := maxPerPage
	if r.maxResults != nil {
		most = int(*r.maxResults)
	}
	if len(list) <= most {
		return list, page{}, nil
	}
	return list[:most], page{base64.RawURLEncoding.EncodeToString([]byte(of[id](list[most-1])))}, nil
}

// match is find without pages.
func match[T any](all []T, r request, id string, of fields[T], absent func(id string) error) ([]T, error) {
	switch {
	case r.dryRun:
		return nil, errDryRun
	case r.maxResults != nil && (*r.maxResults < 5 || *r.maxResults > maxPerPage || len(r.ids) > 0):
		return nil, invalid("MaxResults must be between 5 and %d, and cannot be combined with ids.", maxPerPage)
	}
	for _, want := range r.ids {
		if !slices.ContainsFunc(all, func(one T) bool { return of[id](one) == want }) {
			return nil, absent(want)
		}
	}
	list := slices.Clone(all)
	if len(r.ids) > 0 {
		list = slices.DeleteFunc(list, func(one T) bool { return !slices.Contains(r.ids, of[id](one)) })
	}
	for _, f := range r.filters {
		_, known := textsOf(*new(T), f.Name, of)
		switch {
		case !known:
			return nil, invalid("The filter '%.100s' is invalid", f.Name)
		case len(f.Value) == 0 || len(f.Value) > maxValues:
			return nil, invalid("The filter '%.100s' must have 1 to %d values", f.Name, maxValues)
		}
		pattern, err := wildcards(f.Value)
		if err != nil {
			return nil, err
		}
		list = slices.DeleteFunc(list, func(one T) bool {
			texts, _ := textsOf(one, f.Name, of)
			return !slices.ContainsFunc(texts, pattern.MatchString)
		})
	}
	return list, nil
}

// textsOf are the texts that a filter compares, and whether there is such a filter.
func textsOf[T any](one T, filter string, of fields[T]) ([]string, bool) {
	if text, ok := of[filter]; ok {
		return []string{text(one)}, true
	}
	if t, ok := any(one).(texter); ok {
		return t.texts(filter)
	}
	return nil, strings.HasPrefix(filter, "tag:") || filter == "tag-key"
}

// wildcards matches any of the texts, in which * stands for any text, ? for one character and
// \ before either for itself.
func wildcards(texts []string) (*regexp.Regexp, error) {
	replacer := strings.NewReplacer(`\\\*`, `\*`, `\\\?`, `\?`, `\*`, `.*`, `\?`, `.`)
	var parts []string
	for _, text := range texts {
		parts = append(parts, replacer.Replace(regexp.QuoteMeta(text)))
	}
	pattern, err := regexp.Compile(`(?s)^(` + strings.Join(parts, "|") + `)$`)
	if err != nil {
		return nil, invalid("The values of a filter are too long")
	}
	return pattern, nil
}

func yes(b bool) string { return strconv.FormatBool(b) }
