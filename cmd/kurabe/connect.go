package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/spf13/cobra"

	"kurabe/cmd/kurabe/client"
	"kurabe/internal/proc"
)

func connectCommand() *cobra.Command {
	var f client.Flags
	c := &cobra.Command{
		Use:   "connect NAME [-- ARGUMENTS]",
		Short: "Open psql or mariadb on a DB instance or a DB cluster, as its master user",
		Long: `Open psql or mariadb on a DB instance or a DB cluster, as its master user. NAME is an
instance, a server of a cluster such as shop-instance-2, or a cluster: then its writer. Where
an instance and a cluster have the same name, cluster:NAME is the cluster.`,
		Args: client.AtLeastName,
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := f.Client()
			if err != nil {
				return err
			}
			i, err := c.FindDatabase(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			if i.Endpoint == nil {
				return fmt.Errorf("%s has no endpoint yet: it is %s", args[0], aws.ToString(i.DBInstanceStatus))
			}
			if err := c.Resolve(cmd.Context(), &i); err != nil {
				return err
			}
			argv, env := f.ClientCommand(i)
			program, ok := lookPath(argv[0])
			if !ok {
				return fmt.Errorf("%s is not installed on this machine", argv[0])
			}
			if _, err := os.Stat(f.LoginFile(i)); err != nil {
				fmt.Fprintf(os.Stderr, "No login of %s is kept here: the password of its master user %s is asked for.\n", args[0], aws.ToString(i.MasterUsername))
			}
			return proc.Become(program, append(argv, args[1:]...), append(os.Environ(), env...))
		},
	}
	f.Add(c)
	c.ValidArgsFunction = f.InstanceNames
	return c
}

// lookPath finds a program as a shell does.
func lookPath(name string) (string, bool) {
	for _, dir := range strings.Split(os.Getenv("PATH"), ":") {
		path := filepath.Join(dir, name)
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return path, true
		}
	}
	return "", false
}
