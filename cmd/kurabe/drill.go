package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/rds/types"
	"github.com/spf13/cobra"

	"kurabe/internal/drill"
	"kurabe/internal/logkey"
	"kurabe/internal/pulse"
)

// drillFlags are what to rehearse, and how.
type drillFlags struct {
	clientFlags
	kill, freeze, user, database string
	failover, yes, json          bool
	duration, timeout            time.Duration
}

const (
	freezeUsual  = 10 * time.Second
	timeoutUsual = 5 * time.Minute
)

func drillCommand() *cobra.Command {
	var f drillFlags
	c := &cobra.Command{
		Use:   "drill NAME (--kill writer|standby|both | --freeze writer|standby | --failover)",
		Short: "Lose a server of a Multi-AZ instance on purpose, and tell what clients see",
		Long: `Rehearse the loss of a server of the Multi-AZ instance NAME: kill one or both, freeze one
for a time (--for), or ask for a failover in order. Meanwhile a client writes a numbered
row every 10 ms through the endpoint, as an application would.

At the end it tells
  - the longest time without an acknowledgement, and the longest wait of one commit,
  - whether a row is missing that was acknowledged (there must be none),
  - the rows that are there without having been acknowledged (a server that dies may have
    written what it could not answer),
  - who decided what and when: what the drill did, what its client saw, whom the planner
    let write, what the host saw of the servers, and the events that users get.

IT INTERRUPTS THE DATABASE for everybody, as the real thing does. So it asks for the name
of the instance first, unless --yes. It runs on the machine of the service; to kill or
freeze it has to be root, or the user that the service runs as. An instance in one zone,
or one whose standby does not have every commit just now, is refused.

It logs in as the master user. The password is KURABE_DRILL_PASSWORD, else PGPASSWORD, or
MYSQL_PWD for MariaDB, else that of the login file which kurabe create wrote, else it is
asked for.

Everything that it writes is in a schema of its own, kurabe_drill, which it drops at the
end, after Ctrl-C too. What it froze goes on when the time is up, at Ctrl-C, and when the
drill itself is killed. The exit status is 0 when no row is missing and the instance was
whole again in time.`,
		Example: "  kurabe drill shop --kill writer\n  kurabe drill shop --freeze standby --for 5s --yes --json",
		Args:    oneName,
		RunE:    func(cmd *cobra.Command, args []string) error { return f.run(cmd, args[0]) },
	}
	f.clientFlags.add(c)
	c.ValidArgsFunction = f.instanceNames
	fs := c.Flags()
	fs.StringVar(&f.kill, "kill", "", "kill (SIGKILL) the server of the writer, of the standby, or both")
	fs.StringVar(&f.freeze, "freeze", "", "freeze (SIGSTOP) the server of the writer or of the standby, and have it go on after --for")
	fs.BoolVar(&f.failover, "failover", false, "ask for a failover in order, as RebootDBInstance with ForceFailover does")
	fs.DurationVar(&f.duration, "for", freezeUsual, "how long a server is frozen")
	fs.DurationVar(&f.timeout, "timeout", timeoutUsual, "how long to wait until the instance is whole again")
	fs.StringVar(&f.user, "user", "", "log in as this user (default: the master user)")
	fs.StringVar(&f.database, "database", "", "write into this database (default: that of the instance, else postgres)")
	fs.BoolVar(&f.yes, "yes", false, "do not ask")
	fs.BoolVar(&f.json, "json", false, "print the report as JSON")
	c.MarkFlagsMutuallyExclusive("kill", "freeze", "failover")
	return c
}

// drillGuardCommand is for the drill itself: see drill.GuardMain.
func drillGuardCommand() *cobra.Command {
	return &cobra.Command{Use: "drill-guard", Hidden: true, RunE: func(cmd *cobra.Command, args []string) error {
		return drill.GuardMain(cmd.Context(), args, os.Stdout)
	}}
}

func (f *drillFlags) order() drill.Order {
	switch {
	case f.kill != "":
		return drill.Order{Action: drill.Kill, Side: drill.Side(f.kill)}
	case f.freeze != "":
		return drill.Order{Action: drill.Freeze, Side: drill.Side(f.freeze), For: f.duration}
	case f.failover:
		return drill.Order{Action: drill.Failover}
	}
	return drill.Order{}
}

func (f *drillFlags) run(cmd *cobra.Command, name string) error {
	order := f.order()
	if err := order.Check(); err != nil {
		return err
	}
	if f.freeze == "" && cmd.Flags().Changed("for") {
		return errors.New("--for goes with --freeze")
	}
	d, i, err := f.prepare(cmd.Context(), name, order)
	if err != nil {
		return err
	}
	if !f.yes && !confirmed(fmt.Sprintf("This does to %s: %s. It interrupts the database for everybody.", name, order), name) {
		return errors.New("nothing was done")
	}
	password, err := f.password(i)
	if err != nil {
		return err
	}
	d.Login.Password = password.Reveal()
	ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	context.AfterFunc(ctx, stop) // the second signal ends the command; the guard is there
	p := newProgress(os.Stderr, name)
	d.Say = p.show
	report, err := d.Run(ctx)
	p.end()
	if report != nil {
		if failed := f.print(report); failed != nil {
			return failed
		}
	}
	return verdict(report, err)
}

// verdict is how the command ends.
func verdict(report *drill.Report, err error) error {
	switch {
	case report == nil:
		return err
	case report.Rows.Wrong() != "":
		return errors.Join(errors.New(report.Rows.Wrong()), err)
	case report.Interrupted:
		return exitError{errors.New("interrupted; what was frozen goes on"), interruptedCode}
	}
	return err
}

func (f *drillFlags) print(report *drill.Report) error {
	if !f.json {
		report.Print(os.Stdout)
		return nil
	}
	e := json.NewEncoder(os.Stdout)
	e.SetIndent("", "  ")
	return e.Encode(report)
}

// prepare refuses what cannot be rehearsed; it changes nothing.
func (f *drillFlags) prepare(ctx context.Context, name string, order drill.Order) (*drill.Drill, types.DBInstance, error) {
	c, err := f.client()
	if err != nil {
		return nil, types.DBInstance{}, err
	}
	i, err := c.find(ctx, name)
	if err != nil {
		return nil, i, err
	}
	if err := drillable(i); err != nil {
		return nil, i, err
	}
	data, host, err := f.hostHere()
	if err != nil {
		return nil, i, err
	}
	user, database := aws.ToString(i.MasterUsername), aws.ToString(i.DBName)
	if f.user != "" {
		user = f.user
	}
	if f.database != "" {
		database = f.database
	}
	if database == "" && aws.ToString(i.Engine) == "postgres" { // others have sessions without one
		database = "postgres"
	}
	d := &drill.Drill{
		Instance: name, Engine: aws.ToString(i.Engine), Order: order, Service: drillService{c, name}, Timeout: f.timeout,
		Login: pulse.Login{
			Engine: aws.ToString(i.Engine), Address: aws.ToString(i.Endpoint.Address), Port: int(aws.ToInt32(i.Endpoint.Port)),
			User: user, Database: database, CAFile: filepath.Join(data, "ca.pem"),
		},
		// This link, not our path: after an upgrade on disk we are still the old program.
		Data: data, Host: host.ID, Guard: []string{"/proc/self/exe", "drill-guard"},
	}
	_, err = d.Check(ctx)
	return d, i, err
}

// drillable refuses an instance by what the API tells of it.
func drillable(i types.DBInstance) error {
	name, status := aws.ToString(i.DBInstanceIdentifier), aws.ToString(i.DBInstanceStatus)
	switch {
	case !drill.Knows(aws.ToString(i.Engine)):
		return fmt.Errorf("%s is %s; drills are for %s", name, aws.ToString(i.Engine), strings.Join(drill.Engines(), ", "))
	case status != "available" || i.Endpoint == nil:
		return fmt.Errorf("InvalidDBInstanceState: %s is %s; a drill needs it to be available", name, status)
	case !aws.ToBool(i.MultiAZ):
		return fmt.Errorf("InvalidDBInstanceState: %s is in one zone, so no server can take over. Give it a standby, which takes no restart: aws rds modify-db-instance --db-instance-identifier %s --multi-az --apply-immediately", name, name)
	}
	return nil
}

// hostHere is what this machine is called in the data folder, which must be a service's.
func (f *drillFlags) hostHere() (data string, h hostFile, err error) {
	if data, err = filepath.Abs(f.data); err != nil {
		return data, h, err
	}
	raw, err := os.ReadFile(filepath.Join(data, "host.json"))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return data, h, fmt.Errorf("%s is no data folder of a service: name it with --data, on the machine that the service runs on", data)
	case errors.Is(err, fs.ErrPermission):
		return data, h, fmt.Errorf("the data folder cannot be read: run the drill as root, or as the user that the service runs as (%w)", err)
	case err != nil:
		return data, h, err
	}
	if err := json.Unmarshal(raw, &h); err != nil {
		return data, h, fmt.Errorf("read %s: %w", filepath.Join(data, "host.json"), err)
	}
	return data, h, nil
}

// password never comes by an argument, which everybody on the machine can read.
func (f *drillFlags) password(i types.DBInstance) (logkey.Secret, error) {
	usual := "PGPASSWORD"
	if aws.ToString(i.Engine) == "mariadb" {
		usual = "MYSQL_PWD"
	}
	for _, name := range []string{"KURABE_DRILL_PASSWORD", usual} {
		if password := os.Getenv(name); password != "" {
			os.Unsetenv(name) // no child process needs it
			return logkey.Secret(password), nil
		}
	}
	user := aws.ToString(i.MasterUsername)
	if f.user != "" && f.user != user {
		user = f.user
	} else if password, ok := f.savedPassword(i); ok {
		return password, nil
	}
	password, err := askPassword(fmt.Sprintf("Password of %s: ", user))
	if errors.Is(err, errNoTerminal) {
		return "", fmt.Errorf("the password of %s is not known: set KURABE_DRILL_PASSWORD, or run the drill in a terminal", user)
	}
	return password, err
}
