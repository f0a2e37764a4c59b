package rds

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/rds"
	"github.com/aws/aws-sdk-go-v2/service/rds/types"

	"kurabe"
	"kurabe/internal/api"
	"kurabe/internal/control"
	"kurabe/internal/control/installed"
	"kurabe/internal/control/placement"
)

// orderableRows are the actions that tell what can be created or modified.
func (s *Service) orderableRows() []row {
	return []row{
		api.Read("DescribeOrderableDBInstanceOptions", s.describeOrderableDBInstanceOptions),
		api.Read("DescribeValidDBInstanceModifications", s.describeValidDBInstanceModifications),
	}
}

// gp3ThroughputMax is gp3's largest throughput in MiB/s, as CompleteStorage
// checks it; a test holds the two together.
const gp3ThroughputMax = 4000

func (s *Service) describeOrderableDBInstanceOptions(_ context.Context, in *rds.DescribeOrderableDBInstanceOptionsInput) (*rds.DescribeOrderableDBInstanceOptionsOutput, error) {
	if _, err := filterValues(in.Filters); err != nil {
		return nil, err
	}
	if err := installed.CheckEngine(str(in.Engine)); err != nil {
		return nil, err
	}
	filter := placement.Filter{Class: str(in.DBInstanceClass), Version: installed.Filter{Engines: []string{str(in.Engine)}}}
	if v := str(in.EngineVersion); v != "" {
		filter.Version.Versions = []string{v}
	}
	list := s.c.Orderables(filter)
	license, group := str(in.LicenseModel), str(in.AvailabilityZoneGroup)
	if license != "" && license != kurabe.EngineName(str(in.Engine)).LicenseModel() || group != "" && group != s.c.Region || in.Vpc != nil && !*in.Vpc {
		list = nil // every instance is of the engine's licence, the one region and the one network
	}
	list, marker, err := pageAt(list, in.Marker, in.MaxRecords)
	if err != nil {
		return nil, err
	}
	return &rds.DescribeOrderableDBInstanceOptionsOutput{OrderableDBInstanceOptions: mapped(list, s.orderable), Marker: marker}, nil
}

func (s *Service) orderable(o placement.Orderable) types.OrderableDBInstanceOption {
	t := o.Storage
	out := types.OrderableDBInstanceOption{
		Engine: aws.String(string(o.Version.Engine)), EngineVersion: aws.String(o.Version.Version), DBInstanceClass: aws.String(o.Class.Name),
		LicenseModel: aws.String(o.Version.Engine.LicenseModel()), AvailabilityZoneGroup: aws.String(s.c.Region), Vpc: aws.Bool(true),
		AvailabilityZones: mapped(o.Zones, func(zone string) types.AvailabilityZone { return types.AvailabilityZone{Name: aws.String(zone)} }),
		StorageType:       aws.String(t.Name), MinStorageSize: count(t.MinGiB), MaxStorageSize: count(t.MaxGiB),
		SupportsIops: aws.Bool(t.ProvisionIOPS), SupportsStorageThroughput: aws.Bool(t.Name == "gp3"),
		SupportedEngineModes: []string{engineMode}, SupportedNetworkTypes: []string{"IPV4"}, SupportedActivityStreamModes: []string{},
		AvailableProcessorFeatures:               []types.AvailableProcessorFeature{},
		AvailableAdditionalStorageVolumesOptions: []types.AvailableAdditionalStorageVolumesOption{},
		MultiAZCapable:                           aws.Bool(o.MultiAZ), ReadReplicaCapable: aws.Bool(true), OutpostCapable: aws.Bool(false),
		SupportsAdditionalStorageVolumes: aws.Bool(false), SupportsClusters: aws.Bool(o.Cluster), SupportsDedicatedLogVolume: aws.Bool(false),
		SupportsEnhancedMonitoring: aws.Bool(true), SupportsGlobalDatabases: aws.Bool(false), SupportsHttpEndpoint: aws.Bool(false),
		SupportsIAMDatabaseAuthentication: aws.Bool(false), SupportsKerberosAuthentication: aws.Bool(false),
		SupportsPerformanceInsights: aws.Bool(true), SupportsStorageAutoscaling: aws.Bool(true), SupportsStorageEncryption: aws.Bool(false),
	}
	if t.ProvisionIOPS {
		out.MinIopsPerDbInstance, out.MaxIopsPerDbInstance = count(t.MinIOPS), count(t.MaxIOPS)
		out.MaxIopsPerGib = aws.Float64(float64(t.MaxRatio))
	}
	if t.Name == "gp3" {
		out.MinStorageThroughputPerDbInstance, out.MaxStorageThroughputPerDbInstance = count(kurabe.GP3BaseThroughput), count(gp3ThroughputMax)
	}
	return out
}

func count(n int) *int32 { return aws.Int32(int32(n)) }

func (s *Service) describeValidDBInstanceModifications(_ context.Context, in *rds.DescribeValidDBInstanceModificationsInput) (*rds.DescribeValidDBInstanceModificationsOutput, error) {
	list, err := s.c.StorageChoices(str(in.DBInstanceIdentifier))
	if err != nil {
		return nil, err
	}
	return &rds.DescribeValidDBInstanceModificationsOutput{ValidDBInstanceModificationsMessage: &types.ValidDBInstanceModificationsMessage{
		Storage: mapped(list, storageOptions), ValidProcessorFeatures: []types.AvailableProcessorFeature{}, SupportsDedicatedLogVolume: aws.Bool(false),
	}}, nil
}

func storageOptions(choice control.StorageChoice) types.ValidStorageOptions {
	t := choice.Type
	span := func(from, to int) []types.Range {
		return []types.Range{{From: count(from), To: count(to), Step: count(1)}}
	}
	out := types.ValidStorageOptions{
		StorageType: aws.String(t.Name), StorageSize: span(choice.MinGiB, t.MaxGiB), SupportsStorageAutoscaling: aws.Bool(true),
		ProvisionedIops: []types.Range{}, IopsToStorageRatio: []types.DoubleRange{},
		ProvisionedStorageThroughput: []types.Range{}, StorageThroughputToIopsRatio: []types.DoubleRange{},
	}
	if t.ProvisionIOPS {
		out.ProvisionedIops = span(t.MinIOPS, t.MaxIOPS)
		out.IopsToStorageRatio = []types.DoubleRange{{From: aws.Float64(0), To: aws.Float64(float64(t.MaxRatio))}}
	}
	if t.Name == "gp3" {
		out.ProvisionedStorageThroughput = span(kurabe.GP3BaseThroughput, gp3ThroughputMax)
	}
	return out
}
