package rds

import (
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/rds"
	"github.com/aws/aws-sdk-go-v2/service/rds/types"

	"kurabe"
)

func TestEngineVersionsByRealClient(t *testing.T) {
	w, ctx := newTestWorld(t), t.Context()
	describe := func(in rds.DescribeDBEngineVersionsInput) []types.DBEngineVersion {
		t.Helper()
		return must(w.client.DescribeDBEngineVersions(ctx, &in))(t).DBEngineVersions
	}
	if list := describe(rds.DescribeDBEngineVersionsInput{}); len(list) != 3 || *list[0].Engine != "mariadb" {
		t.Errorf("%+v", list)
	}
	list := describe(rds.DescribeDBEngineVersionsInput{Engine: aws.String("postgres"), EngineVersion: aws.String("15"), ListSupportedCharacterSets: aws.Bool(true)})
	if len(list) != 2 || len(list[0].ValidUpgradeTarget) != 1 || *list[0].ValidUpgradeTarget[0].EngineVersion != "15.18" || *list[0].MajorEngineVersion != "15" ||
		len(list[1].SupportedCharacterSets) != 2 || *list[1].DefaultCharacterSet.CharacterSetName != "C" || !*list[0].SupportsReadReplica {
		t.Errorf("%+v", list)
	}
	if list := describe(rds.DescribeDBEngineVersionsInput{Engine: aws.String("postgres"), DefaultOnly: aws.Bool(true)}); len(list) != 1 || *list[0].EngineVersion != "15.18" {
		t.Errorf("%+v", list)
	}
	for _, none := range [][]types.Filter{filter("status", "deprecated"), filter("engine", "mysql"), filter("engine-mode", "serverless")} {
		if list := describe(rds.DescribeDBEngineVersionsInput{Filters: none}); len(list) != 0 {
			t.Errorf("%v: %+v", none, list)
		}
	}
	_, err := w.client.DescribeDBEngineVersions(ctx, &rds.DescribeDBEngineVersionsInput{Engine: aws.String("postgresql")})
	wantCode(t, err, "InvalidParameterValue", "Unrecognized engine name")
	majors := must(w.client.DescribeDBMajorEngineVersions(ctx, &rds.DescribeDBMajorEngineVersionsInput{}))(t).DBMajorEngineVersions
	if len(majors) != 2 || *majors[1].MajorEngineVersion != "15" {
		t.Errorf("%+v", majors)
	}
}

func TestOrderableByRealClient(t *testing.T) {
	w, ctx := newTestWorld(t), t.Context()
	seen := map[string]int{}
	p := rds.NewDescribeOrderableDBInstanceOptionsPaginator(w.client, &rds.DescribeOrderableDBInstanceOptionsInput{Engine: aws.String("postgres")})
	for p.HasMorePages() {
		for _, o := range must(p.NextPage(ctx))(t).OrderableDBInstanceOptions {
			seen[*o.EngineVersion+" "+*o.DBInstanceClass+" "+*o.StorageType]++
			class, _ := kurabe.FindClass(*o.DBInstanceClass)
			if len(o.AvailabilityZones) != 3 || *o.MultiAZCapable != (2*class.MemoryBytes <= 8*kurabe.GiB) || !*o.Vpc || *o.LicenseModel != "postgresql-license" {
				t.Fatalf("%+v", o)
			}
		}
	}
	if seen["15.9 db.t3.micro io1"] != 1 || seen["15.18 db.local.large local"] != 1 || seen["15.18 db.m5.4xlarge local"] != 0 || len(seen) < 200 {
		t.Errorf("%d combinations", len(seen))
	}
	none := must(w.client.DescribeOrderableDBInstanceOptions(ctx, &rds.DescribeOrderableDBInstanceOptionsInput{Engine: aws.String("mysql")}))(t)
	if len(none.OrderableDBInstanceOptions) != 0 {
		t.Error("mysql")
	}
	valid := must(w.client.DescribeValidDBInstanceModifications(ctx, &rds.DescribeValidDBInstanceModificationsInput{DBInstanceIdentifier: aws.String("orders")}))(t)
	storage := valid.ValidDBInstanceModificationsMessage.Storage
	if len(storage) != 5 || *storage[0].StorageType != "local" || *storage[0].StorageSize[0].From != 20 || *storage[3].ProvisionedIops[0].From != 1000 {
		t.Errorf("%+v", storage)
	}
	_, err := w.client.DescribeValidDBInstanceModifications(ctx, &rds.DescribeValidDBInstanceModificationsInput{DBInstanceIdentifier: aws.String("nope")})
	wantCode(t, err, "DBInstanceNotFound", "nope")
}

// The largest throughput that is told is the largest that is taken.
func TestThroughputMax(t *testing.T) {
	s := kurabe.InstanceSettings{StorageType: "gp3", StorageGiB: 400, ThroughputMiB: gp3ThroughputMax}
	if err := s.CompleteStorage(kurabe.Postgres); err != nil {
		t.Error(err)
	}
	s.ThroughputMiB++
	if s.CompleteStorage(kurabe.Postgres) == nil {
		t.Error("more is taken")
	}
}

func TestAccountByRealClient(t *testing.T) {
	w, ctx := newTestWorld(t), t.Context()
	used := map[string]int64{}
	for _, q := range must(w.client.DescribeAccountAttributes(ctx, &rds.DescribeAccountAttributesInput{}))(t).AccountQuotas {
		used[*q.AccountQuotaName] = *q.Used
		if *q.Used > *q.Max {
			t.Errorf("%+v", q)
		}
	}
	if used["DBInstances"] != 1 || used["AllocatedStorage"] != 20 {
		t.Errorf("%v", used)
	}
	certificates := must(w.client.DescribeCertificates(ctx, &rds.DescribeCertificatesInput{}))(t)
	if len(certificates.Certificates) != 1 || *certificates.Certificates[0].CertificateIdentifier != "kurabe-ca" || *certificates.DefaultCertificateForNewLaunches != "kurabe-ca" {
		t.Errorf("%+v", certificates)
	}
	_, err := w.client.DescribeCertificates(ctx, &rds.DescribeCertificatesInput{CertificateIdentifier: aws.String("rds-ca-2019")})
	wantCode(t, err, "CertificateNotFound", "rds-ca-2019")
	if regions := must(w.client.DescribeSourceRegions(ctx, &rds.DescribeSourceRegionsInput{}))(t); len(regions.SourceRegions) != 0 {
		t.Error(regions.SourceRegions)
	}
}

func TestEventsByRealClient(t *testing.T) {
	w, ctx := newTestWorld(t), t.Context()
	list := must(w.client.DescribeEvents(ctx, &rds.DescribeEventsInput{SourceType: types.SourceTypeDbInstance, SourceIdentifier: aws.String("orders")}))(t).Events
	if len(list) != 1 || *list[0].Message != "DB instance created" || *list[0].SourceArn != w.c.ARN("db", "orders") || list[0].EventCategories[0] != "creation" {
		t.Errorf("%+v", list)
	}
	_, err := w.client.DescribeEvents(ctx, &rds.DescribeEventsInput{SourceIdentifier: aws.String("orders")})
	wantCode(t, err, "InvalidParameterCombination", "Cannot specify source identifier without source type")
	_, err = w.client.DescribeEvents(ctx, &rds.DescribeEventsInput{Duration: aws.Int32(0)})
	wantCode(t, err, "InvalidParameterValue", "Duration")
	categories := must(w.client.DescribeEventCategories(ctx, &rds.DescribeEventCategoriesInput{SourceType: aws.String("db-parameter-group")}))(t).EventCategoriesMapList
	if len(categories) != 1 || len(categories[0].EventCategories) != 1 || categories[0].EventCategories[0] != "configuration change" {
		t.Errorf("%+v", categories)
	}
}

func TestMaintenanceByRealClient(t *testing.T) {
	w, ctx := newTestWorld(t), t.Context()
	arn := aws.String(w.c.ARN("db", "orders"))
	describe := func(in rds.DescribePendingMaintenanceActionsInput) []types.ResourcePendingMaintenanceActions {
		t.Helper()
		return must(w.client.DescribePendingMaintenanceActions(ctx, &in))(t).PendingMaintenanceActions
	}
	list := describe(rds.DescribePendingMaintenanceActionsInput{ResourceIdentifier: arn})
	if len(list) != 1 || *list[0].ResourceIdentifier != *arn {
		t.Fatalf("%+v", list)
	}
	action := list[0].PendingMaintenanceActionDetails[0]
	if *action.Action != "system-update" || action.CurrentApplyDate == nil || !strings.Contains(*action.Description, "class db.t3.micro to db.t3.small") {
		t.Errorf("%+v", action)
	}
	if len(describe(rds.DescribePendingMaintenanceActionsInput{Filters: filter("db-instance-id", "other")})) != 0 ||
		len(describe(rds.DescribePendingMaintenanceActionsInput{Filters: filter("db-cluster-id", "orders")})) != 0 {
		t.Error("filters")
	}
	applied := must(w.client.ApplyPendingMaintenanceAction(ctx, &rds.ApplyPendingMaintenanceActionInput{
		ResourceIdentifier: arn, ApplyAction: action.Action, OptInType: aws.String("immediate"),
	}))(t).ResourcePendingMaintenanceActions
	if *applied.PendingMaintenanceActionDetails[0].OptInStatus != "immediate" {
		t.Errorf("%+v", applied)
	}
	if len(describe(rds.DescribePendingMaintenanceActionsInput{})) != 0 {
		t.Error("it still waits")
	}
	_, err := w.client.ApplyPendingMaintenanceAction(ctx, &rds.ApplyPendingMaintenanceActionInput{
		ResourceIdentifier: arn, ApplyAction: action.Action, OptInType: aws.String("immediate"),
	})
	wantCode(t, err, "ResourceNotFoundFault", "")
}

func TestLogsByRealClient(t *testing.T) {
	w, ctx := newTestWorld(t), t.Context()
	id := aws.String("orders")
	w.writeLog(t, "postgresql.log.2026-11-21-03", "one\ntwo\nthrée <&>\n")
	w.writeLog(t, "postgresql.log.2026-11-21-02", "started\n")
	files := must(w.client.DescribeDBLogFiles(ctx, &rds.DescribeDBLogFilesInput{DBInstanceIdentifier: id}))(t).DescribeDBLogFiles
	if len(files) != 2 || *files[1].LogFileName != "error/postgresql.log.2026-11-21-03" || *files[1].Size != 19 || *files[1].LastWritten < 1e12 {
		t.Fatalf("%+v", files)
	}
	files = must(w.client.DescribeDBLogFiles(ctx, &rds.DescribeDBLogFilesInput{DBInstanceIdentifier: id, FileSize: aws.Int64(8), FilenameContains: aws.String("postgres")}))(t).DescribeDBLogFiles
	if len(files) != 1 {
		t.Errorf("%+v", files)
	}
	name := files[0].LogFileName
	tail := must(w.client.DownloadDBLogFilePortion(ctx, &rds.DownloadDBLogFilePortionInput{DBInstanceIdentifier: id, LogFileName: name, NumberOfLines: aws.Int32(1)}))(t)
	if *tail.LogFileData != "thrée <&>\n" {
		t.Errorf("%q", *tail.LogFileData)
	}
	var text string
	for p := rds.NewDownloadDBLogFilePortionPaginator(w.client, &rds.DownloadDBLogFilePortionInput{
		DBInstanceIdentifier: id, LogFileName: name, Marker: aws.String("0"),
	}, func(o *rds.DownloadDBLogFilePortionPaginatorOptions) {
		// Every portion has a marker, so that a reader can come back for what is
		// written later; this paginator does not look at AdditionalDataPending.
		o.Limit, o.StopOnDuplicateToken = 2, true
	}); p.HasMorePages(); {
		text += *must(p.NextPage(ctx))(t).LogFileData
	}
	if text != "one\ntwo\nthrée <&>\n" {
		t.Errorf("%q", text)
	}
	_, err := w.client.DownloadDBLogFilePortion(ctx, &rds.DownloadDBLogFilePortionInput{DBInstanceIdentifier: id, LogFileName: aws.String("error/../../x")})
	wantCode(t, err, "DBLogFileNotFoundFault", "is not found on the DB instance")
	_, err = w.client.DownloadDBLogFilePortion(ctx, &rds.DownloadDBLogFilePortionInput{DBInstanceIdentifier: id, LogFileName: name, Marker: aws.String("soon")})
	wantCode(t, err, "InvalidParameterValue", "marker")
}
