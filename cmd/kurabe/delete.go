package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/rds"
	"github.com/aws/aws-sdk-go-v2/service/rds/types"
	"github.com/spf13/cobra"
)

func deleteCommand() *cobra.Command {
	var f clientFlags
	var yes bool
	c := &cobra.Command{
		Use:   "delete NAME",
		Short: "Delete a DB instance with all its data",
		Args:  oneName,
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := f.client()
			if err != nil {
				return err
			}
			i, err := c.find(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			if !yes {
				if !confirmed("This removes "+args[0]+" and all its data for good.", args[0]) {
					return errors.New("nothing was deleted")
				}
			}
			_, err = c.DeleteDBInstance(cmd.Context(), &rds.DeleteDBInstanceInput{DBInstanceIdentifier: aws.String(args[0]), SkipFinalSnapshot: aws.Bool(true)})
			if err != nil {
				return friendly(err)
			}
			if err := c.waitFor(cmd.Context(), args[0], gone); err != nil {
				return err
			}
			os.Remove(f.loginFile(i)) // of no use to anybody now
			fmt.Println(args[0], "is gone")
			return nil
		},
	}
	f.add(c)
	c.ValidArgsFunction = f.instanceNames
	c.Flags().BoolVar(&yes, "yes", false, "do not ask")
	return c
}

// gone says that an instance is no longer there: only the service's own word is,
// not that it could not be asked.
func gone(_ types.DBInstance, err error) (bool, error) {
	var absent *types.DBInstanceNotFoundFault
	if errors.As(err, &absent) {
		return true, nil
	}
	return false, err
}
