//lint:file-ignore SA1019 clients use members and actions that AWS has deprecated, so they are tested.

package logs

import (
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs/types"

	"kurabe/internal/aws/shape"
	"kurabe/internal/logread"
)

func TestEveryActionWorksOrHasAReason(t *testing.T) {
	ops := API{}.Service().Ops
	for _, action := range shape.Logs.Actions() {
		_, works := ops[action]
		if !works && notOffered(action) == unknownAction {
			t.Errorf("%s neither works nor has a reason", action)
		}
	}
}

func TestGroups(t *testing.T) {
	w, group := newWorld(t), "/app/web"
	must(t, w.CreateLogGroup, &cloudwatchlogs.CreateLogGroupInput{LogGroupName: &group, Tags: map[string]string{"b": "2", "a": "1"}})
	refused(t, w.CreateLogGroup, &cloudwatchlogs.CreateLogGroupInput{LogGroupName: &group}, "ResourceAlreadyExistsException", "already exists")
	refused(t, w.CreateLogGroup, &cloudwatchlogs.CreateLogGroupInput{LogGroupName: aws.String("a b")}, "InvalidParameterException", "pattern")
	refused(t, w.CreateLogGroup, &cloudwatchlogs.CreateLogGroupInput{LogGroupName: aws.String("k"), KmsKeyId: aws.String("k")}, "InvalidParameterException", "KMS")
	refused(t, w.CreateLogGroup, &cloudwatchlogs.CreateLogGroupInput{LogGroupName: aws.String("k"), LogGroupClass: types.LogGroupClassInfrequentAccess}, "InvalidParameterException", "STANDARD")
	for _, name := range []string{"/app/db", "/App/api", "other"} {
		must(t, w.CreateLogGroup, &cloudwatchlogs.CreateLogGroupInput{LogGroupName: &name})
	}
	list := func(in cloudwatchlogs.DescribeLogGroupsInput) (names []string) {
		for {
			out := must(t, w.DescribeLogGroups, &in)
			for _, g := range out.LogGroups {
				names = append(names, *g.LogGroupName)
			}
			if in.NextToken = out.NextToken; in.NextToken == nil {
				return names
			}
		}
	}
	same(t, list(cloudwatchlogs.DescribeLogGroupsInput{Limit: aws.Int32(1)}), "/App/api", "/app/db", "/app/web", "other")
	same(t, list(cloudwatchlogs.DescribeLogGroupsInput{LogGroupNamePrefix: aws.String("/app")}), "/app/db", "/app/web")
	same(t, list(cloudwatchlogs.DescribeLogGroupsInput{LogGroupNamePattern: aws.String("APP")}), "/App/api", "/app/db", "/app/web")
	same(t, list(cloudwatchlogs.DescribeLogGroupsInput{LogGroupClass: types.LogGroupClassDelivery}))
	same(t, list(cloudwatchlogs.DescribeLogGroupsInput{LogGroupIdentifiers: []string{w.api.Groups.ARN("other"), group}}), "/app/web", "other")
	refused(t, w.DescribeLogGroups, &cloudwatchlogs.DescribeLogGroupsInput{Limit: aws.Int32(51)}, "InvalidParameterException", "limit")
	refused(t, w.DescribeLogGroups, &cloudwatchlogs.DescribeLogGroupsInput{NextToken: aws.String("x")}, "InvalidParameterException", "nextToken")

	arn := w.api.Groups.ARN(group)
	must(t, w.TagResource, &cloudwatchlogs.TagResourceInput{ResourceArn: aws.String(arn + ":*"), Tags: map[string]string{"a": "3", "c": "4"}})
	must(t, w.UntagLogGroup, &cloudwatchlogs.UntagLogGroupInput{LogGroupName: &group, Tags: []string{"b"}})
	if got := must(t, w.ListTagsForResource, &cloudwatchlogs.ListTagsForResourceInput{ResourceArn: &arn}).Tags; len(got) != 2 || got["a"] != "3" || got["c"] != "4" {
		t.Error(got)
	}
	must(t, w.PutRetentionPolicy, &cloudwatchlogs.PutRetentionPolicyInput{LogGroupName: &group, RetentionInDays: aws.Int32(7)})
	refused(t, w.PutRetentionPolicy, &cloudwatchlogs.PutRetentionPolicyInput{LogGroupName: &group, RetentionInDays: aws.Int32(8)}, "InvalidParameterException", "[1 3 5 7")
	out := must(t, w.DescribeLogGroups, &cloudwatchlogs.DescribeLogGroupsInput{LogGroupNamePrefix: &group}).LogGroups[0]
	if *out.RetentionInDays != 7 || *out.LogGroupArn != arn || *out.Arn != arn+":*" || *out.CreationTime == 0 {
		t.Errorf("%+v", out)
	}
	must(t, w.DeleteRetentionPolicy, &cloudwatchlogs.DeleteRetentionPolicyInput{LogGroupName: &group})
	must(t, w.PutLogGroupDeletionProtection, &cloudwatchlogs.PutLogGroupDeletionProtectionInput{LogGroupIdentifier: &arn, DeletionProtectionEnabled: aws.Bool(true)})
	refused(t, w.DeleteLogGroup, &cloudwatchlogs.DeleteLogGroupInput{LogGroupName: &group}, "ValidationException", "protection")
	refused(t, w.DeleteLogGroup, &cloudwatchlogs.DeleteLogGroupInput{LogGroupName: aws.String("absent")}, "ResourceNotFoundException", "log group")
}

func TestPut(t *testing.T) {
	w := newWorld(t)
	w.stream(t, "g", "s")
	now := time.Now().UnixMilli()
	day := (24 * time.Hour).Milliseconds()
	put := func(list ...types.InputLogEvent) *cloudwatchlogs.PutLogEventsInput {
		return &cloudwatchlogs.PutLogEventsInput{LogGroupName: aws.String("g"), LogStreamName: aws.String("s"), LogEvents: list, SequenceToken: aws.String("any")}
	}
	at := func(when int64, message string) types.InputLogEvent {
		return types.InputLogEvent{Timestamp: &when, Message: &message}
	}
	refused(t, w.PutLogEvents, put(at(now, "a"), at(now-1, "b")), "InvalidParameterException", "chronological order")
	refused(t, w.PutLogEvents, put(at(now-day-1, "a"), at(now, "b")), "InvalidParameterException", "24 hours")
	refused(t, w.PutLogEvents, put(at(now, "")), "InvalidParameterException", "length")
	refused(t, w.PutLogEvents, put(at(now, strings.Repeat("x", 1<<20-25))), "InvalidParameterException", "Log event too large")
	refused(t, w.PutLogEvents, put(at(now, strings.Repeat("x", 1<<19)), at(now, strings.Repeat("x", 1<<19))), "InvalidParameterException", "Upload too large")
	refused(t, w.PutLogEvents, put(make([]types.InputLogEvent, 0)...), "InvalidParameterException", "length")
	many := make([]types.InputLogEvent, 10_001)
	for n := range many {
		many[n] = at(now, "x")
	}
	refused(t, w.PutLogEvents, put(many...), "InvalidParameterException", "10000")
	must(t, w.PutLogEvents, put(many[1:]...))
	rubbish := "\x00\x01\u2028\"\\\n\t" + strings.Repeat("\x02", 500_000) // 3 MB of JSON
	must(t, w.PutLogEvents, put(at(now+1, rubbish)))
	refused(t, w.PutLogEvents, &cloudwatchlogs.PutLogEventsInput{LogGroupName: aws.String("g"), LogStreamName: aws.String("absent"), LogEvents: events(now, "a")}, "ResourceNotFoundException", "log stream")

	must(t, w.PutRetentionPolicy, &cloudwatchlogs.PutRetentionPolicyInput{LogGroupName: aws.String("g"), RetentionInDays: aws.Int32(3)})
	hour := time.Hour.Milliseconds()
	for name, c := range map[string]struct {
		list         []types.InputLogEvent
		old, expired *int32
		new          *int32
	}{
		"too old and expired": {[]types.InputLogEvent{at(now-14*day-hour, "x"), at(now-14*day+hour, "x")}, aws.Int32(1), aws.Int32(2), nil},
		"expired":             {[]types.InputLogEvent{at(now-3*day-hour, "x"), at(now-3*day+hour, "kept")}, nil, aws.Int32(1), nil},
		"too new":             {[]types.InputLogEvent{at(now, "kept"), at(now+3*hour, "x")}, nil, nil, aws.Int32(1)},
	} {
		info := must(t, w.PutLogEvents, put(c.list...)).RejectedLogEventsInfo
		if info == nil || !equal(info.TooOldLogEventEndIndex, c.old) || !equal(info.ExpiredLogEventEndIndex, c.expired) || !equal(info.TooNewLogEventStartIndex, c.new) {
			t.Errorf("%s: %+v", name, info)
		}
	}
	out := must(t, w.GetLogEvents, &cloudwatchlogs.GetLogEventsInput{LogGroupName: aws.String("g"), LogStreamName: aws.String("s"), StartTime: aws.Int64(now + 1)})
	if len(out.Events) != 1 || *out.Events[0].Message != rubbish {
		t.Error("what was put is not read")
	}
	if got := w.filter(t, cloudwatchlogs.FilterLogEventsInput{LogGroupName: aws.String("g"), FilterPattern: aws.String("kept")}); got != "kept kept" {
		t.Error(got)
	}
}

func equal(a, b *int32) bool { return (a == nil) == (b == nil) && (a == nil || *a == *b) }

// The two tokens lead through all events of a stream, to and fro, and stay valid when others are added.
func TestGetLogEvents(t *testing.T) {
	w := newWorld(t)
	w.stream(t, "g", "s")
	now := time.Now().UnixMilli()
	w.put(t, "g", "s", events(now, "0", "2", "4"))
	w.putB(t, "g", "s", events(now, "1", "3", "5")) // the same stream on another host
	get := func(token *string, head bool) ([]string, *cloudwatchlogs.GetLogEventsOutput) {
		t.Helper()
		out := must(t, w.GetLogEvents, &cloudwatchlogs.GetLogEventsInput{LogGroupIdentifier: aws.String(w.api.Groups.ARN("g")), LogStreamName: aws.String("s"), Limit: aws.Int32(2), StartFromHead: &head, NextToken: token})
		var list []string
		for _, e := range out.Events {
			list = append(list, *e.Message)
		}
		return list, out
	}
	list, newest := get(nil, false)
	same(t, list, "4", "5")
	list, out := get(newest.NextBackwardToken, false)
	same(t, list, "2", "3")
	list, out = get(out.NextBackwardToken, false)
	same(t, list, "0", "1")
	list, end := get(out.NextBackwardToken, false)
	same(t, list)
	if *end.NextBackwardToken != *out.NextBackwardToken {
		t.Error("the token at the end is another one")
	}
	list, _ = get(out.NextForwardToken, false)
	same(t, list, "2", "3")
	list, _ = get(nil, true)
	same(t, list, "0", "1")
	list, end = get(newest.NextForwardToken, false)
	same(t, list)
	if *end.NextForwardToken != *newest.NextForwardToken {
		t.Error("the token at the end is another one")
	}
	w.put(t, "g", "s", events(now+3, "6"))
	list, _ = get(newest.NextForwardToken, false)
	same(t, list, "6")
	refused(t, w.GetLogEvents, &cloudwatchlogs.GetLogEventsInput{LogGroupName: aws.String("g"), LogStreamName: aws.String("other"), NextToken: newest.NextForwardToken}, "InvalidParameterException", "nextToken")
	refused(t, w.GetLogEvents, &cloudwatchlogs.GetLogEventsInput{LogGroupName: aws.String("g"), LogStreamName: aws.String("other")}, "ResourceNotFoundException", "log stream")

	// A host that is away leaves a gap.
	w.bAway.Store(true)
	if got := w.filter(t, cloudwatchlogs.FilterLogEventsInput{LogGroupName: aws.String("g")}); got != "0 2 4 6" {
		t.Error(got)
	}
	refused(t, w.GetLogEvents, &cloudwatchlogs.GetLogEventsInput{LogGroupName: aws.String("g"), LogStreamName: aws.String("other")}, "ServiceUnavailableException", "host b")
	refused(t, w.DeleteLogStream, &cloudwatchlogs.DeleteLogStreamInput{LogGroupName: aws.String("g"), LogStreamName: aws.String("s")}, "ServiceUnavailableException", "host b")
}

func TestFilter(t *testing.T) {
	w := newWorld(t)
	now := time.Now().UnixMilli()
	w.stream(t, "g", "web-1")
	w.stream(t, "g", "web-2")
	w.stream(t, "g", "db")
	w.put(t, "g", "web-1", events(now, "a1", "a2 ERROR", "a3"))
	w.put(t, "g", "web-2", events(now+1, "b2", "b3 ERROR"))
	w.putB(t, "g", "db", events(now, "c1", `{"n":5}`))
	in := cloudwatchlogs.FilterLogEventsInput{LogGroupName: aws.String("g"), Limit: aws.Int32(2)}
	for _, c := range []struct {
		set  func(*cloudwatchlogs.FilterLogEventsInput)
		want string
	}{
		{func(*cloudwatchlogs.FilterLogEventsInput) {}, `c1 a1 {"n":5} a2 ERROR b2 a3 b3 ERROR`},
		{func(in *cloudwatchlogs.FilterLogEventsInput) { in.FilterPattern = aws.String("ERROR") }, "a2 ERROR b3 ERROR"},
		{func(in *cloudwatchlogs.FilterLogEventsInput) { in.FilterPattern = aws.String("{ $.n > 4 }") }, `{"n":5}`},
		{func(in *cloudwatchlogs.FilterLogEventsInput) { in.LogStreamNamePrefix = aws.String("web") }, "a1 a2 ERROR b2 a3 b3 ERROR"},
		{func(in *cloudwatchlogs.FilterLogEventsInput) { in.LogStreamNames = []string{"db", "web-2"} }, `c1 {"n":5} b2 b3 ERROR`},
		{func(in *cloudwatchlogs.FilterLogEventsInput) {
			in.StartTime, in.EndTime = aws.Int64(now+2), aws.Int64(now+2)
		}, "a3 b3 ERROR"},
		{func(in *cloudwatchlogs.FilterLogEventsInput) { in.LogStreamNamePrefix = aws.String("no") }, ""},
		{func(in *cloudwatchlogs.FilterLogEventsInput) { in.Interleaved = aws.Bool(true) }, `c1 a1 {"n":5} a2 ERROR b2 a3 b3 ERROR`},
	} {
		in := in
		c.set(&in)
		if got := w.filter(t, in); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
	page := must(t, w.FilterLogEvents, &in)
	if len(page.Events) != 2 || page.NextToken == nil || len(*page.Events[0].EventId) != 56 || *page.Events[0].EventId == *page.Events[1].EventId {
		t.Errorf("%+v", page)
	}
	other := in
	other.NextToken, other.FilterPattern = page.NextToken, aws.String("ERROR")
	refused(t, w.FilterLogEvents, &other, "InvalidParameterException", "nextToken")
	both := in
	both.LogStreamNames, both.LogStreamNamePrefix = []string{"db"}, aws.String("d")
	refused(t, w.FilterLogEvents, &both, "InvalidParameterException", "mutually exclusive")
	bad := in
	bad.FilterPattern = aws.String("{ $.n }")
	refused(t, w.FilterLogEvents, &bad, "InvalidParameterException", "at character 7")
	absent := in
	absent.LogStreamNames = []string{"absent"}
	refused(t, w.FilterLogEvents, &absent, "ResourceNotFoundException", "log stream")

	pointer := logread.Pointer("g", logread.Place{Time: now, Stream: "db", Host: "b", Number: 1})
	record := must(t, w.GetLogRecord, &cloudwatchlogs.GetLogRecordInput{LogRecordPointer: &pointer}).LogRecord
	if record["@message"] != "c1" || record["@logStream"] != "db" || record["@log"] != "000000000000:g" {
		t.Error(record)
	}
	refused(t, w.GetLogRecord, &cloudwatchlogs.GetLogRecordInput{LogRecordPointer: aws.String("x")}, "InvalidParameterException", "pointer")
}

func TestStreams(t *testing.T) {
	w := newWorld(t)
	now := time.Now().UnixMilli()
	for _, name := range []string{"c", "a", "b", "a/x"} {
		w.stream(t, "g", name)
	}
	refused(t, w.CreateLogStream, &cloudwatchlogs.CreateLogStreamInput{LogGroupName: aws.String("g"), LogStreamName: aws.String("a")}, "ResourceAlreadyExistsException", "exists")
	refused(t, w.CreateLogStream, &cloudwatchlogs.CreateLogStreamInput{LogGroupName: aws.String("g"), LogStreamName: aws.String("a:b")}, "InvalidParameterException", "pattern")
	refused(t, w.CreateLogStream, &cloudwatchlogs.CreateLogStreamInput{LogGroupName: aws.String("no"), LogStreamName: aws.String("a")}, "ResourceNotFoundException", "log group")
	w.put(t, "g", "a", events(now+5, "x"))
	w.put(t, "g", "c", events(now+9, "x"))
	w.putB(t, "g", "a", events(now+7, "yy"))
	list := func(in cloudwatchlogs.DescribeLogStreamsInput) (all []types.LogStream) {
		in.LogGroupName, in.Limit = aws.String("g"), aws.Int32(3)
		for {
			out := must(t, w.DescribeLogStreams, &in)
			all = append(all, out.LogStreams...)
			if in.NextToken = out.NextToken; in.NextToken == nil {
				return all
			}
		}
	}
	same(t, names(list(cloudwatchlogs.DescribeLogStreamsInput{})), "a", "a/x", "b", "c")
	same(t, names(list(cloudwatchlogs.DescribeLogStreamsInput{Descending: aws.Bool(true)})), "c", "b", "a/x", "a")
	same(t, names(list(cloudwatchlogs.DescribeLogStreamsInput{LogStreamNamePrefix: aws.String("a")})), "a", "a/x")
	same(t, names(list(cloudwatchlogs.DescribeLogStreamsInput{OrderBy: types.OrderByLastEventTime, Descending: aws.Bool(true)})), "c", "a", "b", "a/x")
	a := list(cloudwatchlogs.DescribeLogStreamsInput{})[0]
	if *a.FirstEventTimestamp != now+5 || *a.LastEventTimestamp != now+7 || *a.StoredBytes != 3 || *a.Arn != w.api.Groups.ARN("g")+":log-stream:a" || *a.UploadSequenceToken == "" {
		t.Errorf("%+v", a)
	}
	refused(t, w.DescribeLogStreams, &cloudwatchlogs.DescribeLogStreamsInput{LogGroupName: aws.String("g"), OrderBy: types.OrderByLastEventTime, LogStreamNamePrefix: aws.String("a")}, "InvalidParameterException", "LastEventTime")
	must(t, w.DeleteLogStream, &cloudwatchlogs.DeleteLogStreamInput{LogGroupName: aws.String("g"), LogStreamName: aws.String("a")})
	refused(t, w.DeleteLogStream, &cloudwatchlogs.DeleteLogStreamInput{LogGroupName: aws.String("g"), LogStreamName: aws.String("a")}, "ResourceNotFoundException", "log stream")
	same(t, names(list(cloudwatchlogs.DescribeLogStreamsInput{})), "a/x", "b", "c")
}

// A host that was away at a deletion has old streams: nobody sees them, not even in a group that
// was made anew, and they go when the host is told.
func TestDeletionWhileAHostIsAway(t *testing.T) {
	w := newWorld(t)
	now := time.Now().UnixMilli()
	w.stream(t, "g", "s")
	w.put(t, "g", "s", events(now, "old"))
	w.putB(t, "g", "s", events(now, "old"))
	w.putB(t, "g", "far", events(now, "old"))
	w.bAway.Store(true)
	w.elapsed.Add(int64(time.Minute))
	must(t, w.DeleteLogGroup, &cloudwatchlogs.DeleteLogGroupInput{LogGroupName: aws.String("g")})
	refused(t, w.FilterLogEvents, &cloudwatchlogs.FilterLogEventsInput{LogGroupName: aws.String("g")}, "ResourceNotFoundException", "log group")
	must(t, w.CreateLogGroup, &cloudwatchlogs.CreateLogGroupInput{LogGroupName: aws.String("g")})
	w.bAway.Store(false)
	if got := w.filter(t, cloudwatchlogs.FilterLogEventsInput{LogGroupName: aws.String("g")}); got != "" {
		t.Error(got)
	}
	w.elapsed.Add(int64(time.Minute))
	w.putB(t, "g", "new", events(now, "new"))
	if got := w.filter(t, cloudwatchlogs.FilterLogEventsInput{LogGroupName: aws.String("g")}); got != "new" {
		t.Error(got)
	}
	r, _ := w.api.Groups.View.LogGroup("g")
	told := w.api.Hosts.DeleteGroup(t.Context(), "g", r.Value.DeletedAt, r.Value.Away)
	if err := w.api.Groups.Told(t.Context(), "g", r.Value.DeletedAt, told); err != nil {
		t.Fatal(err)
	}
	if r, _ := w.api.Groups.View.LogGroup("g"); len(r.Value.Away) > 0 || !r.Value.DeletedAt.IsZero() {
		t.Errorf("%+v", r.Value)
	}
	if left := w.stores["b"].Streams("g", ""); len(left) != 1 || left[0].Name != "new" {
		t.Errorf("%+v", left)
	}
}

func FuzzTokens(f *testing.F) {
	place := logread.Place{Time: 1, Stream: "s", Host: "h", Number: 2}
	f.Add(*eventToken{1, place}.text(forward))
	f.Add(*listToken{1, "x"}.text())
	f.Add(logread.Pointer("g", place))
	f.Fuzz(func(t *testing.T, text string) {
		_, _ = readListToken(&text)
		_, _ = readEventToken(text, forward, 1)
		if group, at, err := logread.ReadPointer(text); err == nil {
			if g, p, err := logread.ReadPointer(logread.Pointer(group, at)); err != nil || g != group || p != at {
				t.Fatal(g, p, err)
			}
		}
	})
}
