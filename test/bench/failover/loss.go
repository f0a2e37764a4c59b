package failover

import (
	"context"
	"fmt"
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
	if p.writer, err = f.view.WriterOf(ctx, f.i.Id, f.login); err != nil {
		return p, err
	}
	for _, m := range f.view.Members(f.i.Id) {
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
	_, err := f.Api.RebootDBInstance(ctx, &rds.RebootDBInstanceInput{DBInstanceIdentifier: aws.String(f.i.Name), ForceFailover: aws.Bool(true)})
	if err != nil {
		return 0, err
	}
	return f.swapped(ctx, p, from)
}

// loseStandby freezes the standby until commits do without it.
func (f *failoverLab) loseStandby(ctx context.Context, p lostPair) (float64, error) {
	return f.without(ctx, p, p.standby.Freeze, p.standby.Thaw)
}

// killStandby kills its server, which the service starts again by itself.
func (f *failoverLab) killStandby(ctx context.Context, p lostPair) (float64, error) {
	return f.without(ctx, p, func() error { return harness.KillServers(p.standby) }, nil)
}

// without takes the standby away until commits do without it, has it come back, if it does
// not by itself, and says how long the slowest commit took. A server that was killed is not
// back before there is another process: until then what is told of it may be of before.
func (f *failoverLab) without(ctx context.Context, p lostPair, lose, back func() error) (float64, error) {
	before, err := p.standby.Server()
	if err != nil {
		return 0, err
	}
	from := time.Now()
	if err := lose(); err != nil {
		return 0, err
	}
	if err := more(ctx, f.pulse, pulseRows); err != nil {
		return 0, err
	}
	longest := f.pulse.LongestWait(from)
	now, err := p.standby.Server()
	dead := err != nil || now != before
	if back != nil {
		if err := back(); err != nil {
			return 0, err
		}
	}
	err = f.waitPair(ctx, f.i, func(types.DBInstance) string {
		if now, err := p.standby.Server(); dead && (err != nil || now == before) {
			return fmt.Sprintf("%s is not there again: %v", p.standby.ID, err)
		}
		return ""
	})
	if err != nil || back != nil {
		return longest.Seconds(), err
	}
	// One that comes back by itself has nobody wait on its way either.
	err = more(ctx, f.pulse, pulseRows)
	return f.pulse.LongestWait(from).Seconds(), err
}
