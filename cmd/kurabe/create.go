package main

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/rds"
	"github.com/aws/aws-sdk-go-v2/service/rds/types"
	"github.com/spf13/cobra"

	"kurabe/cmd/kurabe/client"
	"kurabe/internal/logkey"
)

// newInstance is what kurabe create asks for.
type newInstance struct {
	name, engine, version, class, user, database, storageType, group string
	storageGiB, port, iops                                           int32
	cluster, multiAZ                                                 bool
	password                                                         logkey.Secret
	logs                                                             []string // types that are exported
}

func createCommand() *cobra.Command {
	var f client.Flags
	n := newInstance{}
	var fromStdin, noWait bool
	c := &cobra.Command{
		Use:   "create NAME",
		Short: "Create a DB instance or a DB cluster and wait until it is available",
		Long: `Create a DB instance and wait until it is available, which means that a client has
logged in over its endpoint and written.

With --multi-az the instance has a standby in another zone, with the same class and storage.
The standby has every commit before it is acknowledged, and takes over when the primary fails.

With --cluster it is a Multi-AZ DB cluster: a writer and two readers in three zones, each
with its own class and storage.

The master password is random unless --password-stdin is given. It is kept in a login file
that "kurabe connect" uses; the service itself keeps only a verifier.`,
		Example: "  kurabe create shop\n  kurabe create wiki --engine mariadb --class db.t3.small\n  kurabe create bank --multi-az\n  kurabe create ring --cluster",
		Args:    client.OneName,
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := f.Client()
			if err != nil {
				return err
			}
			n.name = args[0]
			if n.password, err = masterPassword(fromStdin); err != nil {
				return err
			}
			i, err := create(cmd.Context(), c, n, !noWait)
			if err != nil {
				return err
			}
			if !noWait {
				fmt.Printf("%s is available at %s\n  %s\n", n.name, endpointText(i), c.ShellCommand(cmd.Context(), i))
			}
			if n.cluster && !noWait {
				return printReaders(cmd.Context(), c, n.name)
			}
			return nil
		},
	}
	f.Add(c)
	fs := c.Flags()
	fs.StringVar(&n.engine, "engine", "postgres", "postgres or mariadb")
	fs.StringVar(&n.version, "engine-version", "", "version (default: the service's)")
	fs.StringVar(&n.class, "class", "", "instance class (default: the smallest that the service can enforce)")
	fs.StringVar(&n.user, "user", "master", "name of the master user")
	fs.StringVar(&n.database, "database", "", "database to create")
	fs.StringVar(&n.storageType, "storage-type", "", "local, gp2, gp3, io1 or io2 (default: local, without limits)")
	fs.StringVar(&n.group, "parameter-group", "", "DB parameter group; for a cluster a DB cluster parameter group")
	fs.Int32Var(&n.storageGiB, "storage", 20, "allocated storage in GiB")
	fs.Int32Var(&n.port, "port", 0, "port of the endpoint (default: the engine's)")
	fs.Int32Var(&n.iops, "iops", 0, "provisioned IOPS, for io1, io2 and gp3")
	fs.StringSliceVar(&n.logs, "logs", nil, "export these logs to log groups, for kurabe query: postgresql; error, general, slowquery; nothing with --logs= (default: postgresql or error)")
	fs.BoolVar(&n.multiAZ, "multi-az", false, "create a standby in another zone")
	fs.BoolVar(&n.cluster, "cluster", false, "create a Multi-AZ DB cluster: a writer and two readers")
	fs.BoolVar(&fromStdin, "password-stdin", false, "read the master password from standard input")
	fs.BoolVar(&noWait, "no-wait", false, "return as soon as the request is stored")
	c.MarkFlagsMutuallyExclusive("multi-az", "cluster")
	return c
}

// masterPassword reads a password, or makes one of 24 characters that every
// engine and shell takes.
func masterPassword(fromStdin bool) (logkey.Secret, error) {
	if fromStdin {
		data, err := io.ReadAll(io.LimitReader(os.Stdin, 1024))
		return logkey.Secret(strings.TrimRight(string(data), "\r\n")), err
	}
	var b [18]byte
	rand.Read(b[:]) // never fails
	return logkey.Secret(base64.RawURLEncoding.EncodeToString(b[:])), nil
}

// create asks for an instance, saves the login and waits.
func create(ctx context.Context, c *client.Client, n newInstance, wait bool) (types.DBInstance, error) {
	if n.class == "" {
		class, err := smallestClass(ctx, c, n)
		if err != nil {
			return types.DBInstance{}, err
		}
		n.class = class
	}
	if n.logs == nil {
		n.logs = map[string][]string{"postgres": {"postgresql"}, "mariadb": {"error"}}[n.engine]
	}
	if n.cluster {
		return createCluster(ctx, c, n, wait)
	}
	in := &rds.CreateDBInstanceInput{
		DBInstanceIdentifier: aws.String(n.name), Engine: aws.String(n.engine), DBInstanceClass: aws.String(n.class),
		MasterUsername: aws.String(n.user), MasterUserPassword: aws.String(n.password.Reveal()), AllocatedStorage: aws.Int32(n.storageGiB),
		EngineVersion: given(n.version), DBName: given(n.database), StorageType: given(n.storageType), DBParameterGroupName: given(n.group),
		EnablePerformanceInsights:   aws.Bool(true), // kurabe top shows it
		EnableCloudwatchLogsExports: n.logs,
	}
	in.Port, in.Iops = givenNumber(n.port), givenNumber(n.iops)
	if n.multiAZ {
		in.MultiAZ = aws.Bool(true)
	}
	out, err := c.CreateDBInstance(ctx, in)
	if err != nil {
		return types.DBInstance{}, client.Friendly(err)
	}
	if _, err := c.Flags.SaveLogin(*out.DBInstance, n.password); err != nil {
		return *out.DBInstance, fmt.Errorf("the instance is being created, but its password could not be kept (%w); set another with ModifyDBInstance", err)
	}
	if !wait {
		return *out.DBInstance, nil
	}
	return waitAvailable(ctx, c, n.name)
}

func given(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

func givenNumber(n int32) *int32 {
	if n == 0 {
		return nil
	}
	return &n
}

// waitAvailable waits until an instance, or a cluster by its kurabe.NameKey, is available, or cannot become so.
func waitAvailable(ctx context.Context, c *client.Client, name string) (types.DBInstance, error) {
	var last types.DBInstance
	err := c.WaitFor(ctx, name, func(i types.DBInstance, err error) (bool, error) {
		if err != nil {
			return false, err
		}
		last = i
		switch status := aws.ToString(i.DBInstanceStatus); status {
		case "available":
			return true, nil
		case "failed", "incompatible-parameters", "incompatible-network", "deleting", "stopped", "insufficient-capacity":
			return false, fmt.Errorf("%s is %s; \"kurabe explain %s\" says why", name, status, name)
		}
		return false, nil
	})
	return last, err
}

// smallestClass is the first class that the service can enforce, the smallest in
// memory; db.t3.micro where there is a choice.
func smallestClass(ctx context.Context, c *client.Client, n newInstance) (string, error) {
	pages := rds.NewDescribeOrderableDBInstanceOptionsPaginator(c.Client, &rds.DescribeOrderableDBInstanceOptionsInput{Engine: aws.String(n.engine)})
	var classes []string
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return "", client.Friendly(err)
		}
		for _, o := range page.OrderableDBInstanceOptions {
			if (!n.cluster || aws.ToBool(o.SupportsClusters)) && (!n.multiAZ || aws.ToBool(o.MultiAZCapable)) {
				classes = append(classes, aws.ToString(o.DBInstanceClass))
			}
		}
	}
	for _, wish := range []string{"db.t3.micro", "db.t2.micro", "db.local.micro"} {
		for _, have := range classes {
			if have == wish {
				return wish, nil
			}
		}
	}
	if len(classes) > 0 {
		return "", errors.New("the service offers no small class for " + n.engine + "; choose one with --class")
	}
	return "db.t3.micro", nil // nothing is offered: the service says why when asked to create
}
