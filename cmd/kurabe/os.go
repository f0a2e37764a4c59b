package main

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"kurabe/cmd/kurabe/client"
	ownapi "kurabe/internal/api/kurabe"
)

func osCommand() *cobra.Command {
	var f client.Flags
	var follow bool
	c := &cobra.Command{
		Use:   "os NAME",
		Short: "Show what Enhanced Monitoring tells of the server of a DB instance",
		Long: `Print the newest picture of the operating system around the primary of a DB instance or a
DB cluster, as JSON in the form of RDS's RDSOSMetrics: CPU, memory, disk, network and
processes of its control group. A picture is made at each MonitoringInterval.`,
		Args: client.OneName,
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := f.Client()
			if err != nil {
				return err
			}
			in := ownapi.DescribeOSMetricsInput{Name: args[0]}
			for {
				out, err := client.Ask[ownapi.DescribeOSMetricsOutput](cmd.Context(), c, "DescribeOSMetrics", in)
				if err != nil {
					return err
				}
				for _, picture := range out.Pictures {
					fmt.Println(picture)
				}
				if !follow {
					return nil
				}
				in.From = out.From
				if len(out.Pictures) > 1 {
					continue // there may be more
				}
				select {
				case <-time.After(time.Second):
				case <-cmd.Context().Done():
					return nil
				}
			}
		},
	}
	f.Add(c)
	c.ValidArgsFunction = f.InstanceNames
	c.Flags().BoolVar(&follow, "follow", false, "print each picture that is made from now on, too")
	return c
}
