package rds

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/rds"
	"github.com/aws/aws-sdk-go-v2/service/rds/types"

	"kurabe"
	"kurabe/internal/api"
	"kurabe/internal/control"
)

// backupRows are the actions on automated backups.
func (s *Service) backupRows() []row {
	return []row{
		api.Read("DescribeDBInstanceAutomatedBackups", s.describeDBInstanceAutomatedBackups),
		api.Write("DeleteDBInstanceAutomatedBackup", s.deleteDBInstanceAutomatedBackup),
		api.Write("RestoreDBInstanceToPointInTime", s.restoreDBInstanceToPointInTime),
	}
}

// automatedBackup translates a read model into AWS's shape.
func (s *Service) automatedBackup(b control.AutomatedBackup) *types.DBInstanceAutomatedBackup {
	of := b.Source
	out := &types.DBInstanceAutomatedBackup{
		DBInstanceArn: aws.String(s.c.ARN("db", of.Name)), DbiResourceId: aws.String(string(of.Instance)), Region: aws.String(s.c.Region),
		DBInstanceIdentifier: aws.String(of.Name), DBInstanceAutomatedBackupsArn: aws.String(s.c.BackupARN(of.Instance)),
		RestoreWindow: &types.RestoreWindow{}, Status: aws.String(string(b.State)), PreferredBackupWindow: optional(b.Schedule),
		AllocatedStorage: aws.Int32(int32(of.Settings.StorageGiB)), Port: aws.Int32(int32(of.Settings.Port)),
		AvailabilityZone: optional(of.Zone), VpcId: aws.String(s.c.NetworkID()), MasterUsername: aws.String(of.MasterUsername),
		Engine: aws.String(string(of.Engine)), EngineVersion: aws.String(of.Settings.EngineVersion),
		LicenseModel: aws.String(of.Engine.LicenseModel()), OptionGroupName: optional(of.OptionGroup),
		StorageType: aws.String(of.Settings.StorageType), BackupRetentionPeriod: aws.Int32(int32(of.Settings.RetentionDays)),
		BackupTarget: aws.String("region"), Encrypted: aws.Bool(false), IAMDatabaseAuthenticationEnabled: aws.Bool(false),
		MultiTenant: aws.Bool(false), DedicatedLogVolume: aws.Bool(false), TagList: tagList(b.Tags),
		DBInstanceAutomatedBackupsReplications: []types.DBInstanceAutomatedBackupsReplication{},
	}
	if !b.Window.Latest.IsZero() {
		out.RestoreWindow.EarliestTime, out.RestoreWindow.LatestTime = aws.Time(b.Window.Earliest), aws.Time(b.Window.Latest)
	}
	if !of.CreatedAt.IsZero() {
		out.InstanceCreateTime = aws.Time(of.CreatedAt)
	}
	if of.Settings.IOPS > 0 {
		out.Iops = aws.Int32(int32(of.Settings.IOPS))
	}
	if of.Settings.ThroughputMiB > 0 {
		out.StorageThroughput = aws.Int32(int32(of.Settings.ThroughputMiB))
	}
	return out
}

func (s *Service) describeDBInstanceAutomatedBackups(_ context.Context, in *rds.DescribeDBInstanceAutomatedBackupsInput) (*rds.DescribeDBInstanceAutomatedBackupsOutput, error) {
	max, err := pageSize(in.MaxRecords)
	if err != nil {
		return nil, err
	}
	after, err := unpackMarker(in.Marker)
	if err != nil {
		return nil, err
	}
	values, err := filterValues(in.Filters, "status", "db-instance-id", "dbi-resource-id")
	if err != nil {
		return nil, err
	}
	f := control.BackupFilter{Instances: values["db-instance-id"], IDs: values["dbi-resource-id"], States: values["status"]}
	if name := str(in.DBInstanceIdentifier); name != "" {
		f.Instances = append(f.Instances, name)
	}
	for _, id := range []string{str(in.DbiResourceId), str(in.DBInstanceAutomatedBackupsArn)} {
		if id == "" {
			continue
		}
		if _, err := s.c.AutomatedBackup(id); err != nil {
			return nil, err
		}
		f.IDs = append(f.IDs, id)
	}
	list, next := s.c.AutomatedBackups(f, after, max)
	out := &rds.DescribeDBInstanceAutomatedBackupsOutput{DBInstanceAutomatedBackups: []types.DBInstanceAutomatedBackup{}, Marker: packMarker(next)}
	for _, b := range list {
		out.DBInstanceAutomatedBackups = append(out.DBInstanceAutomatedBackups, *s.automatedBackup(b))
	}
	return out, nil
}

func (s *Service) deleteDBInstanceAutomatedBackup(ctx context.Context, in *rds.DeleteDBInstanceAutomatedBackupInput) (*rds.DeleteDBInstanceAutomatedBackupOutput, error) {
	id, arn := str(in.DbiResourceId), str(in.DBInstanceAutomatedBackupsArn)
	if (id == "") == (arn == "") {
		return nil, kurabe.Errorf(kurabe.CodeInvalidParameterCombo, "Exactly one of DbiResourceId and DBInstanceAutomatedBackupsArn must be specified.")
	}
	b, err := s.c.DeleteAutomatedBackup(ctx, id+arn)
	if err != nil {
		return nil, err
	}
	out := s.automatedBackup(b)
	out.Status = aws.String("deleting")
	return &rds.DeleteDBInstanceAutomatedBackupOutput{DBInstanceAutomatedBackup: out}, nil
}

var pointHonours = names("SourceDBInstanceIdentifier", "SourceDbiResourceId", "SourceDBInstanceAutomatedBackupsArn",
	"TargetDBInstanceIdentifier", "RestoreTime", "UseLatestRestorableTime", "DBInstanceClass", "Engine", "AllocatedStorage",
	"StorageType", "Iops", "StorageThroughput", "DBName", "Port", "AvailabilityZone", "DBParameterGroupName", "OptionGroupName",
	"DBSubnetGroupName", "VpcSecurityGroupIds", "BackupRetentionPeriod", "PreferredBackupWindow", "MaxAllocatedStorage", "DeletionProtection",
	"CopyTagsToSnapshot", "EnableCloudwatchLogsExports", "AutoMinorVersionUpgrade", "CACertificateIdentifier", "LicenseModel", "MultiAZ", "ManageMasterUserPassword", "MasterUserSecretKmsKeyId", "Tags", "TagSpecifications")

func (s *Service) restoreDBInstanceToPointInTime(ctx context.Context, in *rds.RestoreDBInstanceToPointInTimeInput) (*rds.RestoreDBInstanceToPointInTimeOutput, error) {
	if err := s.refuse(in, pointHonours); err != nil {
		return nil, err
	}
	tags, err := createTags(in.Tags, in.TagSpecifications, "db")
	if err != nil {
		return nil, err
	}
	p := control.PointRequest{
		Instance: str(in.SourceDBInstanceIdentifier), ResourceID: str(in.SourceDbiResourceId),
		BackupARN: str(in.SourceDBInstanceAutomatedBackupsArn), Latest: isTrue(in.UseLatestRestorableTime), License: str(in.LicenseModel),
	}
	if in.RestoreTime != nil {
		p.At = *in.RestoreTime
	}
	i, err := s.c.RestorePoint(ctx, p, control.NewInstance{
		Name: str(in.TargetDBInstanceIdentifier), Engine: str(in.Engine), Class: str(in.DBInstanceClass),
		DatabaseName: str(in.DBName), Zone: str(in.AvailabilityZone), StorageGiB: number(in.AllocatedStorage), IOPS: number(in.Iops),
		ThroughputMiB: number(in.StorageThroughput), StorageType: in.StorageType, CACertificate: in.CACertificateIdentifier,
		Port: number(in.Port), RetentionDays: number(in.BackupRetentionPeriod), BackupWindow: in.PreferredBackupWindow,
		MaxStorageGiB: number(in.MaxAllocatedStorage), ParameterGroup: in.DBParameterGroupName, OptionGroup: in.OptionGroupName,
		SubnetGroup: in.DBSubnetGroupName, SecurityGroups: in.VpcSecurityGroupIds, DeletionProtection: isTrue(in.DeletionProtection), CopyTags: isTrue(in.CopyTagsToSnapshot),
		AutoMinorUpgrade: in.AutoMinorVersionUpgrade == nil || *in.AutoMinorVersionUpgrade, MultiAZ: isTrue(in.MultiAZ), Tags: tags, LogTypes: in.EnableCloudwatchLogsExports,
		Managed: control.ManagedPassword{On: in.ManageMasterUserPassword, Key: in.MasterUserSecretKmsKeyId},
	})
	if err != nil {
		return nil, err
	}
	return &rds.RestoreDBInstanceToPointInTimeOutput{DBInstance: s.instance(i)}, nil
}
