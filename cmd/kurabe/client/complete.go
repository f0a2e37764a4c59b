package client

import (
	"context"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/rds"
	"github.com/spf13/cobra"
)

// completionTime bounds how long a shell waits for names.
const completionTime = 2 * time.Second

// InstanceNames completes the first argument with the names of instances.
func (f *Flags) InstanceNames(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	c, err := f.Client()
	if err != nil || len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	ctx, cancel := context.WithTimeout(context.Background(), completionTime)
	defer cancel()
	out, err := c.DescribeDBInstances(ctx, &rds.DescribeDBInstancesInput{})
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var names []string
	for _, i := range out.DBInstances {
		names = append(names, aws.ToString(i.DBInstanceIdentifier))
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

// OneName demands the name of an instance and nothing else.
func OneName(c *cobra.Command, args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("give the name of one DB instance: %s (see %s --help)", c.UseLine(), c.CommandPath())
	}
	return nil
}

// AtLeastName demands the name of an instance; what follows is the client's.
func AtLeastName(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return OneName(c, args)
	}
	return nil
}
