package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"kurabe"
	"kurabe/cmd/kurabe/client"
	ownapi "kurabe/internal/api/kurabe"
	"kurabe/internal/control"
	"kurabe/internal/service"
)

func hostsCommand() *cobra.Command {
	var f client.Flags
	c := &cobra.Command{
		Use:   "hosts",
		Short: "List the machines that run databases; let more in, drain and remove them",
		Long: `List the machines that run databases for this service: its own, and those that have
joined. A machine joins with a token:

  kurabe hosts token         on any machine that reaches the service: prints what to run
  kurabe agent --join …      on the new one

A host is lost when its agent has not answered for five seconds. Its databases may still
serve clients; they are shown as "unreachable".`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := f.Client()
			if err != nil {
				return err
			}
			hosts, err := hosts(cmd.Context(), c, "DescribeHosts", nil)
			if err != nil {
				return err
			}
			return printHosts(os.Stdout, hosts, time.Now())
		},
	}
	f.Add(c)
	c.AddCommand(hostsTokenCommand(), hostsDrainCommand(), hostsRemoveCommand(), hostsGiveUpCommand())
	return c
}

func hostsTokenCommand() *cobra.Command {
	var f client.Flags
	var validity time.Duration
	var only, server bool
	c := &cobra.Command{
		Use:   "token",
		Short: "Create a token with which one host, or one server of the service, can join once",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := f.Client()
			if err != nil {
				return err
			}
			what := "agent"
			if server {
				what = "server --listen ADDRESS:7380 --host-listen ADDRESS:7381"
			}
			in := ownapi.CreateJoinTokenInput{ValiditySeconds: validity.Seconds(), Server: server}
			i, err := client.Ask[ownapi.CreateJoinTokenOutput](cmd.Context(), c, "CreateJoinToken", in)
			if err != nil {
				return err
			}
			if only {
				fmt.Println(i.Token)
				return nil
			}
			fmt.Printf("On the new machine, before %s:\n\n  %s=%s \\\n  kurabe %s --data /var/lib/kurabe --join %s --zone ZONE --address-pool NETWORK%s\n",
				i.ExpiresAt.Local().Format(time.DateTime), service.JoinTokenVariable, i.Token, what, i.Address, i.State)
			return nil
		},
	}
	f.Add(c)
	c.Flags().DurationVar(&validity, "validity", control.JoinTokenValidity, "how long the token is valid, up to 168h")
	c.Flags().BoolVar(&server, "server", false, "for another server of the service instead of an agent; it receives all keys of the service")
	c.Flags().BoolVar(&only, "only", false, "print only the token")
	return c
}

func hostsRemoveCommand() *cobra.Command {
	var f client.Flags
	c := &cobra.Command{
		Use:   "remove HOST",
		Short: "Remove a host on which nothing is left",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return changeHost(cmd.Context(), &f, "RemoveHost", ownapi.HostInput{Host: kurabe.HostID(args[0])}, args[0])
		},
	}
	f.Add(c)
	return c
}

func hostsGiveUpCommand() *cobra.Command {
	var f client.Flags
	var yes bool
	c := &cobra.Command{
		Use:   "give-up HOST",
		Short: "Declare a lost host, with everything on it, gone for good",
		Long: `Declare a lost host gone for good. Its instances and snapshots become "failed"; they can
then be deleted, and the host removed. Switch the machine off first: if its databases still
run, clients may go on writing to them.

Snapshots in the backup repository can be imported (kurabe import). The command asks for
the name of the host first, unless --yes is given.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := f.Client()
			if err != nil {
				return err
			}
			hosts, err := hosts(cmd.Context(), c, "DescribeHosts", nil)
			if err != nil {
				return err
			}
			for _, h := range hosts {
				if string(h.ID) == args[0] {
					fmt.Printf("%s has %d database servers and %d snapshots: %s\n", h.ID, len(h.Servers), len(h.Snapshots), strings.Join(h.Holds, ", "))
				}
			}
			if !yes && !client.Confirmed("All of it is given up. This CANNOT BE TAKEN BACK.", args[0]) {
				return errors.New("nothing was changed")
			}
			return changeHost(cmd.Context(), &f, "GiveUpHost", ownapi.HostInput{Host: kurabe.HostID(args[0])}, args[0])
		},
	}
	f.Add(c)
	c.Flags().BoolVar(&yes, "yes", false, "do not ask")
	return c
}

func changeHost(ctx context.Context, f *client.Flags, action string, in any, id string) error {
	c, err := f.Client()
	if err != nil {
		return err
	}
	hosts, err := hosts(ctx, c, action, in)
	if err != nil {
		return err
	}
	return printLeft(os.Stdout, hosts, id)
}

// printLeft says what a host still has, and lists all.
func printLeft(w io.Writer, hosts []control.HostInfo, id string) error {
	for _, h := range hosts {
		if string(h.ID) == id && len(h.Servers)+len(h.Snapshots) > 0 {
			fmt.Fprintf(w, "%s still has %d database servers and %d snapshots: %s\n", id, len(h.Servers), len(h.Snapshots), strings.Join(h.Holds, ", "))
		}
	}
	return printHosts(w, hosts, time.Now())
}

// hosts asks for an action that answers with all hosts.
func hosts(ctx context.Context, c *client.Client, action string, in any) ([]control.HostInfo, error) {
	out, err := client.Ask[ownapi.HostsOutput](ctx, c, action, in)
	return out.Hosts, err
}

func printHosts(w io.Writer, hosts []control.HostInfo, now time.Time) error {
	table := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
	fmt.Fprintln(table, "HOST\tSTATUS\tZONES\tCPUS\tMEMORY\tRESERVED\tDISK FREE\tSERVERS\tENDPOINTS")
	for _, h := range hosts {
		zones, cpus, memory, disk, pool := "-", "-", "-", "-", "-"
		if r := h.Report; r != nil {
			zones, cpus, pool = strings.Join(r.Zones, ","), fmt.Sprint(r.CPUs), r.AddressPool
			memory, disk = kurabe.FormatBytes(r.MemoryBytes), kurabe.FormatBytes(r.FreeBytes)
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%d\t%s\n", h.ID, hostStatus(h, now), zones, cpus, memory, kurabe.FormatBytes(h.ReservedBytes), disk, len(h.Servers), pool)
	}
	return table.Flush()
}

// hostStatus is a word or two for people.
func hostStatus(h control.HostInfo, now time.Time) string {
	status := "ready"
	switch {
	case h.Joined == nil:
		status = "ready (service)"
	case h.Joined.Gone:
		return "given up"
	case h.Presence == nil || h.Report == nil:
		status = "joining"
	case h.Presence.Lost:
		status = "lost for " + now.Sub(h.Presence.Since).Round(time.Second).String()
	}
	if h.Joined != nil && h.Joined.Server != nil {
		status += " (server)"
	}
	if h.Joined != nil && h.Planner {
		status += ", plans"
	}
	if h.Joined != nil && h.Joined.Drained {
		status += ", drained"
	}
	if h.Presence != nil && h.Presence.Double != nil {
		status += ", a copy of it at " + h.Presence.Double.From + " is refused"
	}
	return status
}
