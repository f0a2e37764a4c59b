package main

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/rds"
	"github.com/aws/aws-sdk-go-v2/service/rds/types"
	"github.com/spf13/cobra"

	"kurabe/cmd/kurabe/client"
	"kurabe/internal/volume"
)

func cloneCommand() *cobra.Command {
	var f client.Flags
	var class string
	c := &cobra.Command{
		Use:   "clone NAME NEW",
		Short: "Create a DB instance with the data of another one",
		Long: `Create the DB instance NEW with the present data of NAME, and wait until it serves clients
(status available, or backing-up for its first backup). NAME serves clients all the while.
The two instances are independent; they share only disk blocks that the file system clones.

NEW has the settings of NAME: class (unless --class), storage, port, parameter group, option
group, subnet group, backup retention, automatic minor upgrades. It also has its users and
passwords. It has no deletion protection and no tags.

The command takes a temporary snapshot and removes it, also after Ctrl-C (a second Ctrl-C
ends the command at once); the next clone removes a snapshot that was left behind. Where the
file system clones (XFS, btrfs) a clone takes a second or two at any size, elsewhere the time
of two copies.`,
		Example: "  kurabe clone shop shop-test\n  kurabe clone shop shop-test --class db.t3.micro",
		Args:    sourceAndNew,
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := f.Client()
			if err != nil {
				return err
			}
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			context.AfterFunc(ctx, stop) // the second signal ends the command
			i, err := clone(ctx, c, args[0], args[1], class)
			if err != nil {
				return err
			}
			fmt.Printf("%s is %s at %s\n  %s\n", args[1], aws.ToString(i.DBInstanceStatus), endpointText(i), c.ShellCommand(cmd.Context(), i))
			return nil
		},
	}
	f.Add(c)
	c.ValidArgsFunction = f.InstanceNames
	c.Flags().StringVar(&class, "class", "", "instance class of NEW (default: that of NAME)")
	return c
}

// sourceAndNew demands two names.
func sourceAndNew(c *cobra.Command, args []string) error {
	if len(args) != 2 {
		return fmt.Errorf("give the name of a DB instance and the name of the new one: %s (see %s --help)", c.UseLine(), c.CommandPath())
	}
	return nil
}

// cloneTag marks the snapshots that this command makes; its value is what they are for.
const cloneTag = "kurabe:clone"

// clone makes an instance with the data of another one and returns it when it
// serves. Nothing but the instance is left, whatever happens.
func clone(ctx context.Context, c *client.Client, from, to, class string) (types.DBInstance, error) {
	source, err := c.Find(ctx, from)
	if err != nil {
		return types.DBInstance{}, err
	}
	if err := cloneable(ctx, c, source, to, class); err != nil {
		return types.DBInstance{}, err
	}
	// Before ours is made: it must not be among them.
	left, err := cloneLeftovers(ctx, c)
	if err != nil {
		return types.DBInstance{}, err
	}
	p := client.NewProgress(os.Stderr, to)
	err = cloneBySnapshot(ctx, c, source, to, class, p)
	if err != nil {
		p.End()
		return types.DBInstance{}, err
	}
	i, err := awaitClone(ctx, c, to, p)
	p.End()
	if err != nil {
		if ctx.Err() != nil {
			err = fmt.Errorf("interrupted; %s goes on being made, and \"kurabe delete %s\" removes it", to, to)
		}
		return i, err
	}
	copyLogin(c, source, i)
	return i, removeLeftovers(ctx, c, left)
}

// cloneable finds out before a copy of any size is made what the restore after it
// would be refused for.
func cloneable(ctx context.Context, c *client.Client, source types.DBInstance, to, class string) error {
	switch _, err := c.Find(ctx, to); {
	case err == nil:
		return fmt.Errorf("there is a DB instance %q already", to)
	case !isGone(err):
		return err
	}
	if class == "" {
		return nil
	}
	out, err := c.DescribeOrderableDBInstanceOptions(ctx, &rds.DescribeOrderableDBInstanceOptionsInput{
		Engine: source.Engine, DBInstanceClass: aws.String(class),
	})
	if err != nil {
		return client.Friendly(err)
	}
	if len(out.OrderableDBInstanceOptions) == 0 {
		return fmt.Errorf("the service offers no class %q for %s", class, aws.ToString(source.Engine))
	}
	return nil
}

// isGone says that the service knows no such instance.
func isGone(err error) bool {
	absent, _ := gone(types.DBInstance{}, err)
	return absent
}

// cloneBySnapshot takes a snapshot and asks for an instance made of it. The snapshot
// is told to go as soon as the wish for the instance is stored: the service keeps
// its files until the instance has them, so a command that dies while it waits
// leaves nothing.
func cloneBySnapshot(ctx context.Context, c *client.Client, source types.DBInstance, to, class string, p *client.Progress) (failure error) {
	var random [8]byte
	rand.Read(random[:]) // never fails
	name := "kurabe-clone-" + hex.EncodeToString(random[:])
	purpose := "temporary snapshot of kurabe clone " + aws.ToString(source.DBInstanceIdentifier) + " " + to
	_, err := c.CreateDBSnapshot(ctx, &rds.CreateDBSnapshotInput{
		DBInstanceIdentifier: source.DBInstanceIdentifier, DBSnapshotIdentifier: aws.String(name),
		Tags: []types.Tag{{Key: aws.String(cloneTag), Value: aws.String(purpose)}},
	})
	var refused client.Refusal
	if err != nil && errors.As(client.Friendly(err), &refused) {
		return refused
	}
	// Without an answer it may have been stored.
	defer func() {
		if err := removeCloneSnapshot(context.WithoutCancel(ctx), c, name, p); err != nil {
			failure = errors.Join(failure, fmt.Errorf("the temporary snapshot %s is left, and the next \"kurabe clone\" removes it: %w", name, err))
		}
	}()
	if err != nil {
		return client.Friendly(err)
	}
	if err := awaitSnapshot(ctx, c, name, p); err != nil {
		if ctx.Err() != nil {
			return fmt.Errorf("interrupted; nothing was made of %s", aws.ToString(source.DBInstanceIdentifier))
		}
		return err
	}
	if _, err := c.RestoreDBInstanceFromDBSnapshot(ctx, restoreOf(source, name, to, class)); err != nil {
		return client.Friendly(err)
	}
	return nil
}

// restoreOf asks for what the source is.
func restoreOf(source types.DBInstance, snapshot, to, class string) *rds.RestoreDBInstanceFromDBSnapshotInput {
	in := &rds.RestoreDBInstanceFromDBSnapshotInput{
		DBInstanceIdentifier: aws.String(to), DBSnapshotIdentifier: aws.String(snapshot), DBInstanceClass: given(class),
		CopyTagsToSnapshot: source.CopyTagsToSnapshot, AutoMinorVersionUpgrade: source.AutoMinorVersionUpgrade,
		BackupRetentionPeriod: source.BackupRetentionPeriod, CACertificateIdentifier: source.CACertificateIdentifier,
		AvailabilityZone: source.AvailabilityZone,
	}
	if len(source.DBParameterGroups) > 0 {
		in.DBParameterGroupName = source.DBParameterGroups[0].DBParameterGroupName
	}
	if len(source.OptionGroupMemberships) > 0 {
		in.OptionGroupName = source.OptionGroupMemberships[0].OptionGroupName
	}
	if source.DBSubnetGroup != nil {
		in.DBSubnetGroupName = source.DBSubnetGroup.DBSubnetGroupName
	}
	return in // class, storage and port are the snapshot's; windows are those of a new instance
}

// awaitClone waits until the instance serves, or cannot.
func awaitClone(ctx context.Context, c *client.Client, name string, p *client.Progress) (types.DBInstance, error) {
	var last types.DBInstance
	err := pollQuickly(ctx, func() (bool, error) {
		i, err := c.Find(ctx, name)
		if err != nil {
			return false, err
		}
		last = i
		status := aws.ToString(i.DBInstanceStatus)
		p.Show(status)
		switch status {
		case "available":
			return true, nil
		case "backing-up": // its own first snapshot; with an endpoint it has served a client
			return i.Endpoint != nil, nil
		case "failed", "incompatible-parameters", "incompatible-network", "incompatible-restore", "deleting", "stopped", "insufficient-capacity":
			return false, fmt.Errorf("%s is %s; \"kurabe explain %s\" says why", name, status, name)
		}
		return false, nil
	})
	return last, err
}

// quickPoll is how often a clone asks at first: the whole of it may take a second.
// After quickTime it is a copy, and pollEvery will do.
const (
	quickPoll = 20 * time.Millisecond
	quickTime = 5 * time.Second
)

// pollQuickly asks until the answer is yes, an error, or ctx ends.
func pollQuickly(ctx context.Context, done func() (bool, error)) error {
	for began := time.Now(); ; {
		if finished, err := done(); finished || err != nil {
			return err
		}
		pause := quickPoll
		if time.Since(began) > quickTime {
			pause = client.PollEvery
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pause):
		}
	}
}

// copyLogin gives the new instance the login file of the source, whose users and
// passwords it has. Without one, or when that fails, the password is asked for.
func copyLogin(c *client.Client, source, made types.DBInstance) {
	data, err := os.ReadFile(c.Flags.LoginFile(source))
	if err != nil {
		return // there is none
	}
	if err := volume.AtomicWrite(c.Flags.LoginFile(made), data, 0o600); err != nil {
		fmt.Fprintln(os.Stderr, "The login of the source could not be kept for the new instance:", err)
	}
}
