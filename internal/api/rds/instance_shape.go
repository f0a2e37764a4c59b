package rds

import (
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/rds/types"

	"kurabe"
	"kurabe/internal/control"
	"kurabe/internal/control/secret"
)

// autoStart is how long an instance stays stopped (see internal/plan).
const autoStart = 7 * 24 * time.Hour

// hostedZone is what Endpoint.HostedZoneId says: no zone of Route 53 belongs to endpoints,
// but declarative tools demand a value.
const hostedZone = "KURABE"

// instance translates a read model into AWS's shape. Everything that RDS returns
// and that is true of the instance is there.
func (s *Service) instance(i control.Instance) *types.DBInstance {
	spec, have := i.Spec, i.Settings()
	out := &types.DBInstance{
		DBInstanceIdentifier: aws.String(i.Name), DbiResourceId: aws.String(i.ResourceID()),
		DBInstanceArn: aws.String(s.c.ARN("db", i.Name)), DBInstanceStatus: aws.String(string(i.State)),
		Engine: aws.String(string(spec.Engine)), EngineVersion: aws.String(i.EngineVersion()),
		LicenseModel: aws.String(spec.Engine.LicenseModel()), DBInstanceClass: aws.String(have.Class),
		AllocatedStorage: aws.Int32(int32(have.StorageGiB)), StorageType: aws.String(have.StorageType),
		MasterUsername: aws.String(spec.MasterUsername), DBName: optional(spec.DatabaseName),
		CharacterSetName: optional(spec.Locale), DbInstancePort: aws.Int32(0),
		AvailabilityZone: optional(i.Status.Zone), SecondaryAvailabilityZone: optional(i.Status.SecondZone),
		MultiAZ: aws.Bool(i.MultiAZ()), DBSubnetGroup: s.subnetGroup(i.SubnetGroup),
		BackupRetentionPeriod: aws.Int32(int32(retentionDays(i))), PreferredBackupWindow: aws.String(spec.BackupWindow),
		PreferredMaintenanceWindow: aws.String(spec.MaintenanceWindow), BackupTarget: aws.String("region"),
		CACertificateIdentifier: aws.String(have.CACertificate), NetworkType: aws.String("IPV4"),
		AutoMinorVersionUpgrade: aws.Bool(spec.AutoMinorUpgrade), DeletionProtection: aws.Bool(spec.DeletionProtection),
		CopyTagsToSnapshot: aws.Bool(spec.CopyTagsToSnapshot), PubliclyAccessible: aws.Bool(false),
		StorageEncrypted: aws.Bool(false), IAMDatabaseAuthenticationEnabled: aws.Bool(false),
		PerformanceInsightsEnabled: aws.Bool(spec.LoadKept), PerformanceInsightsRetentionPeriod: loadDays(spec), MonitoringInterval: aws.Int32(int32(spec.Monitoring.IntervalSeconds)), MonitoringRoleArn: optional(spec.Monitoring.Role), EnabledCloudwatchLogsExports: i.Status.LogTypes, DedicatedLogVolume: aws.Bool(false),
		CustomerOwnedIpEnabled: aws.Bool(false), MultiTenant: aws.Bool(false), IsStorageConfigUpgradeAvailable: aws.Bool(false),
		ActivityStreamStatus: types.ActivityStreamStatusStopped, DatabaseInsightsMode: types.DatabaseInsightsModeStandard,
		EngineLifecycleSupport: aws.String("open-source-rds-extended-support-disabled"),
		TagList:                tagList(spec.Tags),
		PendingModifiedValues:  pendingValues(i),
		DBParameterGroups: []types.DBParameterGroupStatus{{
			DBParameterGroupName: aws.String(spec.ParameterGroup), ParameterApplyStatus: aws.String(applyStatus(i)),
		}},
		OptionGroupMemberships: []types.OptionGroupMembership{{OptionGroupName: aws.String(spec.OptionGroup), Status: aws.String("in-sync")}},
		DBSecurityGroups:       []types.DBSecurityGroupMembership{}, VpcSecurityGroups: s.securityGroups(i),
		DomainMemberships: []types.DomainMembership{}, AssociatedRoles: []types.DBInstanceRole{},
	}
	if spec.Monitoring.IntervalSeconds > 0 {
		out.EnhancedMonitoringResourceArn = aws.String("arn:aws:logs:" + s.c.Region + ":" + s.c.Account + ":log-group:" + kurabe.OSMetricsGroup + ":log-stream:" + i.ResourceID())
	}
	if have.IOPS > 0 {
		out.Iops = aws.Int32(int32(have.IOPS))
	}
	if have.ThroughputMiB > 0 {
		out.StorageThroughput = aws.Int32(int32(have.ThroughputMiB))
	}
	if spec.MaxStorageGiB > 0 {
		out.MaxAllocatedStorage = aws.Int32(int32(spec.MaxStorageGiB))
	}
	if !i.LatestRestorable.IsZero() {
		out.LatestRestorableTime = aws.Time(i.LatestRestorable)
	}
	s.shapeStatus(out, i)
	shapeReplication(out, i)
	out.MasterUserSecret = s.masterSecret(i)
	if i.Server != nil {
		s.shapeServer(out, i)
	}
	return out
}

// masterSecret is the secret with the password of the master user, nil where users keep it. It
// belongs to a cluster, not to the servers of one.
func (s *Service) masterSecret(i control.Instance) *types.MasterUserSecret {
	if i.MasterSecret == nil || i.Server != nil {
		return nil
	}
	return &types.MasterUserSecret{
		SecretArn: aws.String(i.MasterSecret.ARN), SecretStatus: aws.String(i.MasterSecret.MasterSecretStatus(s.c.Now())),
		KmsKeyId: aws.String("arn:aws:kms:" + s.c.Region + ":" + s.c.Account + ":" + secret.DefaultKey),
	}
}

// retentionDays are those in force: at once, but for an engine that has to restart.
func retentionDays(i control.Instance) int {
	if have := i.Settings(); i.Spec.Engine.RestartsForLog() && have.KeepsLog() != i.Spec.Now.KeepsLog() {
		return have.RetentionDays
	}
	return i.Spec.Now.RetentionDays
}

// shapeStatus adds what is known only once the instance has come up.
func (s *Service) shapeStatus(out *types.DBInstance, i control.Instance) {
	st := i.Status
	if !st.AvailableAt.IsZero() {
		out.InstanceCreateTime = aws.Time(st.AvailableAt)
		out.Endpoint = &types.Endpoint{Address: aws.String(s.c.Endpoint(i)), Port: aws.Int32(int32(st.Port)), HostedZoneId: aws.String(hostedZone)}
	}
	if !st.CertificateExpiresAt.IsZero() {
		out.CertificateDetails = &types.CertificateDetails{CAIdentifier: out.CACertificateIdentifier, ValidTill: aws.Time(st.CertificateExpiresAt)}
	}
	if !st.StoppedAt.IsZero() && !st.AutoStarted {
		out.AutomaticRestartTime = aws.Time(st.StoppedAt.Add(autoStart))
	}
	if st.Reason != "" {
		out.StatusInfos = []types.DBInstanceStatusInfo{{
			StatusType: aws.String("kurabe"), Normal: aws.Bool(false), Status: out.DBInstanceStatus, Message: aws.String(st.Reason),
		}}
	}
}

func applyStatus(i control.Instance) string {
	switch {
	case i.Status.ParameterApply == "":
		return "in-sync"
	case i.Status.GroupSeq != i.Spec.ParameterGroupSeq && i.Status.SpecRevision < i.Spec.Revision:
		return "pending-reboot"
	}
	return i.Status.ParameterApply
}

// missing are those of a list that another one lacks.
func missing(list, from []string) []string {
	return slices.DeleteFunc(slices.Clone(list), func(s string) bool { return slices.Contains(from, s) })
}

// logChanges are the logs whose export begins, and ends.
func logChanges(c *types.CloudwatchLogsExportConfiguration) (on, off []string) {
	if c != nil {
		on, off = c.EnableLogTypes, c.DisableLogTypes
	}
	return on, off
}

// pendingValues are the modifications that are not in force yet.
func pendingValues(i control.Instance) *types.PendingModifiedValues {
	p := &types.PendingModifiedValues{}
	if i.PendingName != "" {
		p.DBInstanceIdentifier = aws.String(i.PendingName)
	}
	if i.Status.PasswordSeq != 0 && !i.IsReplica() && i.Status.PasswordSeq != i.Spec.Password.Seq {
		p.MasterUserPassword = aws.String("****") // as RDS shows it
	}
	if on, off := missing(i.Spec.LogTypes, i.Status.LogTypes), missing(i.Status.LogTypes, i.Spec.LogTypes); len(on)+len(off) > 0 {
		p.PendingCloudwatchLogsExports = &types.PendingCloudwatchLogsExports{LogTypesToEnable: on, LogTypesToDisable: off}
	}
	// In force when the conversion ends, which takes longer than the rest.
	if want := i.WantsMultiAZ(); want != i.MultiAZ() {
		p.MultiAZ = aws.Bool(want)
	}
	if i.Pending == nil {
		return p
	}
	have, want := i.Settings(), *i.Pending
	if days := retentionDays(i); days != want.RetentionDays {
		p.BackupRetentionPeriod = aws.Int32(int32(want.RetentionDays))
	}
	if have.Class != want.Class {
		p.DBInstanceClass = aws.String(want.Class)
	}
	if have.StorageGiB != want.StorageGiB {
		p.AllocatedStorage = aws.Int32(int32(want.StorageGiB))
	}
	if have.StorageType != want.StorageType {
		p.StorageType = aws.String(want.StorageType)
	}
	if have.IOPS != want.IOPS && want.IOPS > 0 {
		p.Iops = aws.Int32(int32(want.IOPS))
	}
	if have.ThroughputMiB != want.ThroughputMiB && want.ThroughputMiB > 0 {
		p.StorageThroughput = aws.Int32(int32(want.ThroughputMiB))
	}
	if have.EngineVersion != want.EngineVersion {
		p.EngineVersion = aws.String(want.EngineVersion)
	}
	if have.Port != want.Port {
		p.Port = aws.Int32(int32(want.Port))
	}
	if have.CACertificate != want.CACertificate {
		p.CACertificateIdentifier = aws.String(want.CACertificate)
	}
	return p
}

// checkLicense refuses a licence model that is not the engine's own.
func checkLicense(engine string, model *string) error {
	own := kurabe.EngineName(strings.ToLower(engine)).LicenseModel()
	if model == nil || *model == own {
		return nil
	}
	return kurabe.Errorf(kurabe.CodeInvalidParameterCombo, "LicenseModel %s is not valid for engine %s; it is %s", *model, engine, own)
}

func str(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

func isTrue(b *bool) bool { return b != nil && *b }

func number(n *int32) *int {
	if n == nil {
		return nil
	}
	v := int(*n)
	return &v
}

func optional(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// loadDays is for how many days the database load is kept, nil where none is.
func loadDays(spec *kurabe.InstanceSpec) *int32 {
	if !spec.LoadKept {
		return nil
	}
	return aws.Int32(7)
}
