package monitoring

import (
	"context"
	"encoding/base64"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch/types"

	"kurabe/internal/control"
	"kurabe/internal/metrics/catalog"
	"kurabe/internal/metrics/expression"
	"kurabe/internal/metrics/series"
)

// CloudWatch's bounds.
const (
	maxPerPage = 500
	maxFilters = 10
	listedFor  = 14 * 24 * time.Hour
	recently   = 3 * time.Hour
)

// tokenMagic begins the text of a token, so that one of another service is told from ours.
const tokenMagic = "kurabe1:"

func packToken(text string) *string {
	if text == "" {
		return nil
	}
	return aws.String(base64.URLEncoding.EncodeToString([]byte(tokenMagic + text)))
}

func unpackToken(token *string) (text string, ok bool) {
	if token == nil {
		return "", true
	}
	raw, err := base64.URLEncoding.DecodeString(*token)
	text, ours := strings.CutPrefix(string(raw), tokenMagic)
	return text, err == nil && ours
}

func (s service) listMetrics(ctx context.Context, in *cloudwatch.ListMetricsInput) (*cloudwatch.ListMetricsOutput, error) {
	after, ok := unpackToken(in.NextToken)
	since := listedFor
	switch {
	case !ok:
		return nil, invalid("Request parameter NextToken is invalid")
	case len(in.Dimensions) > maxFilters:
		return nil, invalid("The collection Dimensions must not have a size greater than %d.", maxFilters)
	case in.RecentlyActive == types.RecentlyActivePt3h:
		since = recently
	case in.RecentlyActive != "":
		return nil, invalid("The value %.40s for parameter RecentlyActive is not supported: it is PT3H.", in.RecentlyActive)
	}
	out := &cloudwatch.ListMetricsOutput{}
	if in.OwningAccount != nil && *in.OwningAccount != s.c.Account {
		return out, nil
	}
	all, err := s.list(ctx, newPlaces(s.c), aws.ToString(in.Namespace), aws.ToString(in.MetricName), s.c.Now().Add(-since))
	if err != nil {
		return nil, err
	}
	all = slices.DeleteFunc(all, func(m expression.Metric) bool { return !has(m, in.Dimensions) })
	page, next := control.MarkerPage(all, key, after, maxPerPage)
	out.NextToken = packToken(next)
	for _, m := range page {
		one := types.Metric{Namespace: aws.String(m.Namespace), MetricName: aws.String(m.Name), Dimensions: []types.Dimension{}}
		for _, d := range m.Dimensions {
			one.Dimensions = append(one.Dimensions, types.Dimension{Name: aws.String(d.Name), Value: aws.String(d.Value)})
		}
		out.Metrics = append(out.Metrics, one)
		if aws.ToBool(in.IncludeLinkedAccounts) {
			out.OwningAccounts = append(out.OwningAccounts, s.c.Account)
		}
	}
	return out, nil
}

// has says whether a metric has all dimensions of the filters, with their values where they
// have one.
func has(m expression.Metric, filters []types.DimensionFilter) bool {
	for _, f := range filters {
		if !slices.ContainsFunc(m.Dimensions, func(d expression.Dimension) bool {
			return d.Name == aws.ToString(f.Name) && (f.Value == nil || d.Value == *f.Value)
		}) {
			return false
		}
	}
	return true
}

// list returns the metrics that have had data since then, sorted by key. An empty namespace
// or name is any.
func (s service) list(ctx context.Context, p places, namespace, name string, since time.Time) ([]expression.Metric, error) {
	var match []series.Match
	if namespace != "" {
		match = append(match, series.Match{Label: catalog.Namespace, Values: []string{namespace}})
	}
	if name != "" {
		match = append(match, series.Match{Label: catalog.Metric, Values: []string{name}})
	}
	labels, err := s.source.List(ctx, match, since)
	if err != nil {
		return nil, err
	}
	found := map[string]expression.Metric{}
	for _, l := range labels {
		for _, m := range p.metricsOf(l) {
			found[key(m)] = m
		}
	}
	keys := make([]string, 0, len(found))
	for k := range found {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	all := make([]expression.Metric, len(keys))
	for n, k := range keys {
		all[n] = found[k]
	}
	return all, nil
}

// key orders metrics and tells them apart: none of its parts has a line feed.
func key(m expression.Metric) string {
	var b strings.Builder
	b.WriteString(m.Namespace + "\n" + m.Name)
	for _, d := range m.Dimensions {
		b.WriteString("\n" + d.Name + "\n" + d.Value)
	}
	return b.String()
}
