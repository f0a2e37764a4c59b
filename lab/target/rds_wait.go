package target

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/rds"
	"github.com/aws/aws-sdk-go-v2/service/rds/types"

	"kurabe/lab/dial"
)

// available waits for an instance and says how it is entered.
func (t *rdsTarget) available(ctx context.Context, name string) (dial.Server, types.DBInstance, error) {
	in := &rds.DescribeDBInstancesInput{DBInstanceIdentifier: aws.String(name)}
	waiter := rds.NewDBInstanceAvailableWaiter(t.client, func(o *rds.DBInstanceAvailableWaiterOptions) { o.MinDelay, o.MaxDelay = t.poll, t.poll })
	out, err := waiter.WaitForOutput(ctx, in, availableTime)
	if err != nil {
		return dial.Server{}, types.DBInstance{}, fmt.Errorf("wait until %s is available: %w%s", name, err, t.status(ctx, name))
	}
	if len(out.DBInstances) != 1 || out.DBInstances[0].Endpoint == nil {
		return dial.Server{}, types.DBInstance{}, fmt.Errorf("%s is available and has no endpoint", name)
	}
	i := out.DBInstances[0]
	return dial.Server{
		Engine: t.options.Engine, Host: aws.ToString(i.Endpoint.Address), Port: int(aws.ToInt32(i.Endpoint.Port)),
		User: masterUser, Password: t.password, Database: database,
		TLS: t.kind == KindRDS, // which Amazon's default parameters demand
	}, i, nil
}

// status is what the service says of an instance that did not come, for an error.
func (t *rdsTarget) status(ctx context.Context, name string) string {
	out, err := t.client.DescribeDBInstances(ctx, &rds.DescribeDBInstancesInput{DBInstanceIdentifier: aws.String(name)})
	if err != nil || len(out.DBInstances) != 1 {
		return ""
	}
	text := "; it is " + aws.ToString(out.DBInstances[0].DBInstanceStatus)
	for _, info := range out.DBInstances[0].StatusInfos {
		text += ": " + aws.ToString(info.Message)
	}
	return text
}

// gone waits until the service knows no such instance.
func (t *rdsTarget) gone(ctx context.Context, name string) error {
	waiter := rds.NewDBInstanceDeletedWaiter(t.client, func(o *rds.DBInstanceDeletedWaiterOptions) { o.MinDelay, o.MaxDelay = t.poll, t.poll })
	if err := waiter.Wait(ctx, &rds.DescribeDBInstancesInput{DBInstanceIdentifier: aws.String(name)}, availableTime); err != nil {
		return fmt.Errorf("wait until %s is deleted: %w%s", name, err, t.status(ctx, name))
	}
	return nil
}

// snapshotGone waits for the end of a snapshot that is being deleted.
func (t *rdsTarget) snapshotGone(ctx context.Context, name string) error {
	waiter := rds.NewDBSnapshotDeletedWaiter(t.client, func(o *rds.DBSnapshotDeletedWaiterOptions) { o.MinDelay, o.MaxDelay = t.poll, t.poll })
	if err := waiter.Wait(ctx, &rds.DescribeDBSnapshotsInput{DBSnapshotIdentifier: aws.String(name)}, availableTime); err != nil {
		return fmt.Errorf("wait until snapshot %s is deleted: %w", name, err)
	}
	return nil
}

func (t *rdsTarget) snapshotAvailable(ctx context.Context, name string) error {
	waiter := rds.NewDBSnapshotAvailableWaiter(t.client, func(o *rds.DBSnapshotAvailableWaiterOptions) { o.MinDelay, o.MaxDelay = t.poll, t.poll })
	if err := waiter.Wait(ctx, &rds.DescribeDBSnapshotsInput{DBSnapshotIdentifier: aws.String(name)}, availableTime); err != nil {
		return fmt.Errorf("wait until snapshot %s is available: %w", name, err)
	}
	return nil
}

// errNotOurs stops us at anything that has not our tags.
var errNotOurs = errors.New("it does not have the tags of this study: the lab did not make it and does not touch it")

// deleteInstance asks for the end of an instance of ours; one that is gone is fine.
func (t *rdsTarget) deleteInstance(ctx context.Context, name string) error {
	out, err := t.client.DescribeDBInstances(ctx, &rds.DescribeDBInstancesInput{DBInstanceIdentifier: aws.String(name)})
	if hasCode(err, "DBInstanceNotFound") {
		return nil
	}
	if err != nil {
		return explain("look at "+name, err)
	}
	for _, i := range out.DBInstances {
		if id, _ := labTags(i.TagList); id != t.id {
			return fmt.Errorf("delete %s: %w", name, errNotOurs)
		}
	}
	return t.destroy(ctx, name)
}

// deleting is the status of an instance that goes.
const deleting = "deleting"

// destroy deletes an instance without looking whose it is.
func (t *rdsTarget) destroy(ctx context.Context, name string) error {
	in := &rds.DeleteDBInstanceInput{DBInstanceIdentifier: aws.String(name), SkipFinalSnapshot: aws.Bool(true), DeleteAutomatedBackups: aws.Bool(true)}
	_, err := t.client.DeleteDBInstance(ctx, in)
	if hasCode(err, "InvalidDBInstanceState") {
		if strings.Contains(t.status(ctx, name), deleting) {
			return nil
		}
		// Some states must end first; whether well or badly is all the same.
		if _, _, waitErr := t.available(ctx, name); waitErr == nil {
			_, err = t.client.DeleteDBInstance(ctx, in)
		}
	}
	if hasCode(err, "DBInstanceNotFound") {
		return nil
	}
	return explain("delete "+name, err)
}

// labTags are the values of the lab's tags, "" without them.
func labTags(tags []types.Tag) (id, owner string) {
	for _, tag := range tags {
		switch aws.ToString(tag.Key) {
		case tagLab:
			id = aws.ToString(tag.Value)
		case tagOwner:
			owner = aws.ToString(tag.Value)
		}
	}
	return id, owner
}
