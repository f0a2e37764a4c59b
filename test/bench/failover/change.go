package failover

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/rds"
	"github.com/aws/aws-sdk-go-v2/service/rds/types"

	"kurabe"
	"kurabe/internal/harness"
	"kurabe/test/bench/bed"
)

// static is a parameter that only a start of the server takes up, and two values that follow
// each other. None of them is a limit that a standby needs as much of as its writer has: those
// change with the class.
type static struct {
	name, ask string
	values    [2]string
}

var statics = map[string]static{
	bed.Postgres: {"autovacuum_max_workers", "SHOW autovacuum_max_workers", [2]string{"4", "5"}},
	bed.MariaDB:  {"back_log", "SELECT @@GLOBAL.back_log", [2]string{"170", "190"}},
}

// smallerClass is the next one of its family with less memory, which has as many processors
// for the smallest classes of a machine with two; "" is for the smallest of a family.
func smallerClass(name string) string {
	class, _ := kurabe.FindClass(name)
	family := name[:strings.LastIndex(name, ".")+1]
	var best kurabe.Class
	for _, c := range kurabe.Classes() {
		if strings.HasPrefix(c.Name, family) && c.MemoryBytes < class.MemoryBytes && c.MemoryBytes > best.MemoryBytes {
			best = c
		}
	}
	return best.Name
}

// createGroup makes a parameter group in which nothing is set.
func (l *site) createGroup(ctx context.Context, name, family string) error {
	_, err := l.Api.CreateDBParameterGroup(ctx, &rds.CreateDBParameterGroupInput{
		DBParameterGroupName: aws.String(name), DBParameterGroupFamily: aws.String(family), Description: aws.String("a pair of the failovers"),
	})
	if bed.ErrorCode(err) == "DBParameterGroupAlreadyExists" {
		err = nil
	}
	return err
}

// changeClass changes the class at once. A pair that has the wanted one already is given the
// other one first, which is not measured.
func (f *failoverLab) changeClass(ctx context.Context, p lostPair, larger bool) (float64, error) {
	if f.smaller == "" {
		return 0, fmt.Errorf("no class is smaller than %s", f.class)
	}
	from, to := f.class, f.smaller
	if larger {
		from, to = f.smaller, f.class
	}
	if _, err := f.giveClass(ctx, p, from); err != nil {
		return 0, fmt.Errorf("before it, to %s: %w", from, err)
	}
	if err := more(ctx, f.pulse, pulseRows); err != nil {
		return 0, err
	}
	return f.giveClass(ctx, p, to)
}

func (f *failoverLab) giveClass(ctx context.Context, p lostPair, class string) (float64, error) {
	out, err := f.Api.DescribeDBInstances(ctx, &rds.DescribeDBInstancesInput{DBInstanceIdentifier: aws.String(f.i.Name)})
	if err != nil || aws.ToString(out.DBInstances[0].DBInstanceClass) == class {
		return 0, err
	}
	return f.restarted(ctx, p, func() error {
		_, err := f.Api.ModifyDBInstance(ctx, &rds.ModifyDBInstanceInput{DBInstanceIdentifier: aws.String(f.i.Name), DBInstanceClass: aws.String(class), ApplyImmediately: aws.Bool(true)})
		return err
	}, func(d types.DBInstance) string {
		if now := aws.ToString(d.DBInstanceClass); now != class {
			return "its class is " + now
		}
		return ""
	})
}

// setStatic changes the group, and once the instance says that it owes a reboot, reboots it as
// a user does who wants it to be short: with a failover.
func (f *failoverLab) setStatic(ctx context.Context, p lostPair) (float64, error) {
	x := statics[f.i.Engine]
	value := x.values[f.sets%len(x.values)]
	f.sets++
	_, err := f.Api.ModifyDBParameterGroup(ctx, &rds.ModifyDBParameterGroupInput{DBParameterGroupName: aws.String(f.group), Parameters: []types.Parameter{
		{ParameterName: aws.String(x.name), ParameterValue: aws.String(value), ApplyMethod: types.ApplyMethodPendingReboot},
	}})
	if err != nil {
		return 0, err
	}
	apply := func(want string) func(types.DBInstance) string {
		return func(d types.DBInstance) string {
			if now := aws.ToString(d.DBParameterGroups[0].ParameterApplyStatus); now != want {
				return "its parameters are " + now
			}
			return ""
		}
	}
	if err := f.waitPair(ctx, f.i, apply("pending-reboot")); err != nil {
		return 0, err
	}
	seconds, err := f.restarted(ctx, p, func() error {
		_, err := f.Api.RebootDBInstance(ctx, &rds.RebootDBInstanceInput{DBInstanceIdentifier: aws.String(f.i.Name), ForceFailover: aws.Bool(true)})
		return err
	}, apply("in-sync"))
	if err != nil {
		return seconds, err
	}
	for _, m := range []harness.Member{p.writer, p.standby} {
		if have, err := m.Ask(ctx, x.ask); err != nil || have != value {
			return seconds, errors.Join(err, fmt.Errorf("%s has %s %q, want %q", m.ID, x.name, have, value))
		}
	}
	return seconds, nil
}

// restarted orders what both servers restart for, waits until they have and the pair is whole,
// and says how long nothing was acknowledged.
func (f *failoverLab) restarted(ctx context.Context, p lostPair, order func() error, missing func(types.DBInstance) string) (float64, error) {
	before := map[harness.Member]int{p.writer: 0, p.standby: 0}
	for m := range before {
		var err error
		if before[m], err = m.Server(); err != nil {
			return 0, err
		}
	}
	from := time.Now()
	if err := order(); err != nil {
		return 0, err
	}
	err := f.waitPair(ctx, f.i, func(d types.DBInstance) string {
		if lacks := missing(d); lacks != "" {
			return lacks
		}
		for m, old := range before {
			if pid, err := m.Server(); err != nil {
				return err.Error()
			} else if pid == old {
				return m.ID + " was not started again"
			}
		}
		return ""
	})
	if err != nil {
		return 0, err
	}
	// The instance may be whole before its client has found it again.
	err = more(ctx, f.pulse, pulseRows)
	return f.pulse.Gap(from).Seconds(), err
}
