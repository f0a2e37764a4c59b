package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/rds"
	"github.com/aws/aws-sdk-go-v2/service/rds/types"

	"kurabe"
	"kurabe/cmd/kurabe/client"
	"kurabe/cmd/kurabe/explain"
)

// listClusters prints the clusters, nothing where there are none.
func listClusters(ctx context.Context, c *client.Client, w io.Writer, follow map[string]kurabe.Following) error {
	table := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
	pages := rds.NewDescribeDBClustersPaginator(c.Client, &rds.DescribeDBClustersInput{})
	for first := true; pages.HasMorePages(); first = false {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return client.Friendly(err)
		}
		if first && len(page.DBClusters) > 0 {
			fmt.Fprintln(table, "\nCLUSTER\tENGINE\tCLASS\tSTATUS\tWRITER\tREADERS\tREPLICATION\tENDPOINT\tREADER ENDPOINT")
		}
		for _, d := range page.DBClusters {
			writer, readers := serversOf(d)
			e, _, _ := explain.Ask(ctx, c, kurabe.NameKey(aws.ToString(d.DBClusterIdentifier), true)) // it may be gone by now
			fmt.Fprintf(table, "%s\t%s %s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", aws.ToString(d.DBClusterIdentifier), aws.ToString(d.Engine), aws.ToString(d.EngineVersion),
				aws.ToString(d.DBClusterInstanceClass), statusOf(e, aws.ToString(d.Status)), writer, readers,
				explain.ReplicationColumn(follow[kurabe.NameKey(aws.ToString(d.DBClusterIdentifier), true)], time.Now()), at(d.Endpoint, d.Port), at(d.ReaderEndpoint, d.Port))
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
