package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/rds"
	"github.com/aws/aws-sdk-go-v2/service/rds/types"

	"kurabe"
)

// noDatabase says that there is none of a name.
type noDatabase struct{ what, name string }

func (e noDatabase) Error() string { return fmt.Sprintf("there is no %s %q", e.what, e.name) }

// findDatabase returns what a person can connect to under a name: the instance that is called
// so, a server of a cluster, or the cluster, at the endpoint of its writer. "cluster:NAME" is
// the cluster where an instance is called the same.
func (c *client) findDatabase(ctx context.Context, name string) (types.DBInstance, error) {
	cluster, asked := kurabe.CutNameKey(name)
	if !asked {
		i, err := c.find(ctx, name)
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
		return types.DBInstance{}, noDatabase{what, cluster}
	case err != nil:
		return types.DBInstance{}, friendly(err)
	case len(out.DBClusters) == 0:
		return types.DBInstance{}, noDatabase{"DB cluster", cluster}
	}
	return asInstance(out.DBClusters[0]), nil
}

// asInstance is a cluster as its clients see it: a database at the endpoint of its writer.
func asInstance(c types.DBCluster) types.DBInstance {
	i := types.DBInstance{
		DBInstanceIdentifier: aws.String(kurabe.NameKey(aws.ToString(c.DBClusterIdentifier), true)), DBInstanceStatus: c.Status,
		Engine: c.Engine, EngineVersion: c.EngineVersion, MasterUsername: c.MasterUsername, DBName: c.DatabaseName,
	}
	if c.Endpoint != nil {
		i.Endpoint = &types.Endpoint{Address: c.Endpoint, Port: c.Port}
	}
	return i
}

// listClusters prints the clusters, nothing where there are none.
func (c *client) listClusters(ctx context.Context, w io.Writer, follow map[string]kurabe.Following) error {
	table := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
	pages := rds.NewDescribeDBClustersPaginator(c.Client, &rds.DescribeDBClustersInput{})
	for first := true; pages.HasMorePages(); first = false {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return friendly(err)
		}
		if first && len(page.DBClusters) > 0 {
			fmt.Fprintln(table, "\nCLUSTER\tENGINE\tCLASS\tSTATUS\tWRITER\tREADERS\tREPLICATION\tENDPOINT\tREADER ENDPOINT")
		}
		for _, d := range page.DBClusters {
			writer, readers := serversOf(d)
			e, _, _ := c.explain(ctx, kurabe.NameKey(aws.ToString(d.DBClusterIdentifier), true)) // it may be gone by now
			fmt.Fprintf(table, "%s\t%s %s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", aws.ToString(d.DBClusterIdentifier), aws.ToString(d.Engine), aws.ToString(d.EngineVersion),
				aws.ToString(d.DBClusterInstanceClass), statusOf(e, aws.ToString(d.Status)), writer, readers,
				replicationColumn(follow[kurabe.NameKey(aws.ToString(d.DBClusterIdentifier), true)], time.Now()), at(d.Endpoint, d.Port), at(d.ReaderEndpoint, d.Port))
		}
	}
	return table.Flush()
}

// serversOf are the names of a cluster's writer and of its readers, "-" for none.
func serversOf(d types.DBCluster) (writer, readers string) {
	writer = "-"
	var others []string
	for _, m := range d.DBClusterMembers {
		if aws.ToBool(m.IsClusterWriter) {
			writer = aws.ToString(m.DBInstanceIdentifier)
			continue
		}
		others = append(others, aws.ToString(m.DBInstanceIdentifier))
	}
	if len(others) == 0 {
		return writer, "-"
	}
	return writer, strings.Join(others, ",")
}

func at(address *string, port *int32) string {
	if address == nil {
		return "-"
	}
	return fmt.Sprintf("%s:%d", *address, aws.ToInt32(port))
}
