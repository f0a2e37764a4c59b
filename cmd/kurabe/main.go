package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"kurabe/cmd/kurabe/explain"
	"kurabe/cmd/kurabe/lab"
	"kurabe/cmd/kurabe/query"
	"kurabe/cmd/kurabe/top"
	"kurabe/internal/metrics/series"
	"kurabe/internal/proc"
	"kurabe/internal/warden"
)

// version is stamped by the build.
var version = "dev"

func main() {
	if proc.IsShim() { // become an engine: see internal/proc
		proc.ShimMain()
	}
	if warden.IsWarden() { // end a server at the end of its lease
		warden.Main()
	}
	if series.IsRehearsal() { // open the metrics before the service does
		series.RehearsalMain()
	}
	if err := rootCommand().Execute(); err != nil {
		fmt.Fprintln(os.Stderr, "kurabe:", err)
		var coded exitError
		if errors.As(err, &coded) {
			os.Exit(coded.code)
		}
		os.Exit(1)
	}
}

// exitError ends the program with a code of its own.
type exitError struct {
	error
	code int
}

func rootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:   "kurabe",
		Short: "A managed relational database service that you run yourself",
		Long: `Kurabe runs real PostgreSQL and MariaDB servers on this machine and manages them
through the API of Amazon RDS, for boto3, the AWS CLI and the SDKs as they are.

  kurabe run                 start a service with a demo database, and stop it with Ctrl-C
  kurabe create shop         create a PostgreSQL instance and wait until it is available
  kurabe create ring --cluster
                             create a Multi-AZ DB cluster: a writer and two readers in three zones
  kurabe connect shop        open psql (or mariadb) on it
  kurabe clone shop test     make another instance with the same data
  kurabe explain shop        show its state and what the service does next, with reasons
  kurabe top shop            show its load: wait events, statements, who blocks whom
  kurabe events shop -f      show what happens to it, and go on
  kurabe logs shop -f        show its log, and go on
  kurabe query shop 'filter @message like /ERROR/' --since 1h
                             search and count its exported logs
  kurabe drill shop --kill writer --yes
                             kill a server of a Multi-AZ instance or a cluster, and measure what clients see
  kurabe hosts               list the machines that run databases, and add more
  kurabe lab ls              list the studies, which measure what a feature costs

Every command but server, run, agent, pool and state restore is a client of the API.
--endpoint (KURABE_ENDPOINT) is the URL of the service. Credentials are taken from
AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, else from the file "credentials" in --data.`,
		Version:       version,
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.CompletionOptions.HiddenDefaultCmd = false
	root.AddCommand(serverCommand(), runCommand(), agentCommand(), hostsCommand(), stateCommand(), lsCommand(), createCommand(), deleteCommand(), connectCommand(), execCommand(), explain.Command(), osCommand(), cloneCommand(), snapshotsCommand(), alarmsCommand(), importCommand(), verifyCommand(), poolCommand(), lab.Command(version), recoverCommand(), proxyCommand(), drillCommand(), drillGuardCommand(), top.Command(), eventsCommand(), logsCommand(), query.Command())
	return root
}
