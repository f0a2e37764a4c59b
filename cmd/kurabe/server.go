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

With --join this becomes another server of a running service. A token from "kurabe hosts
token --server" is read from KURABE_JOIN_TOKEN or --token-file and works once; later starts
need neither. With three servers the service survives the loss of any one of them.

With --etcd-endpoints the state is kept in your own etcd instead of one in DATA. Several
services can share an etcd, each with its own --etcd-prefix. Every server of a service needs
the same etcd and prefix at every start.

KURABE_ROOT_ACCESS_KEY and KURABE_ROOT_SECRET_KEY set the root credentials. Without them the
first start creates credentials and writes them to DATA/credentials.`,
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
	c.Flags().StringVar(&f.Join, "join", "", "address and port (--host-listen) of a server of the running service that this one joins")
	c.Flags().StringVar(&f.TokenFile, "token-file", "", "file with the join token (default: the environment's "+service.JoinTokenVariable+")")
	return c
}
