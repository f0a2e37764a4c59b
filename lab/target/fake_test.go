package target

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/rds"
	"github.com/aws/aws-sdk-go-v2/service/rds/types"
	"github.com/aws/smithy-go"

	"kurabe/lab/dial"
	"kurabe/lab/study"
)

// fake is a service in memory. Its instances are available at once and gone at the second
// look after their deletion.
type fake struct {
	instances map[string]*types.DBInstance
	snapshots map[string]*types.DBSnapshot
	groups    map[string]*fakeGroup
	restored  []*rds.RestoreDBInstanceFromDBSnapshotInput
	together  int // instances that the host has room for, 0 for any
	mostSeen  int // at one time
	rebooted  int
	fail      map[string]error // by action
}

type fakeGroup struct {
	tags   []types.Tag
	values map[string]string
}

func newFake() *fake {
	return &fake{instances: map[string]*types.DBInstance{}, snapshots: map[string]*types.DBSnapshot{}, groups: map[string]*fakeGroup{}, fail: map[string]error{}}
}

func refused(code, message string) error {
	return &smithy.GenericAPIError{Code: code, Message: message}
}

func (f *fake) DescribeDBEngineVersions(_ context.Context, in *rds.DescribeDBEngineVersionsInput, _ ...func(*rds.Options)) (*rds.DescribeDBEngineVersionsOutput, error) {
	return &rds.DescribeDBEngineVersionsOutput{DBEngineVersions: []types.DBEngineVersion{{
		Engine: in.Engine, EngineVersion: aws.String("15.18"), DBParameterGroupFamily: aws.String("postgres15"), DBEngineVersionDescription: aws.String("PostgreSQL 15.18"),
	}}}, f.fail["versions"]
}

func (f *fake) DescribeOrderableDBInstanceOptions(_ context.Context, in *rds.DescribeOrderableDBInstanceOptionsInput, _ ...func(*rds.Options)) (*rds.DescribeOrderableDBInstanceOptionsOutput, error) {
	out := &rds.DescribeOrderableDBInstanceOptionsOutput{}
	if class := aws.ToString(in.DBInstanceClass); class != "db.t3.small" && class != "db.t3.large" {
		return out, nil
	}
	out.OrderableDBInstanceOptions = []types.OrderableDBInstanceOption{
		{StorageType: aws.String("local"), MinStorageSize: aws.Int32(5), MaxStorageSize: aws.Int32(100)},
		{StorageType: aws.String("io1"), MinStorageSize: aws.Int32(100), MaxStorageSize: aws.Int32(1000), SupportsIops: aws.Bool(true),
			MinIopsPerDbInstance: aws.Int32(1000), MaxIopsPerDbInstance: aws.Int32(20000), MaxIopsPerGib: aws.Float64(50)},
	}
	return out, nil
}

func (f *fake) DescribeEngineDefaultParameters(_ context.Context, in *rds.DescribeEngineDefaultParametersInput, _ ...func(*rds.Options)) (*rds.DescribeEngineDefaultParametersOutput, error) {
	if in.Marker == nil { // two pages, as a service has many
		return &rds.DescribeEngineDefaultParametersOutput{EngineDefaults: &types.EngineDefaults{Marker: aws.String("more"), Parameters: []types.Parameter{
			{ParameterName: aws.String("log_statement"), ApplyType: aws.String("dynamic")},
		}}}, nil
	}
	return &rds.DescribeEngineDefaultParametersOutput{EngineDefaults: &types.EngineDefaults{Parameters: []types.Parameter{
		{ParameterName: aws.String("shared_preload_libraries"), ApplyType: aws.String("static")},
		{ParameterName: aws.String("rds.extensions"), ParameterValue: aws.String("citext,pg_trgm")},
	}}}, nil
}

func (f *fake) CreateDBParameterGroup(_ context.Context, in *rds.CreateDBParameterGroupInput, _ ...func(*rds.Options)) (*rds.CreateDBParameterGroupOutput, error) {
	f.groups[*in.DBParameterGroupName] = &fakeGroup{in.Tags, map[string]string{}}
	return &rds.CreateDBParameterGroupOutput{}, nil
}

func (f *fake) ModifyDBParameterGroup(_ context.Context, in *rds.ModifyDBParameterGroupInput, _ ...func(*rds.Options)) (*rds.ModifyDBParameterGroupOutput, error) {
	for _, p := range in.Parameters {
		if strings.Contains(*p.ParameterValue, "impossible") {
			return nil, refused("InvalidParameterValue", "Invalid parameter value: impossible")
		}
		f.groups[*in.DBParameterGroupName].values[*p.ParameterName] = *p.ParameterValue + " " + string(p.ApplyMethod)
	}
	return &rds.ModifyDBParameterGroupOutput{}, nil
}

func (f *fake) ResetDBParameterGroup(_ context.Context, in *rds.ResetDBParameterGroupInput, _ ...func(*rds.Options)) (*rds.ResetDBParameterGroupOutput, error) {
	clear(f.groups[*in.DBParameterGroupName].values)
	return &rds.ResetDBParameterGroupOutput{}, nil
}

func (f *fake) DeleteDBParameterGroup(_ context.Context, in *rds.DeleteDBParameterGroupInput, _ ...func(*rds.Options)) (*rds.DeleteDBParameterGroupOutput, error) {
	for _, i := range f.instances {
		if len(i.DBParameterGroups) > 0 && *i.DBParameterGroups[0].DBParameterGroupName == *in.DBParameterGroupName {
			return nil, refused("InvalidDBParameterGroupState", "an instance has it")
		}
	}
	delete(f.groups, *in.DBParameterGroupName)
	return &rds.DeleteDBParameterGroupOutput{}, nil
}

func (f *fake) DescribeDBParameterGroups(context.Context, *rds.DescribeDBParameterGroupsInput, ...func(*rds.Options)) (*rds.DescribeDBParameterGroupsOutput, error) {
	out := &rds.DescribeDBParameterGroupsOutput{DBParameterGroups: []types.DBParameterGroup{{DBParameterGroupName: aws.String("default.postgres15")}}}
	for name := range f.groups {
		out.DBParameterGroups = append(out.DBParameterGroups, types.DBParameterGroup{DBParameterGroupName: aws.String(name), DBParameterGroupArn: aws.String("arn:" + name)})
	}
	return out, nil
}

func (f *fake) ListTagsForResource(_ context.Context, in *rds.ListTagsForResourceInput, _ ...func(*rds.Options)) (*rds.ListTagsForResourceOutput, error) {
	return &rds.ListTagsForResourceOutput{TagList: f.groups[strings.TrimPrefix(*in.ResourceName, "arn:")].tags}, nil
}

func (f *fake) put(name string, group *string, tags []types.Tag) {
	i := &types.DBInstance{
		DBInstanceIdentifier: aws.String(name), DBInstanceStatus: aws.String("available"), TagList: tags,
		Endpoint: &types.Endpoint{Address: aws.String("127.66.1.1"), Port: aws.Int32(5432)},
	}
	if group != nil {
		i.DBParameterGroups = []types.DBParameterGroupStatus{{DBParameterGroupName: group, ParameterApplyStatus: aws.String("pending-reboot")}}
	}
	f.instances[name] = i
	f.mostSeen = max(f.mostSeen, len(f.instances))
}

func (f *fake) CreateDBInstance(_ context.Context, in *rds.CreateDBInstanceInput, _ ...func(*rds.Options)) (*rds.CreateDBInstanceOutput, error) {
	f.put(*in.DBInstanceIdentifier, in.DBParameterGroupName, in.Tags)
	return &rds.CreateDBInstanceOutput{}, f.fail["create"] // also when the answer is lost, it is there
}

func (f *fake) RestoreDBInstanceFromDBSnapshot(_ context.Context, in *rds.RestoreDBInstanceFromDBSnapshotInput, _ ...func(*rds.Options)) (*rds.RestoreDBInstanceFromDBSnapshotOutput, error) {
	if f.together > 0 && len(f.instances) >= f.together {
		return nil, refused("InsufficientDBInstanceCapacity", "no memory")
	}
	f.restored = append(f.restored, in)
	f.put(*in.DBInstanceIdentifier, in.DBParameterGroupName, in.Tags)
	return &rds.RestoreDBInstanceFromDBSnapshotOutput{}, nil
}

func (f *fake) RebootDBInstance(_ context.Context, in *rds.RebootDBInstanceInput, _ ...func(*rds.Options)) (*rds.RebootDBInstanceOutput, error) {
	f.rebooted++
	f.instances[*in.DBInstanceIdentifier].DBParameterGroups[0].ParameterApplyStatus = aws.String("in-sync")
	return &rds.RebootDBInstanceOutput{}, nil
}

func (f *fake) DescribeDBInstances(_ context.Context, in *rds.DescribeDBInstancesInput, _ ...func(*rds.Options)) (*rds.DescribeDBInstancesOutput, error) {
	out := &rds.DescribeDBInstancesOutput{}
	for name, i := range f.instances {
		if in.DBInstanceIdentifier != nil && *in.DBInstanceIdentifier != name {
			continue
		}
		shown := *i
		out.DBInstances = append(out.DBInstances, shown)
		if *i.DBInstanceStatus == deleting {
			delete(f.instances, name)
		}
	}
	if in.DBInstanceIdentifier != nil && len(out.DBInstances) == 0 {
		return nil, refused("DBInstanceNotFound", "DBInstance not found.")
	}
	return out, nil
}

func (f *fake) DeleteDBInstance(_ context.Context, in *rds.DeleteDBInstanceInput, _ ...func(*rds.Options)) (*rds.DeleteDBInstanceOutput, error) {
	if !aws.ToBool(in.SkipFinalSnapshot) || !aws.ToBool(in.DeleteAutomatedBackups) {
		return nil, refused("InvalidParameterCombination", "it would leave something")
	}
	i := f.instances[*in.DBInstanceIdentifier]
	switch {
	case i == nil:
		return nil, refused("DBInstanceNotFound", "DBInstance not found.")
	case *i.DBInstanceStatus == deleting:
		return nil, refused("InvalidDBInstanceState", "it is already being deleted")
	}
	i.DBInstanceStatus = aws.String(deleting)
	return &rds.DeleteDBInstanceOutput{}, nil
}

func (f *fake) CreateDBSnapshot(_ context.Context, in *rds.CreateDBSnapshotInput, _ ...func(*rds.Options)) (*rds.CreateDBSnapshotOutput, error) {
	f.snapshots[*in.DBSnapshotIdentifier] = &types.DBSnapshot{DBSnapshotIdentifier: in.DBSnapshotIdentifier, Status: aws.String("available"), TagList: in.Tags}
	return &rds.CreateDBSnapshotOutput{}, nil
}

func (f *fake) DescribeDBSnapshots(_ context.Context, in *rds.DescribeDBSnapshotsInput, _ ...func(*rds.Options)) (*rds.DescribeDBSnapshotsOutput, error) {
	out := &rds.DescribeDBSnapshotsOutput{}
	for name, s := range f.snapshots {
		if in.DBSnapshotIdentifier == nil || *in.DBSnapshotIdentifier == name {
			out.DBSnapshots = append(out.DBSnapshots, *s)
		}
	}
	if in.DBSnapshotIdentifier != nil && len(out.DBSnapshots) == 0 {
		return nil, &types.DBSnapshotNotFoundFault{}
	}
	return out, nil
}

func (f *fake) DeleteDBSnapshot(_ context.Context, in *rds.DeleteDBSnapshotInput, _ ...func(*rds.Options)) (*rds.DeleteDBSnapshotOutput, error) {
	delete(f.snapshots, *in.DBSnapshotIdentifier)
	return &rds.DeleteDBSnapshotOutput{}, nil
}

// names of everything there is.
func (f *fake) names() []string {
	names := append(sortedKeys(f.instances), sortedKeys(f.snapshots)...)
	return append(names, sortedKeys(f.groups)...)
}

// newTarget is a target on the fake that enters no server.
func newTarget(t *testing.T, f *fake) *rdsTarget {
	t.Helper()
	target, err := newRDSTarget(f, Options{Engine: study.Postgres})
	if err != nil {
		t.Fatal(err)
	}
	target.poll = 1 // nanosecond: the fake is in no hurry
	target.enter = func(context.Context, dial.Server, study.Variant) (map[string]setting, error) {
		return map[string]setting{"work_mem": {shown: "4MB"}}, nil
	}
	return target
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func demand(t *testing.T, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
