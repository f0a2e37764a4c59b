package rds

import (
	"slices"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/rds"
	"github.com/aws/aws-sdk-go-v2/service/rds/types"

	"kurabe"
	"kurabe/internal/store"
)

// testCluster is the cluster "orders", called like the instance, as the planner tells of it:
// the second server writes, the third lags behind.
func testCluster(t *testing.T, w testWorld) {
	t.Helper()
	now := kurabe.InstanceSettings{EngineVersion: "15.18", Class: "db.local.micro", StorageGiB: 20, StorageType: "local", Port: 6000,
		CACertificate: "kurabe-ca", MultiAZ: true}
	spec := kurabe.InstanceSpec{
		ID: "db-CLUSTER", Name: "orders", Revision: 1, Engine: kurabe.Postgres, CreatedAt: time.Now(), Now: now, Cluster: true,
		MasterUsername: "boss", ParameterGroup: "default.postgres15", OptionGroup: "default:postgres-15", SubnetGroup: "default",
		MaintenanceWindow: "sun:05:00-sun:05:30", Tags: []kurabe.Tag{{Key: "team", Value: "shop"}},
	}
	at := time.Now().UTC().Truncate(time.Second)
	status := kurabe.InstanceStatus{
		ID: spec.ID, SpecRevision: 1, State: kurabe.StateAvailable, Applied: now, AvailableAt: at, Address: "127.66.0.1", Port: 6000,
		ReaderAddress: "127.66.0.2", Host: "h1", Zone: "us-east-1b", Servers: []kurabe.ServerStatus{
			{ID: "db-CLUSTER", Host: "h1", Zone: "us-east-1a", Address: "127.66.0.3", State: kurabe.StateAvailable, CreatedAt: at, InSyncSet: true, Reading: true},
			{ID: "db-CLUSTER~2", Host: "h1", Zone: "us-east-1b", Address: "127.66.0.4", State: kurabe.StateAvailable, CreatedAt: at, Writer: true},
			{ID: "db-CLUSTER~3", Host: "h1", Zone: "us-east-1c", Address: "127.66.0.5", State: kurabe.StateCreating},
		},
	}
	commit(t, w.c, store.NewChange().CreateInstance(spec).PutStatus(status, 0))
}

func TestDescribeDBClusters(t *testing.T) {
	w, ctx := newTestWorld(t), t.Context()
	testCluster(t, w)
	list := must(w.client.DescribeDBClusters(ctx, &rds.DescribeDBClustersInput{}))(t).DBClusters
	if len(list) != 1 {
		t.Fatal(list)
	}
	c := list[0]
	if *c.DBClusterIdentifier != "orders" || *c.Endpoint != "127.66.0.1" || *c.ReaderEndpoint != "127.66.0.2" || *c.Port != 6000 || !*c.MultiAZ ||
		*c.Status != "available" || *c.DbClusterResourceId != "cluster-CLUSTER" || !slices.Equal(c.AvailabilityZones, []string{"us-east-1a", "us-east-1b", "us-east-1c"}) {
		t.Errorf("%+v", c)
	}
	var members []string
	for _, m := range c.DBClusterMembers {
		if *m.IsClusterWriter {
			members = append(members, "writer")
		}
		members = append(members, *m.DBInstanceIdentifier)
	}
	if !slices.Equal(members, []string{"orders-instance-1", "writer", "orders-instance-2", "orders-instance-3"}) {
		t.Error(members)
	}
	filter := func(name, value string) int {
		t.Helper()
		out := must(w.client.DescribeDBClusters(ctx, &rds.DescribeDBClustersInput{Filters: []types.Filter{{Name: aws.String(name), Values: []string{value}}}}))(t)
		return len(out.DBClusters)
	}
	for name, value := range map[string]string{"db-cluster-id": *c.DBClusterArn, "db-cluster-resource-id": "cluster-CLUSTER", "engine": "postgres"} {
		if filter(name, value) != 1 || filter(name, "another") != 0 {
			t.Error(name)
		}
	}
	if filter("domain", "d") != 0 {
		t.Error("domain")
	}
	_, err := w.client.DescribeDBClusters(ctx, &rds.DescribeDBClustersInput{DBClusterIdentifier: aws.String("none")})
	wantCode(t, err, "DBClusterNotFoundFault", "none")
}

// The servers of a cluster are DB instances to users, and the cluster is none.
func TestServersOfAClusterAreInstances(t *testing.T) {
	w, ctx := newTestWorld(t), t.Context()
	testCluster(t, w)
	var names []string
	ids := map[string]bool{}
	for _, i := range must(w.client.DescribeDBInstances(ctx, &rds.DescribeDBInstancesInput{}))(t).DBInstances {
		names = append(names, *i.DBInstanceIdentifier)
		ids[*i.DbiResourceId] = true
		// The servers of the cluster have one too: tools read the first.
		if len(i.DBParameterGroups) != 1 || *i.DBParameterGroups[0].DBParameterGroupName != "default.postgres15" {
			t.Errorf("%s: %+v", *i.DBInstanceIdentifier, i.DBParameterGroups)
		}
	}
	if !slices.Equal(names, []string{"orders", "orders-instance-1", "orders-instance-2", "orders-instance-3"}) || len(ids) != 4 {
		t.Fatal(names, ids)
	}
	one := func(in rds.DescribeDBInstancesInput) types.DBInstance {
		t.Helper()
		list := must(w.client.DescribeDBInstances(ctx, &in))(t).DBInstances
		if len(list) != 1 {
			t.Fatal(list)
		}
		return list[0]
	}
	i := one(rds.DescribeDBInstancesInput{DBInstanceIdentifier: aws.String("orders-instance-2")})
	if *i.DBClusterIdentifier != "orders" || *i.MultiAZ || *i.AvailabilityZone != "us-east-1b" || *i.Endpoint.Address != "127.66.0.4" ||
		*i.Endpoint.Port != 6000 || i.InstanceCreateTime == nil || *i.DBInstanceStatus != "available" {
		t.Errorf("%+v", i)
	}
	byID := one(rds.DescribeDBInstancesInput{Filters: []types.Filter{{Name: aws.String("dbi-resource-id"), Values: []string{*i.DbiResourceId}}}})
	if *byID.DBInstanceIdentifier != "orders-instance-2" {
		t.Error(*byID.DBInstanceIdentifier)
	}
	if young := one(rds.DescribeDBInstancesInput{DBInstanceIdentifier: aws.String("orders-instance-3")}); young.Endpoint != nil || *young.DBInstanceStatus != "creating" {
		t.Errorf("%+v", young)
	}
	of := must(w.client.DescribeDBInstances(ctx, &rds.DescribeDBInstancesInput{Filters: []types.Filter{{Name: aws.String("db-cluster-id"), Values: []string{"orders"}}}}))(t)
	if len(of.DBInstances) != 3 {
		t.Error(of.DBInstances)
	}
	_, err := w.client.DescribeDBInstances(ctx, &rds.DescribeDBInstancesInput{DBInstanceIdentifier: aws.String("cluster:orders")})
	wantCode(t, err, "InvalidParameterValue", "")
}

// What is done with a cluster is not done with one of its servers.
func TestServersOfAClusterCannotBeChanged(t *testing.T) {
	w, ctx := newTestWorld(t), t.Context()
	testCluster(t, w)
	name := aws.String("orders-instance-1")
	const code, text = "InvalidDBInstanceState", "belongs to DB cluster orders"
	_, err := w.client.ModifyDBInstance(ctx, &rds.ModifyDBInstanceInput{DBInstanceIdentifier: name, AllocatedStorage: aws.Int32(30)})
	wantCode(t, err, code, text)
	_, err = w.client.DeleteDBInstance(ctx, &rds.DeleteDBInstanceInput{DBInstanceIdentifier: name, SkipFinalSnapshot: aws.Bool(true)})
	wantCode(t, err, code, text)
	_, err = w.client.StopDBInstance(ctx, &rds.StopDBInstanceInput{DBInstanceIdentifier: name})
	wantCode(t, err, code, text)
	_, err = w.client.RebootDBInstance(ctx, &rds.RebootDBInstanceInput{DBInstanceIdentifier: name})
	wantCode(t, err, code, text)
	_, err = w.client.CreateDBSnapshot(ctx, &rds.CreateDBSnapshotInput{DBInstanceIdentifier: name, DBSnapshotIdentifier: aws.String("s")})
	wantCode(t, err, code, text)
	_, err = w.client.CreateDBInstanceReadReplica(ctx, &rds.CreateDBInstanceReadReplicaInput{SourceDBInstanceIdentifier: name, DBInstanceIdentifier: aws.String("r")})
	wantCode(t, err, code, text)
	_, err = w.client.AddTagsToResource(ctx, &rds.AddTagsToResourceInput{ResourceName: aws.String("arn:aws:rds:us-east-1:000000000000:db:orders-instance-1"),
		Tags: []types.Tag{{Key: aws.String("a"), Value: aws.String("b")}}})
	wantCode(t, err, code, text)
	_, err = w.client.DescribeValidDBInstanceModifications(ctx, &rds.DescribeValidDBInstanceModificationsInput{DBInstanceIdentifier: name})
	wantCode(t, err, code, text)
}

func TestFailoverDBCluster(t *testing.T) {
	w, ctx := newTestWorld(t), t.Context()
	testCluster(t, w)
	failover := func(target string) error {
		_, err := w.client.FailoverDBCluster(ctx, &rds.FailoverDBClusterInput{DBClusterIdentifier: aws.String("orders"), TargetDBInstanceIdentifier: aws.String(target)})
		return err
	}
	wantCode(t, failover("orders-instance-2"), "InvalidDBClusterStateFault", "writer")
	wantCode(t, failover("orders-instance-3"), "InvalidDBClusterStateFault", "does not have every commit")
	wantCode(t, failover("orders-instance-9"), "InvalidDBClusterStateFault", "not a server")
	if err := failover("orders-instance-1"); err != nil {
		t.Fatal(err)
	}
	i, _ := w.c.View.Instance("db-CLUSTER")
	if i.Spec.FailoverSeq != 1 || i.Spec.FailoverTo != "db-CLUSTER" {
		t.Errorf("%+v", i.Spec)
	}
	c := must(w.client.DescribeDBClusters(ctx, &rds.DescribeDBClustersInput{}))(t).DBClusters[0]
	if *c.Status != "failing-over" {
		t.Error(*c.Status)
	}
}

func TestWhatAClusterCannotBe(t *testing.T) {
	w, ctx := newTestWorld(t), t.Context()
	create := func(edit func(*rds.CreateDBClusterInput)) error {
		in := &rds.CreateDBClusterInput{
			DBClusterIdentifier: aws.String("shop"), Engine: aws.String("postgres"), DBClusterInstanceClass: aws.String("db.local.micro"),
			MasterUsername: aws.String("boss"), MasterUserPassword: aws.String("long-enough-1"),
		}
		edit(in)
		_, err := w.client.CreateDBCluster(ctx, in)
		return err
	}
	const combination = "InvalidParameterCombination"
	wantCode(t, create(func(in *rds.CreateDBClusterInput) { in.DBClusterInstanceClass = nil }), combination, "Aurora")
	wantCode(t, create(func(in *rds.CreateDBClusterInput) { in.EngineMode = aws.String("serverless") }), combination, "EngineMode cannot be honoured")
	wantCode(t, create(func(in *rds.CreateDBClusterInput) { in.StorageEncrypted = aws.Bool(true) }), combination, "encryption")
	wantCode(t, create(func(in *rds.CreateDBClusterInput) { in.AvailabilityZones = []string{"us-east-1x"} }), "InvalidVPCNetworkStateFault", "us-east-1x")
	wantCode(t, create(func(in *rds.CreateDBClusterInput) { in.AvailabilityZones = []string{"us-east-1a", "us-east-1b"} }), "InvalidParameterValue", "3 different zones")
	wantCode(t, create(func(in *rds.CreateDBClusterInput) { in.DBClusterParameterGroupName = aws.String("none") }), "DBClusterParameterGroupNotFound", "none")
	wantCode(t, create(func(in *rds.CreateDBClusterInput) { in.DBClusterInstanceClass = aws.String("db.m5.large") }), "InsufficientDBInstanceCapacity", "3 servers")
	_, err := w.client.CreateDBInstance(ctx, &rds.CreateDBInstanceInput{DBInstanceIdentifier: aws.String("x"), DBInstanceClass: aws.String("db.local.micro"),
		Engine: aws.String("postgres"), DBClusterIdentifier: aws.String("shop")})
	wantCode(t, err, combination, "made with it")
	if err := create(func(in *rds.CreateDBClusterInput) {
		in.AvailabilityZones = []string{"us-east-1c", "us-east-1a", "us-east-1b"}
	}); err != nil {
		t.Fatal(err)
	}
	wantCode(t, create(func(*rds.CreateDBClusterInput) {}), "DBClusterAlreadyExistsFault", "already exists")
}

// Groups, snapshots and tags of clusters have names of their own.
func TestNamesOfClustersAreTheirOwn(t *testing.T) {
	w, ctx := newTestWorld(t), t.Context()
	testCluster(t, w)
	must(w.client.CreateDBParameterGroup(ctx, &rds.CreateDBParameterGroupInput{DBParameterGroupName: aws.String("g"), DBParameterGroupFamily: aws.String("postgres15"), Description: aws.String("d")}))(t)
	_, err := w.client.DescribeDBClusterParameters(ctx, &rds.DescribeDBClusterParametersInput{DBClusterParameterGroupName: aws.String("g")})
	wantCode(t, err, "DBParameterGroupNotFound", "g")
	must(w.client.CreateDBClusterParameterGroup(ctx, &rds.CreateDBClusterParameterGroupInput{DBClusterParameterGroupName: aws.String("g"), DBParameterGroupFamily: aws.String("postgres15"), Description: aws.String("d")}))(t)
	must(w.client.ModifyDBClusterParameterGroup(ctx, &rds.ModifyDBClusterParameterGroupInput{DBClusterParameterGroupName: aws.String("g"),
		Parameters: []types.Parameter{{ParameterName: aws.String("p001"), ParameterValue: aws.String("7"), ApplyMethod: types.ApplyMethodImmediate}}}))(t)
	user := must(w.client.DescribeDBClusterParameters(ctx, &rds.DescribeDBClusterParametersInput{DBClusterParameterGroupName: aws.String("g"), Source: aws.String("user")}))(t).Parameters
	if len(user) != 1 || *user[0].ParameterValue != "7" {
		t.Error(user)
	}
	if of := must(w.client.DescribeDBParameters(ctx, &rds.DescribeDBParametersInput{DBParameterGroupName: aws.String("g"), Source: aws.String("user")}))(t).Parameters; len(of) != 0 {
		t.Error("the group of instances has the value too", of)
	}
	must(w.client.ModifyDBCluster(ctx, &rds.ModifyDBClusterInput{DBClusterIdentifier: aws.String("orders"), DBClusterParameterGroupName: aws.String("g")}))(t)
	_, err = w.client.DeleteDBClusterParameterGroup(ctx, &rds.DeleteDBClusterParameterGroupInput{DBClusterParameterGroupName: aws.String("g")})
	wantCode(t, err, "InvalidDBParameterGroupState", "still members")
	must(w.client.DeleteDBParameterGroup(ctx, &rds.DeleteDBParameterGroupInput{DBParameterGroupName: aws.String("g")}))(t)

	arn := aws.String("arn:aws:rds:us-east-1:000000000000:cluster:orders")
	must(w.client.AddTagsToResource(ctx, &rds.AddTagsToResourceInput{ResourceName: arn, Tags: []types.Tag{{Key: aws.String("a"), Value: aws.String("b")}}}))(t)
	if tags := must(w.client.ListTagsForResource(ctx, &rds.ListTagsForResourceInput{ResourceName: arn}))(t).TagList; len(tags) != 2 {
		t.Error(tags)
	}
	if tags := must(w.client.ListTagsForResource(ctx, &rds.ListTagsForResourceInput{ResourceName: aws.String("arn:aws:rds:us-east-1:000000000000:db:orders")}))(t).TagList; len(tags) != 0 {
		t.Error("the instance of that name has the tags", tags)
	}
	_, err = w.client.ListTagsForResource(ctx, &rds.ListTagsForResourceInput{ResourceName: aws.String(*arn + "x")})
	wantCode(t, err, "DBClusterNotFoundFault", "ordersx")
}
