package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/rds"
	"github.com/jackc/pgx/v5"
)

func init() { parts = append(parts, part{[]string{"replica"}, replica}) }

// catchUpMost is how long a replica may take to have what was written under load.
const catchUpMost = 2 * time.Minute

// replica measures what a read replica costs the clients of its source, which wait for
// nothing of it but share the machine, and how soon after a load it has all of that.
func replica(ctx context.Context, r *run) (failure error) {
	l, err := r.service(ctx)
	if err != nil {
		return err
	}
	if l.engines[postgres] == "" {
		r.notInstalled("replica", "replica")
		return nil
	}
	b := &priceBed{lab: l, r: r, class: r.Class, with: "with a replica", not: "without one"}
	if b.class == "" {
		b.class = pairClass(l)
	}
	o := order{name: "replica-none", engine: postgres, class: b.class, retention: 1}
	if b.one, err = l.create(ctx, o); err != nil {
		return err
	}
	defer l.removeAtEnd(ctx, &failure, o.name)
	o.name = "replica-source"
	if b.two, err = l.create(ctx, o); err != nil {
		return err
	}
	defer l.removeAtEnd(ctx, &failure, o.name)
	follower, err := l.createReplica(ctx, b.two, "replica-follower")
	if err != nil {
		return err
	}
	defer l.removeAtEnd(ctx, &failure, "replica-follower")
	var seconds []float64
	b.whole = func(ctx context.Context) error {
		_, err := caughtUp(ctx, b.two.target, follower.target)
		return err
	}
	b.throughout = func(ctx context.Context, from time.Time) ([]string, error) { return b.events(ctx, follower.name, from) }
	b.after = func(ctx context.Context) error {
		took, err := caughtUp(ctx, b.two.target, follower.target)
		seconds = append(seconds, took.Seconds())
		return err
	}
	if err := b.prices(ctx, "replica", "price of a read replica"); err != nil {
		return err
	}
	r.out.row(row{Bench: "replica", What: "after a load, until the replica has applied all of it", Value: medianAndWorst(seconds),
		Note: fmt.Sprintf("%d times, after %d s of pgbench with 1 and 16 clients each; it is looked every %s", len(seconds), r.Seconds, pollPause)})
	return nil
}

// createReplica makes a read replica and returns when it follows.
func (l *lab) createReplica(ctx context.Context, source *instance, name string) (*instance, error) {
	_, err := l.api.CreateDBInstanceReadReplica(ctx, &rds.CreateDBInstanceReadReplicaInput{
		DBInstanceIdentifier: aws.String(name), SourceDBInstanceIdentifier: aws.String(source.name),
	})
	if err != nil {
		return nil, err
	}
	return l.waitStatus(ctx, name, "available")
}

// caughtUp waits until a replica has applied what its source has written by now, and says
// how long that took.
func caughtUp(ctx context.Context, source, replica target) (time.Duration, error) {
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
		pauseFor(ctx, pollPause)
	}
}

// askPlace asks a server for a place in the log, in bytes.
func askPlace(ctx context.Context, t target, function string) (bytes int64, err error) {
	conn, err := pgx.Connect(ctx, fmt.Sprintf("host=%s port=%d user=%s password=%s dbname=%s sslmode=require", t.host, t.port, masterUser, masterPassword, database))
	if err != nil {
		return 0, err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	err = conn.QueryRow(ctx, "SELECT ("+function+" - '0/0'::pg_lsn)::bigint").Scan(&bytes)
	return bytes, err
}
