package main

import (
	"context"
	"fmt"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"kurabe"
	"kurabe/internal/service"
)

func agentCommand() *cobra.Command {
	var f service.AgentConfig
	c := &cobra.Command{
		Use:   "agent",
		Short: "Join this machine to a service and run databases on it",
		Long: `Run databases on this machine for a service on another one. The first start joins the
service: --join is its --host-listen address, and a token from "kurabe hosts token" is read
from KURABE_JOIN_TOKEN or --token-file. A token works once. Later starts use certificates and
need neither.

When it is ready it prints one line on standard output, "kurabe agent ready HOST"; logs
go to standard error. SIGTERM and SIGINT end the agent and leave the databases running.
Databases also run on while the service is down.

--address-pool must be a part of the network between the machines that nothing else uses:
clients on other machines reach the databases at addresses in it.`,
		Example: "  KURABE_JOIN_TOKEN=kurabe-join… kurabe agent --data /var/lib/kurabe --join 10.0.0.1:7381 --zone us-east-1b --address-pool 10.0.0.64/27",
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
			defer stop()
			return service.RunAgent(ctx, &f, func(host kurabe.HostID) { fmt.Println("kurabe agent ready " + string(host)) })
		},
	}
	addHostFlags(c.Flags(), &f.HostConfig)
	addStopFlag(c.Flags(), &f.HostConfig)
	c.Flags().StringVar(&f.Join, "join", "", "address and port at which the service accepts hosts (its --host-listen); kept for later starts")
	c.Flags().StringVar(&f.TokenFile, "token-file", "", "file with the join token (default: the environment's "+service.JoinTokenVariable+")")
	c.Flags().StringVar(&f.Zone, "zone", "", "availability zone of this machine, or several separated by commas; fixed when it joins")
	return c
}
