package main

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"kurabe/cmd/kurabe/client"
	ownapi "kurabe/internal/api/kurabe"
	"kurabe/internal/proxy"
	"kurabe/internal/proxy/process"
)

func proxyCommand() *cobra.Command {
	c := &cobra.Command{Use: "proxy", Short: "Show what a proxy does", Args: cobra.NoArgs}
	c.AddCommand(proxyTopCommand(), proxyRunCommand())
	return c
}

// proxyRunCommand is what the agent starts for each proxy.
func proxyRunCommand() *cobra.Command {
	var folder string
	c := &cobra.Command{
		Use: "run", Short: "Be the process of a proxy", Args: cobra.NoArgs, Hidden: true,
		RunE: func(*cobra.Command, []string) error { return process.Run(folder) },
	}
	c.Flags().StringVar(&folder, "folder", "", "folder of the proxy")
	_ = c.MarkFlagRequired("folder")
	return c
}

// proxyTopTime is between two pictures, and bounds an answer.
const proxyTopTime = 2 * time.Second

func proxyTopCommand() *cobra.Command {
	var f client.Flags
	var once bool
	c := &cobra.Command{
		Use:   "top NAME",
		Short: "Show the clients of a DB proxy, its connections, and who is pinned and why",
		Long: `Show the clients of a DB proxy, those with a connection first, the connections to its
servers, the health of these, and how many clients were pinned for which reason, every two
seconds until it is interrupted.`,
		Args: client.OneName,
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := f.Client()
			for err == nil {
				err = printProxy(cmd.Context(), c, args[0], !once)
				if once {
					break
				}
				select {
				case <-cmd.Context().Done():
					return nil
				case <-time.After(proxyTopTime):
				}
			}
			return err
		},
	}
	f.Add(c)
	c.Flags().BoolVar(&once, "once", false, "print one picture and end")
	return c
}

// printProxy prints a picture of a proxy, in the place of the one before.
func printProxy(ctx context.Context, c *client.Client, name string, again bool) error {
	ctx, cancel := context.WithTimeout(ctx, 5*proxyTopTime)
	defer cancel()
	out, err := client.Ask[ownapi.DescribeProxyOutput](ctx, c, "DescribeProxy", ownapi.DescribeProxyInput{Name: name})
	if err != nil {
		return err
	}
	text := renderProxy(name, out.Proxy, time.Now())
	if again {
		text = "\x1b[H\x1b[2J" + text
	}
	_, err = fmt.Fprint(os.Stdout, text)
	return err
}

func renderProxy(name string, s process.Status, now time.Time) string {
	var b strings.Builder
	p := s.Pool
	fmt.Fprintf(&b, "%s: process %d, for %s, route %d\n", name, s.PID, now.Sub(s.Began).Round(time.Second), s.Route.Epoch)
	fmt.Fprintf(&b, "connections: %d of %d for each server, %d in use, %d being opened, %d clients wait\n", p.Servers, s.MaxServers, p.Borrowed, p.Opening, p.Waiting)
	pins := map[proxy.PinReason]uint64{}
	for _, e := range s.Endpoints {
		k := e.Counters
		fmt.Fprintf(&b, "endpoint %s: %d clients (%d with TLS), %d in transactions, %d pinned, %d queries\n", e.Name, k.Clients, k.ClientsTLS, k.InTransaction, k.Pinned, k.Queries)
		for reason, n := range k.Pins {
			pins[reason] += n
		}
	}
	for _, h := range s.Health {
		fmt.Fprintf(&b, "server %s: %s\n", h.Address, strings.TrimSpace(strings.Join([]string{string(h.State), string(h.Reason), h.Description}, " ")))
	}
	for _, reason := range slices.Sorted(maps.Keys(pins)) {
		fmt.Fprintf(&b, "pinned %d times: %s\n", pins[reason], reason.Words())
	}
	if len(s.Sessions) > 0 {
		fmt.Fprintln(&b)
	}
	table := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for n, c := range s.Sessions {
		if n == 0 {
			fmt.Fprintln(table, "CLIENT\tUSER\tDATABASE\tTLS\tSTATE\tFOR\tQUERIES\tPIN")
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%v\t%s\t%s\t%d\t%s\n", c.From, c.User, cmp.Or(c.Database, "-"), c.TLS, c.State, now.Sub(c.Since).Round(time.Second), c.Queries, c.Pin)
	}
	_ = table.Flush()
	return b.String()
}
