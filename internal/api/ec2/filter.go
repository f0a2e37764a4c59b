package ec2

import (
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

// find returns the resources that a request asks for; absent makes the error about an id that is
// not there. Each list fits one page, so no request has a token.
func find[T any](all []T, r request, id string, of fields[T], absent func(id string) error) ([]T, error) {
	switch {
	case r.dryRun:
		return nil, fault.New(http.StatusPreconditionFailed, "DryRunOperation", "Request would have succeeded, but DryRun flag is set.")
	case r.nextToken != "":
		return nil, fault.New(http.StatusBadRequest, "InvalidNextToken", "Invalid NextToken.")
	case r.maxResults != nil && (*r.maxResults < 5 || *r.maxResults > maxPerPage || len(r.ids) > 0):
		return nil, invalid("MaxResults must be between 5 and %d, and cannot be combined with ids.", maxPerPage)
	case r.maxResults != nil && len(all) > int(*r.maxResults):
		return nil, invalid("MaxResults is less than the %d results, which are always one page.", len(all))
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
		text, known := of[f.Name]
		tags := strings.HasPrefix(f.Name, "tag:") || f.Name == "tag-key"
		switch {
		case !known && !tags:
			return nil, invalid("The filter '%.100s' is invalid", f.Name)
		case len(f.Value) == 0 || len(f.Value) > maxValues:
			return nil, invalid("The filter '%.100s' must have 1 to %d values", f.Name, maxValues)
		}
		pattern, err := wildcards(f.Value)
		if err != nil {
			return nil, err
		}
		// Nothing of the network has tags.
		list = slices.DeleteFunc(list, func(one T) bool { return tags || !pattern.MatchString(text(one)) })
	}
	return list, nil
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
