package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"kurabe/cmd/kurabe/client"
	"kurabe/internal/drill"
)

// drillFlags are what to rehearse, and how.
type drillFlags struct {
	client.Flags
	kill, freeze, cut, user, database string
	failover, yes, json               bool
	duration, timeout                 time.Duration
}

const (
	freezeUsual  = 10 * time.Second
	timeoutUsual = 5 * time.Minute
)

func drillCommand() *cobra.Command {
	var f drillFlags
	c := &cobra.Command{
		Use:   "drill NAME (--kill writer|standby|reader|both | --freeze writer|standby|reader | --cut writer|standby|reader | --failover)",
		Short: "Kill or freeze a server of a Multi-AZ instance or DB cluster, and measure what clients see",
		Long: `Rehearse the loss of a server of the Multi-AZ instance or the DB cluster NAME: kill one or
both, freeze one for a time (--for), cut it off from the other servers for a time, or ask
for a failover in order. Meanwhile a client writes a numbered row every 10 ms through the
endpoint, as an application would.

A cut (--cut) drops all packets between the server and the other servers, in both directions;
clients still reach it. It needs root and BPF (Linux 5.8, control groups version 2) on the
hosts of all servers, and is refused elsewhere.

An instance has a writer and a standby. A cluster has a writer and two readers; "reader" is
one of them, on this host if possible, and "both" is the writer and that reader. Choose a
reader by reader=N (the number of the server), reader=ZONE or reader=HOST, and a standby by
standby=…; kurabe explain NAME shows numbers, zones and hosts. In a cluster a second client
reads every 10 ms through the reader endpoint. Where an instance and a cluster have the same
name, cluster:NAME is the cluster.

The agent of another host kills, freezes or cuts off a server there, within 10 seconds or not
at all, and an event is recorded. It ends a freeze or a cut when the time is up, or when it
has heard nothing of the drill for 10 seconds.

At the end the command prints
  - the longest time without an acknowledgement, and the longest wait of one commit,
  - whether an acknowledged row is missing (there must be none),
  - the rows that exist without an acknowledgement (a server may fail between its commit and
    its answer),
  - a timeline: the actions of the drill, the errors of its client, the decisions of the
    planner, the states that hosts report, and the events that users get,
  - for a cluster, how many reads each server answered, and the longest time without an answer.

A DRILL INTERRUPTS THE DATABASE for all its clients, as a real failure does. So the command
asks for the name first, unless --yes is given. Run it on the machine of the service, as root
or as the user of the service. It refuses an instance in one zone, and one whose standby does
not have every commit at the moment.

The client logs in as the master user. The password is taken from KURABE_DRILL_PASSWORD, else
from PGPASSWORD (MYSQL_PWD for MariaDB), else from the login file that kurabe create wrote;
else the command asks for it.

All rows are in the schema kurabe_drill, which is dropped at the end, also after Ctrl-C. A
frozen server resumes when the time is up, at Ctrl-C, and when the drill itself is killed. The
exit status is 0 when no row is missing and all servers were back in time.`,
		Example: "  kurabe drill shop --kill writer\n  kurabe drill ring --kill reader=us-east-1b\n  kurabe drill shop --cut standby --for 5s\n  kurabe drill shop --freeze standby --for 5s --yes --json",
		Args:    client.OneName,
		RunE:    func(cmd *cobra.Command, args []string) error { return f.run(cmd, args[0]) },
	}
	f.Flags.Add(c)
	c.ValidArgsFunction = f.InstanceNames
	fs := c.Flags()
	fs.StringVar(&f.kill, "kill", "", "kill (SIGKILL) the server of the writer, of the standby or a reader (reader=N|ZONE|HOST), or both")
	fs.StringVar(&f.freeze, "freeze", "", "freeze (SIGSTOP) the server of the writer, of the standby or a reader for the time --for")
	fs.StringVar(&f.cut, "cut", "", "cut off the server of the writer, of the standby or a reader from the other servers for the time --for")
	fs.BoolVar(&f.failover, "failover", false, "request a failover, as RebootDBInstance with ForceFailover or FailoverDBCluster does")
	fs.DurationVar(&f.duration, "for", freezeUsual, "how long a server is frozen or cut off")
	fs.DurationVar(&f.timeout, "timeout", timeoutUsual, "how long to wait until all servers are back")
	fs.StringVar(&f.user, "user", "", "log in as this user (default: the master user)")
	fs.StringVar(&f.database, "database", "", "write into this database (default: that of the instance, else postgres)")
	fs.BoolVar(&f.yes, "yes", false, "do not ask")
	fs.BoolVar(&f.json, "json", false, "print the report as JSON")
	c.MarkFlagsMutuallyExclusive("kill", "freeze", "cut", "failover")
	return c
}

// drillGuardCommand is for the drill itself: see drill.GuardMain.
func drillGuardCommand() *cobra.Command {
	return &cobra.Command{Use: "drill-guard", Hidden: true, RunE: func(cmd *cobra.Command, args []string) error {
		return drill.GuardMain(cmd.Context(), args, os.Stdout)
	}}
}

func (f *drillFlags) order() (o drill.Order, err error) {
	side := ""
	switch {
	case f.kill != "":
		o.Action, side = drill.Kill, f.kill
	case f.freeze != "":
		o.Action, o.For, side = drill.Freeze, f.duration, f.freeze
	case f.cut != "":
		o.Action, o.For, side = drill.Cut, f.duration, f.cut
	case f.failover:
		o.Action = drill.Failover
	}
	o.Side, o.Server, err = drill.ParseSide("--"+string(o.Action), side)
	return o, err
}

func (f *drillFlags) run(cmd *cobra.Command, name string) error {
	order, err := f.order()
	if err == nil {
		err = order.Check()
	}
	if err != nil {
		return err
	}
	if f.freeze == "" && f.cut == "" && cmd.Flags().Changed("for") {
		return errors.New("--for goes with --freeze and --cut")
	}
	d, i, err := f.prepare(cmd.Context(), name, order)
	if err != nil {
		return err
	}
	if !f.yes && !client.Confirmed(fmt.Sprintf("This does to %s: %s. It interrupts the database for everybody.", name, d.Order), name) {
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
	p := client.NewProgress(os.Stderr, name)
	d.Say = p.Show
	report, err := d.Run(ctx)
	p.End()
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
		return exitError{errors.New("interrupted; what was frozen or cut off goes on"), client.InterruptedCode}
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
