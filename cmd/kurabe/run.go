package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/rds/types"
	"github.com/spf13/cobra"

	"kurabe/cmd/kurabe/client"
	"kurabe/internal/service"
)

// demoName is the instance that kurabe run makes.
const demoName = "demo"

func runCommand() *cobra.Command {
	var f service.Config
	c := &cobra.Command{
		Use:   "run",
		Short: "Start the service with a demo database; Ctrl-C stops everything",
		Long: `Start the service in the foreground, create a PostgreSQL instance "demo" unless there
is one, and print how to use it. Ctrl-C stops the service and, cleanly, every database
that it runs; the next run finds them with their data.`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
			defer stop()
			err := service.Serve(ctx, &f, func(s *service.Service) error {
				err := demo(ctx, s, f)
				if errors.Is(err, context.Canceled) {
					return nil // Ctrl-C while it came up
				}
				return err
			})
			if err == nil {
				fmt.Println("Stopped. The next run finds the databases with their data.")
			}
			return err
		},
	}
	addServerFlags(c.Flags(), &f)
	f.StopDatabases = true
	c.Flags().Lookup("log-level").DefValue = "warn"
	f.LogLevel = "warn"
	return c
}

// demo makes the demo instance unless it exists, and prints how to use it.
func demo(ctx context.Context, s *service.Service, f service.Config) error {
	flags := client.Flags{Endpoint: s.URL, Data: f.Data, Region: f.Region}
	c := flags.ClientAs(s.Credentials)
	var i types.DBInstance
	var err error
	if i, err = c.Find(ctx, demoName); err != nil {
		password, err := masterPassword(false)
		if err != nil {
			return err
		}
		fmt.Printf("Creating the PostgreSQL instance %q …\n", demoName)
		if i, err = create(ctx, c, newInstance{name: demoName, engine: "postgres", user: demoName, database: demoName, storageGiB: 20, password: password}, true); err != nil {
			return err
		}
	} else if aws.ToString(i.DBInstanceStatus) != "stopped" {
		if i, err = waitAvailable(ctx, c, demoName); err != nil {
			return err
		}
	} else {
		fmt.Printf("%s was stopped by StopDBInstance and stays so; its data is kept.\n", demoName)
		return nil
	}
	printDemo(ctx, c, flags, i, s.URL)
	return nil
}

func printDemo(ctx context.Context, c *client.Client, f client.Flags, i types.DBInstance, url string) {
	if i.Endpoint == nil {
		fmt.Printf("%s is %s.\n", demoName, aws.ToString(i.DBInstanceStatus))
		return
	}
	fmt.Printf(`
%s is %s: %s %s at %s

  psql          %s
  AWS CLI       AWS_SHARED_CREDENTIALS_FILE=%s aws --endpoint-url %s --region %s rds describe-db-instances
  credentials   %s
  console       %s/console/ (not built yet)
  more          %s --help

Ctrl-C stops the service and its databases; data stays in %s.
`, demoName, aws.ToString(i.DBInstanceStatus), aws.ToString(i.Engine), aws.ToString(i.EngineVersion), endpointText(i),
		c.ShellCommand(ctx, i), filepath.Join(f.Data, service.CredentialsFile), url, f.Region, filepath.Join(f.Data, service.CredentialsFile), url, os.Args[0], filepath.Clean(f.Data))
}
