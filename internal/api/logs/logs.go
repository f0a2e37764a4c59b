package logs

import (
	"context"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs/types"

	"kurabe"
	"kurabe/internal/api"
	"kurabe/internal/aws/shape"
	"kurabe/internal/control/loggroup"
	"kurabe/internal/insights"
	"kurabe/internal/logevents"
	"kurabe/internal/logquery"
	"kurabe/internal/logread"
)

// API is the service.
type API struct {
	Groups loggroup.Groups
	Hosts  logread.Hosts
	// Here keeps the events that are put to this server.
	Here *logevents.Store
	Now  func() time.Time

	Queries *insights.Queries
}

// Service returns the table of actions.
func (a API) Service() api.Service {
	return api.Service{
		Name: shape.Logs.Service, Protocols: []api.Protocol{api.JSON{Target: "Logs_20140328", Version: "1.1", Model: shape.Logs}}, LargeBodies: true,
		Ops: api.Table(
			api.Write("CreateLogGroup", a.createLogGroup),
			api.Write("DeleteLogGroup", a.deleteLogGroup),
			api.Read("DescribeLogGroups", a.describeLogGroups),
			api.Write("PutLogGroupDeletionProtection", a.putDeletionProtection),
			api.Write("PutRetentionPolicy", a.putRetentionPolicy),
			api.Write("DeleteRetentionPolicy", a.deleteRetentionPolicy),
			api.Write("TagLogGroup", a.tagLogGroup),
			api.Write("UntagLogGroup", a.untagLogGroup),
			api.Read("ListTagsLogGroup", a.listTagsLogGroup),
			api.Write("TagResource", a.tagResource),
			api.Write("UntagResource", a.untagResource),
			api.Read("ListTagsForResource", a.listTags),
			api.Write("CreateLogStream", a.createLogStream),
			api.Write("DeleteLogStream", a.deleteLogStream),
			api.Read("DescribeLogStreams", a.describeLogStreams),
			api.Write("PutLogEvents", a.putLogEvents),
			api.Read("GetLogEvents", a.getLogEvents),
			api.Read("FilterLogEvents", a.filterLogEvents),
			api.Read("GetLogRecord", a.getLogRecord),
			api.Write("StartQuery", a.startQuery),
			api.Write("StopQuery", a.stopQuery),
			api.Read("GetQueryResults", a.getQueryResults),
			api.Read("DescribeQueries", a.describeQueries),
		),
		Errors: api.Errors{
			kurabe.CodeInvalidParameterValue: {Code: "InvalidParameterException", Status: 400},
			kurabe.CodeInvalidParameterCombo: {Code: "InvalidParameterException", Status: 400},
			kurabe.CodeResourceNotFound:      {Code: "ResourceNotFoundException", Status: 400},
			kurabe.CodeInstanceExists:        {Code: "ResourceAlreadyExistsException", Status: 400},
			kurabe.CodeInstanceQuota:         {Code: "LimitExceededException", Status: 400},
			kurabe.CodeInvalidInstanceState:  {Code: "ValidationException", Status: 400},
			kurabe.CodeThrottled:             {Code: "ThrottlingException", Status: 400},
			kurabe.CodeUnavailable:           {Code: "ServiceUnavailableException", Status: 503},
		},
		NotOffered: notOffered,
	}
}

const unknownAction = "this version does not know it"

// reasons say why actions are not offered, by a part of their names.
var reasons = []struct{ part, why string }{
	{"MetricFilter", "no metrics are made of log events; an alarm can be set on the metrics of a DB instance"},
	{"SubscriptionFilter", "there are no streams of Kinesis and no functions of Lambda that log events could be sent to"},
	{"Destination", "log events are not sent to other accounts or services"},
	{"Deliver", "log events are not sent to other accounts or services"},
	{"ExportTask", "log groups are not exported to S3; FilterLogEvents reads all their events"},
	{"Import", "log events come by PutLogEvents and from databases"},
	{"S3Table", "log events are not kept in S3"},
	{"Kms", "KMS is not offered; encrypt the disk of the host"},
	{"ResourcePolic", "whoever has the service's credentials may do everything, and nobody else may do anything"},
	{"BearerToken", "requests are signed with the service's credentials"},
	{"DataProtection", "log events are not searched for personal data"},
	{"AccountPolic", "there are no policies of accounts"},
	{"Index", "queries read all events of their time; fields have no index"},
	{"Anomal", "log events are not searched for anomalies"},
	{"Transformer", "log events are kept as they came; parse them in a query"},
	{"LookupTable", "queries have no lookup tables"},
	{"Scheduled", "queries are not started by a schedule"},
	{"QueryDefinition", "queries are not stored"},
	{"LiveTail", "the API sends no streams of events; aws logs tail --follow asks again and again"},
	{"GetLogObject", "the API sends no streams of events, and no part of an event is stored apart"},
	{"Integration", "there are no integrations with other services"},
	{"AggregateLogGroup", "there is one account with one class of log groups"},
	{"ListLogGroups", "DescribeLogGroups lists them"},
	{"Fields", "fields are found by a query: fields @message"},
	{"ConfigurationTemplates", "log events are not sent to other accounts or services"},
}

// notOffered knows every action of the model (TestEveryActionWorksOrHasAReason); one that a newer
// client has is not in it.
func notOffered(action string) string {
	for _, r := range reasons {
		if strings.Contains(action, r.part) {
			return r.why
		}
	}
	return unknownAction
}

func invalid(format string, args ...any) error {
	return kurabe.Errorf(kurabe.CodeInvalidParameterValue, format, args...)
}

// group finds a group that is named by its name or, in newer clients, by a name or an ARN.
func (a API) group(name, identifier *string) (kurabe.LogGroup, error) {
	switch {
	case name != nil && identifier != nil:
		return kurabe.LogGroup{}, invalid("LogGroup name and LogGroup ARN are mutually exclusive parameters.")
	case name == nil && identifier == nil:
		return kurabe.LogGroup{}, invalid("At least one of LogGroup name and LogGroup ARN is required.")
	case name != nil && strings.HasPrefix(*name, "arn:"):
		return kurabe.LogGroup{}, kurabe.CheckLogGroupName(*name)
	case name != nil:
		return a.Groups.Find(*name)
	}
	return a.Groups.Find(*identifier)
}

// deleted are the hosts that may not know of the deletion of a group that had the name before.
func deleted(g kurabe.LogGroup) map[kurabe.HostID]int64 {
	hosts := map[kurabe.HostID]int64{}
	for _, host := range g.Away {
		hosts[host] = g.DeletedAt.UnixMilli()
	}
	return hosts
}

// expired is the time before which no event of a group is shown, in Unix milliseconds.
func (a API) expired(g kurabe.LogGroup) int64 {
	if g.RetentionDays == 0 {
		return 0
	}
	return a.Now().AddDate(0, 0, -g.RetentionDays).UnixMilli()
}

// limit checks the most that a page is to have; most is AWS's bound.
func limit(asked *int32, most, normal int32) (int, error) {
	n := aws.ToInt32(asked)
	if asked == nil {
		n = normal
	}
	words, bound := "", int32(1)
	switch {
	case n < 1:
		words = "greater"
	case n > most:
		words, bound = "less", most
	default:
		return int(n), nil
	}
	return 0, invalid("1 validation error detected: Value '%d' at 'limit' failed to satisfy constraint: Member must have value %s than or equal to %d", n, words, bound)
}

func milliseconds(at time.Time) *int64 { return aws.Int64(at.UnixMilli()) }

// present is a time of an answer, absent when it is 0.
func present(at int64) *int64 {
	if at == 0 {
		return nil
	}
	return &at
}

// text is a message as JSON can carry it.
func text(message []byte) *string {
	return aws.String(strings.ToValidUTF8(string(message), "\uFFFD"))
}

func (a API) getLogRecord(ctx context.Context, in *cloudwatchlogs.GetLogRecordInput) (*cloudwatchlogs.GetLogRecordOutput, error) {
	group, at, err := logread.ReadPointer(aws.ToString(in.LogRecordPointer))
	if err != nil {
		return nil, invalid("The log record pointer is invalid: take the value of @ptr of a query")
	}
	if _, err := a.Groups.Find(group); err != nil {
		return nil, err
	}
	event, err := a.Hosts.Record(ctx, group, at)
	if err != nil {
		return nil, err
	}
	if event == nil || event.Time != at.Time {
		return nil, kurabe.Errorf(kurabe.CodeResourceNotFound, "The log event is not kept any more.")
	}
	stamp := func(at int64) string { return time.UnixMilli(at).UTC().Format("2006-01-02 15:04:05.000") }
	fields := logquery.Discover([]byte(*text(event.Message)))
	for name, value := range map[string]string{
		"@timestamp": stamp(event.Time), "@ingestionTime": stamp(event.Ingested), "@message": *text(event.Message),
		"@logStream": event.Stream, "@log": a.Groups.Account + ":" + group, "@ptr": *in.LogRecordPointer,
	} {
		fields[name] = value
	}
	return &cloudwatchlogs.GetLogRecordOutput{LogRecord: fields}, nil
}

// class says whether a class of groups is asked for that there is none of.
func class(c types.LogGroupClass) (other bool) { return c != "" && c != types.LogGroupClassStandard }
