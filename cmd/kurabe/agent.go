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
		Short: "Run databases of a service on this machine",
		Long: `Run databases for a service on another machine. The first start joins it: --join names
the address at which the service lets hosts in (its --host-listen), and the token comes
from "kurabe hosts token" there, in KURABE_JOIN_TOKEN or a file. It works once. Both ends
then know each other by certificates, and further starts need neither.

When it is ready it prints one line on standard output, "kurabe agent ready HOST"; logs
go to standard error. SIGTERM and SIGINT end the agent and leave the databases running,
as they also run on while the service is away.

Give it an --address-pool that is a part of the network between the machines and nobody
else's: other machines reach the databases at addresses out of it.`,
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
	c.Flags().StringVar(&f.Join, "join", "", "address and port at which the service lets hosts in; kept for further starts")
	c.Flags().StringVar(&f.TokenFile, "token-file", "", "file with the join token (default: the environment's "+service.JoinTokenVariable+")")
	c.Flags().StringVar(&f.Zone, "zone", "", "availability zone of this machine, or several with commas; chosen when it joins")
	return c
}
