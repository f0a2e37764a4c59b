package main

import (
	"context"
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
	ownapi "kurabe/internal/api/kurabe"
)

func snapshotsCommand() *cobra.Command {
	var f client.Flags
	c := &cobra.Command{
		Use:   "snapshots [NAME]",
		Short: "List the snapshots, of one DB instance or of all",
		Long: `List the snapshots, also those of deleted instances. OCCUPIES is the disk space that a
deletion would free, at the last measurement.`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := f.Client()
			if err != nil {
				return err
			}
			in := &rds.DescribeDBSnapshotsInput{}
			if len(args) > 0 {
				in.DBInstanceIdentifier = aws.String(args[0])
			}
			known, err := askSnapshots(cmd.Context(), c)
			if err != nil {
				return err
			}
			table := tabwriter.NewWriter(os.Stdout, 0, 4, 2, ' ', 0)
			fmt.Fprintln(table, "NAME\tINSTANCE\tTYPE\tENGINE\tSTORAGE\tSTATUS\tTAKEN\tOCCUPIES\tVERIFIED")
			pages := rds.NewDescribeDBSnapshotsPaginator(c.Client, in)
			for pages.HasMorePages() {
				page, err := pages.NextPage(cmd.Context())
				if err != nil {
					return client.Friendly(err)
				}
				for _, s := range page.DBSnapshots {
					fmt.Fprintf(table, "%s\t%s\t%s\t%s %s\t%d GiB\t%s\t%s\t%s\t%s\n", aws.ToString(s.DBSnapshotIdentifier), aws.ToString(s.DBInstanceIdentifier),
						aws.ToString(s.SnapshotType), aws.ToString(s.Engine), aws.ToString(s.EngineVersion), aws.ToInt32(s.AllocatedStorage),
						known.status(s), takenAt(s), known.occupies(s), known.verified(s))
				}
			}
			return table.Flush()
		},
	}
	f.Add(c)
	c.ValidArgsFunction = f.InstanceNames
	return c
}

// knownSnapshots is what the service knows of snapshots beyond RDS's members, by name.
type knownSnapshots map[string]kurabe.SnapshotKnown

func askSnapshots(ctx context.Context, c *client.Client) (knownSnapshots, error) {
	out, err := client.Ask[ownapi.DescribeSnapshotsOutput](ctx, c, "DescribeSnapshots", nil)
	if err != nil {
		return nil, err
	}
	known := knownSnapshots{}
	for _, k := range out.Snapshots {
		if !k.Cluster {
			known[k.Name] = k
		}
	}
	return known, nil
}

// occupies tells how a snapshot was taken and what it occupies.
func (k knownSnapshots) occupies(s types.DBSnapshot) string {
	if one := k[aws.ToString(s.DBSnapshotIdentifier)]; one.Taken {
		return kurabe.FormatBytes(one.OccupiedBytes)
	}
	return "-"
}

// verified is when a snapshot was last restored and found sound.
func (k knownSnapshots) verified(s types.DBSnapshot) string {
	if at := k[aws.ToString(s.DBSnapshotIdentifier)].VerifiedAt; !at.IsZero() {
		return explain.When(at)
	}
	return "-"
}

// status says how far one is that is not there yet, and whether one is damaged.
func (k knownSnapshots) status(s types.DBSnapshot) string {
	status := aws.ToString(s.Status)
	if !k[aws.ToString(s.DBSnapshotIdentifier)].DamagedAt.IsZero() {
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
