package rds

import (
	"context"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/rds"
	"github.com/aws/aws-sdk-go-v2/service/rds/types"

	"kurabe"
	"kurabe/internal/store"
)

// said is a request and the text of RDS that refuses it. name is that of the constant.
type said struct {
	name, text string
	args       []any
	code       string
	ask        func(context.Context, *rds.Client) error
}

// create asks for an instance that could be made but for one change.
func create(change func(*rds.CreateDBInstanceInput)) func(context.Context, *rds.Client) error {
	return func(ctx context.Context, c *rds.Client) error {
		in := &rds.CreateDBInstanceInput{
			DBInstanceIdentifier: aws.String("new"), Engine: aws.String("postgres"), DBInstanceClass: aws.String("db.t3.micro"),
			AllocatedStorage: aws.Int32(20), StorageType: aws.String("gp2"), MasterUsername: aws.String("boss"), MasterUserPassword: aws.String("long-enough-1"),
		}
		change(in)
		_, err := c.CreateDBInstance(ctx, in)
		return err
	}
}

func modify(name string, change func(*rds.ModifyDBInstanceInput)) func(context.Context, *rds.Client) error {
	return func(ctx context.Context, c *rds.Client) error {
		in := &rds.ModifyDBInstanceInput{DBInstanceIdentifier: &name, ApplyImmediately: aws.Bool(true)}
		change(in)
		_, err := c.ModifyDBInstance(ctx, in)
		return err
	}
}

func remove(name string, change func(*rds.DeleteDBInstanceInput)) func(context.Context, *rds.Client) error {
	return func(ctx context.Context, c *rds.Client) error {
		in := &rds.DeleteDBInstanceInput{DBInstanceIdentifier: &name}
		change(in)
		_, err := c.DeleteDBInstance(ctx, in)
		return err
	}
}

// ask is any other request.
func ask[In, Out any](call func(*rds.Client, context.Context, *In, ...func(*rds.Options)) (*Out, error), in *In) func(context.Context, *rds.Client) error {
	return func(ctx context.Context, c *rds.Client) error {
		_, err := call(c, ctx, in)
		return err
	}
}

const (
	badValue = "InvalidParameterValue"
	badCombo = "InvalidParameterCombination"
	badState = "InvalidDBInstanceState"
)

func saidOfCreates() []said {
	id := func(name string) func(context.Context, *rds.Client) error {
		return create(func(in *rds.CreateDBInstanceInput) { in.DBInstanceIdentifier = &name })
	}
	user := func(name string) func(context.Context, *rds.Client) error {
		return create(func(in *rds.CreateDBInstanceInput) { in.MasterUsername = &name })
	}
	password := func(text string) func(context.Context, *rds.Client) error {
		return create(func(in *rds.CreateDBInstanceInput) { in.MasterUserPassword = &text })
	}
	return []said{
		{"WordsTooLong", kurabe.WordsTooLong, []any{"DBInstanceIdentifier", 63}, badValue, id(strings.Repeat("x", 64))},
		{"WordsIdentifier", kurabe.WordsIdentifier, []any{"DBInstanceIdentifier"}, badValue, id("a--b")},
		{"WordsBlank", kurabe.WordsBlank, []any{"MasterUsername"}, badValue, user("")},
		{"WordsReservedUser", kurabe.WordsReservedUser, []any{"admin"}, badValue, user("admin")},
		{"WordsPasswordShort", kurabe.WordsPasswordShort, []any{8}, badValue, password("short")},
		{"WordsPasswordLong", kurabe.WordsPasswordLong, []any{128}, badValue, password(strings.Repeat("x", 129))},
		{"WordsPasswordText", kurabe.WordsPasswordText, nil, badValue, password("with@sign-1")},
		{"WordsReservedDatabase", kurabe.WordsReservedDatabase, []any{"template1"}, badValue, create(func(in *rds.CreateDBInstanceInput) { in.DBName = aws.String("template1") })},
		{"WordsClass", kurabe.WordsClass, []any{"db.none.large"}, badValue, create(func(in *rds.CreateDBInstanceInput) { in.DBInstanceClass = aws.String("db.none.large") })},
		{"WordsEngine", kurabe.WordsEngine, []any{"oracle-ee"}, badValue, create(func(in *rds.CreateDBInstanceInput) { in.Engine = aws.String("oracle-ee") })},
		{"WordsVersion", kurabe.WordsVersion, []any{"13.7", "postgres"}, badCombo, create(func(in *rds.CreateDBInstanceInput) { in.EngineVersion = aws.String("13.7") })},
		{"WordsStorageSize", kurabe.WordsStorageSize, []any{"postgres", "gp2", 4}, badValue, create(func(in *rds.CreateDBInstanceInput) { in.AllocatedStorage = aws.Int32(4) })},
		{"WordsGP3Small", kurabe.WordsGP3Small, []any{"postgres", 400}, badCombo, create(func(in *rds.CreateDBInstanceInput) { in.StorageType, in.Iops = aws.String("gp3"), aws.Int32(4000) })},
		{"WordsIOPSRatio", kurabe.WordsIOPSRatio, []any{"postgres", "io1", 60.0}, badCombo, create(func(in *rds.CreateDBInstanceInput) {
			in.StorageType, in.AllocatedStorage, in.Iops = aws.String("io1"), aws.Int32(100), aws.Int32(6000)
		})},
		{"WordsMaxStorage", kurabe.WordsMaxStorage, nil, badCombo, create(func(in *rds.CreateDBInstanceInput) { in.MaxAllocatedStorage = aws.Int32(19) })},
		{"WordsMonitoringRole", kurabe.WordsMonitoringRole, nil, badCombo, create(func(in *rds.CreateDBInstanceInput) { in.MonitoringInterval = aws.Int32(60) })},
		{"WordsLogTypes", kurabe.WordsLogTypes, []any{"'audit', 'x'", "postgres", "15.18", "postgresql"}, badCombo, create(func(in *rds.CreateDBInstanceInput) {
			in.EnableCloudwatchLogsExports = []string{"postgresql", "audit", "x"}
		})},
		{"WordsMonitoringInterval", kurabe.WordsMonitoringInterval, nil, badCombo, create(func(in *rds.CreateDBInstanceInput) { in.MonitoringRoleArn = aws.String("arn:aws:iam::1:role/r") })},
		{"WordsZoneOfPair", kurabe.WordsZoneOfPair, nil, badCombo, create(func(in *rds.CreateDBInstanceInput) {
			in.MultiAZ, in.AvailabilityZone = aws.Bool(true), aws.String("us-east-1a")
		})},
		{"WordsZone", kurabe.WordsZone, []any{"us-east-1z"}, "InvalidVPCNetworkStateFault", create(func(in *rds.CreateDBInstanceInput) { in.AvailabilityZone = aws.String("us-east-1z") })},
		{"WordsWindows", kurabe.WordsWindows, nil, badValue, create(func(in *rds.CreateDBInstanceInput) {
			in.PreferredBackupWindow, in.PreferredMaintenanceWindow = aws.String("05:00-06:00"), aws.String("sun:05:30-sun:06:30")
		})},
		{"WordsOptionGroupNotFound", kurabe.WordsOptionGroupNotFound, []any{"none"}, "OptionGroupNotFoundFault", create(func(in *rds.CreateDBInstanceInput) { in.OptionGroupName = aws.String("none") })},
		{"WordsGroupNotFound", kurabe.WordsGroupNotFound, []any{"none"}, "DBParameterGroupNotFound", create(func(in *rds.CreateDBInstanceInput) { in.DBParameterGroupName = aws.String("none") })},
		{"WordsGroupFamily", kurabe.WordsGroupFamily, []any{"default.mariadb10.11", "mariadb10.11", "postgres15"}, badCombo, create(func(in *rds.CreateDBInstanceInput) { in.DBParameterGroupName = aws.String("default.mariadb10.11") })},
		{"WordsSubnetGroupNotFound", kurabe.WordsSubnetGroupNotFound, []any{"none"}, "DBSubnetGroupNotFoundFault", create(func(in *rds.CreateDBInstanceInput) { in.DBSubnetGroupName = aws.String("none") })},
	}
}

func saidOfInstances() []said {
	return []said{
		{"WordsNoChange", kurabe.WordsNoChange, nil, badCombo, modify("plain", func(*rds.ModifyDBInstanceInput) {})},
		{"WordsUpgrade", kurabe.WordsUpgrade, []any{"postgres", "15.18", "15.9"}, badCombo, modify("newer", func(in *rds.ModifyDBInstanceInput) { in.EngineVersion = aws.String("15.9") })},
		{"WordsNotAvailable", kurabe.WordsNotAvailable, nil, badState, modify("busy", func(in *rds.ModifyDBInstanceInput) { in.AllocatedStorage = aws.Int32(30) })},
		{"WordsBackupsOfReplica", kurabe.WordsBackupsOfReplica, []any{"postgres"}, badState, modify("replica", func(in *rds.ModifyDBInstanceInput) { in.BackupRetentionPeriod = aws.Int32(3) })},
		{"WordsNotAvailableToStop", kurabe.WordsNotAvailableToStop, []any{"Instance", "busy"}, badState, ask((*rds.Client).StopDBInstance, &rds.StopDBInstanceInput{DBInstanceIdentifier: aws.String("busy")})},
		{"WordsBusyToReboot", kurabe.WordsBusyToReboot, []any{"Instance"}, badState, ask((*rds.Client).RebootDBInstance, &rds.RebootDBInstanceInput{DBInstanceIdentifier: aws.String("busy")})},
		{"WordsNoFailover", kurabe.WordsNoFailover, nil, badCombo, ask((*rds.Client).RebootDBInstance, &rds.RebootDBInstanceInput{DBInstanceIdentifier: aws.String("plain"), ForceFailover: aws.Bool(true)})},
		{"WordsProtected", kurabe.WordsProtected, []any{"DB Instance"}, badCombo, remove("protected", func(in *rds.DeleteDBInstanceInput) { in.SkipFinalSnapshot = aws.Bool(true) })},
		{"WordsFinalSnapshot", kurabe.WordsFinalSnapshot, nil, badCombo, remove("plain", func(*rds.DeleteDBInstanceInput) {})},
		{"WordsSkippedSnapshot", kurabe.WordsSkippedSnapshot, nil, badCombo, remove("plain", func(in *rds.DeleteDBInstanceInput) {
			in.SkipFinalSnapshot, in.FinalDBSnapshotIdentifier = aws.Bool(true), aws.String("last")
		})},
		{"WordsReplicaSnapshot", kurabe.WordsReplicaSnapshot, nil, badCombo, remove("replica", func(in *rds.DeleteDBInstanceInput) { in.FinalDBSnapshotIdentifier = aws.String("last") })},
		{"WordsReplicaBackups", kurabe.WordsReplicaBackups, nil, badState, ask((*rds.Client).CreateDBInstanceReadReplica, &rds.CreateDBInstanceReadReplicaInput{
			DBInstanceIdentifier: aws.String("second"), SourceDBInstanceIdentifier: aws.String("plain"),
		})},
		{"WordsSnapshotState", kurabe.WordsSnapshotState, []any{"database instance", "busy"}, badState, ask((*rds.Client).CreateDBSnapshot, &rds.CreateDBSnapshotInput{
			DBInstanceIdentifier: aws.String("busy"), DBSnapshotIdentifier: aws.String("s"),
		})},
		{"WordsSnapshotExists", kurabe.WordsSnapshotExists, []any{"taken"}, "DBSnapshotAlreadyExists", ask((*rds.Client).CreateDBSnapshot, &rds.CreateDBSnapshotInput{
			DBInstanceIdentifier: aws.String("plain"), DBSnapshotIdentifier: aws.String("taken"),
		})},
		{"WordsInstanceNotFound", kurabe.WordsInstanceNotFound, []any{"none"}, "DBInstanceNotFound", ask((*rds.Client).DescribeDBInstances, &rds.DescribeDBInstancesInput{DBInstanceIdentifier: aws.String("none")})},
		{"WordsClusterNotFound", kurabe.WordsClusterNotFound, []any{"none"}, "DBClusterNotFoundFault", ask((*rds.Client).DescribeDBClusters, &rds.DescribeDBClustersInput{DBClusterIdentifier: aws.String("none")})},
		{"WordsSnapshotNotFound", kurabe.WordsSnapshotNotFound, []any{"none"}, "DBSnapshotNotFound", ask((*rds.Client).DeleteDBSnapshot, &rds.DeleteDBSnapshotInput{DBSnapshotIdentifier: aws.String("none")})},
		{"WordsClusterSnapshotNotFound", kurabe.WordsClusterSnapshotNotFound, []any{"none"}, "DBClusterSnapshotNotFoundFault", ask((*rds.Client).DeleteDBClusterSnapshot, &rds.DeleteDBClusterSnapshotInput{DBClusterSnapshotIdentifier: aws.String("none")})},
	}
}

func saidOfGroups() []said {
	group := func(name, method string) func(context.Context, *rds.Client) error {
		return ask((*rds.Client).ModifyDBParameterGroup, &rds.ModifyDBParameterGroupInput{DBParameterGroupName: aws.String("mine"), Parameters: []types.Parameter{
			{ParameterName: &name, ParameterValue: aws.String("64"), ApplyMethod: types.ApplyMethod(method)},
		}})
	}
	return []said{
		{"WordsFamily", kurabe.WordsFamily, []any{"postgres9"}, badValue, ask((*rds.Client).CreateDBParameterGroup, &rds.CreateDBParameterGroupInput{
			DBParameterGroupName: aws.String("g"), DBParameterGroupFamily: aws.String("postgres9"), Description: aws.String("d"),
		})},
		{"WordsClusterGroupNotFound", kurabe.WordsClusterGroupNotFound, []any{"none"}, "DBParameterGroupNotFound", ask((*rds.Client).DescribeDBClusterParameterGroups, &rds.DescribeDBClusterParameterGroupsInput{DBClusterParameterGroupName: aws.String("none")})},
		{"WordsParameter", kurabe.WordsParameter, []any{"character_set_server"}, badValue, group("character_set_server", "immediate")},
		{"WordsStaticParameter", kurabe.WordsStaticParameter, nil, badCombo, group("shared_buffers", "immediate")},
		{"WordsGroupInUse", kurabe.WordsGroupInUse, []any{"database instance", "mine"}, "InvalidDBParameterGroupState", ask((*rds.Client).DeleteDBParameterGroup, &rds.DeleteDBParameterGroupInput{DBParameterGroupName: aws.String("mine")})},
		{"WordsDefaultGroupDeleted", kurabe.WordsDefaultGroupDeleted, []any{"default.postgres15"}, "InvalidDBParameterGroupState", ask((*rds.Client).DeleteDBParameterGroup, &rds.DeleteDBParameterGroupInput{DBParameterGroupName: aws.String("default.postgres15")})},
		{"WordsDefaultGroupModified", kurabe.WordsDefaultGroupModified, nil, badValue, ask((*rds.Client).ModifyDBParameterGroup, &rds.ModifyDBParameterGroupInput{
			DBParameterGroupName: aws.String("default.postgres15"), Parameters: []types.Parameter{{ParameterName: aws.String("p001"), ParameterValue: aws.String("2"), ApplyMethod: types.ApplyMethodImmediate}},
		})},
		{"WordsSubnets", kurabe.WordsSubnets, []any{"subnet-none"}, "InvalidSubnet", ask((*rds.Client).CreateDBSubnetGroup, &rds.CreateDBSubnetGroupInput{
			DBSubnetGroupName: aws.String("g"), DBSubnetGroupDescription: aws.String("d"), SubnetIds: []string{"subnet-none"},
		})},
		{"WordsZonesCovered", kurabe.WordsZonesCovered, []any{"us-east-1a", 2}, "DBSubnetGroupDoesNotCoverEnoughAZs", func(ctx context.Context, c *rds.Client) error {
			return subnetGroup(ctx, c, "few", "us-east-1a")
		}},
		{"WordsSubnetGroupInUse", kurabe.WordsSubnetGroupInUse, []any{"used", "grouped"}, "InvalidDBSubnetGroupStateFault", ask((*rds.Client).DeleteDBSubnetGroup, &rds.DeleteDBSubnetGroupInput{DBSubnetGroupName: aws.String("used")})},
	}
}

// subnetGroup makes a group of the subnets in the zones, as the default group shows them.
func subnetGroup(ctx context.Context, c *rds.Client, name string, zones ...string) error {
	out, err := c.DescribeDBSubnetGroups(ctx, &rds.DescribeDBSubnetGroupsInput{DBSubnetGroupName: aws.String("default")})
	if err != nil {
		return err
	}
	var ids []string
	for _, s := range out.DBSubnetGroups[0].Subnets {
		if slices.Contains(zones, *s.SubnetAvailabilityZone.Name) {
			ids = append(ids, *s.SubnetIdentifier)
		}
	}
	_, err = c.CreateDBSubnetGroup(ctx, &rds.CreateDBSubnetGroupInput{DBSubnetGroupName: &name, DBSubnetGroupDescription: aws.String("d"), SubnetIds: ids})
	return err
}

// wordWorld has the instances and groups that the requests need.
func wordWorld(t *testing.T) testWorld {
	w, ctx := newTestWorld(t), t.Context()
	host := testHost()
	host.MemoryBytes = 64 * kurabe.GiB
	other := testCatalog("10.11.19")
	other.Engine, other.Family = kurabe.MariaDB, "mariadb10.11"
	commit(t, w.c, store.NewChange().PutHost(host).PutCatalog("h1", other))
	must(w.client.CreateDBParameterGroup(ctx, &rds.CreateDBParameterGroupInput{
		DBParameterGroupName: aws.String("mine"), DBParameterGroupFamily: aws.String("postgres15"), Description: aws.String("d"),
	}))(t)
	if err := subnetGroup(ctx, w.client, "used", "us-east-1a", "us-east-1b"); err != nil {
		t.Fatal(err)
	}
	put := func(name string, change func(*kurabe.InstanceSpec, *kurabe.InstanceStatus)) {
		now := kurabe.InstanceSettings{EngineVersion: "15.9", Class: "db.t3.micro", StorageGiB: 20, StorageType: "local", Port: 5432, CACertificate: "kurabe-ca"}
		spec := kurabe.InstanceSpec{
			ID: kurabe.InstanceID("db-" + strings.ToUpper(name)), Name: name, Revision: 1, Engine: kurabe.Postgres, Now: now,
			ParameterGroup: "default.postgres15", OptionGroup: "default:postgres-15", SubnetGroup: "default", MaintenanceWindow: "sun:05:00-sun:05:30",
		}
		status := kurabe.InstanceStatus{ID: spec.ID, SpecRevision: 1, State: kurabe.StateAvailable, AvailableAt: time.Now(), Applied: now, Host: "h1", Zone: "us-east-1a"}
		change(&spec, &status)
		status.Applied = spec.Now
		commit(t, w.c, store.NewChange().CreateInstance(spec).PutStatus(status, 0))
	}
	put("plain", func(s *kurabe.InstanceSpec, _ *kurabe.InstanceStatus) { s.ParameterGroup = "mine" })
	put("newer", func(s *kurabe.InstanceSpec, _ *kurabe.InstanceStatus) { s.Now.EngineVersion = "15.18" })
	put("busy", func(_ *kurabe.InstanceSpec, s *kurabe.InstanceStatus) { s.State = kurabe.StateCreating })
	put("protected", func(s *kurabe.InstanceSpec, _ *kurabe.InstanceStatus) { s.DeletionProtection = true })
	put("grouped", func(s *kurabe.InstanceSpec, _ *kurabe.InstanceStatus) { s.SubnetGroup = "used" })
	put("replica", func(s *kurabe.InstanceSpec, st *kurabe.InstanceStatus) {
		s.Source, st.Source = "db-ORDERS", "db-ORDERS"
	})
	must(w.client.CreateDBSnapshot(ctx, &rds.CreateDBSnapshotInput{DBInstanceIdentifier: aws.String("plain"), DBSnapshotIdentifier: aws.String("taken")}))(t)
	return w
}

func TestWordsAreSaid(t *testing.T) {
	w := wordWorld(t)
	rows := slices.Concat(saidOfCreates(), saidOfInstances(), saidOfGroups())
	var names []string
	for _, row := range rows {
		names = append(names, row.name)
		t.Run(row.name, func(t *testing.T) {
			wantCode(t, row.ask(t.Context(), w.client), row.code, fmt.Sprintf(row.text, row.args...))
		})
	}
	for _, name := range wordNames(t) {
		if !slices.Contains(names, name) {
			t.Errorf("no request here is refused with %s", name)
		}
	}
}

// wordNames are the constants of rds_texts.go.
func wordNames(t *testing.T) []string {
	t.Helper()
	const path = "../../../rds_texts.go"
	src, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	file, err := parser.ParseFile(token.NewFileSet(), path, src, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	ast.Inspect(file, func(n ast.Node) bool {
		if v, ok := n.(*ast.ValueSpec); ok {
			for _, name := range v.Names {
				names = append(names, name.Name)
			}
		}
		return true
	})
	if len(names) < 50 {
		t.Fatalf("%d texts in %s", len(names), path)
	}
	return names
}
