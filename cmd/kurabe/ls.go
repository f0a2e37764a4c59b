package main

import (
	"fmt"
	"os"
	"text/tabwriter"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/rds"
	"github.com/aws/aws-sdk-go-v2/service/rds/types"
	"github.com/spf13/cobra"
)

func lsCommand() *cobra.Command {
	var f clientFlags
	c := &cobra.Command{
		Use:   "ls",
		Short: "List the DB instances",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := f.client()
			if err != nil {
				return err
			}
			table := tabwriter.NewWriter(os.Stdout, 0, 4, 2, ' ', 0)
			fmt.Fprintln(table, "NAME\tENGINE\tCLASS\tSTORAGE\tSTATUS\tENDPOINT")
			pages := rds.NewDescribeDBInstancesPaginator(c.Client, &rds.DescribeDBInstancesInput{})
			for pages.HasMorePages() {
				page, err := pages.NextPage(cmd.Context())
				if err != nil {
					return friendly(err)
				}
				for _, i := range page.DBInstances {
					fmt.Fprintf(table, "%s\t%s %s\t%s\t%d GiB %s\t%s\t%s\n", aws.ToString(i.DBInstanceIdentifier), aws.ToString(i.Engine),
						aws.ToString(i.EngineVersion), aws.ToString(i.DBInstanceClass), aws.ToInt32(i.AllocatedStorage),
						aws.ToString(i.StorageType), aws.ToString(i.DBInstanceStatus), endpoint(i))
				}
			}
			return table.Flush()
		},
	}
	f.add(c)
	return c
}

func endpoint(i types.DBInstance) string {
	if i.Endpoint == nil {
		return "-"
	}
	return fmt.Sprintf("%s:%d", aws.ToString(i.Endpoint.Address), aws.ToInt32(i.Endpoint.Port))
}
