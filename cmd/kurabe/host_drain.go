package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"kurabe"
	"kurabe/cmd/kurabe/client"
	ownapi "kurabe/internal/api/kurabe"
	"kurabe/internal/reconcile"
)

func hostsDrainCommand() *cobra.Command {
	var f client.Flags
	var undo, noWait bool
	c := &cobra.Command{
		Use:   "drain HOST",
		Short: "Place nothing new on a host and move its DB instances away",
		Long: `Place nothing new on a host, and move its DB instances to other hosts of the same network
where these have room (see the guide to hosts). The command waits until all that can move
have moved, and lists what stays and why. Move those by promoting a read replica on another
host, or by a restore.

Ctrl-C ends the waiting only: the host stays drained. --undo ends the drain.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			in := ownapi.DrainHostInput{Host: kurabe.HostID(args[0]), Undo: undo}
			if undo || noWait {
				return changeHost(cmd.Context(), &f, "DrainHost", in, args[0])
			}
			c, err := f.Client()
			if err != nil {
				return err
			}
			if _, err := hosts(cmd.Context(), c, "DrainHost", in); err != nil {
				return err
			}
			return waitDrained(cmd.Context(), c, args[0])
		},
	}
	f.Add(c)
	c.Flags().BoolVar(&undo, "undo", false, "place things on it again")
	c.Flags().BoolVar(&noWait, "no-wait", false, "return as soon as the request is stored")
	return c
}

// waitDrained shows what leaves a host until nothing is left that can, and then what stays.
func waitDrained(ctx context.Context, c *client.Client, host string) error {
	waiting, stop := signal.NotifyContext(ctx, os.Interrupt)
	defer stop()
	p := client.NewProgress(os.Stderr, host)
	look := func() ([]reconcile.Leaving, error) {
		out, err := client.Ask[ownapi.DescribeLeavingServersOutput](waiting, c, "DescribeLeavingServers", ownapi.HostInput{Host: kurabe.HostID(host)})
		return out.Servers, err
	}
	servers, err := untilLeft(waiting, look, p.Show)
	p.End()
	if waiting.Err() != nil && ctx.Err() == nil {
		return fmt.Errorf("not waited for any longer; the drain goes on (kurabe hosts drain %s looks again, --undo takes it back)", host)
	}
	if err != nil {
		return err
	}
	printStays(os.Stdout, servers)
	hosts, err := hosts(ctx, c, "DescribeHosts", nil)
	if err != nil {
		return err
	}
	return printLeft(os.Stdout, hosts, host)
}

// untilLeft looks until every server that is left stays, and returns these.
func untilLeft(ctx context.Context, look func() ([]reconcile.Leaving, error), show func(string)) ([]reconcile.Leaving, error) {
	for {
		servers, err := look()
		if err != nil {
			return nil, err
		}
		leaving := leavingNames(servers)
		if len(leaving) == 0 {
			return servers, nil
		}
		show("moving " + strings.Join(leaving, ", "))
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(client.PollEvery):
		}
	}
}

// leavingNames are those that are about to leave, not more than people read.
func leavingNames(servers []reconcile.Leaving) (names []string) {
	for _, l := range servers {
		if l.CannotLeave == "" {
			names = append(names, fmt.Sprintf("%s (%s)", l.Name, l.State))
		}
	}
	slices.Sort(names)
	const most = 5
	if len(names) > most {
		names = append(names[:most], fmt.Sprintf("%d more", len(names)-most))
	}
	return names
}

// printStays says of each server why it stays.
func printStays(w io.Writer, servers []reconcile.Leaving) {
	for _, l := range servers {
		kind := "DB instance"
		if l.Cluster {
			kind = "DB cluster"
		}
		fmt.Fprintf(w, "%s %s stays: %s\n", kind, l.Name, l.CannotLeave)
	}
}
