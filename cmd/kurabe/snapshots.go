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
)

func snapshotsCommand() *cobra.Command {
	var f clientFlags
	c := &cobra.Command{
		Use:   "snapshots [NAME]",
		Short: "List the snapshots, of one DB instance or of all",
		Long: `List the snapshots, also those of instances that are gone. What each occupies on the
disk, "kurabe explain NAME" says.`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := f.client()
			if err != nil {
				return err
			}
			in := &rds.DescribeDBSnapshotsInput{}
			if len(args) > 0 {
				in.DBInstanceIdentifier = aws.String(args[0])
			}
			table := tabwriter.NewWriter(os.Stdout, 0, 4, 2, ' ', 0)
			fmt.Fprintln(table, "NAME\tINSTANCE\tTYPE\tENGINE\tSTORAGE\tSTATUS\tTAKEN")
			pages := rds.NewDescribeDBSnapshotsPaginator(c.Client, in)
			for pages.HasMorePages() {
				page, err := pages.NextPage(cmd.Context())
				if err != nil {
					return friendly(err)
				}
				for _, s := range page.DBSnapshots {
					fmt.Fprintf(table, "%s\t%s\t%s\t%s %s\t%d GiB\t%s\t%s\n", aws.ToString(s.DBSnapshotIdentifier), aws.ToString(s.DBInstanceIdentifier),
						aws.ToString(s.SnapshotType), aws.ToString(s.Engine), aws.ToString(s.EngineVersion), aws.ToInt32(s.AllocatedStorage),
						snapshotStatus(s), takenAt(s))
				}
			}
			return table.Flush()
		},
	}
	f.add(c)
	c.ValidArgsFunction = f.instanceNames
	return c
}

// snapshotStatus says how far one is that is not there yet.
func snapshotStatus(s types.DBSnapshot) string {
	status := aws.ToString(s.Status)
	if status == "creating" || status == "copying" {
		return fmt.Sprintf("%s, %d %%", status, aws.ToInt32(s.PercentProgress))
	}
	return status
}

// takenAt is the moment that a snapshot shows, in local time.
func takenAt(s types.DBSnapshot) string {
	if s.SnapshotDatabaseTime == nil {
		return "-"
	}
	return s.SnapshotDatabaseTime.Local().Format(time.DateTime)
}
