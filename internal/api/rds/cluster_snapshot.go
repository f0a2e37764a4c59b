package rds

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/rds"
	"github.com/aws/aws-sdk-go-v2/service/rds/types"

	"kurabe"
	"kurabe/internal/control"
)

// clusterSnapshotRows are the actions on DB cluster snapshots.
func (s *Service) clusterSnapshotRows() []row {
	return []row{
		clusterOp("CreateDBClusterSnapshot", s.createDBClusterSnapshot),
		clusterOp("CopyDBClusterSnapshot", s.copyDBClusterSnapshot),
		clusterOp("DescribeDBClusterSnapshots", s.describeDBClusterSnapshots),
		clusterOp("DescribeDBClusterSnapshotAttributes", s.describeDBClusterSnapshotAttributes),
		clusterOp("DeleteDBClusterSnapshot", s.deleteDBClusterSnapshot),
		clusterOp("RestoreDBClusterFromSnapshot", s.restoreDBClusterFromSnapshot),
	}
}

// clusterSnapshot translates a read model into AWS's shape.
func (s *Service) clusterSnapshot(m control.Snapshot) *types.DBClusterSnapshot {
	spec, of, facts := m.Spec, m.Spec.Source, m.Status.Facts
	out := &types.DBClusterSnapshot{
		DBClusterSnapshotIdentifier: aws.String(spec.Name), DBClusterSnapshotArn: aws.String(s.c.ARN("cluster-snapshot", spec.Name)),
		DBClusterIdentifier: aws.String(of.Name), DbClusterResourceId: aws.String(control.ClusterResourceID(of.Instance)),
		SnapshotType: aws.String(string(spec.Kind)), Status: aws.String(string(m.State)), PercentProgress: aws.Int32(int32(facts.Percent)),
		Engine: aws.String(string(of.Engine)), EngineVersion: aws.String(of.Settings.EngineVersion), EngineMode: aws.String(engineMode),
		LicenseModel: aws.String(of.Engine.LicenseModel()), MasterUsername: aws.String(of.MasterUsername),
		AllocatedStorage: aws.Int32(int32(of.Settings.StorageGiB)), StorageType: aws.String(of.Settings.StorageType),
		Port: aws.Int32(int32(of.Settings.Port)), AvailabilityZones: []string{}, VpcId: aws.String(s.c.NetworkID()),
		StorageEncrypted: aws.Bool(false), IAMDatabaseAuthenticationEnabled: aws.Bool(false), TagList: tagList(m.Spec.Tags),
	}
	if of.Zone != "" {
		out.AvailabilityZones = []string{of.Zone} // of the server that it was taken of
	}
	if !of.CreatedAt.IsZero() {
		out.ClusterCreateTime = aws.Time(of.CreatedAt)
	}
	// Until the copy exists its moment is not known, and RDS shows none either.
	if !facts.TakenAt.IsZero() {
		out.SnapshotCreateTime = aws.Time(facts.TakenAt)
	}
	if spec.CopyOf != "" {
		out.SourceDBClusterSnapshotArn = aws.String(s.c.ARN("cluster-snapshot", spec.CopyOfName))
		if out.SnapshotCreateTime != nil {
			out.SnapshotCreateTime = aws.Time(spec.CreatedAt)
		}
	}
	if of.Settings.ThroughputMiB > 0 {
		out.StorageThroughput = aws.Int32(int32(of.Settings.ThroughputMiB))
	}
	return out
}

func (s *Service) createDBClusterSnapshot(ctx context.Context, in *rds.CreateDBClusterSnapshotInput) (*rds.CreateDBClusterSnapshotOutput, error) {
	m, err := s.clusters().CreateSnapshot(ctx, str(in.DBClusterSnapshotIdentifier), str(in.DBClusterIdentifier), tagsOf(in.Tags))
	if err != nil {
		return nil, err
	}
	return &rds.CreateDBClusterSnapshotOutput{DBClusterSnapshot: s.clusterSnapshot(m)}, nil
}

var copyClusterSnapshotHonours = names("SourceDBClusterSnapshotIdentifier", "TargetDBClusterSnapshotIdentifier", "CopyTags", "Tags", "SourceRegion", "PreSignedUrl")

func (s *Service) copyDBClusterSnapshot(ctx context.Context, in *rds.CopyDBClusterSnapshotInput) (*rds.CopyDBClusterSnapshotOutput, error) {
	if err := s.refuse(in, copyClusterSnapshotHonours); err != nil {
		return nil, err
	}
	if region := str(in.SourceRegion); region != "" && region != s.c.Region {
		return nil, kurabe.Errorf(kurabe.CodeInvalidParameterCombo, "SourceRegion cannot be honoured: this service is the region %s and knows no other", s.c.Region)
	}
	m, err := s.clusters().CopySnapshot(ctx, str(in.SourceDBClusterSnapshotIdentifier), str(in.TargetDBClusterSnapshotIdentifier), tagsOf(in.Tags), isTrue(in.CopyTags))
	if err != nil {
		return nil, err
	}
	return &rds.CopyDBClusterSnapshotOutput{DBClusterSnapshot: s.clusterSnapshot(m)}, nil
}

func (s *Service) describeDBClusterSnapshots(_ context.Context, in *rds.DescribeDBClusterSnapshotsInput) (*rds.DescribeDBClusterSnapshotsOutput, error) {
	max, err := pageSize(in.MaxRecords)
	if err != nil {
		return nil, err
	}
	after, err := unpackMarker(in.Marker)
	if err != nil {
		return nil, err
	}
	filter, err := s.clusterSnapshotFilter(in)
	if err != nil {
		return nil, err
	}
	list, next := s.clusters().Snapshots(filter, after, max)
	return &rds.DescribeDBClusterSnapshotsOutput{
		DBClusterSnapshots: mapped(list, func(m control.Snapshot) types.DBClusterSnapshot { return *s.clusterSnapshot(m) }), Marker: packMarker(next),
	}, nil
}

// clusterSnapshotFilter joins the request's own fields with its filters. A snapshot that is
// named must exist; a cluster need not, as its snapshots outlive it.
func (s *Service) clusterSnapshotFilter(in *rds.DescribeDBClusterSnapshotsInput) (control.SnapshotFilter, error) {
	values, err := filterValues(in.Filters, "db-cluster-id", "db-cluster-snapshot-id", "snapshot-type", "engine")
	if err != nil {
		return control.SnapshotFilter{}, err
	}
	f := control.SnapshotFilter{
		Names: values["db-cluster-snapshot-id"], Instances: values["db-cluster-id"], Kinds: values["snapshot-type"], Engines: values["engine"],
	}
	if kind := str(in.SnapshotType); kind != "" {
		f.Kinds = []string{kind}
		if err := checkSnapshotType(kind); err != nil {
			return f, err
		}
	}
	if id := str(in.DbClusterResourceId); id != "" {
		f.IDs = []string{id}
	}
	if name := str(in.DBClusterIdentifier); name != "" {
		f.Instances = []string{name}
	}
	if name := str(in.DBClusterSnapshotIdentifier); name != "" {
		m, err := s.clusters().Snapshot(name)
		if err != nil {
			return f, err
		}
		f.Names = []string{m.Spec.Name}
	}
	return f, nil
}

func (s *Service) describeDBClusterSnapshotAttributes(_ context.Context, in *rds.DescribeDBClusterSnapshotAttributesInput) (*rds.DescribeDBClusterSnapshotAttributesOutput, error) {
	m, err := s.clusters().Snapshot(str(in.DBClusterSnapshotIdentifier))
	if err != nil {
		return nil, err
	}
	return &rds.DescribeDBClusterSnapshotAttributesOutput{DBClusterSnapshotAttributesResult: &types.DBClusterSnapshotAttributesResult{
		DBClusterSnapshotIdentifier: aws.String(m.Spec.Name),
		DBClusterSnapshotAttributes: []types.DBClusterSnapshotAttribute{{AttributeName: aws.String("restore"), AttributeValues: []string{}}},
	}}, nil
}

func (s *Service) deleteDBClusterSnapshot(ctx context.Context, in *rds.DeleteDBClusterSnapshotInput) (*rds.DeleteDBClusterSnapshotOutput, error) {
	m, err := s.clusters().DeleteSnapshot(ctx, str(in.DBClusterSnapshotIdentifier))
	if err != nil {
		return nil, err
	}
	return &rds.DeleteDBClusterSnapshotOutput{DBClusterSnapshot: s.clusterSnapshot(m)}, nil
}

var restoreClusterHonours = names("DBClusterIdentifier", "SnapshotIdentifier", "Engine", "EngineVersion", "DBClusterInstanceClass", "StorageType",
	"Iops", "DatabaseName", "Port", "AvailabilityZones", "DBClusterParameterGroupName", "OptionGroupName", "DBSubnetGroupName", "VpcSecurityGroupIds",
	"BackupRetentionPeriod", "PreferredBackupWindow", "DeletionProtection", "CopyTagsToSnapshot", "EnablePerformanceInsights", "MonitoringInterval", "MonitoringRoleArn", "EnableCloudwatchLogsExports", "Tags", "TagSpecifications")

func (s *Service) restoreDBClusterFromSnapshot(ctx context.Context, in *rds.RestoreDBClusterFromSnapshotInput) (*rds.RestoreDBClusterFromSnapshotOutput, error) {
	if err := s.refuse(in, restoreClusterHonours); err != nil {
		return nil, err
	}
	tags, err := createTags(in.Tags, in.TagSpecifications, "cluster")
	if err != nil {
		return nil, err
	}
	i, err := s.clusters().RestoreSnapshot(ctx, str(in.SnapshotIdentifier), control.NewInstance{
		Name: str(in.DBClusterIdentifier), Engine: str(in.Engine), EngineVersion: str(in.EngineVersion), Class: str(in.DBClusterInstanceClass),
		DatabaseName: str(in.DatabaseName), Zones: in.AvailabilityZones, IOPS: number(in.Iops), StorageType: in.StorageType, Port: number(in.Port),
		RetentionDays: number(in.BackupRetentionPeriod), BackupWindow: in.PreferredBackupWindow,
		ParameterGroup: in.DBClusterParameterGroupName, OptionGroup: in.OptionGroupName, SubnetGroup: in.DBSubnetGroupName, SecurityGroups: in.VpcSecurityGroupIds,
		DeletionProtection: isTrue(in.DeletionProtection), CopyTags: isTrue(in.CopyTagsToSnapshot), LoadKept: isTrue(in.EnablePerformanceInsights),
		Monitoring: kurabe.Monitoring{IntervalSeconds: int(aws.ToInt32(in.MonitoringInterval)), Role: str(in.MonitoringRoleArn)}, LogTypes: in.EnableCloudwatchLogsExports, AutoMinorUpgrade: true, Tags: tags,
	})
	if err != nil {
		return nil, err
	}
	return &rds.RestoreDBClusterFromSnapshotOutput{DBCluster: s.cluster(i)}, nil
}
