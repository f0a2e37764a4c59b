package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/rds"
	"github.com/aws/aws-sdk-go-v2/service/rds/types"
	"github.com/spf13/cobra"

	"kurabe"
)

func snapshotsCommand() *cobra.Command {
	var f clientFlags
	c := &cobra.Command{
		Use:   "snapshots [NAME]",
		Short: "List the snapshots, of one DB instance or of all",
		Long: `List the snapshots, also those of instances that are gone. What each occupies is what
deleting it would free on the disk by now, as of the last look at it.`,
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
			occupied, err := c.occupied(cmd.Context())
			if err != nil {
				return err
			}
			table := tabwriter.NewWriter(os.Stdout, 0, 4, 2, ' ', 0)
			fmt.Fprintln(table, "NAME\tINSTANCE\tTYPE\tENGINE\tSTORAGE\tSTATUS\tTAKEN\tOCCUPIES")
			pages := rds.NewDescribeDBSnapshotsPaginator(c.Client, in)
			for pages.HasMorePages() {
				page, err := pages.NextPage(cmd.Context())
				if err != nil {
					return friendly(err)
				}
				for _, s := range page.DBSnapshots {
					fmt.Fprintf(table, "%s\t%s\t%s\t%s %s\t%d GiB\t%s\t%s\t%s\n", aws.ToString(s.DBSnapshotIdentifier), aws.ToString(s.DBInstanceIdentifier),
						aws.ToString(s.SnapshotType), aws.ToString(s.Engine), aws.ToString(s.EngineVersion), aws.ToInt32(s.AllocatedStorage),
						snapshotStatus(s), takenAt(s), occupied.of(s))
				}
			}
			return table.Flush()
		},
	}
	f.add(c)
	c.ValidArgsFunction = f.instanceNames
	return c
}

// occupiedBytes is what snapshots occupy, by name.
type occupiedBytes map[string]int64

func (c *client) occupied(ctx context.Context) (occupiedBytes, error) {
	body, err := c.get(ctx, "/kurabe/occupied", url.Values{})
	if err != nil {
		return nil, err
	}
	var o occupiedBytes
	return o, json.Unmarshal(body, &o)
}

func (o occupiedBytes) of(s types.DBSnapshot) string {
	if bytes, known := o[aws.ToString(s.DBSnapshotIdentifier)]; known {
		return kurabe.FormatBytes(bytes)
	}
	return "-"
}

// snapshotStatus says how far one is that is not there yet.
func snapshotStatus(s types.DBSnapshot) string {
	status := aws.ToString(s.Status)
	if slices.ContainsFunc(s.TagList, func(t types.Tag) bool { return aws.ToString(t.Key) == kurabe.DamagedTag }) {
		return status + ", damaged"
	}
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
