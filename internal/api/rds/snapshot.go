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

// snapshotRows are the actions on DB snapshots.
func (s *Service) snapshotRows() []row {
	return []row{
		api.Write("CreateDBSnapshot", s.createDBSnapshot),
		api.Write("CopyDBSnapshot", s.copyDBSnapshot),
		api.Read("DescribeDBSnapshots", s.describeDBSnapshots),
		api.Read("DescribeDBSnapshotAttributes", s.describeDBSnapshotAttributes),
		api.Write("ModifyDBSnapshot", s.modifyDBSnapshot),
		api.Write("DeleteDBSnapshot", s.deleteDBSnapshot),
		api.Write("RestoreDBInstanceFromDBSnapshot", s.restoreDBInstanceFromDBSnapshot),
	}
}

// snapshot translates a read model into AWS's shape.
func (s *Service) snapshot(m control.Snapshot) *types.DBSnapshot {
	spec, of, facts := m.Spec, m.Spec.Source, m.Status.Facts
	out := &types.DBSnapshot{
		DBSnapshotIdentifier: aws.String(spec.Name), DBSnapshotArn: aws.String(s.c.ARN("snapshot", spec.Name)),
		DBInstanceIdentifier: aws.String(of.Name), DbiResourceId: aws.String(string(of.Instance)),
		SnapshotType: aws.String(string(spec.Kind)), Status: aws.String(string(m.State)), PercentProgress: aws.Int32(int32(facts.Percent)),
		Engine: aws.String(string(of.Engine)), EngineVersion: aws.String(of.Settings.EngineVersion),
		LicenseModel: aws.String(of.Engine.LicenseModel()), MasterUsername: aws.String(of.MasterUsername),
		AllocatedStorage: aws.Int32(int32(of.Settings.StorageGiB)), StorageType: aws.String(of.Settings.StorageType),
		Port: aws.Int32(int32(of.Settings.Port)), AvailabilityZone: optional(of.Zone), VpcId: aws.String(s.c.NetworkID()),
		OptionGroupName: optional(spec.OptionGroup), SnapshotTarget: aws.String("region"),
		Encrypted: aws.Bool(false), IAMDatabaseAuthenticationEnabled: aws.Bool(false), MultiTenant: aws.Bool(false),
		DedicatedLogVolume: aws.Bool(false), ProcessorFeatures: []types.ProcessorFeature{}, TagList: tagList(m.Spec.Tags),
	}
	if !of.CreatedAt.IsZero() {
		out.InstanceCreateTime = aws.Time(of.CreatedAt)
	}
	// Until the copy exists its moment is not known, and RDS shows none either.
	if !facts.TakenAt.IsZero() {
		out.SnapshotCreateTime, out.OriginalSnapshotCreateTime = aws.Time(facts.TakenAt), aws.Time(facts.TakenAt)
		out.SnapshotDatabaseTime = aws.Time(facts.TakenAt)
	}
	if spec.CopyOf != "" {
		out.SourceDBSnapshotIdentifier = aws.String(s.c.ARN("snapshot", spec.CopyOfName))
		out.SourceRegion = aws.String(s.c.Region)
		out.OriginalSnapshotCreateTime = aws.Time(spec.OriginalAt)
		if out.SnapshotCreateTime != nil {
			out.SnapshotCreateTime = aws.Time(spec.CreatedAt)
		}
	}
	if of.Settings.IOPS > 0 {
		out.Iops = aws.Int32(int32(of.Settings.IOPS))
	}
	if of.Settings.ThroughputMiB > 0 {
		out.StorageThroughput = aws.Int32(int32(of.Settings.ThroughputMiB))
	}
	return out
}

func (s *Service) createDBSnapshot(ctx context.Context, in *rds.CreateDBSnapshotInput) (*rds.CreateDBSnapshotOutput, error) {
	m, err := s.c.CreateSnapshot(ctx, str(in.DBSnapshotIdentifier), str(in.DBInstanceIdentifier), tagsOf(in.Tags))
	if err != nil {
		return nil, err
	}
	return &rds.CreateDBSnapshotOutput{DBSnapshot: s.snapshot(m)}, nil
}

var copySnapshotHonours = names("SourceDBSnapshotIdentifier", "TargetDBSnapshotIdentifier", "CopyTags", "Tags", "OptionGroupName", "SourceRegion", "PreSignedUrl")

func (s *Service) copyDBSnapshot(ctx context.Context, in *rds.CopyDBSnapshotInput) (*rds.CopyDBSnapshotOutput, error) {
	if err := s.refuse(in, copySnapshotHonours); err != nil {
		return nil, err
	}
	if region := str(in.SourceRegion); region != "" && region != s.c.Region {
		return nil, kurabe.Errorf(kurabe.CodeInvalidParameterCombo, "SourceRegion cannot be honoured: this service is the region %s and knows no other", s.c.Region)
	}
	from, err := s.c.Snapshot(str(in.SourceDBSnapshotIdentifier))
	if err != nil {
		return nil, err
	}
	if group := str(in.OptionGroupName); group != "" && group != from.Spec.OptionGroup {
		return nil, kurabe.Errorf(kurabe.CodeOptionGroupNotFound, kurabe.WordsOptionGroupNotFound, group)
	}
	m, err := s.c.CopySnapshot(ctx, from.Spec.Name, str(in.TargetDBSnapshotIdentifier), tagsOf(in.Tags), isTrue(in.CopyTags))
	if err != nil {
		return nil, err
	}
	return &rds.CopyDBSnapshotOutput{DBSnapshot: s.snapshot(m)}, nil
}

func (s *Service) describeDBSnapshots(_ context.Context, in *rds.DescribeDBSnapshotsInput) (*rds.DescribeDBSnapshotsOutput, error) {
	max, err := pageSize(in.MaxRecords)
	if err != nil {
		return nil, err
	}
	after, err := unpackMarker(in.Marker)
	if err != nil {
		return nil, err
	}
	filter, err := s.snapshotFilter(in)
	if err != nil {
		return nil, err
	}
	list, next := s.c.Snapshots(filter, after, max)
	out := &rds.DescribeDBSnapshotsOutput{DBSnapshots: []types.DBSnapshot{}, Marker: packMarker(next)}
	for _, m := range list {
		out.DBSnapshots = append(out.DBSnapshots, *s.snapshot(m))
	}
	return out, nil
}

// snapshotFilter joins the request's own fields with its filters. A snapshot that
// is named must exist; an instance need not, as its snapshots outlive it.
func (s *Service) snapshotFilter(in *rds.DescribeDBSnapshotsInput) (control.SnapshotFilter, error) {
	var f control.SnapshotFilter
	for _, x := range in.Filters {
		switch str(x.Name) {
		case "db-snapshot-id":
			f.Names = x.Values
		case "db-instance-id":
			f.Instances = x.Values
		case "dbi-resource-id":
			f.IDs = x.Values
		case "snapshot-type":
			f.Kinds = x.Values
		case "engine":
			f.Engines = x.Values
		default:
			return f, kurabe.Errorf(kurabe.CodeInvalidParameterValue, "Unrecognized filter name: %s", str(x.Name))
		}
	}
	if kind := str(in.SnapshotType); kind != "" {
		f.Kinds = []string{kind}
		if err := checkSnapshotType(kind); err != nil {
			return f, err
		}
	}
	if id := str(in.DbiResourceId); id != "" {
		f.IDs = []string{id}
	}
	if name := str(in.DBInstanceIdentifier); name != "" {
		f.Instances = []string{name}
	}
	if name := str(in.DBSnapshotIdentifier); name != "" {
		m, err := s.c.Snapshot(name)
		if err != nil {
			return f, err
		}
		f.Names = []string{m.Spec.Name}
	}
	return f, nil
}

func checkSnapshotType(kind string) error {
	switch kind {
	case "manual", "automated", "shared", "public", "awsbackup":
		return nil
	}
	return kurabe.Errorf(kurabe.CodeInvalidParameterValue, "Invalid snapshot type: %s. Must be one of manual, automated, shared, public, awsbackup.", kind)
}

func (s *Service) describeDBSnapshotAttributes(_ context.Context, in *rds.DescribeDBSnapshotAttributesInput) (*rds.DescribeDBSnapshotAttributesOutput, error) {
	m, err := s.c.Snapshot(str(in.DBSnapshotIdentifier))
	if err != nil {
		return nil, err
	}
	// Nobody is there to share with: the one account may restore it, and that goes
	// without saying in RDS's answer too.
	return &rds.DescribeDBSnapshotAttributesOutput{DBSnapshotAttributesResult: &types.DBSnapshotAttributesResult{
		DBSnapshotIdentifier: aws.String(m.Spec.Name),
		DBSnapshotAttributes: []types.DBSnapshotAttribute{{AttributeName: aws.String("restore"), AttributeValues: []string{}}},
	}}, nil
}

func (s *Service) modifyDBSnapshot(ctx context.Context, in *rds.ModifyDBSnapshotInput) (*rds.ModifyDBSnapshotOutput, error) {
	m, err := s.c.Snapshot(str(in.DBSnapshotIdentifier))
	if err != nil {
		return nil, err
	}
	if version := str(in.EngineVersion); version != "" && version != m.Spec.Source.Settings.EngineVersion {
		return nil, kurabe.Errorf(kurabe.CodeInvalidParameterCombo, "EngineVersion cannot be honoured: a snapshot keeps the files of version %s; restore it and modify the EngineVersion of the instance", m.Spec.Source.Settings.EngineVersion)
	}
	if group := str(in.OptionGroupName); group != "" && group != m.Spec.OptionGroup {
		return nil, kurabe.Errorf(kurabe.CodeOptionGroupNotFound, kurabe.WordsOptionGroupNotFound, group)
	}
	return &rds.ModifyDBSnapshotOutput{DBSnapshot: s.snapshot(m)}, nil
}

func (s *Service) deleteDBSnapshot(ctx context.Context, in *rds.DeleteDBSnapshotInput) (*rds.DeleteDBSnapshotOutput, error) {
	m, err := s.c.DeleteSnapshot(ctx, str(in.DBSnapshotIdentifier))
	if err != nil {
		return nil, err
	}
	return &rds.DeleteDBSnapshotOutput{DBSnapshot: s.snapshot(m)}, nil
}

var restoreHonours = names("DBInstanceIdentifier", "DBSnapshotIdentifier", "DBClusterSnapshotIdentifier", "DBInstanceClass", "Engine", "AllocatedStorage",
	"StorageType", "Iops", "StorageThroughput", "DBName", "Port", "AvailabilityZone", "DBParameterGroupName", "OptionGroupName",
	"DBSubnetGroupName", "VpcSecurityGroupIds", "BackupRetentionPeriod", "PreferredBackupWindow", "DeletionProtection", "CopyTagsToSnapshot", "EnableCloudwatchLogsExports",
	"AutoMinorVersionUpgrade", "CACertificateIdentifier", "LicenseModel", "MultiAZ", "ManageMasterUserPassword", "MasterUserSecretKmsKeyId", "Tags", "TagSpecifications")

// snapshotToRestore finds the one snapshot, of an instance or of a cluster, that a request
// names.
func (s *Service) snapshotToRestore(name, cluster string) (control.Snapshot, string, error) {
	switch {
	case name != "" && cluster != "":
		return control.Snapshot{}, "", kurabe.Errorf(kurabe.CodeInvalidParameterCombo, "DBSnapshotIdentifier and DBClusterSnapshotIdentifier cannot be specified together.")
	case cluster != "":
		from, err := s.clusters().Snapshot(cluster)
		if err != nil {
			return from, "", control.AsCluster(err)
		}
		return from, s.c.ARN("cluster-snapshot", from.Spec.Name), nil
	}
	from, err := s.c.Snapshot(name)
	if err != nil {
		return from, "", err
	}
	return from, s.c.ARN("snapshot", from.Spec.Name), nil
}

func (s *Service) restoreDBInstanceFromDBSnapshot(ctx context.Context, in *rds.RestoreDBInstanceFromDBSnapshotInput) (*rds.RestoreDBInstanceFromDBSnapshotOutput, error) {
	if err := s.refuse(in, restoreHonours); err != nil {
		return nil, err
	}
	from, arn, err := s.snapshotToRestore(str(in.DBSnapshotIdentifier), str(in.DBClusterSnapshotIdentifier))
	if err != nil {
		return nil, err
	}
	if err := checkLicense(string(from.Spec.Source.Engine), in.LicenseModel); err != nil {
		return nil, err
	}
	tags, err := createTags(in.Tags, in.TagSpecifications, "db")
	if err != nil {
		return nil, err
	}
	i, err := s.c.RestoreSnapshot(ctx, arn, control.NewInstance{
		Name: str(in.DBInstanceIdentifier), Engine: str(in.Engine), Class: str(in.DBInstanceClass),
		DatabaseName: str(in.DBName), Zone: str(in.AvailabilityZone), StorageGiB: number(in.AllocatedStorage), IOPS: number(in.Iops),
		ThroughputMiB: number(in.StorageThroughput), StorageType: in.StorageType, CACertificate: in.CACertificateIdentifier,
		Port: number(in.Port), RetentionDays: number(in.BackupRetentionPeriod), BackupWindow: in.PreferredBackupWindow,
		ParameterGroup: in.DBParameterGroupName, OptionGroup: in.OptionGroupName, SubnetGroup: in.DBSubnetGroupName, SecurityGroups: in.VpcSecurityGroupIds,
		DeletionProtection: isTrue(in.DeletionProtection), CopyTags: isTrue(in.CopyTagsToSnapshot),
		AutoMinorUpgrade: in.AutoMinorVersionUpgrade == nil || *in.AutoMinorVersionUpgrade, MultiAZ: isTrue(in.MultiAZ), Tags: tags, LogTypes: in.EnableCloudwatchLogsExports,
		Managed: control.ManagedPassword{On: in.ManageMasterUserPassword, Key: in.MasterUserSecretKmsKeyId},
	})
	if err != nil {
		return nil, err
	}
	return &rds.RestoreDBInstanceFromDBSnapshotOutput{DBInstance: s.instance(i)}, nil
}
