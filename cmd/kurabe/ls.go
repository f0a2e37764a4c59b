package main

import (
	"fmt"
	"os"
	"text/tabwriter"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/rds"
	"github.com/aws/aws-sdk-go-v2/service/rds/types"
	"github.com/spf13/cobra"

	"kurabe"
	"kurabe/cmd/kurabe/client"
	"kurabe/cmd/kurabe/explain"
)

func lsCommand() *cobra.Command {
	var f client.Flags
	c := &cobra.Command{
		Use:   "ls",
		Short: "List the DB instances and the DB clusters",
		Long: `List the DB instances and the DB clusters. REPLICATION is the lag (ReplicaLag of RDS) of the
standby of a Multi-AZ instance, of a read replica, and of the readers of a cluster. "no standby
for 5s" means that for 5 seconds no standby has had every commit.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := f.Client()
			if err != nil {
				return err
			}
			table := tabwriter.NewWriter(os.Stdout, 0, 4, 2, ' ', 0)
			fmt.Fprintln(table, "NAME\tENGINE\tCLASS\tSTORAGE\tUSED\tFREE\tSTATUS\tREPLICATION\tENDPOINT")
			follow := explain.Following(cmd.Context(), c)
			pages := rds.NewDescribeDBInstancesPaginator(c.Client, &rds.DescribeDBInstancesInput{})
			for pages.HasMorePages() {
				page, err := pages.NextPage(cmd.Context())
				if err != nil {
					return client.Friendly(err)
				}
				for _, i := range page.DBInstances {
					e, _, _ := explain.Ask(cmd.Context(), c, aws.ToString(i.DBInstanceIdentifier)) // it may be gone by now
					used, free := storageOf(e)
					fmt.Fprintf(table, "%s\t%s %s\t%s\t%d GiB %s\t%s\t%s\t%s\t%s\t%s\n", aws.ToString(i.DBInstanceIdentifier), aws.ToString(i.Engine),
						aws.ToString(i.EngineVersion), aws.ToString(i.DBInstanceClass), aws.ToInt32(i.AllocatedStorage),
						aws.ToString(i.StorageType), used, free, statusOf(e, aws.ToString(i.DBInstanceStatus)),
						explain.ReplicationColumn(follow[aws.ToString(i.DBInstanceIdentifier)], time.Now()), endpointText(i))
				}
			}
			if err := table.Flush(); err != nil {
				return err
			}
			return listClusters(cmd.Context(), c, os.Stdout, follow)
		},
	}
	f.Add(c)
	return c
}

// statusOf is the status as the API tells it, and that commits wait.
func statusOf(e explain.Explanation, status string) string {
	if e.Status == nil || e.Status.BlockedAt.IsZero() {
		return status
	}
	return status + ", commits wait"
}

// storageOf says what an instance occupies and may still take, "-" where that is not
// known.
func storageOf(e explain.Explanation) (string, string) {
	used, free, _, known := e.Storage()
	if !known {
		return "-", "-"
	}
	return kurabe.FormatBytes(used), kurabe.FormatBytes(free)
}

func endpointText(i types.DBInstance) string {
	if i.Endpoint == nil {
		return "-"
	}
	return fmt.Sprintf("%s:%d", aws.ToString(i.Endpoint.Address), aws.ToInt32(i.Endpoint.Port))
}
