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

// replicaRows are the actions on read replicas.
func (s *Service) replicaRows() []row {
	return []row{
		api.Write("CreateDBInstanceReadReplica", s.createDBInstanceReadReplica),
		api.Write("PromoteReadReplica", s.promoteReadReplica),
		api.Write("SwitchoverReadReplica", s.switchoverReadReplica),
	}
}

var replicaHonours = names("DBInstanceIdentifier", "SourceDBInstanceIdentifier", "DBInstanceClass", "AllocatedStorage", "StorageType",
	"Iops", "StorageThroughput", "MaxAllocatedStorage", "Port", "AvailabilityZone", "DBParameterGroupName", "OptionGroupName",
	"DBSubnetGroupName", "VpcSecurityGroupIds", "DeletionProtection", "CopyTagsToSnapshot", "EnablePerformanceInsights", "MonitoringInterval", "MonitoringRoleArn", "EnableCloudwatchLogsExports", "AutoMinorVersionUpgrade", "CACertificateIdentifier", "MultiAZ",
	"Tags", "TagSpecifications", "SourceRegion", "PreSignedUrl")

func (s *Service) createDBInstanceReadReplica(ctx context.Context, in *rds.CreateDBInstanceReadReplicaInput) (*rds.CreateDBInstanceReadReplicaOutput, error) {
	if err := s.refuse(in, replicaHonours); err != nil {
		return nil, err
	}
	if region := str(in.SourceRegion); region != "" && region != s.c.Region {
		return nil, kurabe.Errorf(kurabe.CodeInvalidParameterCombo, "SourceRegion cannot be honoured: this service is the region %s and knows no other", s.c.Region)
	}
	tags, err := createTags(in.Tags, in.TagSpecifications, "db")
	if err != nil {
		return nil, err
	}
	i, err := s.c.CreateReplica(ctx, str(in.SourceDBInstanceIdentifier), control.NewInstance{
		Name: str(in.DBInstanceIdentifier), Class: str(in.DBInstanceClass), Zone: str(in.AvailabilityZone),
		StorageGiB: number(in.AllocatedStorage), IOPS: number(in.Iops), ThroughputMiB: number(in.StorageThroughput),
		StorageType: in.StorageType, CACertificate: in.CACertificateIdentifier, Port: number(in.Port), MaxStorageGiB: number(in.MaxAllocatedStorage),
		ParameterGroup: in.DBParameterGroupName, OptionGroup: in.OptionGroupName, SubnetGroup: in.DBSubnetGroupName, SecurityGroups: in.VpcSecurityGroupIds,
		DeletionProtection: isTrue(in.DeletionProtection), CopyTags: isTrue(in.CopyTagsToSnapshot), LoadKept: isTrue(in.EnablePerformanceInsights),
		Monitoring: kurabe.Monitoring{IntervalSeconds: int(aws.ToInt32(in.MonitoringInterval)), Role: str(in.MonitoringRoleArn)}, LogTypes: in.EnableCloudwatchLogsExports,
		AutoMinorUpgrade: in.AutoMinorVersionUpgrade == nil || *in.AutoMinorVersionUpgrade,
		MultiAZ:          isTrue(in.MultiAZ), Tags: tags,
	})
	if err != nil {
		return nil, err
	}
	return &rds.CreateDBInstanceReadReplicaOutput{DBInstance: s.instance(i)}, nil
}

func (s *Service) promoteReadReplica(ctx context.Context, in *rds.PromoteReadReplicaInput) (*rds.PromoteReadReplicaOutput, error) {
	i, err := s.c.PromoteReplica(ctx, str(in.DBInstanceIdentifier), number(in.BackupRetentionPeriod), in.PreferredBackupWindow)
	if err != nil {
		return nil, err
	}
	return &rds.PromoteReadReplicaOutput{DBInstance: s.instance(i)}, nil
}

func (s *Service) switchoverReadReplica(ctx context.Context, in *rds.SwitchoverReadReplicaInput) (*rds.SwitchoverReadReplicaOutput, error) {
	i, err := s.c.SwitchoverReplica(ctx, str(in.DBInstanceIdentifier))
	if err != nil {
		return nil, err
	}
	return &rds.SwitchoverReadReplicaOutput{DBInstance: s.instance(i)}, nil
}

// shapeReplication adds what the instance follows and what follows it.
func shapeReplication(out *types.DBInstance, i control.Instance) {
	out.ReadReplicaSourceDBInstanceIdentifier = optional(i.Source)
	out.ReadReplicaDBInstanceIdentifiers = append([]string{}, i.Replicas...)
	if i.IsReplica() && i.Status.Replication != "" {
		out.StatusInfos = append(out.StatusInfos, types.DBInstanceStatusInfo{
			StatusType: aws.String("read replication"), Normal: aws.Bool(i.Status.Replication == kurabe.ReplicationRunning),
			Status: aws.String(string(i.Status.Replication)), Message: optional(i.Status.ReplicationReason),
		})
	}
}
