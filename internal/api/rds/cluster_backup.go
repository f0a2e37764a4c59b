package rds

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/rds"
	"github.com/aws/aws-sdk-go-v2/service/rds/types"

	"kurabe"
	"kurabe/internal/control"
)

// clusterBackupRows are the actions on automated backups of DB clusters.
func (s *Service) clusterBackupRows() []row {
	return []row{
		clusterOp("DescribeDBClusterAutomatedBackups", s.describeDBClusterAutomatedBackups),
		clusterOp("DeleteDBClusterAutomatedBackup", s.deleteDBClusterAutomatedBackup),
		clusterOp("RestoreDBClusterToPointInTime", s.restoreDBClusterToPointInTime),
	}
}

// clusterBackup translates a read model into AWS's shape.
func (s *Service) clusterBackup(b control.AutomatedBackup) types.DBClusterAutomatedBackup {
	of := b.Source
	out := types.DBClusterAutomatedBackup{
		DBClusterArn: aws.String(s.c.ARN("cluster", of.Name)), DbClusterResourceId: aws.String(control.ClusterResourceID(of.Instance)),
		DBClusterIdentifier: aws.String(of.Name), DBClusterAutomatedBackupsArn: aws.String(s.clusters().BackupARN(of.Instance)),
		Region: aws.String(s.c.Region), RestoreWindow: &types.RestoreWindow{}, Status: aws.String(string(b.State)),
		PreferredBackupWindow: optional(b.Schedule), AllocatedStorage: aws.Int32(int32(of.Settings.StorageGiB)),
		Port: aws.Int32(int32(of.Settings.Port)), AvailabilityZones: []string{}, VpcId: aws.String(s.c.NetworkID()),
		MasterUsername: aws.String(of.MasterUsername), Engine: aws.String(string(of.Engine)), EngineMode: aws.String(engineMode),
		EngineVersion: aws.String(of.Settings.EngineVersion), LicenseModel: aws.String(of.Engine.LicenseModel()),
		StorageType: aws.String(of.Settings.StorageType), BackupRetentionPeriod: aws.Int32(int32(of.Settings.RetentionDays)),
		StorageEncrypted: aws.Bool(false), IAMDatabaseAuthenticationEnabled: aws.Bool(false), TagList: tagList(b.Tags),
	}
	if of.Zone != "" {
		out.AvailabilityZones = []string{of.Zone} // of the server that they are taken of
	}
	if !b.Window.Latest.IsZero() {
		out.RestoreWindow.EarliestTime, out.RestoreWindow.LatestTime = aws.Time(b.Window.Earliest), aws.Time(b.Window.Latest)
	}
	if !of.CreatedAt.IsZero() {
		out.ClusterCreateTime = aws.Time(of.CreatedAt)
	}
	if of.Settings.IOPS > 0 {
		out.Iops = aws.Int32(int32(of.Settings.IOPS))
	}
	if of.Settings.ThroughputMiB > 0 {
		out.StorageThroughput = aws.Int32(int32(of.Settings.ThroughputMiB))
	}
	return out
}

func (s *Service) describeDBClusterAutomatedBackups(_ context.Context, in *rds.DescribeDBClusterAutomatedBackupsInput) (*rds.DescribeDBClusterAutomatedBackupsOutput, error) {
	max, err := pageSize(in.MaxRecords)
	if err != nil {
		return nil, err
	}
	after, err := unpackMarker(in.Marker)
	if err != nil {
		return nil, err
	}
	values, err := filterValues(in.Filters, "status", "db-cluster-id", "db-cluster-resource-id")
	if err != nil {
		return nil, err
	}
	f := control.BackupFilter{Instances: values["db-cluster-id"], IDs: values["db-cluster-resource-id"], States: values["status"]}
	if name := str(in.DBClusterIdentifier); name != "" {
		f.Instances = append(f.Instances, name)
	}
	if id := str(in.DbClusterResourceId); id != "" {
		if _, err := s.clusters().AutomatedBackup(id); err != nil {
			return nil, err
		}
		f.IDs = append(f.IDs, id)
	}
	list, next := s.clusters().AutomatedBackups(f, after, max)
	return &rds.DescribeDBClusterAutomatedBackupsOutput{DBClusterAutomatedBackups: mapped(list, s.clusterBackup), Marker: packMarker(next)}, nil
}

func (s *Service) deleteDBClusterAutomatedBackup(ctx context.Context, in *rds.DeleteDBClusterAutomatedBackupInput) (*rds.DeleteDBClusterAutomatedBackupOutput, error) {
	b, err := s.clusters().DeleteAutomatedBackup(ctx, str(in.DbClusterResourceId))
	if err != nil {
		return nil, err
	}
	out := s.clusterBackup(b)
	out.Status = aws.String("deleting")
	return &rds.DeleteDBClusterAutomatedBackupOutput{DBClusterAutomatedBackup: &out}, nil
}

var clusterPointHonours = names("DBClusterIdentifier", "SourceDBClusterIdentifier", "SourceDbClusterResourceId", "RestoreToTime",
	"UseLatestRestorableTime", "RestoreType", "DBClusterInstanceClass", "StorageType", "Iops", "Port", "DBClusterParameterGroupName",
	"OptionGroupName", "DBSubnetGroupName", "VpcSecurityGroupIds", "BackupRetentionPeriod", "PreferredBackupWindow", "DeletionProtection",
	"CopyTagsToSnapshot", "EnablePerformanceInsights", "MonitoringInterval", "MonitoringRoleArn", "EnableCloudwatchLogsExports", "Tags", "TagSpecifications")

// fullCopy is the one type of restore there is: a new cluster has files of its own.
const fullCopy = "full-copy"

func (s *Service) restoreDBClusterToPointInTime(ctx context.Context, in *rds.RestoreDBClusterToPointInTimeInput) (*rds.RestoreDBClusterToPointInTimeOutput, error) {
	if err := s.refuse(in, clusterPointHonours); err != nil {
		return nil, err
	}
	if kind := str(in.RestoreType); kind != "" && kind != fullCopy {
		return nil, kurabe.Errorf(kurabe.CodeInvalidParameterCombo, "RestoreType %s cannot be honoured: a restored cluster has files of its own, which is %s; copy-on-write needs Aurora's storage", kind, fullCopy)
	}
	tags, err := createTags(in.Tags, in.TagSpecifications, "cluster")
	if err != nil {
		return nil, err
	}
	p := control.PointRequest{Instance: str(in.SourceDBClusterIdentifier), ResourceID: str(in.SourceDbClusterResourceId), Latest: isTrue(in.UseLatestRestorableTime)}
	if in.RestoreToTime != nil {
		p.At = *in.RestoreToTime
	}
	i, err := s.clusters().RestorePoint(ctx, p, control.NewInstance{
		Name: str(in.DBClusterIdentifier), Class: str(in.DBClusterInstanceClass), IOPS: number(in.Iops), StorageType: in.StorageType,
		Port: number(in.Port), RetentionDays: number(in.BackupRetentionPeriod), BackupWindow: in.PreferredBackupWindow,
		ParameterGroup: in.DBClusterParameterGroupName, OptionGroup: in.OptionGroupName, SubnetGroup: in.DBSubnetGroupName, SecurityGroups: in.VpcSecurityGroupIds,
		DeletionProtection: isTrue(in.DeletionProtection), CopyTags: isTrue(in.CopyTagsToSnapshot), LoadKept: isTrue(in.EnablePerformanceInsights),
		Monitoring: kurabe.Monitoring{IntervalSeconds: int(aws.ToInt32(in.MonitoringInterval)), Role: str(in.MonitoringRoleArn)}, LogTypes: in.EnableCloudwatchLogsExports, AutoMinorUpgrade: true, Tags: tags,
	})
	if err != nil {
		return nil, err
	}
	return &rds.RestoreDBClusterToPointInTimeOutput{DBCluster: s.cluster(i)}, nil
}
