package bed

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
	MasterUser     = "bench"
	MasterPassword = "bench-bench-bench"
	Database       = "bench"

	PollPause     = 20 * time.Millisecond
	AvailableTime = 2 * time.Minute
	GoneTime      = time.Minute
	// KillTime is what a server gets to end at once before it is killed.
	KillTime = 10 * time.Second
)

// The engines by their names in the API.
const (
	Postgres = "postgres"
	MariaDB  = "mariadb"
)

var EngineTitle = map[string]string{Postgres: "PostgreSQL", MariaDB: "MariaDB"}

// FindEngines asks which engines can be used.
func (l *Lab) FindEngines(ctx context.Context) error {
	l.Engines, l.Families = map[string]string{}, map[string]string{}
	for _, name := range []string{Postgres, MariaDB} {
		out, err := l.Api.DescribeDBEngineVersions(ctx, &rds.DescribeDBEngineVersionsInput{Engine: aws.String(name), DefaultOnly: aws.Bool(true)})
		if err != nil {
			return err
		}
		for _, v := range out.DBEngineVersions {
			l.Engines[name], l.Families[name] = aws.ToString(v.EngineVersion), aws.ToString(v.DBParameterGroupFamily)
		}
	}
	if len(l.Engines) == 0 {
		return errors.New("the service offers no engine")
	}
	return nil
}

// Target is where a client connects.
type Target struct {
	Engine, Host string
	Port         int
}

// Instance is one DB instance.
type Instance struct {
	Target
	Name, Id string
	Took     time.Duration // from the request until a client had logged in
}

// Order is what to create; empty fields are the smallest thing.
type Order struct {
	Name, Engine, Class, Storage, Group string
	Gib, Iops                           int32
	Retention                           int // days; 0 makes no backups
	Zone                                string
	Load                                bool // its database load is kept
}

// Input is the request for it.
func (o Order) Input() *rds.CreateDBInstanceInput {
	in := &rds.CreateDBInstanceInput{
		DBInstanceIdentifier: aws.String(o.Name), Engine: aws.String(o.Engine), DBInstanceClass: aws.String(o.Class),
		MasterUsername: aws.String(MasterUser), MasterUserPassword: aws.String(MasterPassword), DBName: aws.String(Database),
		AllocatedStorage: aws.Int32(max(o.Gib, 20)), StorageType: aws.String("local"),
		BackupRetentionPeriod: aws.Int32(int32(o.Retention)),
	}
	if o.Storage != "" {
		in.StorageType = aws.String(o.Storage)
	}
	if o.Group != "" {
		in.DBParameterGroupName = aws.String(o.Group)
	}
	if o.Zone != "" {
		in.AvailabilityZone = aws.String(o.Zone)
	}
	if o.Load {
		in.EnablePerformanceInsights = aws.Bool(true)
	}
	if o.Iops != 0 {
		in.Iops = aws.Int32(o.Iops)
	}
	return in
}

// Create makes an instance and returns when a client has logged in. The clock
// runs from before the request.
func (l *Lab) Create(ctx context.Context, o Order) (*Instance, error) {
	began := time.Now()
	if _, err := l.Api.CreateDBInstance(ctx, o.Input()); err != nil {
		return nil, err
	}
	i, err := l.WaitStatus(ctx, o.Name, "available")
	if err != nil {
		return nil, err
	}
	if err := i.Login(ctx); err != nil {
		return nil, fmt.Errorf("%s is available and lets nobody in: %w", o.Name, err)
	}
	i.Took = time.Since(began)
	return i, nil
}

// WaitStatus polls one instance until it is in a status.
func (l *Lab) WaitStatus(ctx context.Context, name, want string) (*Instance, error) {
	ctx, cancel := context.WithTimeout(ctx, AvailableTime)
	defer cancel()
	for {
		out, err := l.Api.DescribeDBInstances(ctx, &rds.DescribeDBInstancesInput{DBInstanceIdentifier: aws.String(name)})
		if err != nil {
			return nil, fmt.Errorf("wait until %s is %s: %w", name, want, err)
		}
		d := out.DBInstances[0]
		switch status := aws.ToString(d.DBInstanceStatus); {
		case status == want:
			return FromAPI(d), nil
		case strings.HasPrefix(status, "incompatible") || status == "failed" || status == "insufficient-capacity":
			return nil, fmt.Errorf("%s is %s", name, status)
		}
		select {
		case <-time.After(PollPause):
		case <-ctx.Done():
			return nil, fmt.Errorf("wait until %s is %s: %w", name, want, ctx.Err())
		}
	}
}

// FromAPI is the instance as the API describes it.
func FromAPI(d types.DBInstance) *Instance {
	i := &Instance{Name: aws.ToString(d.DBInstanceIdentifier), Id: aws.ToString(d.DbiResourceId)}
	i.Engine = aws.ToString(d.Engine)
	if d.Endpoint != nil {
		i.Host, i.Port = aws.ToString(d.Endpoint.Address), int(aws.ToInt32(d.Endpoint.Port))
	}
	return i
}

// Remove deletes instances and waits until they are gone.
func (l *Lab) Remove(ctx context.Context, names ...string) error {
	var wait sync.WaitGroup
	errs := make([]error, len(names))
	for n, name := range names {
		wait.Go(func() { errs[n] = l.removeOne(ctx, name) })
	}
	wait.Wait()
	return errors.Join(errs...)
}

// RemoveAtEnd is for defer: it adds to the failure of a benchmark what removing its instances
// met. One that was interrupted leaves them to the end of the service.
func (l *Lab) RemoveAtEnd(ctx context.Context, failure *error, names ...string) {
	if ctx.Err() == nil {
		*failure = errors.Join(*failure, l.Remove(ctx, names...))
	}
}

func (l *Lab) removeOne(ctx context.Context, name string) error {
	ctx, cancel := context.WithTimeout(ctx, GoneTime)
	defer cancel()
	_, err := l.Api.DeleteDBInstance(ctx, &rds.DeleteDBInstanceInput{DBInstanceIdentifier: aws.String(name), SkipFinalSnapshot: aws.Bool(true)})
	for err == nil {
		select {
		case <-time.After(PollPause):
		case <-ctx.Done():
			return fmt.Errorf("delete %s: %w", name, ctx.Err())
		}
		_, err = l.Api.DescribeDBInstances(ctx, &rds.DescribeDBInstancesInput{DBInstanceIdentifier: aws.String(name)})
	}
	if ErrorCode(err) == "DBInstanceNotFound" {
		return nil
	}
	return fmt.Errorf("delete %s: %w", name, err)
}

// ErrorCode is the AWS error code, "" for other errors.
func ErrorCode(err error) string {
	var e smithy.APIError
	if errors.As(err, &e) {
		return e.ErrorCode()
	}
	return ""
}

// Exec connects as the master user, with TLS, and runs statements.
func (t Target) Exec(ctx context.Context, statements ...string) error {
	if t.Engine == Postgres {
		return postgresExec(ctx, fmt.Sprintf("host=%s port=%d user=%s password=%s dbname=%s sslmode=require", t.Host, t.Port, MasterUser, MasterPassword, Database), statements...)
	}
	db, err := sql.Open("mysql", fmt.Sprintf("%s:%s@tcp(%s:%d)/%s?tls=skip-verify", MasterUser, MasterPassword, t.Host, t.Port, Database))
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

// Login connects once, as the master user.
func (t Target) Login(ctx context.Context) error { return t.Exec(ctx, "SELECT 1") }

// Home is the folder of an instance.
func (l *Lab) Home(i *Instance) string {
	return filepath.Join(l.Data, "instances", i.Id)
}

// Pid is the running server's.
func (l *Lab) Pid(i *Instance) (int, error) {
	p, alive, err := (engine.Home{Dir: l.Home(i)}).Daemon().Find()
	if err == nil && !alive {
		err = fmt.Errorf("the server of %s is not running", i.Name)
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
		wait, cancel := context.WithTimeout(ctx, KillTime)
		_ = p.Wait(wait) // who is left is killed below
		cancel()
	}
	if err := proc.KillSurvivors(ctx, h.DataDir()); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("end the server in %s: %w", dir, err)
	}
	return nil
}
