package logs

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strconv"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs/types"

	"kurabe"
	"kurabe/internal/aws/fault"
	"kurabe/internal/insights"
	"kurabe/internal/logquery"
)

const (
	queryRowsMax   = 10_000
	queryGroupsMax = 50
	queriesPage    = 1000
)

func (a API) startQuery(ctx context.Context, in *cloudwatchlogs.StartQueryInput) (*cloudwatchlogs.StartQueryOutput, error) {
	from, to := *in.StartTime, *in.EndTime
	r := insights.Request{Query: *in.QueryString, Account: a.Groups.Account, To: (to + 1) * 1000, Limit: queryRowsMax} // its second is a part of it
	const timeMax = 1 << 40                                                                                            // seconds
	switch {
	case in.QueryLanguage != "" && in.QueryLanguage != types.QueryLanguageCwli:
		return nil, invalid("queryLanguage must be CWLI: queries in SQL and PPL are not offered")
	case from < 0 || to > timeMax:
		return nil, invalid("startTime and endTime must be in seconds since 1970")
	case from > to:
		return nil, invalid("startTime must not be after endTime")
	case in.Limit != nil && (*in.Limit < 1 || *in.Limit > queryRowsMax):
		return nil, invalid("limit must be from 1 to %d", queryRowsMax)
	case in.Limit != nil:
		r.Limit = int(*in.Limit)
	}
	var err error
	if r.Groups, err = a.queryGroups(in, from*1000); err != nil {
		return nil, err
	}
	id, err := a.Queries.Start(r)
	var mistake *logquery.Error
	switch {
	case errors.As(err, &mistake):
		return nil, malformed(mistake)
	case kurabe.CodeOf(err) == kurabe.CodeThrottled:
		return nil, fault.New(http.StatusBadRequest, "LimitExceededException", "%s", err)
	case err != nil:
		return nil, err
	}
	return &cloudwatchlogs.StartQueryOutput{QueryId: &id}, nil
}

// malformed tells where the mistake of a query stands.
func malformed(m *logquery.Error) error {
	f := fault.New(http.StatusBadRequest, "MalformedQueryException", "%s (characters %d to %d)", m.Message, m.Start, m.End)
	f.Detail = map[string]any{"queryCompileError": map[string]any{
		"message": m.Message, "location": map[string]any{"startCharOffset": m.Start, "endCharOffset": m.End},
	}}
	return f
}

// queryGroups are the groups that a query asks, each from a time on, in Unix milliseconds.
func (a API) queryGroups(in *cloudwatchlogs.StartQueryInput, from int64) (groups []insights.Group, err error) {
	given := 0
	var names []string
	for _, list := range [][]string{in.LogGroupNames, in.LogGroupIdentifiers, {aws.ToString(in.LogGroupName)}} {
		if len(list) > 0 && list[0] != "" {
			given++
			names = list
		}
	}
	if given != 1 {
		return nil, invalid("give exactly one of logGroupName, logGroupNames and logGroupIdentifiers")
	}
	if len(names) > queryGroupsMax {
		return nil, invalid("a query can ask %d log groups", queryGroupsMax)
	}
	for _, name := range names {
		g, err := a.Groups.Find(name)
		if err != nil {
			return nil, err
		}
		if !slices.ContainsFunc(groups, func(o insights.Group) bool { return o.Name == g.Name }) {
			groups = append(groups, insights.Group{Name: g.Name, From: max(from, a.expired(g)), Deleted: deleted(g)})
		}
	}
	return groups, nil
}

// getQueryResultsOutput is the SDK's without the statistic resultCount, which is a member of the
// SDK's alone.
type (
	getQueryResultsOutput struct {
		QueryLanguage types.QueryLanguage
		Status        types.QueryStatus
		Results       [][]types.ResultField
		Statistics    queryStatistics
		NextToken     *string
	}
	queryStatistics struct {
		RecordsMatched, RecordsScanned, EstimatedRecordsSkipped float64
		BytesScanned, EstimatedBytesSkipped, LogGroupsScanned   float64
	}
)

func (a API) getQueryResults(ctx context.Context, in *cloudwatchlogs.GetQueryResultsInput) (*getQueryResultsOutput, error) {
	answer, err := a.Queries.Results(ctx, *in.QueryId)
	if err != nil {
		return nil, err
	}
	rows, next, err := pageOfRows(answer.Rows, in.NextToken, in.MaxItems)
	if err != nil {
		return nil, err
	}
	out := &getQueryResultsOutput{
		QueryLanguage: types.QueryLanguageCwli, Status: types.QueryStatus(answer.Status), Results: [][]types.ResultField{}, NextToken: next,
		Statistics: queryStatistics{
			RecordsMatched: float64(answer.Statistics.Matched), RecordsScanned: float64(answer.Statistics.Scanned),
			BytesScanned: float64(answer.Statistics.Bytes), LogGroupsScanned: float64(len(answer.Groups)),
		},
	}
	for _, row := range rows {
		fields := make([]types.ResultField, len(row))
		for n := range row {
			fields[n] = types.ResultField{Field: &row[n].Name, Value: &row[n].Value}
		}
		out.Results = append(out.Results, fields)
	}
	return out, nil
}

// pageOfRows cuts a page out; without a size it has all rows.
func pageOfRows(rows [][]logquery.Field, token *string, size *int32) (page [][]logquery.Field, next *string, err error) {
	from, most := 0, len(rows)
	if token != nil {
		if from, err = strconv.Atoi(*token); err != nil || from < 0 {
			return nil, nil, invalid("nextToken is not one that GetQueryResults has told")
		}
	}
	if size != nil && *size > 0 {
		most = int(*size)
	}
	rows = rows[min(from, len(rows)):]
	if len(rows) > most {
		at := strconv.Itoa(from + most)
		return rows[:most], &at, nil
	}
	return rows, nil, nil
}

func (a API) stopQuery(ctx context.Context, in *cloudwatchlogs.StopQueryInput) (*cloudwatchlogs.StopQueryOutput, error) {
	if err := a.Queries.Stop(ctx, *in.QueryId); err != nil {
		return nil, err
	}
	return &cloudwatchlogs.StopQueryOutput{Success: true}, nil
}

func (a API) describeQueries(ctx context.Context, in *cloudwatchlogs.DescribeQueriesInput) (*cloudwatchlogs.DescribeQueriesOutput, error) {
	most, from := queriesPage, 0
	if in.MaxResults != nil {
		if most = int(*in.MaxResults); most < 1 || most > queriesPage {
			return nil, invalid("maxResults must be from 1 to %d", queriesPage)
		}
	}
	if in.NextToken != nil {
		var err error
		if from, err = strconv.Atoi(*in.NextToken); err != nil || from < 0 {
			return nil, invalid("nextToken is not one that DescribeQueries has told")
		}
	}
	list := slices.DeleteFunc(a.Queries.List(ctx), func(q insights.Query) bool {
		return in.LogGroupName != nil && !slices.Contains(q.Groups, *in.LogGroupName) ||
			in.Status != "" && string(in.Status) != string(q.Status) || in.QueryLanguage != "" && in.QueryLanguage != types.QueryLanguageCwli
	})
	list = list[min(from, len(list)):]
	out := &cloudwatchlogs.DescribeQueriesOutput{Queries: []types.QueryInfo{}}
	if len(list) > most {
		next := strconv.Itoa(from + most)
		list, out.NextToken = list[:most], &next
	}
	for _, q := range list {
		created, took, bytes := q.Created.UnixMilli(), q.Took.Milliseconds(), float64(q.Statistics.Bytes)
		out.Queries = append(out.Queries, types.QueryInfo{
			QueryLanguage: types.QueryLanguageCwli, QueryId: &q.ID, QueryString: &q.Text, Status: types.QueryStatus(q.Status),
			CreateTime: &created, LogGroupName: &q.Groups[0], QueryDuration: &took, BytesScanned: &bytes,
		})
	}
	return out, nil
}
