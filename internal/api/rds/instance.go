package rds

import (
	"context"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/rds"
	"github.com/aws/aws-sdk-go-v2/service/rds/types"

	"kurabe"
	"kurabe/internal/api"
	"kurabe/internal/control"
	"kurabe/internal/logkey"
)

// instanceRows are the actions on DB instances.
func (s *Service) instanceRows() []row {
	return []row{
		api.Write("CreateDBInstance", s.createDBInstance),
		api.Read("DescribeDBInstances", s.describeDBInstances),
		api.Write("ModifyDBInstance", s.modifyDBInstance),
		api.Write("DeleteDBInstance", s.deleteDBInstance),
		api.Write("RebootDBInstance", s.rebootDBInstance),
		api.Write("StartDBInstance", s.startDBInstance),
		api.Write("StopDBInstance", s.stopDBInstance),
	}
}

var createHonours = names("DBInstanceIdentifier", "DBInstanceClass", "Engine", "EngineVersion", "AllocatedStorage", "StorageType",
	"Iops", "StorageThroughput", "MasterUsername", "MasterUserPassword", "ManageMasterUserPassword", "MasterUserSecretKmsKeyId", "DBName", "CharacterSetName", "Port", "AvailabilityZone",
	"DBParameterGroupName", "OptionGroupName", "DBSubnetGroupName", "VpcSecurityGroupIds", "BackupRetentionPeriod", "PreferredBackupWindow",
	"PreferredMaintenanceWindow", "MaxAllocatedStorage", "DeletionProtection", "CopyTagsToSnapshot", "EnablePerformanceInsights", "MonitoringInterval", "MonitoringRoleArn", "EnableCloudwatchLogsExports", "AutoMinorVersionUpgrade",
	"CACertificateIdentifier", "LicenseModel", "MultiAZ", "Tags", "TagSpecifications")

func (s *Service) createDBInstance(ctx context.Context, in *rds.CreateDBInstanceInput) (*rds.CreateDBInstanceOutput, error) {
	if err := s.refuse(in, createHonours); err != nil {
		return nil, err
	}
	if err := checkLicense(str(in.Engine), in.LicenseModel); err != nil {
		return nil, err
	}
	tags, err := createTags(in.Tags, in.TagSpecifications, "db")
	if err != nil {
		return nil, err
	}
	i, err := s.c.CreateInstance(ctx, control.NewInstance{
		Name: str(in.DBInstanceIdentifier), Engine: str(in.Engine), EngineVersion: str(in.EngineVersion), Class: str(in.DBInstanceClass),
		MasterUsername: str(in.MasterUsername), MasterPassword: logkey.Secret(str(in.MasterUserPassword)),
		Managed:      control.ManagedPassword{On: in.ManageMasterUserPassword, Key: in.MasterUserSecretKmsKeyId},
		DatabaseName: str(in.DBName), Locale: str(in.CharacterSetName), Zone: str(in.AvailabilityZone),
		StorageGiB: number(in.AllocatedStorage), IOPS: number(in.Iops), ThroughputMiB: number(in.StorageThroughput),
		StorageType: in.StorageType, CACertificate: in.CACertificateIdentifier, Port: number(in.Port),
		RetentionDays: number(in.BackupRetentionPeriod), MaxStorageGiB: number(in.MaxAllocatedStorage),
		BackupWindow: in.PreferredBackupWindow, MaintenanceWindow: in.PreferredMaintenanceWindow,
		ParameterGroup: in.DBParameterGroupName, OptionGroup: in.OptionGroupName, SubnetGroup: in.DBSubnetGroupName, SecurityGroups: in.VpcSecurityGroupIds,
		DeletionProtection: isTrue(in.DeletionProtection), CopyTags: isTrue(in.CopyTagsToSnapshot), LoadKept: isTrue(in.EnablePerformanceInsights),
		Monitoring: kurabe.Monitoring{IntervalSeconds: int(aws.ToInt32(in.MonitoringInterval)), Role: str(in.MonitoringRoleArn)}, LogTypes: in.EnableCloudwatchLogsExports,
		AutoMinorUpgrade: in.AutoMinorVersionUpgrade == nil || *in.AutoMinorVersionUpgrade,
		MultiAZ:          isTrue(in.MultiAZ), Tags: tags,
	})
	if err != nil {
		return nil, err
	}
	return &rds.CreateDBInstanceOutput{DBInstance: s.instance(i)}, nil
}

func (s *Service) describeDBInstances(_ context.Context, in *rds.DescribeDBInstancesInput) (*rds.DescribeDBInstancesOutput, error) {
	max, err := pageSize(in.MaxRecords)
	if err != nil {
		return nil, err
	}
	after, err := unpackMarker(in.Marker)
	if err != nil {
		return nil, err
	}
	filter, err := instanceFilter(in.Filters)
	if err != nil {
		return nil, err
	}
	name := str(in.DBInstanceIdentifier)
	var absent error
	if name != "" {
		if _, absent = s.c.Instance(name); kurabe.CodeOf(absent) == kurabe.CodeInvalidParameterValue {
			return nil, absent
		}
		filter.Names = append(filter.Names, name) // to RDS it is one more value of that filter
	}
	list, next := s.c.Instances(filter, after, max)
	if len(list) == 0 && name != "" {
		if absent == nil { // it is there, but another filter does not match it
			absent = kurabe.Errorf(kurabe.CodeInstanceNotFound, kurabe.WordsInstanceNotFound, strings.ToLower(name))
		}
		return nil, absent
	}
	out := &rds.DescribeDBInstancesOutput{DBInstances: []types.DBInstance{}, Marker: packMarker(next)}
	for _, i := range list {
		out.DBInstances = append(out.DBInstances, *s.instance(i))
	}
	return out, nil
}

func instanceFilter(filters []types.Filter) (control.InstanceFilter, error) {
	values, err := filterValues(filters, "dbi-resource-id", "db-instance-id", "engine", "db-cluster-id", "domain")
	return control.InstanceFilter{
		IDs: values["dbi-resource-id"], Names: values["db-instance-id"], Engines: values["engine"],
		Clusters: values["db-cluster-id"], Domains: values["domain"],
	}, err
}

var modifyHonours = names("DBInstanceIdentifier", "ApplyImmediately", "AllocatedStorage", "StorageType", "Iops", "StorageThroughput",
	"DBInstanceClass", "EngineVersion", "MasterUserPassword", "ManageMasterUserPassword", "MasterUserSecretKmsKeyId", "RotateMasterUserPassword", "DBPortNumber", "DBParameterGroupName", "OptionGroupName",
	"DBSubnetGroupName", "VpcSecurityGroupIds", "BackupRetentionPeriod", "PreferredBackupWindow", "PreferredMaintenanceWindow", "MaxAllocatedStorage",
	"DeletionProtection", "CopyTagsToSnapshot", "EnablePerformanceInsights", "MonitoringInterval", "MonitoringRoleArn", "CloudwatchLogsExportConfiguration", "AutoMinorVersionUpgrade", "CACertificateIdentifier", "LicenseModel",
	"NewDBInstanceIdentifier", "Engine", "MultiAZ")

func (s *Service) modifyDBInstance(ctx context.Context, in *rds.ModifyDBInstanceInput) (*rds.ModifyDBInstanceOutput, error) {
	if err := s.refuse(in, modifyHonours); err != nil {
		return nil, err
	}
	have, err := s.c.Instance(str(in.DBInstanceIdentifier))
	if err != nil {
		return nil, err
	}
	if in.Engine != nil && *in.Engine != string(have.Spec.Engine) {
		return nil, kurabe.Errorf(kurabe.CodeInvalidParameterCombo, "Engine cannot be changed from %s to %s", have.Spec.Engine, *in.Engine)
	}
	if err := checkLicense(string(have.Spec.Engine), in.LicenseModel); err != nil {
		return nil, err
	}
	on, off := logChanges(in.CloudwatchLogsExportConfiguration)
	i, err := s.c.ModifyInstance(ctx, have.Name, control.InstanceChange{
		ApplyImmediately: isTrue(in.ApplyImmediately), MasterPassword: (*logkey.Secret)(in.MasterUserPassword), Port: number(in.DBPortNumber),
		Managed:        control.ManagedPassword{On: in.ManageMasterUserPassword, Key: in.MasterUserSecretKmsKeyId, Rotate: isTrue(in.RotateMasterUserPassword)},
		ParameterGroup: in.DBParameterGroupName, OptionGroup: in.OptionGroupName, SubnetGroup: in.DBSubnetGroupName, SecurityGroups: in.VpcSecurityGroupIds,
		RetentionDays: number(in.BackupRetentionPeriod), MaxStorageGiB: number(in.MaxAllocatedStorage),
		BackupWindow: in.PreferredBackupWindow, MaintenanceWindow: in.PreferredMaintenanceWindow,
		DeletionProtection: in.DeletionProtection, CopyTags: in.CopyTagsToSnapshot, LoadKept: in.EnablePerformanceInsights, MonitoringInterval: number(in.MonitoringInterval), MonitoringRole: in.MonitoringRoleArn, ExportLogs: on, KeepLogs: off, AutoMinorUpgrade: in.AutoMinorVersionUpgrade,
		NewName: in.NewDBInstanceIdentifier, Class: in.DBInstanceClass, EngineVersion: in.EngineVersion,
		StorageType: in.StorageType, CACertificate: in.CACertificateIdentifier, StorageGiB: number(in.AllocatedStorage),
		IOPS: number(in.Iops), ThroughputMiB: number(in.StorageThroughput), MultiAZ: in.MultiAZ,
	})
	if err != nil {
		return nil, err
	}
	return &rds.ModifyDBInstanceOutput{DBInstance: s.instance(i)}, nil
}

func (s *Service) deleteDBInstance(ctx context.Context, in *rds.DeleteDBInstanceInput) (*rds.DeleteDBInstanceOutput, error) {
	// Before the question of the last snapshot, as on RDS: Terraform looks for the
	// words about protection.
	if err := s.c.Deletable(str(in.DBInstanceIdentifier)); err != nil {
		return nil, err
	}
	final := str(in.FinalDBSnapshotIdentifier)
	if err := checkFinalSnapshot(in.SkipFinalSnapshot, final); err != nil {
		return nil, err
	}
	i, err := s.c.DeleteInstance(ctx, str(in.DBInstanceIdentifier), final, in.DeleteAutomatedBackups != nil && !*in.DeleteAutomatedBackups)
	if err != nil {
		return nil, err
	}
	return &rds.DeleteDBInstanceOutput{DBInstance: s.instance(i)}, nil
}

// checkFinalSnapshot says whether it is clear what is kept of what is deleted.
func checkFinalSnapshot(skip *bool, name string) error {
	switch {
	case isTrue(skip) && name != "":
		return kurabe.Errorf(kurabe.CodeInvalidParameterCombo, kurabe.WordsSkippedSnapshot)
	case !isTrue(skip) && name == "":
		return kurabe.Errorf(kurabe.CodeInvalidParameterCombo, kurabe.WordsFinalSnapshot)
	}
	return nil
}

func (s *Service) rebootDBInstance(ctx context.Context, in *rds.RebootDBInstanceInput) (*rds.RebootDBInstanceOutput, error) {
	reboot := s.c.RebootInstance
	if isTrue(in.ForceFailover) {
		reboot = s.c.FailoverInstance
	}
	i, err := reboot(ctx, str(in.DBInstanceIdentifier))
	if err != nil {
		return nil, err
	}
	return &rds.RebootDBInstanceOutput{DBInstance: s.instance(i)}, nil
}

func (s *Service) startDBInstance(ctx context.Context, in *rds.StartDBInstanceInput) (*rds.StartDBInstanceOutput, error) {
	i, err := s.c.StartInstance(ctx, str(in.DBInstanceIdentifier))
	if err != nil {
		return nil, err
	}
	return &rds.StartDBInstanceOutput{DBInstance: s.instance(i)}, nil
}

func (s *Service) stopDBInstance(ctx context.Context, in *rds.StopDBInstanceInput) (*rds.StopDBInstanceOutput, error) {
	i, err := s.c.StopInstance(ctx, str(in.DBInstanceIdentifier), str(in.DBSnapshotIdentifier))
	if err != nil {
		return nil, err
	}
	return &rds.StopDBInstanceOutput{DBInstance: s.instance(i)}, nil
}
