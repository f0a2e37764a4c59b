package failover

import (
	"context"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/rds"
	"github.com/aws/aws-sdk-go-v2/service/rds/types"

	"kurabe/internal/harness"
	"kurabe/test/bench/bed"
)

// pair is which server writes, and one of the two readers, in turn.
func (c *clusterLab) pair(ctx context.Context) (p lostPair, err error) {
	d, err := c.whole(ctx)
	if err != nil {
		return p, err
	}
	p.writerZone = clusterWriter(d)
	if p.writer, err = c.view.WriterOf(ctx, c.id, c.login); err != nil {
		return p, err
	}
	var others []harness.Member
	for _, m := range c.view.Members(c.id) {
		if m != p.writer {
			others = append(others, m)
		}
	}
	if len(others) != 2 {
		return p, fmt.Errorf("%s has %d servers beside its writer", c.name, len(others))
	}
	p.standby = others[c.pairs%len(others)]
	c.pairs++
	return p, nil
}

// moved waits until another server writes, and says how long nothing was acknowledged.
func (c *clusterLab) moved(ctx context.Context, p lostPair, from time.Time) (float64, error) {
	err := until(ctx, func() error {
		d, err := c.describe(ctx)
		if err == nil && clusterWriter(d) == p.writerZone {
			err = fmt.Errorf("%s writes", p.writerZone)
		}
		return err
	})
	if err != nil {
		return 0, err
	}
	if err := more(ctx, c.pulse, pulseRows); err != nil {
		return 0, err
	}
	_, err = c.whole(ctx)
	return c.pulse.Gap(from).Seconds(), err
}

// clusterWriter is the name of the server that is to write, which no other one is ever called.
func clusterWriter(d types.DBCluster) string {
	for _, m := range d.DBClusterMembers {
		if aws.ToBool(m.IsClusterWriter) {
			return aws.ToString(m.DBInstanceIdentifier)
		}
	}
	return ""
}

func (c *clusterLab) kill(ctx context.Context, p lostPair) (float64, error) {
	from := time.Now()
	if err := harness.KillServers(p.writer); err != nil {
		return 0, err
	}
	return c.moved(ctx, p, from)
}

func (c *clusterLab) inOrder(ctx context.Context, p lostPair) (float64, error) {
	from := time.Now()
	if _, err := c.Api.FailoverDBCluster(ctx, &rds.FailoverDBClusterInput{DBClusterIdentifier: aws.String(c.name)}); err != nil {
		return 0, err
	}
	return c.moved(ctx, p, from)
}

// killStandby kills a reader's server, which the service starts again by itself.
func (c *clusterLab) killStandby(ctx context.Context, p lostPair) (float64, error) {
	before, err := p.standby.Server()
	if err != nil {
		return 0, err
	}
	return c.unread(ctx, func() error { return harness.KillServers(p.standby) }, func() error {
		return until(ctx, func() error {
			if now, err := p.standby.Server(); err != nil || now == before {
				return fmt.Errorf("%s is not there again: %v", p.standby.ID, err)
			}
			return nil
		})
	})
}

// loseStandby freezes a reader until its clients read at the other one.
func (c *clusterLab) loseStandby(ctx context.Context, p lostPair) (float64, error) {
	return c.unread(ctx, p.standby.Freeze, p.standby.Thaw)
}

// unread takes a reader away that clients read at until all of them are answered again, has it
// come back, and says how long the slowest of them was not answered, from the loss on. Those
// who write wait for neither, which is in the rows.
func (c *clusterLab) unread(ctx context.Context, lose, back func() error) (float64, error) {
	list, err := readBoth(ctx, c.readers)
	defer list.end()
	if err != nil {
		return 0, err
	}
	from := time.Now()
	if err := lose(); err != nil {
		return 0, err
	}
	lost := time.Now() // by which all that was asked before may have been answered
	read := until(ctx, func() error { return list.answeredSince(lost, readsAfter) })
	if err := back(); err != nil {
		return 0, err
	}
	list.end()
	if read != nil {
		return 0, read
	}
	_, err = c.whole(ctx)
	return list.gap(from).Seconds(), err
}

// until waits for a condition as long as a client may.
func until(ctx context.Context, missing func() error) error {
	for deadline := time.Now().Add(pulseWait); ; _ = bed.Wait(ctx, bed.PollPause) {
		err := missing()
		if err == nil || ctx.Err() != nil || time.Now().After(deadline) {
			return err
		}
	}
}
