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

A host that is lost is one whose agent has not been heard for five seconds. Its databases
may well serve their clients; they are shown as "unreachable".`,
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
		Short: "Make a token that lets one host in, or one server of the service, once",
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
	c.Flags().DurationVar(&validity, "validity", control.JoinTokenValidity, "how long it is good for, up to 168h")
	c.Flags().BoolVar(&server, "server", false, "let a server of the service in, in place of an agent: it gets all of the service's keys")
	c.Flags().BoolVar(&only, "only", false, "print the token alone")
	return c
}

func hostsRemoveCommand() *cobra.Command {
	var f client.Flags
	c := &cobra.Command{
		Use:   "remove HOST",
		Short: "Let a host in no more, on which nothing is left",
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
		Short: "Say that a lost host never comes back, with all that is on it",
		Long: `Say that a host which is not heard never comes back. Its instances become "failed" and its
snapshots too; they can be deleted then, and the host removed. Switch the machine off
first: if its databases run on, clients may go on to write into them.

What the repository of backups has can be imported (kurabe import). It asks for the
name of the host first, unless --yes.`,
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
