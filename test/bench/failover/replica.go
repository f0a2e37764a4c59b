package failover

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/rds"
	"github.com/jackc/pgx/v5"

	"kurabe/test/bench/bed"
)

// catchUpMost is how long a replica may take to have what was written under load.
const catchUpMost = 2 * time.Minute

// replica measures what a read replica costs the clients of its source, which wait for
// nothing of it but share the machine, and how soon after a load it has all of that.
func replica(ctx context.Context, r *comparison) (failure error) {
	l, err := r.site(ctx)
	if err != nil {
		return err
	}
	if l.Engines[bed.Postgres] == "" {
		r.NotInstalled("replica", "replica")
		return nil
	}
	b := &priceBed{site: l, r: r, class: r.Class, with: "with a replica", not: "without one"}
	if b.class == "" {
		b.class = pairClass(l)
	}
	o := bed.Order{Name: "replica-none", Engine: bed.Postgres, Class: b.class, Retention: 1}
	if b.one, err = l.Create(ctx, o); err != nil {
		return err
	}
	defer l.RemoveAtEnd(ctx, &failure, o.Name)
	o.Name = "replica-source"
	if b.two, err = l.Create(ctx, o); err != nil {
		return err
	}
	defer l.RemoveAtEnd(ctx, &failure, o.Name)
	follower, err := l.createReplica(ctx, b.two, "replica-follower")
	if err != nil {
		return err
	}
	defer l.RemoveAtEnd(ctx, &failure, "replica-follower")
	var seconds []float64
	b.whole = func(ctx context.Context) error {
		_, err := caughtUp(ctx, b.two.Target, follower.Target)
		return err
	}
	b.throughout = func(ctx context.Context, from time.Time) ([]string, error) { return b.events(ctx, follower.Name, from) }
	b.after = func(ctx context.Context) error {
		took, err := caughtUp(ctx, b.two.Target, follower.Target)
		seconds = append(seconds, took.Seconds())
		return err
	}
	if err := b.prices(ctx, "replica", "price of a read replica"); err != nil {
		return err
	}
	r.Out.Row(bed.Row{Bench: "replica", What: "after a load, until the replica has applied all of it", Value: medianAndWorst(seconds),
		Note: fmt.Sprintf("%d times, after %d s of pgbench with 1 and 16 clients each; it is looked every %s", len(seconds), r.Seconds, bed.PollPause)})
	return nil
}

// createReplica makes a read replica and returns when it follows.
func (l *site) createReplica(ctx context.Context, source *bed.Instance, name string) (*bed.Instance, error) {
	_, err := l.Api.CreateDBInstanceReadReplica(ctx, &rds.CreateDBInstanceReadReplicaInput{
		DBInstanceIdentifier: aws.String(name), SourceDBInstanceIdentifier: aws.String(source.Name),
	})
	if err != nil {
		return nil, err
	}
	return l.WaitStatus(ctx, name, "available")
}

// caughtUp waits until a replica has applied what its source has written by now, and says
// how long that took.
func caughtUp(ctx context.Context, source, replica bed.Target) (time.Duration, error) {
	began := time.Now()
	written, err := askPlace(ctx, source, "pg_current_wal_insert_lsn()")
	if err != nil {
		return 0, err
	}
	for {
		applied, err := askPlace(ctx, replica, "pg_last_wal_replay_lsn()")
		switch {
		case err != nil:
			return 0, err
		case applied >= written:
			return time.Since(began), nil
		case ctx.Err() != nil:
			return 0, context.Cause(ctx)
		case time.Since(began) > catchUpMost:
			return 0, errors.New("the replica does not catch up")
		}
		_ = bed.Wait(ctx, bed.PollPause)
	}
}

// askPlace asks a server for a place in the log, in bytes.
func askPlace(ctx context.Context, t bed.Target, function string) (bytes int64, err error) {
	conn, err := pgx.Connect(ctx, fmt.Sprintf("host=%s port=%d user=%s password=%s dbname=%s sslmode=require", t.Host, t.Port, bed.MasterUser, bed.MasterPassword, bed.Database))
	if err != nil {
		return 0, err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	err = conn.QueryRow(ctx, "SELECT ("+function+" - '0/0'::pg_lsn)::bigint").Scan(&bytes)
	return bytes, err
}
