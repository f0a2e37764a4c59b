package main

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/rds"
	"github.com/aws/aws-sdk-go-v2/service/rds/types"

	"kurabe"
)

// createCluster is create for a DB cluster.
func (c *client) createCluster(ctx context.Context, n newInstance, wait bool) (types.DBInstance, error) {
	out, err := c.CreateDBCluster(ctx, &rds.CreateDBClusterInput{
		DBClusterIdentifier: aws.String(n.name), Engine: aws.String(n.engine), DBClusterInstanceClass: aws.String(n.class),
		MasterUsername: aws.String(n.user), MasterUserPassword: aws.String(n.password.Reveal()), AllocatedStorage: aws.Int32(n.storageGiB),
		EngineVersion: given(n.version), DatabaseName: given(n.database), StorageType: given(n.storageType), DBClusterParameterGroupName: given(n.group),
		Port: givenNumber(n.port), Iops: givenNumber(n.iops),
	})
	if err != nil {
		return types.DBInstance{}, friendly(err)
	}
	i := asInstance(*out.DBCluster)
	if _, err := c.flags.saveLogin(i, n.password); err != nil {
		return i, fmt.Errorf("the cluster is being created, but its password could not be kept (%w); set another with ModifyDBCluster", err)
	}
	if !wait {
		return i, nil
	}
	return c.waitAvailable(ctx, kurabe.NameKey(n.name, true))
}

// readerEndpoint is where the readers of a cluster are read, nil while there is none.
func (c *client) readerEndpoint(ctx context.Context, name string) (address *string, port *int32, err error) {
	out, err := c.DescribeDBClusters(ctx, &rds.DescribeDBClustersInput{DBClusterIdentifier: aws.String(name)})
	if err != nil {
		return nil, nil, friendly(err)
	}
	for _, d := range out.DBClusters {
		address, port = d.ReaderEndpoint, d.Port
	}
	return address, port, nil
}

func (c *client) printReaders(ctx context.Context, name string) error {
	address, port, err := c.readerEndpoint(ctx, name)
	if err == nil {
		fmt.Printf("its readers are at %s\n", at(address, port))
	}
	return err
}

// deleteDatabase asks for the end of an instance, or of a cluster by its kurabe.NameKey.
func (c *client) deleteDatabase(ctx context.Context, key string) (err error) {
	name, cluster := kurabe.CutNameKey(key)
	if cluster {
		_, err = c.DeleteDBCluster(ctx, &rds.DeleteDBClusterInput{DBClusterIdentifier: aws.String(name), SkipFinalSnapshot: aws.Bool(true)})
	} else {
		_, err = c.DeleteDBInstance(ctx, &rds.DeleteDBInstanceInput{DBInstanceIdentifier: aws.String(name), SkipFinalSnapshot: aws.Bool(true)})
	}
	if err != nil {
		return friendly(err)
	}
	return nil
}
