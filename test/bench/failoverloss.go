package main

import (
	"context"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/rds"
	"github.com/aws/aws-sdk-go-v2/service/rds/types"

	"kurabe/internal/harness"
)

// pair is which server writes, by a session that comes to it, once the instance is whole.
func (f *failoverLab) pair(ctx context.Context) (p lostPair, err error) {
	err = f.waitPair(ctx, f.i, func(d types.DBInstance) string {
		p.writerZone, p.standbyZone = aws.ToString(d.AvailabilityZone), aws.ToString(d.SecondaryAvailabilityZone)
		return ""
	})
	if err != nil {
		return p, err
	}
	if p.writer, err = f.view.WriterOf(ctx, f.i.id, f.login); err != nil {
		return p, err
	}
	for _, m := range f.view.Members(f.i.id) {
		if m != p.writer {
			p.standby = m
		}
	}
	return p, nil
}

// swapped waits until the two servers have changed places, and says how long nothing was
// acknowledged.
func (f *failoverLab) swapped(ctx context.Context, p lostPair, from time.Time) (float64, error) {
	if err := more(ctx, f.pulse, pulseRows); err != nil {
		return 0, err
	}
	err := f.waitPair(ctx, f.i, func(d types.DBInstance) string {
		if now := aws.ToString(d.AvailabilityZone); now != p.standbyZone {
			return "the writer is in " + now
		}
		return ""
	})
	return f.pulse.Gap(from).Seconds(), err
}

func (f *failoverLab) kill(ctx context.Context, p lostPair) (float64, error) {
	from := time.Now()
	if err := harness.KillServers(p.writer); err != nil {
		return 0, err
	}
	return f.swapped(ctx, p, from)
}

func (f *failoverLab) freeze(ctx context.Context, p lostPair) (float64, error) {
	from := time.Now()
	if err := p.writer.Freeze(); err != nil {
		return 0, err
	}
	if err := more(ctx, f.pulse, pulseRows); err != nil {
		return 0, err
	}
	if err := p.writer.Thaw(); err != nil {
		return 0, err
	}
	return f.swapped(ctx, p, from)
}

func (f *failoverLab) inOrder(ctx context.Context, p lostPair) (float64, error) {
	from := time.Now()
	_, err := f.api.RebootDBInstance(ctx, &rds.RebootDBInstanceInput{DBInstanceIdentifier: aws.String(f.i.name), ForceFailover: aws.Bool(true)})
	if err != nil {
		return 0, err
	}
	return f.swapped(ctx, p, from)
}

// loseStandby freezes the standby until commits do without it.
func (f *failoverLab) loseStandby(ctx context.Context, p lostPair) (float64, error) {
	from := time.Now()
	if err := p.standby.Freeze(); err != nil {
		return 0, err
	}
	if err := more(ctx, f.pulse, pulseRows); err != nil {
		return 0, err
	}
	longest := f.pulse.LongestWait(from)
	if err := p.standby.Thaw(); err != nil {
		return 0, err
	}
	_, err := f.pair(ctx)
	return longest.Seconds(), err
}
