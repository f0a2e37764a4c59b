package main

import (
	"context"
	"fmt"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"kurabe/internal/service"
)

func serverCommand() *cobra.Command {
	var f service.Config
	c := &cobra.Command{
		Use:   "server",
		Short: "Run the service: API, planner, state store and the agent of this host",
		Long: `Run the service on this machine. When it is ready it prints one line on standard
output, "kurabe ready http://HOST:PORT"; logs go to standard error.

SIGTERM and SIGINT end the service and leave the databases running; the next start
adopts them without touching a connection. With --stop-databases-on-exit they are
shut down cleanly instead, and started again by the next service.

With --join it becomes a further server of a service that runs: the token comes from
"kurabe hosts token --server" there, in KURABE_JOIN_TOKEN or a file, and works once. With
three servers the service survives the loss of any one. Further starts need neither.

With --etcd-endpoints the state is kept in an etcd of yours instead of one in DATA; several
services may share it, each with an --etcd-prefix of its own. Every server of a service
names the same etcd and prefix, at every start.

KURABE_ROOT_ACCESS_KEY and KURABE_ROOT_SECRET_KEY set the root credentials; otherwise
they are made at the first start and written to DATA/credentials.`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
			defer stop()
			return service.Serve(ctx, &f, func(s *service.Service) error {
				fmt.Println("kurabe ready " + s.URL)
				return nil
			})
		},
	}
	addServerFlags(c.Flags(), &f)
	addStopFlag(c.Flags(), &f.HostConfig)
	c.Flags().StringVar(&f.Join, "join", "", "address and port of a server of the service (its --host-listen) that this one becomes another server of")
	c.Flags().StringVar(&f.TokenFile, "token-file", "", "file with the join token (default: the environment's "+service.JoinTokenVariable+")")
	return c
}
