package rds

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/service/rds"
	"github.com/aws/aws-sdk-go-v2/service/rds/types"

	"kurabe"
	"kurabe/internal/api"
)

// nothingRows list what nobody can have made here. Tools that take stock of an account ask for
// all of it, so the truth is an empty list; asked for by its name, a thing is not found.
func (s *Service) nothingRows() []row {
	return []row{
		api.Read("DescribeGlobalClusters", func(_ context.Context, in *rds.DescribeGlobalClustersInput) (*rds.DescribeGlobalClustersOutput, error) {
			err := nothing(in.Filters, in.Marker, in.MaxRecords, "db-cluster-id", "region")
			if name := str(in.GlobalClusterIdentifier); err == nil && name != "" {
				err = kurabe.Errorf(kurabe.CodeGlobalClusterNotFound, "Global cluster %s not found", name)
			}
			return &rds.DescribeGlobalClustersOutput{GlobalClusters: []types.GlobalCluster{}}, err
		}),
		api.Read("DescribeReservedDBInstances", func(_ context.Context, in *rds.DescribeReservedDBInstancesInput) (*rds.DescribeReservedDBInstancesOutput, error) {
			err := nothing(in.Filters, in.Marker, in.MaxRecords)
			if name := str(in.ReservedDBInstanceId); err == nil && name != "" {
				err = kurabe.Errorf(kurabe.CodeReservedNotFound, "Reserved DB Instance %s not found", name)
			}
			return &rds.DescribeReservedDBInstancesOutput{ReservedDBInstances: []types.ReservedDBInstance{}}, err
		}),
		api.Read("DescribeReservedDBInstancesOfferings", func(_ context.Context, in *rds.DescribeReservedDBInstancesOfferingsInput) (*rds.DescribeReservedDBInstancesOfferingsOutput, error) {
			err := nothing(in.Filters, in.Marker, in.MaxRecords)
			if name := str(in.ReservedDBInstancesOfferingId); err == nil && name != "" {
				err = kurabe.Errorf(kurabe.CodeOfferingNotFound, "Reserved DB Instances offering %s not found", name)
			}
			return &rds.DescribeReservedDBInstancesOfferingsOutput{ReservedDBInstancesOfferings: []types.ReservedDBInstancesOffering{}}, err
		}),
		api.Read("DescribeTenantDatabases", func(_ context.Context, in *rds.DescribeTenantDatabasesInput) (*rds.DescribeTenantDatabasesOutput, error) {
			err := nothing(in.Filters, in.Marker, in.MaxRecords, "tenant-db-name", "tenant-database-resource-id", "dbi-resource-id")
			if name := str(in.DBInstanceIdentifier); err == nil && name != "" {
				_, err = s.c.Instance(name)
			}
			return &rds.DescribeTenantDatabasesOutput{TenantDatabases: []types.TenantDatabase{}}, err
		}),
		api.Read("DescribeBlueGreenDeployments", func(_ context.Context, in *rds.DescribeBlueGreenDeploymentsInput) (*rds.DescribeBlueGreenDeploymentsOutput, error) {
			err := nothing(in.Filters, in.Marker, in.MaxRecords, "blue-green-deployment-identifier", "blue-green-deployment-name", "source", "target")
			if name := str(in.BlueGreenDeploymentIdentifier); err == nil && name != "" {
				err = kurabe.Errorf(kurabe.CodeBlueGreenNotFound, "BlueGreenDeployment %s not found.", name)
			}
			return &rds.DescribeBlueGreenDeploymentsOutput{BlueGreenDeployments: []types.BlueGreenDeployment{}}, err
		}),
	}
}

// nothing checks what a request for an empty list says of filters and pages.
func nothing(filters []types.Filter, marker *string, most *int32, known ...string) error {
	if _, err := filterValues(filters, known...); err != nil {
		return err
	}
	if _, err := pageSize(most); err != nil {
		return err
	}
	_, err := unpackMarker(marker)
	return err
}
