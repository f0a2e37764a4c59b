package rds

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/rds"
	"github.com/aws/aws-sdk-go-v2/service/rds/types"

	"kurabe"
	"kurabe/internal/store"
)

const testID = kurabe.InstanceID("db-ORDERS")

// answer is the planner that has looked at what the spec wants. The standby is in zone
// second; it is converting until there is one where there was none.
func (w testWorld) answer(t *testing.T, second string, converting bool) {
	t.Helper()
	i, ok := w.c.View.Instance(testID)
	if !ok {
		t.Fatal("no instance")
	}
	status := *i.Status
	status.SpecRevision, status.State, status.Applied = i.Spec.Revision, kurabe.StateAvailable, i.Spec.Now
	status.SecondZone, status.Converting = second, converting
	if converting {
		status.State = kurabe.StateModifying
	}
	commit(t, w.c, store.NewChange().PutStatus(status, i.StatusMod))
}

// putGroup stores who the instance's two servers are, and which of them writes.
func (w testWorld) putGroup(t *testing.T, writer kurabe.InstanceID, since time.Time) {
	t.Helper()
	i, _ := w.c.View.Instance(testID)
	commit(t, w.c, store.NewChange().PutGroup(kurabe.Group{
		Instance: testID, Epoch: 1, Primary: writer, LastNumber: 2, UnprotectedSince: since,
		Members: []kurabe.Member{{ID: testID, Host: "h1", Zone: "us-east-1a"}, {ID: testID.Member(2), Host: "h1", Zone: "us-east-1b"}},
	}, i.GroupMod))
}

func (w testWorld) describe(t *testing.T) types.DBInstance {
	t.Helper()
	return must(w.client.DescribeDBInstances(t.Context(), &rds.DescribeDBInstancesInput{DBInstanceIdentifier: aws.String("orders")}))(t).DBInstances[0]
}

// wantZones checks what is told of the zones of an instance.
func wantZones(t *testing.T, i types.DBInstance, multi bool, second string, pending *bool) {
	t.Helper()
	if *i.MultiAZ != multi || aws.ToString(i.SecondaryAvailabilityZone) != second || aws.ToString(i.AvailabilityZone) != "us-east-1a" {
		t.Errorf("Multi-AZ %v, zones %s and %s", *i.MultiAZ, aws.ToString(i.AvailabilityZone), aws.ToString(i.SecondaryAvailabilityZone))
	}
	p := i.PendingModifiedValues
	if p == nil {
		p = &types.PendingModifiedValues{}
	}
	if (p.MultiAZ == nil) != (pending == nil) || pending != nil && *p.MultiAZ != *pending {
		t.Errorf("pending %v, want %v", p.MultiAZ, pending)
	}
}

// An instance is Multi-AZ once its standby has every commit, and stays so when the standby
// is lost; what is under way or waits is pending.
func TestMultiAZByRealClient(t *testing.T) {
	w, ctx, id := newTestWorld(t), t.Context(), aws.String("orders")
	convert := func(to, now bool) types.DBInstance {
		t.Helper()
		return *must(w.client.ModifyDBInstance(ctx, &rds.ModifyDBInstanceInput{DBInstanceIdentifier: id, MultiAZ: &to, ApplyImmediately: &now}))(t).DBInstance
	}
	failover := func() (*types.DBInstance, error) {
		out, err := w.client.RebootDBInstance(ctx, &rds.RebootDBInstanceInput{DBInstanceIdentifier: id, ForceFailover: aws.Bool(true)})
		if err != nil {
			return nil, err
		}
		return out.DBInstance, nil
	}
	wantZones(t, w.describe(t), false, "", nil)
	_, err := failover()
	wantCode(t, err, "InvalidParameterCombination", "Cannot force failover since the instance is not configured for multi-AZ.")

	waiting := convert(true, false)
	wantZones(t, waiting, false, "", aws.Bool(true))
	if *waiting.DBInstanceStatus != "available" {
		t.Error(*waiting.DBInstanceStatus)
	}
	now := convert(true, true)
	wantZones(t, now, false, "", aws.Bool(true))
	if *now.DBInstanceStatus != "modifying" {
		t.Error(*now.DBInstanceStatus)
	}
	w.answer(t, "", true)
	wantZones(t, w.describe(t), false, "", aws.Bool(true))
	_, err = failover()
	wantCode(t, err, "InvalidDBInstanceState", "orders is modifying")

	w.answer(t, "us-east-1b", false)
	wantZones(t, w.describe(t), true, "us-east-1b", nil)
	if i := must(failover())(t); *i.DBInstanceStatus != "rebooting" {
		t.Error(*i.DBInstanceStatus)
	}
	if i, _ := w.c.View.Instance(testID); i.Spec.FailoverSeq != 1 || i.Spec.RebootSeq != 0 {
		t.Errorf("%+v", i.Spec)
	}

	since := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	w.answer(t, "", false)
	w.putGroup(t, testID, since)
	wantZones(t, w.describe(t), true, "", nil)
	_, err = failover()
	wantCode(t, err, "InvalidDBInstanceState", "its standby does not have what was committed since 2026-11-21T12:00:00Z")

	w.answer(t, "us-east-1b", false)
	wantZones(t, convert(false, false), true, "us-east-1b", aws.Bool(false))
	convert(false, true)
	w.answer(t, "", true)
	wantZones(t, w.describe(t), true, "", aws.Bool(false))
	w.answer(t, "", false)
	wantZones(t, w.describe(t), false, "", nil)
}

// Each action that makes an instance takes MultiAZ, and refuses what goes ill with it.
func TestMakeMultiAZByRealClient(t *testing.T) {
	w, ctx := newTestWorld(t), t.Context()
	in := rds.CreateDBInstanceInput{
		DBInstanceIdentifier: aws.String("shop"), Engine: aws.String("postgres"), DBInstanceClass: aws.String("db.t3.micro"),
		MasterUsername: aws.String("boss"), MasterUserPassword: aws.String("correct-horse"), MultiAZ: aws.Bool(true),
	}
	for _, c := range []struct {
		name string
		edit func(*rds.CreateDBInstanceInput)
		code string
		text string
	}{
		{"zone", func(in *rds.CreateDBInstanceInput) { in.AvailabilityZone = aws.String("us-east-1b") },
			"InvalidParameterCombination", "Requesting a specific availability zone is not valid for Multi-AZ instances."},
		{"memory of mariadb", func(in *rds.CreateDBInstanceInput) {
			in.Engine, in.DBInstanceClass = aws.String("mariadb"), aws.String("db.t3.large")
		}, "InsufficientDBInstanceCapacity", "with a standby"},
		{"memory", func(in *rds.CreateDBInstanceInput) { in.DBInstanceClass = aws.String("db.t3.large") }, "InsufficientDBInstanceCapacity", "with a standby"},
	} {
		t.Run(c.name, func(t *testing.T) {
			in := in
			c.edit(&in)
			_, err := w.client.CreateDBInstance(ctx, &in)
			wantCode(t, err, c.code, c.text)
		})
	}
	made := must(w.client.CreateDBInstance(ctx, &in))(t).DBInstance
	if *made.MultiAZ || !aws.ToBool(made.PendingModifiedValues.MultiAZ) || *made.DBInstanceStatus != "creating" {
		t.Errorf("%v, %+v, %s", *made.MultiAZ, made.PendingModifiedValues, *made.DBInstanceStatus)
	}
	zone := aws.String("us-east-1a")
	must(w.client.CreateDBSnapshot(ctx, &rds.CreateDBSnapshotInput{DBInstanceIdentifier: aws.String("orders"), DBSnapshotIdentifier: aws.String("nightly")}))(t)
	s, _ := w.c.View.SnapshotByName("nightly")
	commit(t, w.c, store.NewChange().PutSnapshotStatus(kurabe.SnapshotStatus{ID: s.ID, SpecRevision: 1, State: kurabe.SnapshotAvailable}, s.StatusMod))
	restore := rds.RestoreDBInstanceFromDBSnapshotInput{DBInstanceIdentifier: aws.String("again"), DBSnapshotIdentifier: aws.String("nightly"), MultiAZ: aws.Bool(true)}
	if i := must(w.client.RestoreDBInstanceFromDBSnapshot(ctx, &restore))(t).DBInstance; !aws.ToBool(i.PendingModifiedValues.MultiAZ) {
		t.Errorf("%+v", i.PendingModifiedValues)
	}
	restore.DBInstanceIdentifier, restore.AvailabilityZone = aws.String("third"), zone
	_, err := w.client.RestoreDBInstanceFromDBSnapshot(ctx, &restore)
	wantCode(t, err, "InvalidParameterCombination", "Requesting a specific availability zone")
	// That it is taken is told from the reason: it is refused for another one.
	_, err = w.client.RestoreDBInstanceToPointInTime(ctx, &rds.RestoreDBInstanceToPointInTimeInput{
		SourceDBInstanceIdentifier: aws.String("orders"), TargetDBInstanceIdentifier: aws.String("fourth"), MultiAZ: aws.Bool(true), UseLatestRestorableTime: aws.Bool(true),
	})
	wantCode(t, err, "PointInTimeRestoreNotEnabled", "orders")
}

// The log files are those of the server that clients speak with.
func TestWritersLogsByRealClient(t *testing.T) {
	w := newTestWorld(t)
	w.writeLog(t, "postgresql.log.2026-11-21-02", "of the first\n")
	dir := filepath.Join(w.homes, string(testID.Member(2)), "log")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "postgresql.log.2026-11-21-03"), []byte("of the second\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for writer, want := range map[kurabe.InstanceID]string{testID: "of the first\n", testID.Member(2): "of the second\n"} {
		w.putGroup(t, writer, time.Time{})
		files := must(w.client.DescribeDBLogFiles(t.Context(), &rds.DescribeDBLogFilesInput{DBInstanceIdentifier: aws.String("orders")}))(t).DescribeDBLogFiles
		if len(files) != 1 {
			t.Fatalf("%+v", files)
		}
		text := must(w.client.DownloadDBLogFilePortion(t.Context(), &rds.DownloadDBLogFilePortionInput{
			DBInstanceIdentifier: aws.String("orders"), LogFileName: files[0].LogFileName,
		}))(t)
		if *text.LogFileData != want {
			t.Errorf("%s: %q", writer, *text.LogFileData)
		}
	}
}

// What the planner tells of a failover is found by RDS's category.
func TestFailoverEventsByRealClient(t *testing.T) {
	w := newTestWorld(t)
	for n, told := range []kurabe.Event{
		{ID: "RDS-EVENT-0013", Categories: []string{"failover"}, Message: "Multi-AZ instance failover started"},
		{ID: "RDS-EVENT-0049", Categories: []string{"failover"}, Message: "Multi-AZ instance failover completed"},
	} {
		told.At, told.SourceType, told.Source, told.SourceID = time.Now().Add(time.Duration(n-10)*time.Second), "db-instance", "orders", string(testID)
		commit(t, w.c, store.NewChange().AddEvent(told))
	}
	list := must(w.client.DescribeEvents(t.Context(), &rds.DescribeEventsInput{
		SourceType: types.SourceTypeDbInstance, SourceIdentifier: aws.String("orders"), EventCategories: []string{"failover"},
	}))(t).Events
	if len(list) != 2 || *list[0].Message != "Multi-AZ instance failover started" || *list[1].Message != "Multi-AZ instance failover completed" ||
		list[0].EventCategories[0] != "failover" {
		t.Errorf("%+v", list)
	}
}
