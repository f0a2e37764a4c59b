package rds

import (
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/rds/types"

	"kurabe"
	"kurabe/internal/control"
)

// promotionTier is that of every server of a Multi-AZ DB cluster: which one takes over is
// decided by what each has.
const promotionTier = 1

// cluster translates a read model into AWS's shape of a DB cluster.
func (s *Service) cluster(i control.Instance) *types.DBCluster {
	spec, have := i.Spec, i.Settings()
	out := &types.DBCluster{
		DBClusterIdentifier: aws.String(i.Name), DbClusterResourceId: aws.String(i.ResourceID()),
		DBClusterArn: aws.String(s.c.ARN("cluster", i.Name)), Status: aws.String(string(i.State)),
		Engine: aws.String(string(spec.Engine)), EngineVersion: aws.String(i.EngineVersion()), EngineMode: aws.String(engineMode),
		DBClusterInstanceClass: aws.String(have.Class), AllocatedStorage: aws.Int32(int32(have.StorageGiB)),
		StorageType: aws.String(have.StorageType), MasterUsername: aws.String(spec.MasterUsername),
		DatabaseName: optional(spec.DatabaseName), CharacterSetName: optional(spec.Locale), Port: aws.Int32(int32(have.Port)),
		MultiAZ: aws.Bool(true), AvailabilityZones: zonesOf(i.Status.Servers), DBSubnetGroup: aws.String(i.SubnetGroup.Name),
		BackupRetentionPeriod: aws.Int32(int32(retentionDays(i))), PreferredBackupWindow: aws.String(spec.BackupWindow),
		PreferredMaintenanceWindow: aws.String(spec.MaintenanceWindow), NetworkType: aws.String("IPV4"),
		ClusterCreateTime: aws.Time(spec.CreatedAt), DBClusterParameterGroup: aws.String(spec.ParameterGroup),
		AutoMinorVersionUpgrade: aws.Bool(spec.AutoMinorUpgrade), DeletionProtection: aws.Bool(spec.DeletionProtection),
		CopyTagsToSnapshot: aws.Bool(spec.CopyTagsToSnapshot), PubliclyAccessible: aws.Bool(false), StorageEncrypted: aws.Bool(false),
		IAMDatabaseAuthenticationEnabled: aws.Bool(false), PerformanceInsightsEnabled: aws.Bool(spec.LoadKept), PerformanceInsightsRetentionPeriod: loadDays(spec), MonitoringInterval: aws.Int32(int32(spec.Monitoring.IntervalSeconds)), MonitoringRoleArn: optional(spec.Monitoring.Role), EnabledCloudwatchLogsExports: i.Status.LogTypes,
		HttpEndpointEnabled: aws.Bool(false), CrossAccountClone: aws.Bool(false),
		ActivityStreamStatus: types.ActivityStreamStatusStopped, DatabaseInsightsMode: types.DatabaseInsightsModeStandard,
		EngineLifecycleSupport: aws.String("open-source-rds-extended-support-disabled"), TagList: tagList(spec.Tags),
		PendingModifiedValues: clusterPendingValues(i), MasterUserSecret: s.masterSecret(i),
		DBClusterMembers: mapped(i.Status.Servers, func(m kurabe.ServerStatus) types.DBClusterMember { return clusterMember(i, m) }),
		DBClusterOptionGroupMemberships: []types.DBClusterOptionGroupStatus{{
			DBClusterOptionGroupName: aws.String(spec.OptionGroup), Status: aws.String("in-sync"),
		}},
		VpcSecurityGroups: s.securityGroups(i), AssociatedRoles: []types.DBClusterRole{},
		DomainMemberships: []types.DomainMembership{}, ReadReplicaIdentifiers: []string{}, CustomEndpoints: []string{},
	}
	if have.IOPS > 0 {
		out.Iops = aws.Int32(int32(have.IOPS))
	}
	if have.ThroughputMiB > 0 {
		out.StorageThroughput = aws.Int32(int32(have.ThroughputMiB))
	}
	if !i.LatestRestorable.IsZero() {
		out.EarliestRestorableTime, out.LatestRestorableTime = aws.Time(i.EarliestRestorable), aws.Time(i.LatestRestorable)
	}
	s.shapeClusterStatus(out, i)
	return out
}

func clusterMember(i control.Instance, m kurabe.ServerStatus) types.DBClusterMember {
	return types.DBClusterMember{
		DBInstanceIdentifier: aws.String(kurabe.ServerName(i.Name, m.ID)), IsClusterWriter: aws.Bool(m.Writer),
		DBClusterParameterGroupStatus: aws.String(applyStatus(i)), PromotionTier: aws.Int32(promotionTier),
	}
}

// shapeClusterStatus adds what is known only once the cluster has come up.
func (s *Service) shapeClusterStatus(out *types.DBCluster, i control.Instance) {
	st := i.Status
	if !st.AvailableAt.IsZero() {
		out.Endpoint, out.ReaderEndpoint = optional(s.c.Endpoint(i)), optional(s.c.ReaderEndpoint(i))
	}
	if !st.CertificateExpiresAt.IsZero() {
		out.CertificateDetails = &types.CertificateDetails{CAIdentifier: aws.String(st.Applied.CACertificate), ValidTill: aws.Time(st.CertificateExpiresAt)}
	}
	if !st.StoppedAt.IsZero() && !st.AutoStarted {
		out.AutomaticRestartTime = aws.Time(st.StoppedAt.Add(autoStart))
	}
	if st.Reason != "" {
		out.StatusInfos = []types.DBClusterStatusInfo{{
			StatusType: aws.String("kurabe"), Normal: aws.Bool(false), Status: out.Status, Message: aws.String(st.Reason),
		}}
	}
}

// clusterPendingValues are the modifications that are not in force yet, those that RDS's
// shape has a place for.
func clusterPendingValues(i control.Instance) *types.ClusterPendingModifiedValues {
	p := pendingValues(i)
	return &types.ClusterPendingModifiedValues{
		DBClusterIdentifier: p.DBInstanceIdentifier, MasterUserPassword: p.MasterUserPassword, BackupRetentionPeriod: p.BackupRetentionPeriod,
		AllocatedStorage: p.AllocatedStorage, StorageType: p.StorageType, Iops: p.Iops, EngineVersion: p.EngineVersion, PendingCloudwatchLogsExports: p.PendingCloudwatchLogsExports,
	}
}

// zonesOf are the zones of servers, sorted.
func zonesOf(servers []kurabe.ServerStatus) []string {
	zones := mapped(servers, func(m kurabe.ServerStatus) string { return m.Zone })
	slices.Sort(zones)
	return slices.Compact(zones)
}

// shapeServer makes the shape of a cluster's server out of that of the cluster as an
// instance: what it has of its own, and nothing of what belongs to the whole.
func (s *Service) shapeServer(out *types.DBInstance, i control.Instance) {
	m := i.Server
	out.DBClusterIdentifier, out.PromotionTier = aws.String(i.Cluster), aws.Int32(promotionTier)
	out.AvailabilityZone, out.SecondaryAvailabilityZone, out.MultiAZ = optional(m.Zone), nil, aws.Bool(false)
	// As on RDS: the parameters are those of the cluster's group, and the default one of instances
	// adds nothing. Tools look for one.
	out.DBParameterGroups = []types.DBParameterGroupStatus{{DBParameterGroupName: aws.String(s.c.DefaultGroupOf(i)), ParameterApplyStatus: aws.String("in-sync")}}
	out.PendingModifiedValues = &types.PendingModifiedValues{}
	out.Endpoint, out.InstanceCreateTime, out.LatestRestorableTime = nil, nil, nil
	if !m.CreatedAt.IsZero() {
		out.InstanceCreateTime = aws.Time(m.CreatedAt)
		out.Endpoint = &types.Endpoint{Address: aws.String(s.c.Endpoint(i)), Port: aws.Int32(int32(i.Settings().Port)), HostedZoneId: aws.String(hostedZone)}
	}
}
