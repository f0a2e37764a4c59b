package rds

import (
	"errors"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/rds"
	"github.com/aws/aws-sdk-go-v2/service/rds/types"
)

// The calls are those that Terraform's aws_db_parameter_group makes.
func TestParameterGroupByRealClient(t *testing.T) {
	w, ctx := newTestWorld(t), t.Context()
	name := aws.String("my-pg")
	created := must(w.client.CreateDBParameterGroup(ctx, &rds.CreateDBParameterGroupInput{
		DBParameterGroupName: name, DBParameterGroupFamily: aws.String("postgres15"), Description: aws.String("mine"),
		Tags: []types.Tag{{Key: aws.String("k"), Value: aws.String("v")}},
	}))(t)
	if arn := *created.DBParameterGroup.DBParameterGroupArn; arn != "arn:aws:rds:us-east-1:000000000000:pg:my-pg" {
		t.Error(arn)
	}
	must(w.client.ModifyDBParameterGroup(ctx, &rds.ModifyDBParameterGroupInput{DBParameterGroupName: name, Parameters: []types.Parameter{
		{ParameterName: aws.String("p001"), ParameterValue: aws.String("7"), ApplyMethod: types.ApplyMethodImmediate},
		{ParameterName: aws.String("shared_buffers"), ParameterValue: aws.String("{DBInstanceClassMemory/16384}"), ApplyMethod: types.ApplyMethodPendingReboot},
	}}))(t)
	_, err := w.client.ModifyDBParameterGroup(ctx, &rds.ModifyDBParameterGroupInput{DBParameterGroupName: name, Parameters: []types.Parameter{
		{ParameterName: aws.String("shared_buffers"), ParameterValue: aws.String("99"), ApplyMethod: types.ApplyMethodImmediate},
	}})
	wantCode(t, err, "InvalidParameterCombination", "cannot use immediate apply method for static parameter")

	seen, pages := map[string]types.Parameter{}, 0
	for p := rds.NewDescribeDBParametersPaginator(w.client, &rds.DescribeDBParametersInput{DBParameterGroupName: name}); p.HasMorePages(); pages++ {
		for _, parameter := range must(p.NextPage(ctx))(t).Parameters {
			seen[*parameter.ParameterName] = parameter
		}
	}
	if pages != 2 || len(seen) != 130 {
		t.Errorf("%d parameters on %d pages", len(seen), pages)
	}
	buffers, plain := seen["shared_buffers"], seen["p002"]
	if *buffers.ParameterValue != "{DBInstanceClassMemory/16384}" || *buffers.Source != "user" || buffers.ApplyMethod != types.ApplyMethodPendingReboot || *buffers.ApplyType != "static" {
		t.Errorf("%+v", buffers)
	}
	if *plain.Source != "engine-default" || *plain.ParameterValue != "1" || !*plain.IsModifiable || *plain.AllowedValues != "0-100" || *plain.DataType != "integer" {
		t.Errorf("%+v", plain)
	}
	user := must(w.client.DescribeDBParameters(ctx, &rds.DescribeDBParametersInput{DBParameterGroupName: name, Source: aws.String("user")}))(t)
	if len(user.Parameters) != 2 {
		t.Errorf("%d of the user", len(user.Parameters))
	}
	named := must(w.client.DescribeEngineDefaultParameters(ctx, &rds.DescribeEngineDefaultParametersInput{
		DBParameterGroupFamily: aws.String("postgres15"), Filters: filter("parameter-name", "shared_buffers"),
	}))(t)
	if list := named.EngineDefaults.Parameters; len(list) != 1 || *list[0].Source != "system" || *list[0].ParameterValue != "{DBInstanceClassMemory/32768}" {
		t.Errorf("%+v", list)
	}
	must(w.client.ResetDBParameterGroup(ctx, &rds.ResetDBParameterGroupInput{DBParameterGroupName: name, ResetAllParameters: aws.Bool(false),
		Parameters: []types.Parameter{{ParameterName: aws.String("p001"), ApplyMethod: types.ApplyMethodImmediate}}}))(t)
	events := must(w.client.DescribeEvents(ctx, &rds.DescribeEventsInput{SourceType: types.SourceTypeDbParameterGroup, SourceIdentifier: name}))(t)
	if len(events.Events) != 3 || *events.Events[0].Message != "Updated parameter p001 to 7 with apply method immediate" || *events.Events[0].SourceArn != *created.DBParameterGroup.DBParameterGroupArn {
		t.Errorf("%+v", events.Events)
	}
	must(w.client.DeleteDBParameterGroup(ctx, &rds.DeleteDBParameterGroupInput{DBParameterGroupName: name}))(t)
	_, err = w.client.DescribeDBParameterGroups(ctx, &rds.DescribeDBParameterGroupsInput{DBParameterGroupName: name})
	var missing *types.DBParameterGroupNotFoundFault
	if !errors.As(err, &missing) {
		t.Errorf("got %v", err)
	}
	_, err = w.client.DeleteDBParameterGroup(ctx, &rds.DeleteDBParameterGroupInput{DBParameterGroupName: aws.String("default.postgres15")})
	wantCode(t, err, "InvalidDBParameterGroupState", "default")
}

func filter(name string, values ...string) []types.Filter {
	return []types.Filter{{Name: aws.String(name), Values: values}}
}

func TestSubnetAndOptionGroupsByRealClient(t *testing.T) {
	w, ctx := newTestWorld(t), t.Context()
	created := must(w.client.CreateDBSubnetGroup(ctx, &rds.CreateDBSubnetGroupInput{
		DBSubnetGroupName: aws.String("Net"), DBSubnetGroupDescription: aws.String("d"), SubnetIds: []string{"subnet-us-east-1a", "subnet-us-east-1b"},
	}))(t).DBSubnetGroup
	if *created.DBSubnetGroupName != "net" || !strings.HasPrefix(*created.VpcId, "vpc-") || len(created.Subnets) != 2 || *created.SubnetGroupStatus != "Complete" ||
		*created.Subnets[1].SubnetAvailabilityZone.Name != "us-east-1b" || created.Subnets[0].SubnetOutpost == nil {
		t.Errorf("%+v", created)
	}
	_, err := w.client.CreateDBSubnetGroup(ctx, &rds.CreateDBSubnetGroupInput{
		DBSubnetGroupName: aws.String("one"), DBSubnetGroupDescription: aws.String("d"), SubnetIds: []string{"subnet-us-east-1a"},
	})
	wantCode(t, err, "DBSubnetGroupDoesNotCoverEnoughAZs", "Current AZ coverage: us-east-1a.")
	_, err = w.client.ModifyDBSubnetGroup(ctx, &rds.ModifyDBSubnetGroupInput{DBSubnetGroupName: aws.String("net"), SubnetIds: []string{"sn-1", "sn-2"}})
	wantCode(t, err, "InvalidSubnet", "[sn-1, sn-2]")
	_, err = w.client.DeleteDBSubnetGroup(ctx, &rds.DeleteDBSubnetGroupInput{DBSubnetGroupName: aws.String("default")})
	wantCode(t, err, "InvalidDBSubnetGroupStateFault", "default")
	list := must(w.client.DescribeDBSubnetGroups(ctx, &rds.DescribeDBSubnetGroupsInput{}))(t)
	if len(list.DBSubnetGroups) != 2 || *list.DBSubnetGroups[0].DBSubnetGroupName != "default" || len(list.DBSubnetGroups[0].Subnets) != 3 {
		t.Errorf("%+v", list.DBSubnetGroups)
	}
	_, err = w.client.DescribeDBSubnetGroups(ctx, &rds.DescribeDBSubnetGroupsInput{DBSubnetGroupName: aws.String("nope")})
	wantCode(t, err, "DBSubnetGroupNotFoundFault", "does not exist")

	options := must(w.client.DescribeOptionGroups(ctx, &rds.DescribeOptionGroupsInput{EngineName: aws.String("postgres")}))(t)
	if len(options.OptionGroupsList) != 1 || *options.OptionGroupsList[0].OptionGroupName != "default:postgres-15" || *options.OptionGroupsList[0].MajorEngineVersion != "15" {
		t.Errorf("%+v", options.OptionGroupsList)
	}
	_, err = w.client.DeleteOptionGroup(ctx, &rds.DeleteOptionGroupInput{OptionGroupName: aws.String("default:postgres-15")})
	wantCode(t, err, "InvalidOptionGroupStateFault", "engines load what their parameters name")
	_, err = w.client.ModifyOptionGroup(ctx, &rds.ModifyOptionGroupInput{OptionGroupName: aws.String("mine")})
	wantCode(t, err, "OptionGroupNotFoundFault", "mine not found")
	_, err = w.client.CreateOptionGroup(ctx, &rds.CreateOptionGroupInput{OptionGroupName: aws.String("mine"), EngineName: aws.String("postgres"),
		MajorEngineVersion: aws.String("15"), OptionGroupDescription: aws.String("d")})
	wantCode(t, err, "UnsupportedOperation", "engines load what their parameters name")
	none := must(w.client.DescribeOptionGroupOptions(ctx, &rds.DescribeOptionGroupOptionsInput{EngineName: aws.String("mariadb")}))(t)
	if len(none.OptionGroupOptions) != 0 {
		t.Error(none.OptionGroupOptions)
	}
}

func TestTagsByRealClient(t *testing.T) {
	w, ctx := newTestWorld(t), t.Context()
	arn := aws.String(w.c.ARN("db", "orders"))
	tag := func(k, v string) types.Tag { return types.Tag{Key: aws.String(k), Value: aws.String(v)} }
	must(w.client.AddTagsToResource(ctx, &rds.AddTagsToResourceInput{ResourceName: arn, Tags: []types.Tag{tag("z", "1"), tag("a", "2")}}))(t)
	must(w.client.RemoveTagsFromResource(ctx, &rds.RemoveTagsFromResourceInput{ResourceName: arn, TagKeys: []string{"a"}}))(t)
	list := must(w.client.ListTagsForResource(ctx, &rds.ListTagsForResourceInput{ResourceName: arn}))(t)
	if len(list.TagList) != 1 || *list.TagList[0].Key != "z" || *list.TagList[0].Value != "1" {
		t.Errorf("%+v", list.TagList)
	}
	_, err := w.client.ListTagsForResource(ctx, &rds.ListTagsForResourceInput{ResourceName: aws.String("x")})
	wantCode(t, err, "InvalidParameterValue", "Invalid resource name")
	_, err = w.client.ListTagsForResource(ctx, &rds.ListTagsForResourceInput{ResourceName: aws.String(w.c.ARN("snapshot", "x"))})
	wantCode(t, err, "DBSnapshotNotFound", "")
}

func TestPagesByRealClient(t *testing.T) {
	w, ctx := newTestWorld(t), t.Context()
	describe := func(in rds.DescribeDBParametersInput) error {
		in.DBParameterGroupName = aws.String("default.postgres15")
		_, err := w.client.DescribeDBParameters(ctx, &in)
		return err
	}
	for _, n := range []int32{-1, 0, 19, 101} {
		wantCode(t, describe(rds.DescribeDBParametersInput{MaxRecords: aws.Int32(n)}), "InvalidParameterValue", "Must be between 20 and 100")
	}
	for _, marker := range []string{"x", "p010", "!!", "a3VyYWJlMTo"} {
		wantCode(t, describe(rds.DescribeDBParametersInput{Marker: aws.String(marker)}), "InvalidParameterValue", "Marker")
	}
	wantCode(t, describe(rds.DescribeDBParametersInput{Filters: filter("colour", "red")}), "InvalidParameterValue", "Unrecognized filter name: colour")
}
