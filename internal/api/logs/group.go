package logs

import (
	"context"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs/types"

	"kurabe"
	"kurabe/internal/control"
)

const listMax = 50 // groups or streams in a page

func (a API) createLogGroup(ctx context.Context, in *cloudwatchlogs.CreateLogGroupInput) (*cloudwatchlogs.CreateLogGroupOutput, error) {
	switch {
	case in.KmsKeyId != nil:
		return nil, invalid("KmsKeyId is not supported: KMS is not offered; encrypt the disk of the host")
	case class(in.LogGroupClass):
		return nil, invalid("LogGroupClass %.40s is not supported: all log groups are STANDARD", in.LogGroupClass)
	}
	return nil, a.Groups.Create(ctx, *in.LogGroupName, tagsOf(in.Tags), aws.ToBool(in.DeletionProtectionEnabled))
}

func (a API) deleteLogGroup(ctx context.Context, in *cloudwatchlogs.DeleteLogGroupInput) (*cloudwatchlogs.DeleteLogGroupOutput, error) {
	hosts := a.Hosts.IDs()
	name, at, err := a.Groups.Delete(ctx, *in.LogGroupName, hosts)
	if err != nil {
		return nil, err
	}
	// A host that is away is told by the loop of the elected server.
	return nil, a.Groups.Told(ctx, name, at, a.Hosts.DeleteGroup(ctx, name, at, hosts))
}

func (a API) describeLogGroups(ctx context.Context, in *cloudwatchlogs.DescribeLogGroupsInput) (*cloudwatchlogs.DescribeLogGroupsOutput, error) {
	most, err := limit(in.Limit, listMax, listMax)
	if err != nil {
		return nil, err
	}
	list, err := a.selectGroups(in)
	if err != nil {
		return nil, err
	}
	after, err := readListToken(in.NextToken)
	if err != nil {
		return nil, err
	}
	out := &cloudwatchlogs.DescribeLogGroupsOutput{LogGroups: []types.LogGroup{}}
	list, next := control.MarkerPage(list, func(g kurabe.LogGroup) string { return g.Name }, after.Name, most)
	if next != "" {
		out.NextToken = listToken{Name: next}.text()
	}
	var names []string
	for _, g := range list {
		names = append(names, g.Name)
	}
	bytes, err := a.Hosts.Bytes(ctx, names)
	if err != nil {
		return nil, err
	}
	for _, g := range list {
		arn := a.Groups.ARN(g.Name)
		one := types.LogGroup{
			LogGroupName: &g.Name, Arn: aws.String(arn + ":*"), LogGroupArn: &arn, CreationTime: milliseconds(g.CreatedAt),
			LogGroupClass: types.LogGroupClassStandard, MetricFilterCount: aws.Int32(0), StoredBytes: aws.Int64(bytes[g.Name]), DeletionProtectionEnabled: &g.Protected,
		}
		if g.RetentionDays > 0 {
			one.RetentionInDays = aws.Int32(int32(g.RetentionDays))
		}
		out.LogGroups = append(out.LogGroups, one)
	}
	return out, nil
}

// selectGroups lists the groups that a request is about.
func (a API) selectGroups(in *cloudwatchlogs.DescribeLogGroupsInput) ([]kurabe.LogGroup, error) {
	switch {
	case in.LogGroupNamePrefix != nil && in.LogGroupNamePattern != nil:
		return nil, invalid("LogGroup name prefix and LogGroup name pattern are mutually exclusive parameters.")
	case len(in.LogGroupIdentifiers) > 0 && (in.LogGroupNamePrefix != nil || in.LogGroupNamePattern != nil):
		return nil, invalid("LogGroup identifiers and LogGroup name prefix or pattern are mutually exclusive parameters.")
	case class(in.LogGroupClass):
		return nil, nil
	}
	for _, account := range in.AccountIdentifiers {
		if account != a.Groups.Account {
			return nil, nil
		}
	}
	var wanted []string
	for _, identifier := range in.LogGroupIdentifiers {
		name, err := a.Groups.Name(identifier)
		if err != nil {
			return nil, err
		}
		wanted = append(wanted, name)
	}
	pattern := strings.ToLower(aws.ToString(in.LogGroupNamePattern))
	return slices.DeleteFunc(a.Groups.List(), func(g kurabe.LogGroup) bool {
		return !strings.HasPrefix(g.Name, aws.ToString(in.LogGroupNamePrefix)) || !strings.Contains(strings.ToLower(g.Name), pattern) ||
			wanted != nil && !slices.Contains(wanted, g.Name)
	}), nil
}

func (a API) putDeletionProtection(ctx context.Context, in *cloudwatchlogs.PutLogGroupDeletionProtectionInput) (*cloudwatchlogs.PutLogGroupDeletionProtectionOutput, error) {
	return nil, a.Groups.SetProtected(ctx, *in.LogGroupIdentifier, *in.DeletionProtectionEnabled)
}

func (a API) putRetentionPolicy(ctx context.Context, in *cloudwatchlogs.PutRetentionPolicyInput) (*cloudwatchlogs.PutRetentionPolicyOutput, error) {
	days := int(*in.RetentionInDays)
	if err := kurabe.CheckLogRetention(days); err != nil {
		return nil, err
	}
	return nil, a.Groups.SetRetention(ctx, *in.LogGroupName, days)
}

func (a API) deleteRetentionPolicy(ctx context.Context, in *cloudwatchlogs.DeleteRetentionPolicyInput) (*cloudwatchlogs.DeleteRetentionPolicyOutput, error) {
	return nil, a.Groups.SetRetention(ctx, *in.LogGroupName, 0)
}

func (a API) tagLogGroup(ctx context.Context, in *cloudwatchlogs.TagLogGroupInput) (*cloudwatchlogs.TagLogGroupOutput, error) {
	return nil, a.Groups.AddTags(ctx, *in.LogGroupName, tagsOf(in.Tags))
}

func (a API) untagLogGroup(ctx context.Context, in *cloudwatchlogs.UntagLogGroupInput) (*cloudwatchlogs.UntagLogGroupOutput, error) {
	return nil, a.Groups.RemoveTags(ctx, *in.LogGroupName, in.Tags)
}

func (a API) listTagsLogGroup(_ context.Context, in *cloudwatchlogs.ListTagsLogGroupInput) (*cloudwatchlogs.ListTagsLogGroupOutput, error) {
	g, err := a.Groups.Find(*in.LogGroupName)
	return &cloudwatchlogs.ListTagsLogGroupOutput{Tags: tagMap(g.Tags)}, err
}

func (a API) tagResource(ctx context.Context, in *cloudwatchlogs.TagResourceInput) (*cloudwatchlogs.TagResourceOutput, error) {
	return nil, a.Groups.AddTags(ctx, *in.ResourceArn, tagsOf(in.Tags))
}

func (a API) untagResource(ctx context.Context, in *cloudwatchlogs.UntagResourceInput) (*cloudwatchlogs.UntagResourceOutput, error) {
	return nil, a.Groups.RemoveTags(ctx, *in.ResourceArn, in.TagKeys)
}

func (a API) listTags(_ context.Context, in *cloudwatchlogs.ListTagsForResourceInput) (*cloudwatchlogs.ListTagsForResourceOutput, error) {
	g, err := a.Groups.Find(*in.ResourceArn)
	return &cloudwatchlogs.ListTagsForResourceOutput{Tags: tagMap(g.Tags)}, err
}

func tagsOf(tags map[string]string) (list []kurabe.Tag) {
	for key, value := range tags {
		list = append(list, kurabe.Tag{Key: key, Value: value})
	}
	slices.SortFunc(list, func(a, b kurabe.Tag) int { return strings.Compare(a.Key, b.Key) })
	return list
}

func tagMap(list []kurabe.Tag) map[string]string {
	tags := map[string]string{}
	for _, t := range list {
		tags[t.Key] = t.Value
	}
	return tags
}
