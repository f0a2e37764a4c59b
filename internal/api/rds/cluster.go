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

// clusterRows are the actions on DB clusters.
func (s *Service) clusterRows() []row {
	return []row{
		clusterOp("CreateDBCluster", s.createDBCluster),
		clusterOp("DescribeDBClusters", s.describeDBClusters),
		clusterOp("ModifyDBCluster", s.modifyDBCluster),
		clusterOp("DeleteDBCluster", s.deleteDBCluster),
		clusterOp("RebootDBCluster", s.rebootDBCluster),
		clusterOp("FailoverDBCluster", s.failoverDBCluster),
		clusterOp("StartDBCluster", s.startDBCluster),
		clusterOp("StopDBCluster", s.stopDBCluster),
	}
}

// clusterOp is an action that answers with the errors of clusters.
func clusterOp[In, Out any](name string, handle func(context.Context, *In) (*Out, error)) row {
	return api.Write(name, func(ctx context.Context, in *In) (*Out, error) {
		out, err := handle(ctx, in)
		return out, control.AsCluster(err)
	})
}

// clusters are the use cases of DB clusters.
func (s *Service) clusters() *control.Control { return s.c.Clusters() }

var createClusterHonours = names("DBClusterIdentifier", "DBClusterInstanceClass", "Engine", "EngineVersion", "AllocatedStorage", "StorageType",
	"Iops", "MasterUsername", "MasterUserPassword", "ManageMasterUserPassword", "MasterUserSecretKmsKeyId", "DatabaseName", "CharacterSetName", "Port", "AvailabilityZones",
	"DBClusterParameterGroupName", "OptionGroupName", "DBSubnetGroupName", "VpcSecurityGroupIds", "BackupRetentionPeriod", "PreferredBackupWindow",
	"PreferredMaintenanceWindow", "DeletionProtection", "CopyTagsToSnapshot", "EnablePerformanceInsights", "MonitoringInterval", "MonitoringRoleArn", "EnableCloudwatchLogsExports", "AutoMinorVersionUpgrade", "CACertificateIdentifier",
	"Tags", "TagSpecifications")

func (s *Service) createDBCluster(ctx context.Context, in *rds.CreateDBClusterInput) (*rds.CreateDBClusterOutput, error) {
	if err := s.refuse(in, createClusterHonours); err != nil {
		return nil, err
	}
	if str(in.DBClusterInstanceClass) == "" {
		return nil, kurabe.Errorf(kurabe.CodeInvalidParameterCombo, "DBClusterInstanceClass is required: DB clusters are Multi-AZ DB clusters here, whose %d servers are made with them. A cluster without servers needs Aurora's storage, which is Amazon's alone.", kurabe.ClusterServers)
	}
	tags, err := createTags(in.Tags, in.TagSpecifications, "cluster")
	if err != nil {
		return nil, err
	}
	i, err := s.clusters().CreateInstance(ctx, control.NewInstance{
		Name: str(in.DBClusterIdentifier), Engine: str(in.Engine), EngineVersion: str(in.EngineVersion), Class: str(in.DBClusterInstanceClass),
		MasterUsername: str(in.MasterUsername), MasterPassword: logkey.Secret(str(in.MasterUserPassword)),
		Managed:      control.ManagedPassword{On: in.ManageMasterUserPassword, Key: in.MasterUserSecretKmsKeyId},
		DatabaseName: str(in.DatabaseName), Locale: str(in.CharacterSetName), Zones: in.AvailabilityZones,
		StorageGiB: number(in.AllocatedStorage), IOPS: number(in.Iops), StorageType: in.StorageType,
		CACertificate: in.CACertificateIdentifier, Port: number(in.Port), RetentionDays: number(in.BackupRetentionPeriod),
		BackupWindow: in.PreferredBackupWindow, MaintenanceWindow: in.PreferredMaintenanceWindow,
		ParameterGroup: in.DBClusterParameterGroupName, OptionGroup: in.OptionGroupName, SubnetGroup: in.DBSubnetGroupName, SecurityGroups: in.VpcSecurityGroupIds,
		DeletionProtection: isTrue(in.DeletionProtection), CopyTags: isTrue(in.CopyTagsToSnapshot), LoadKept: isTrue(in.EnablePerformanceInsights),
		Monitoring: kurabe.Monitoring{IntervalSeconds: int(aws.ToInt32(in.MonitoringInterval)), Role: str(in.MonitoringRoleArn)}, LogTypes: in.EnableCloudwatchLogsExports,
		AutoMinorUpgrade: in.AutoMinorVersionUpgrade == nil || *in.AutoMinorVersionUpgrade, Tags: tags,
	})
	if err != nil {
		return nil, err
	}
	return &rds.CreateDBClusterOutput{DBCluster: s.cluster(i)}, nil
}

func (s *Service) describeDBClusters(_ context.Context, in *rds.DescribeDBClustersInput) (*rds.DescribeDBClustersOutput, error) {
	max, err := pageSize(in.MaxRecords)
	if err != nil {
		return nil, err
	}
	after, err := unpackMarker(in.Marker)
	if err != nil {
		return nil, err
	}
	values, err := filterValues(in.Filters, "clone-group-id", "db-cluster-id", "db-cluster-resource-id", "domain", "engine")
	if err != nil {
		return nil, err
	}
	filter := control.InstanceFilter{
		IDs: values["db-cluster-resource-id"], Names: values["db-cluster-id"], Engines: values["engine"],
		Domains: append(values["domain"], values["clone-group-id"]...), // no cluster is in either
	}
	name := str(in.DBClusterIdentifier)
	if name != "" {
		if _, err := s.clusters().Instance(name); err != nil {
			return nil, err
		}
		filter.Names = append(filter.Names, name)
	}
	list, next := s.clusters().Instances(filter, after, max)
	if len(list) == 0 && name != "" { // it is there, but another filter does not match it
		return nil, kurabe.Errorf(kurabe.CodeClusterNotFound, kurabe.WordsClusterNotFound, strings.ToLower(name))
	}
	return &rds.DescribeDBClustersOutput{
		DBClusters: mapped(list, func(i control.Instance) types.DBCluster { return *s.cluster(i) }), Marker: packMarker(next),
	}, nil
}

var modifyClusterHonours = names("DBClusterIdentifier", "ApplyImmediately", "AllocatedStorage", "StorageType", "Iops", "DBClusterInstanceClass",
	"EngineVersion", "MasterUserPassword", "ManageMasterUserPassword", "MasterUserSecretKmsKeyId", "RotateMasterUserPassword", "Port", "DBClusterParameterGroupName", "OptionGroupName", "VpcSecurityGroupIds", "BackupRetentionPeriod",
	"PreferredBackupWindow", "PreferredMaintenanceWindow", "DeletionProtection", "CopyTagsToSnapshot", "EnablePerformanceInsights", "MonitoringInterval", "MonitoringRoleArn", "CloudwatchLogsExportConfiguration", "AutoMinorVersionUpgrade",
	"CACertificateIdentifier", "NewDBClusterIdentifier")

func (s *Service) modifyDBCluster(ctx context.Context, in *rds.ModifyDBClusterInput) (*rds.ModifyDBClusterOutput, error) {
	if err := s.refuse(in, modifyClusterHonours); err != nil {
		return nil, err
	}
	on, off := logChanges(in.CloudwatchLogsExportConfiguration)
	i, err := s.clusters().ModifyInstance(ctx, str(in.DBClusterIdentifier), control.InstanceChange{
		ApplyImmediately: isTrue(in.ApplyImmediately), MasterPassword: (*logkey.Secret)(in.MasterUserPassword), Port: number(in.Port),
		Managed:        control.ManagedPassword{On: in.ManageMasterUserPassword, Key: in.MasterUserSecretKmsKeyId, Rotate: isTrue(in.RotateMasterUserPassword)},
		ParameterGroup: in.DBClusterParameterGroupName, OptionGroup: in.OptionGroupName, SecurityGroups: in.VpcSecurityGroupIds, RetentionDays: number(in.BackupRetentionPeriod),
		BackupWindow: in.PreferredBackupWindow, MaintenanceWindow: in.PreferredMaintenanceWindow,
		DeletionProtection: in.DeletionProtection, CopyTags: in.CopyTagsToSnapshot, LoadKept: in.EnablePerformanceInsights, MonitoringInterval: number(in.MonitoringInterval), MonitoringRole: in.MonitoringRoleArn, ExportLogs: on, KeepLogs: off, AutoMinorUpgrade: in.AutoMinorVersionUpgrade,
		NewName: in.NewDBClusterIdentifier, Class: in.DBClusterInstanceClass, EngineVersion: in.EngineVersion,
		StorageType: in.StorageType, CACertificate: in.CACertificateIdentifier, StorageGiB: number(in.AllocatedStorage), IOPS: number(in.Iops),
	})
	if err != nil {
		return nil, err
	}
	return &rds.ModifyDBClusterOutput{DBCluster: s.cluster(i)}, nil
}

func (s *Service) deleteDBCluster(ctx context.Context, in *rds.DeleteDBClusterInput) (*rds.DeleteDBClusterOutput, error) {
	name, final := str(in.DBClusterIdentifier), str(in.FinalDBSnapshotIdentifier)
	// Before the question of the last snapshot, as with instances.
	if err := s.clusters().Deletable(name); err != nil {
		return nil, err
	}
	if err := checkFinalSnapshot(in.SkipFinalSnapshot, final); err != nil {
		return nil, err
	}
	i, err := s.clusters().DeleteInstance(ctx, name, final, in.DeleteAutomatedBackups != nil && !*in.DeleteAutomatedBackups)
	if err != nil {
		return nil, err
	}
	return &rds.DeleteDBClusterOutput{DBCluster: s.cluster(i)}, nil
}

func (s *Service) rebootDBCluster(ctx context.Context, in *rds.RebootDBClusterInput) (*rds.RebootDBClusterOutput, error) {
	i, err := s.clusters().RebootInstance(ctx, str(in.DBClusterIdentifier))
	if err != nil {
		return nil, err
	}
	return &rds.RebootDBClusterOutput{DBCluster: s.cluster(i)}, nil
}

func (s *Service) failoverDBCluster(ctx context.Context, in *rds.FailoverDBClusterInput) (*rds.FailoverDBClusterOutput, error) {
	i, err := s.clusters().FailoverCluster(ctx, str(in.DBClusterIdentifier), str(in.TargetDBInstanceIdentifier))
	if err != nil {
		return nil, err
	}
	return &rds.FailoverDBClusterOutput{DBCluster: s.cluster(i)}, nil
}

func (s *Service) startDBCluster(ctx context.Context, in *rds.StartDBClusterInput) (*rds.StartDBClusterOutput, error) {
	i, err := s.clusters().StartInstance(ctx, str(in.DBClusterIdentifier))
	if err != nil {
		return nil, err
	}
	return &rds.StartDBClusterOutput{DBCluster: s.cluster(i)}, nil
}

func (s *Service) stopDBCluster(ctx context.Context, in *rds.StopDBClusterInput) (*rds.StopDBClusterOutput, error) {
	i, err := s.clusters().StopInstance(ctx, str(in.DBClusterIdentifier), "")
	if err != nil {
		return nil, err
	}
	return &rds.StopDBClusterOutput{DBCluster: s.cluster(i)}, nil
}
