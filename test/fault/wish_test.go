//go:build fault

package fault

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/rds"
	"github.com/aws/aws-sdk-go-v2/service/rds/types"

	"kurabe/internal/harness"
)

// wishes are what a user asks for while faults befall a pair or a cluster, so that they strike
// amid a snapshot, a failover for another class, a growing storage, a standby that goes or is
// made. Most are refused while something else is under way, or not heard at all, which is right.
type wishes struct {
	s       *harness.Service
	name    string
	cluster bool
	random  *rand.Rand
	number  int // of the newest snapshot, 0 for none
}

const (
	// wishMost is how long an answer is waited for: the service may be cut off.
	wishMost = 2 * time.Second
	// wishedGiB bounds the storage.
	wishedGiB = 40
)

// ask tells what came of a wish.
func (w *wishes) ask(t *testing.T, what string, do func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(t.Context(), wishMost)
	defer cancel()
	err := do(ctx)
	if err != nil {
		t.Logf("%s is not granted: %v", what, err)
	}
	return err
}

// snapshot asks for one, and for the end of the one before it.
func (w *wishes) snapshot(t *testing.T) {
	if w.number > 0 {
		_ = w.ask(t, "the end of a snapshot", w.deleteSnapshot)
	}
	w.number++
	_ = w.ask(t, "a snapshot", func(ctx context.Context) (err error) {
		if w.cluster {
			_, err = w.s.CreateDBClusterSnapshot(ctx, &rds.CreateDBClusterSnapshotInput{DBClusterIdentifier: aws.String(w.name), DBClusterSnapshotIdentifier: w.newest()})
		} else {
			_, err = w.s.CreateDBSnapshot(ctx, &rds.CreateDBSnapshotInput{DBInstanceIdentifier: aws.String(w.name), DBSnapshotIdentifier: w.newest()})
		}
		return err
	})
}

func (w *wishes) newest() *string { return aws.String(fmt.Sprintf("of-%s-%d", w.name, w.number)) }

func (w *wishes) deleteSnapshot(ctx context.Context) (err error) {
	if w.cluster {
		_, err = w.s.DeleteDBClusterSnapshot(ctx, &rds.DeleteDBClusterSnapshotInput{DBClusterSnapshotIdentifier: w.newest()})
	} else {
		_, err = w.s.DeleteDBSnapshot(ctx, &rds.DeleteDBSnapshotInput{DBSnapshotIdentifier: w.newest()})
	}
	return err
}

// class asks for another one, or for the same, at once.
func (w *wishes) class(t *testing.T) {
	class := aws.String(harness.Class([]string{"micro", "small"}[w.random.IntN(2)]))
	w.modify(t, "the class "+*class, &rds.ModifyDBInstanceInput{DBInstanceClass: class}, &rds.ModifyDBClusterInput{DBClusterInstanceClass: class})
}

// storage asks for more.
func (w *wishes) storage(t *testing.T) {
	size := aws.Int32(int32(20 + w.random.IntN(wishedGiB-20)))
	w.modify(t, fmt.Sprint(*size, " GiB"), &rds.ModifyDBInstanceInput{AllocatedStorage: size}, &rds.ModifyDBClusterInput{AllocatedStorage: size})
}

func (w *wishes) modify(t *testing.T, what string, one *rds.ModifyDBInstanceInput, all *rds.ModifyDBClusterInput) {
	_ = w.ask(t, what, func(ctx context.Context) (err error) {
		if w.cluster {
			all.DBClusterIdentifier, all.ApplyImmediately = aws.String(w.name), aws.Bool(true)
			_, err = w.s.ModifyDBCluster(ctx, all)
		} else {
			one.DBInstanceIdentifier, one.ApplyImmediately = aws.String(w.name), aws.Bool(true)
			_, err = w.s.ModifyDBInstance(ctx, one)
		}
		return err
	})
}

// zones asks for one zone, or for two: a standby goes, or is made. A cluster has three.
func (w *wishes) zones(t *testing.T) {
	if !w.cluster {
		two := w.random.IntN(2) == 0
		w.modify(t, fmt.Sprint("Multi-AZ ", two), &rds.ModifyDBInstanceInput{MultiAZ: aws.Bool(two)}, nil)
	}
}

// end asks for two zones until they are granted, and has no snapshot left.
func (w *wishes) end(t *testing.T) {
	t.Helper()
	if w.cluster {
		return
	}
	harness.Wait(t, pairSettleTime, "two zones are wished for", func() string {
		ctx, cancel := context.WithTimeout(t.Context(), wishMost)
		defer cancel()
		out, err := w.s.ModifyDBInstance(ctx, &rds.ModifyDBInstanceInput{DBInstanceIdentifier: aws.String(w.name), MultiAZ: aws.Bool(true), ApplyImmediately: aws.Bool(true)})
		if err != nil {
			return err.Error()
		}
		if d := out.DBInstance; !aws.ToBool(d.MultiAZ) && (d.PendingModifiedValues == nil || !aws.ToBool(d.PendingModifiedValues.MultiAZ)) {
			return "it is to have one"
		}
		return ""
	})
}

// settled demands that every snapshot came to an end, good or bad, and removes them.
func (w *wishes) settled(t *testing.T) {
	t.Helper()
	harness.Wait(t, pairSettleTime, "no snapshot is under way or left", func() string {
		out, err := w.s.DescribeDBSnapshots(t.Context(), &rds.DescribeDBSnapshotsInput{SnapshotType: aws.String("manual")})
		if err != nil {
			return err.Error()
		}
		of, err := w.s.DescribeDBClusterSnapshots(t.Context(), &rds.DescribeDBClusterSnapshotsInput{SnapshotType: aws.String("manual")})
		if err != nil {
			return err.Error()
		}
		for _, s := range out.DBSnapshots {
			_, err = w.s.DeleteDBSnapshot(t.Context(), &rds.DeleteDBSnapshotInput{DBSnapshotIdentifier: s.DBSnapshotIdentifier})
		}
		for _, s := range of.DBClusterSnapshots {
			_, err = w.s.DeleteDBClusterSnapshot(t.Context(), &rds.DeleteDBClusterSnapshotInput{DBClusterSnapshotIdentifier: s.DBClusterSnapshotIdentifier})
		}
		if len(out.DBSnapshots)+len(of.DBClusterSnapshots) > 0 {
			return fmt.Sprint(statuses(out.DBSnapshots), len(of.DBClusterSnapshots), err)
		}
		return ""
	})
}

func statuses(of []types.DBSnapshot) (list []string) {
	for _, s := range of {
		list = append(list, aws.ToString(s.Status))
	}
	return list
}
