package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/rds/types"
	"github.com/spf13/cobra"

	"kurabe/cmd/kurabe/client"
)

func deleteCommand() *cobra.Command {
	var f client.Flags
	var yes bool
	c := &cobra.Command{
		Use:   "delete NAME",
		Short: "Delete a DB instance or a DB cluster with all its data",
		Long: `Delete a DB instance or a DB cluster with all its data. Where an instance and a cluster have
the same name, NAME is the instance and cluster:NAME the cluster.`,
		Args: client.OneName,
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := f.Client()
			if err != nil {
				return err
			}
			i, err := c.FindDatabase(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			key := aws.ToString(i.DBInstanceIdentifier) // whose, should the other kind of that name come meanwhile
			if !yes {
				if !client.Confirmed("This removes "+args[0]+" and all its data for good.", args[0]) {
					return errors.New("nothing was deleted")
				}
			}
			if err := deleteDatabase(cmd.Context(), c, key); err != nil {
				return err
			}
			if err := c.WaitFor(cmd.Context(), key, gone); err != nil {
				return err
			}
			os.Remove(f.LoginFile(i)) // of no use to anybody now
			fmt.Println(args[0], "is gone")
			return nil
		},
	}
	f.Add(c)
	c.ValidArgsFunction = f.InstanceNames
	c.Flags().BoolVar(&yes, "yes", false, "do not ask")
	return c
}

// gone says that a database is no longer there: only the service's own word is,
// not that it could not be asked.
func gone(_ types.DBInstance, err error) (bool, error) {
	var absent *types.DBInstanceNotFoundFault
	var none client.NoDatabase
	if errors.As(err, &absent) || errors.As(err, &none) {
		return true, nil
	}
	return false, err
}
