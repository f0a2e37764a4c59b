package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/rds"
	"github.com/aws/aws-sdk-go-v2/service/rds/types"

	"kurabe/cmd/kurabe/client"
)

// findSnapshot returns one snapshot.
func findSnapshot(ctx context.Context, c *client.Client, name string) (types.DBSnapshot, error) {
	out, err := c.DescribeDBSnapshots(ctx, &rds.DescribeDBSnapshotsInput{DBSnapshotIdentifier: aws.String(name)})
	if err != nil {
		return types.DBSnapshot{}, client.Friendly(err)
	}
	if len(out.DBSnapshots) == 0 {
		return types.DBSnapshot{}, fmt.Errorf("there is no snapshot %q", name)
	}
	return out.DBSnapshots[0], nil
}

// awaitSnapshot waits until a snapshot is available, or cannot become so.
func awaitSnapshot(ctx context.Context, c *client.Client, name string, p *client.Progress) error {
	return pollQuickly(ctx, func() (bool, error) {
		s, err := findSnapshot(ctx, c, name)
		if err != nil {
			return false, err
		}
		switch status := aws.ToString(s.Status); status {
		case "available":
			return true, nil
		case "creating":
			p.Show(fmt.Sprintf("snapshot %d %%", aws.ToInt32(s.PercentProgress)))
			return false, nil
		default:
			return false, fmt.Errorf("the snapshot is %s: %s", status, whyFailed(ctx, c, name))
		}
	})
}

// whyFailed is the newest event of a snapshot, which has no other place for a reason.
func whyFailed(ctx context.Context, c *client.Client, name string) string {
	out, err := c.DescribeEvents(ctx, &rds.DescribeEventsInput{
		SourceType: types.SourceTypeDbSnapshot, SourceIdentifier: aws.String(name), Duration: aws.Int32(60),
	})
	if err != nil || len(out.Events) == 0 {
		return "the service's log says why"
	}
	return aws.ToString(out.Events[len(out.Events)-1].Message)
}

// removeCloneSnapshot has a snapshot removed. One that is being taken cannot be: it
// is waited for, until somebody presses Ctrl-C again. ctx is not the one that the
// first Ctrl-C ended. p may be nil.
func removeCloneSnapshot(ctx context.Context, c *client.Client, name string, p *client.Progress) error {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	return pollQuickly(ctx, func() (bool, error) {
		_, err := c.DeleteDBSnapshot(ctx, &rds.DeleteDBSnapshotInput{DBSnapshotIdentifier: aws.String(name)})
		var absent *types.DBSnapshotNotFoundFault
		if err == nil || errors.As(err, &absent) {
			return true, nil
		}
		var busy *types.InvalidDBSnapshotStateFault
		if !errors.As(err, &busy) {
			return false, client.Friendly(err)
		}
		if p != nil {
			p.Show("waiting for the snapshot, to remove it")
		}
		return goesAlready(ctx, c, name)
	})
}

// goesAlready says that a snapshot is being deleted.
func goesAlready(ctx context.Context, c *client.Client, name string) (bool, error) {
	s, err := findSnapshot(ctx, c, name)
	var absent *types.DBSnapshotNotFoundFault
	if errors.As(err, &absent) {
		return true, nil
	}
	return aws.ToString(s.Status) == "deleting", err
}

// cloneLeftovers are the snapshots of earlier clones that are complete and yet there,
// by name. One whose command lives is among them for a moment only: it is restored
// and told to go at once.
func cloneLeftovers(ctx context.Context, c *client.Client) (map[string]bool, error) {
	left := map[string]bool{}
	pages := rds.NewDescribeDBSnapshotsPaginator(c.Client, &rds.DescribeDBSnapshotsInput{SnapshotType: aws.String("manual")})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, client.Friendly(err)
		}
		for _, s := range page.DBSnapshots {
			if abandoned(s) {
				left[aws.ToString(s.DBSnapshotIdentifier)] = true
			}
		}
	}
	return left, nil
}

// abandoned says that a snapshot looks like what a killed clone left.
func abandoned(s types.DBSnapshot) bool {
	status := aws.ToString(s.Status)
	if status != "available" && status != "failed" {
		return false
	}
	for _, t := range s.TagList {
		if aws.ToString(t.Key) == cloneTag {
			return true
		}
	}
	return false
}

// removeLeftovers removes what was left before this clone began and still is. A
// command that lives has had more than the time of a snapshot and a restore to go on,
// and looks at its own each quickPoll or pollEvery.
func removeLeftovers(ctx context.Context, c *client.Client, before map[string]bool) error {
	if len(before) == 0 {
		return nil
	}
	now, err := cloneLeftovers(ctx, c)
	if err != nil {
		return err
	}
	for name := range now {
		if !before[name] {
			continue
		}
		if err := removeCloneSnapshot(ctx, c, name, nil); err != nil {
			return fmt.Errorf("remove %s, left by an earlier clone: %w", name, err)
		}
		fmt.Fprintf(os.Stderr, "removed %s, left by an earlier clone\n", name)
	}
	return nil
}
