package client

import (
	"context"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/rds"
	"github.com/aws/aws-sdk-go-v2/service/rds/types"

	"kurabe"
)

// NoDatabase says that there is none of a name.
type NoDatabase struct{ What, Name string }

func (e NoDatabase) Error() string { return fmt.Sprintf("there is no %s %q", e.What, e.Name) }

// FindDatabase returns what a person can connect to under a name: the instance that is called
// so, a server of a cluster, or the cluster, at the endpoint of its writer. "cluster:NAME" is
// the cluster where an instance is called the same.
func (c *Client) FindDatabase(ctx context.Context, name string) (types.DBInstance, error) {
	cluster, asked := kurabe.CutNameKey(name)
	if !asked {
		i, err := c.Find(ctx, name)
		var absent *types.DBInstanceNotFoundFault
		if !errors.As(err, &absent) {
			return i, err
		}
	}
	out, err := c.DescribeDBClusters(ctx, &rds.DescribeDBClustersInput{DBClusterIdentifier: aws.String(cluster)})
	var absent *types.DBClusterNotFoundFault
	switch {
	case errors.As(err, &absent):
		what := "DB instance and no DB cluster"
		if asked {
			what = "DB cluster"
		}
		return types.DBInstance{}, NoDatabase{what, cluster}
	case err != nil:
		return types.DBInstance{}, Friendly(err)
	case len(out.DBClusters) == 0:
		return types.DBInstance{}, NoDatabase{"DB cluster", cluster}
	}
	return AsInstance(out.DBClusters[0]), nil
}

// AsInstance is a cluster as its clients see it: a database at the endpoint of its writer.
func AsInstance(c types.DBCluster) types.DBInstance {
	i := types.DBInstance{
		DBInstanceIdentifier: aws.String(kurabe.NameKey(aws.ToString(c.DBClusterIdentifier), true)), DBInstanceStatus: c.Status,
		Engine: c.Engine, EngineVersion: c.EngineVersion, MasterUsername: c.MasterUsername, DBName: c.DatabaseName,
	}
	if c.Endpoint != nil {
		i.Endpoint = &types.Endpoint{Address: c.Endpoint, Port: c.Port}
	}
	return i
}
