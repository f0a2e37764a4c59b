package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/rds"
	"github.com/aws/aws-sdk-go-v2/service/rds/types"
	"github.com/aws/smithy-go"
	_ "github.com/go-sql-driver/mysql" // database/sql driver "mysql"
	"github.com/jackc/pgx/v5"

	"kurabe/internal/engine"
	"kurabe/internal/proc"
)

const (
	masterUser     = "bench"
	masterPassword = "bench-bench-bench"
	database       = "bench"

	pollPause     = 20 * time.Millisecond
	availableTime = 2 * time.Minute
	goneTime      = time.Minute
	// killTime is what a server gets to end at once before it is killed.
	killTime = 10 * time.Second
)

// The engines by their names in the API.
const (
	postgres = "postgres"
	mariadb  = "mariadb"
)

var engineTitle = map[string]string{postgres: "PostgreSQL", mariadb: "MariaDB"}

// findEngines asks which engines can be used.
func (l *lab) findEngines(ctx context.Context) error {
	l.engines, l.families = map[string]string{}, map[string]string{}
	for _, name := range []string{postgres, mariadb} {
		out, err := l.api.DescribeDBEngineVersions(ctx, &rds.DescribeDBEngineVersionsInput{Engine: aws.String(name), DefaultOnly: aws.Bool(true)})
		if err != nil {
			return err
		}
		for _, v := range out.DBEngineVersions {
			l.engines[name], l.families[name] = aws.ToString(v.EngineVersion), aws.ToString(v.DBParameterGroupFamily)
		}
	}
	if len(l.engines) == 0 {
		return errors.New("the service offers no engine")
	}
	return nil
}

// target is where a client connects.
type target struct {
	engine, host string
	port         int
}

// instance is one DB instance.
type instance struct {
	target
	name, id string
	took     time.Duration // from the request until a client had logged in
}

// order is what to create; empty fields are the smallest thing.
type order struct {
	name, engine, class, storage, group string
	gib, iops                           int32
	retention                           int // days; 0 makes no backups
	zone                                string
}

func (o order) input() *rds.CreateDBInstanceInput {
	in := &rds.CreateDBInstanceInput{
		DBInstanceIdentifier: aws.String(o.name), Engine: aws.String(o.engine), DBInstanceClass: aws.String(o.class),
		MasterUsername: aws.String(masterUser), MasterUserPassword: aws.String(masterPassword), DBName: aws.String(database),
		AllocatedStorage: aws.Int32(max(o.gib, 20)), StorageType: aws.String("local"),
		BackupRetentionPeriod: aws.Int32(int32(o.retention)),
	}
	if o.storage != "" {
		in.StorageType = aws.String(o.storage)
	}
	if o.group != "" {
		in.DBParameterGroupName = aws.String(o.group)
	}
	if o.zone != "" {
		in.AvailabilityZone = aws.String(o.zone)
	}
	if o.iops != 0 {
		in.Iops = aws.Int32(o.iops)
	}
	return in
}

// create makes an instance and returns when a client has logged in. The clock
// runs from before the request.
func (l *lab) create(ctx context.Context, o order) (*instance, error) {
	began := time.Now()
	if _, err := l.api.CreateDBInstance(ctx, o.input()); err != nil {
		return nil, err
	}
	i, err := l.waitStatus(ctx, o.name, "available")
	if err != nil {
		return nil, err
	}
	if err := i.login(ctx); err != nil {
		return nil, fmt.Errorf("%s is available and lets nobody in: %w", o.name, err)
	}
	i.took = time.Since(began)
	return i, nil
}

// waitStatus polls one instance until it is in a status.
func (l *lab) waitStatus(ctx context.Context, name, want string) (*instance, error) {
	ctx, cancel := context.WithTimeout(ctx, availableTime)
	defer cancel()
	for {
		out, err := l.api.DescribeDBInstances(ctx, &rds.DescribeDBInstancesInput{DBInstanceIdentifier: aws.String(name)})
		if err != nil {
			return nil, fmt.Errorf("wait until %s is %s: %w", name, want, err)
		}
		d := out.DBInstances[0]
		switch status := aws.ToString(d.DBInstanceStatus); {
		case status == want:
			return fromAPI(d), nil
		case strings.HasPrefix(status, "incompatible") || status == "failed" || status == "insufficient-capacity":
			return nil, fmt.Errorf("%s is %s", name, status)
		}
		select {
		case <-time.After(pollPause):
		case <-ctx.Done():
			return nil, fmt.Errorf("wait until %s is %s: %w", name, want, ctx.Err())
		}
	}
}

func fromAPI(d types.DBInstance) *instance {
	i := &instance{name: aws.ToString(d.DBInstanceIdentifier), id: aws.ToString(d.DbiResourceId)}
	i.engine = aws.ToString(d.Engine)
	if d.Endpoint != nil {
		i.host, i.port = aws.ToString(d.Endpoint.Address), int(aws.ToInt32(d.Endpoint.Port))
	}
	return i
}

// remove deletes instances and waits until they are gone.
func (l *lab) remove(ctx context.Context, names ...string) error {
	var wait sync.WaitGroup
	errs := make([]error, len(names))
	for n, name := range names {
		wait.Go(func() { errs[n] = l.removeOne(ctx, name) })
	}
	wait.Wait()
	return errors.Join(errs...)
}

// removeAtEnd is for defer: it adds to the failure of a benchmark what removing its instances
// met. One that was interrupted leaves them to the end of the service.
func (l *lab) removeAtEnd(ctx context.Context, failure *error, names ...string) {
	if ctx.Err() == nil {
		*failure = errors.Join(*failure, l.remove(ctx, names...))
	}
}

func (l *lab) removeOne(ctx context.Context, name string) error {
	ctx, cancel := context.WithTimeout(ctx, goneTime)
	defer cancel()
	_, err := l.api.DeleteDBInstance(ctx, &rds.DeleteDBInstanceInput{DBInstanceIdentifier: aws.String(name), SkipFinalSnapshot: aws.Bool(true)})
	for err == nil {
		select {
		case <-time.After(pollPause):
		case <-ctx.Done():
			return fmt.Errorf("delete %s: %w", name, ctx.Err())
		}
		_, err = l.api.DescribeDBInstances(ctx, &rds.DescribeDBInstancesInput{DBInstanceIdentifier: aws.String(name)})
	}
	if code(err) == "DBInstanceNotFound" {
		return nil
	}
	return fmt.Errorf("delete %s: %w", name, err)
}

// code is the AWS error code, "" for other errors.
func code(err error) string {
	var e smithy.APIError
	if errors.As(err, &e) {
		return e.ErrorCode()
	}
	return ""
}

// exec connects as the master user, with TLS, and runs statements.
func (t target) exec(ctx context.Context, statements ...string) error {
	if t.engine == postgres {
		return postgresExec(ctx, fmt.Sprintf("host=%s port=%d user=%s password=%s dbname=%s sslmode=require", t.host, t.port, masterUser, masterPassword, database), statements...)
	}
	db, err := sql.Open("mysql", fmt.Sprintf("%s:%s@tcp(%s:%d)/%s?tls=skip-verify", masterUser, masterPassword, t.host, t.port, database))
	if err != nil {
		return err
	}
	defer db.Close()
	for _, s := range statements {
		if _, err := db.ExecContext(ctx, s); err != nil {
			return err
		}
	}
	return nil
}

func postgresExec(ctx context.Context, dsn string, statements ...string) error {
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	for _, s := range statements {
		if _, err := conn.Exec(ctx, s); err != nil {
			return err
		}
	}
	return nil
}

func (t target) login(ctx context.Context) error { return t.exec(ctx, "SELECT 1") }

// home is the folder of an instance, over two hosts that of the server that writes.
func (l *lab) home(i *instance) string {
	if l.hosts != nil {
		return l.hosts.writerHome(i.id)
	}
	return filepath.Join(l.data, "instances", i.id)
}

// pid is the running server's.
func (l *lab) pid(i *instance) (int, error) {
	p, alive, err := (engine.Home{Dir: l.home(i)}).Daemon().Find()
	if err == nil && !alive {
		err = fmt.Errorf("the server of %s is not running", i.name)
	}
	return p.PID, err
}

// endServer ends the server in a home at once, whoever started it; its data is
// about to go.
func endServer(ctx context.Context, dir string) error {
	h := engine.Home{Dir: dir}
	if p, alive, err := h.Daemon().Find(); err == nil && alive {
		// PostgreSQL ends its children on SIGQUIT; MariaDB is one process.
		_ = p.Signal(syscall.SIGQUIT) // it may have ended by now
		wait, cancel := context.WithTimeout(ctx, killTime)
		_ = p.Wait(wait) // who is left is killed below
		cancel()
	}
	if err := proc.KillSurvivors(ctx, h.DataDir()); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("end the server in %s: %w", dir, err)
	}
	return nil
}
