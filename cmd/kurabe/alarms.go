package main

import (
	"fmt"
	"os"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"kurabe/cmd/kurabe/client"
)

// alarmsAnswer is what DescribeAlarms answers, as far as it is shown.
type alarmsAnswer struct {
	MetricAlarms []alarmShown
	NextToken    string
}

type alarmShown struct {
	AlarmName, StateValue, StateReason string
	ActionsEnabled                     bool
	StateTransitionedTimestamp         float64 // Unix time, seconds
}

func alarmsCommand() *cobra.Command {
	var f client.Flags
	c := &cobra.Command{
		Use:   "alarms",
		Short: "List the alarms of metrics: those in ALARM first",
		Long: `List the alarms of metrics with their states: those in ALARM first. "silent" means that an alarm
tells nobody (DisableAlarmActions). Alarms are made with CloudWatch's API, as by "aws cloudwatch
put-metric-alarm".`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := f.Client()
			if err != nil {
				return err
			}
			var list []alarmShown
			for token := ""; ; {
				ask := map[string]string{}
				if token != "" {
					ask["NextToken"] = token
				}
				page, err := client.AskService[alarmsAnswer](cmd.Context(), c, client.JSONService{Name: "monitoring", Target: "GraniteServiceVersion20100801", Version: "1.0"}, "DescribeAlarms", ask)
				if err != nil {
					return err
				}
				list = append(list, page.MetricAlarms...)
				if token = page.NextToken; token == "" {
					break
				}
			}
			slices.SortStableFunc(list, func(a, b alarmShown) int { return alarmOrder(a) - alarmOrder(b) })
			table := tabwriter.NewWriter(os.Stdout, 0, 4, 2, ' ', 0)
			fmt.Fprintln(table, "STATE\tSINCE\tALARM\tREASON")
			for _, a := range list {
				if !a.ActionsEnabled {
					a.StateValue += ", silent"
				}
				fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", a.StateValue, time.Unix(int64(a.StateTransitionedTimestamp), 0).Format(time.DateTime), a.AlarmName, a.StateReason)
			}
			return table.Flush()
		},
	}
	f.Add(c)
	return c
}

func alarmOrder(a alarmShown) int {
	return slices.Index([]string{"ALARM", "INSUFFICIENT_DATA", "OK"}, a.StateValue)
}
