package main

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/rds"
	"github.com/aws/aws-sdk-go-v2/service/rds/types"

	"kurabe"
	"kurabe/cmd/kurabe/client"
)

// createCluster is create for a DB cluster.
func createCluster(ctx context.Context, c *client.Client, n newInstance, wait bool) (types.DBInstance, error) {
	out, err := c.CreateDBCluster(ctx, &rds.CreateDBClusterInput{
		DBClusterIdentifier: aws.String(n.name), Engine: aws.String(n.engine), DBClusterInstanceClass: aws.String(n.class),
		MasterUsername: aws.String(n.user), MasterUserPassword: aws.String(n.password.Reveal()), AllocatedStorage: aws.Int32(n.storageGiB),
		EngineVersion: given(n.version), DatabaseName: given(n.database), StorageType: given(n.storageType), DBClusterParameterGroupName: given(n.group),
		Port: givenNumber(n.port), Iops: givenNumber(n.iops), EnableCloudwatchLogsExports: n.logs,
		EnablePerformanceInsights: aws.Bool(true), // kurabe top shows it
	})
	if err != nil {
		return types.DBInstance{}, client.Friendly(err)
	}
	i := client.AsInstance(*out.DBCluster)
	if _, err := c.Flags.SaveLogin(i, n.password); err != nil {
		return i, fmt.Errorf("the cluster is being created, but its password could not be kept (%w); set another with ModifyDBCluster", err)
	}
	if !wait {
		return i, nil
	}
	return waitAvailable(ctx, c, kurabe.NameKey(n.name, true))
}

// readerEndpoint is where the readers of a cluster are read, nil while there is none.
func readerEndpoint(ctx context.Context, c *client.Client, name string) (address *string, port *int32, err error) {
	out, err := c.DescribeDBClusters(ctx, &rds.DescribeDBClustersInput{DBClusterIdentifier: aws.String(name)})
	if err != nil {
		return nil, nil, client.Friendly(err)
	}
	for _, d := range out.DBClusters {
		address, port = d.ReaderEndpoint, d.Port
	}
	return address, port, nil
}

func printReaders(ctx context.Context, c *client.Client, name string) error {
	address, port, err := readerEndpoint(ctx, c, name)
	if err == nil {
		fmt.Printf("its readers are at %s\n", at(address, port))
	}
	return err
}

// deleteDatabase asks for the end of an instance, or of a cluster by its kurabe.NameKey.
func deleteDatabase(ctx context.Context, c *client.Client, key string) (err error) {
	name, cluster := kurabe.CutNameKey(key)
	if cluster {
		_, err = c.DeleteDBCluster(ctx, &rds.DeleteDBClusterInput{DBClusterIdentifier: aws.String(name), SkipFinalSnapshot: aws.Bool(true)})
	} else {
		_, err = c.DeleteDBInstance(ctx, &rds.DeleteDBInstanceInput{DBInstanceIdentifier: aws.String(name), SkipFinalSnapshot: aws.Bool(true)})
	}
	if err != nil {
		return client.Friendly(err)
	}
	return nil
}
