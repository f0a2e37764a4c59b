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
		Short: "Lose a server of a Multi-AZ instance or DB cluster on purpose, and tell what clients see",
		Long: `Rehearse the loss of a server of the Multi-AZ instance or the DB cluster NAME: kill one or
both, freeze one for a time (--for), cut it off from the other servers for a time, or ask
for a failover in order. Meanwhile a client writes a numbered row every 10 ms through the
endpoint, as an application would.

A cut (--cut) loses what the server and the others say to each other, both ways; clients
reach it. It needs root and BPF (Linux 5.8, control groups of version 2) on the hosts of all
servers; where that is not to be had, it is refused.

An instance has a writer and a standby. A cluster has a writer and two readers, of which
one is struck (on this host, if one is); both are the writer and that one. Which reader is
said by reader=N (the number of the server), reader=ZONE or reader=HOST; standby=… says the
same of an instance's standby. kurabe explain NAME shows numbers, zones and hosts. A second
client then reads every 10 ms through the reader endpoint of a cluster. Where an instance
and a cluster have one name, cluster:NAME is the cluster.

A server on another host is killed, frozen or cut off by that host's agent, within 10 seconds
or not at all; an event tells of it. The agent ends a freeze or a cut when the time is up, and
when it has heard nothing of the drill for 10 seconds.

At the end it tells
  - the longest time without an acknowledgement, and the longest wait of one commit,
  - whether a row is missing that was acknowledged (there must be none),
  - the rows that are there without having been acknowledged (a server that dies may have
    written what it could not answer),
  - who decided what and when: what the drill did, what its client saw, whom the planner
    let write, what the host saw of the servers, and the events that users get,
  - of a cluster, how many reads were answered, by whom, and the longest time without one.

IT INTERRUPTS THE DATABASE for everybody, as the real thing does. So it asks for the name
first, unless --yes. It runs on the machine of the service; to kill or
freeze it has to be root, or the user that the service runs as. An instance in one zone,
or one whose standby does not have every commit just now, is refused.

It logs in as the master user. The password is KURABE_DRILL_PASSWORD, else PGPASSWORD, or
MYSQL_PWD for MariaDB, else that of the login file which kurabe create wrote, else it is
asked for.

Everything that it writes is in a schema of its own, kurabe_drill, which it drops at the
end, after Ctrl-C too. What it froze goes on when the time is up, at Ctrl-C, and when the
drill itself is killed. The exit status is 0 when no row is missing and the instance was
whole again in time.`,
		Example: "  kurabe drill shop --kill writer\n  kurabe drill ring --kill reader=us-east-1b\n  kurabe drill shop --cut standby --for 5s\n  kurabe drill shop --freeze standby --for 5s --yes --json",
		Args:    client.OneName,
		RunE:    func(cmd *cobra.Command, args []string) error { return f.run(cmd, args[0]) },
	}
	f.Flags.Add(c)
	c.ValidArgsFunction = f.InstanceNames
	fs := c.Flags()
	fs.StringVar(&f.kill, "kill", "", "kill (SIGKILL) the server of the writer, of the standby or a reader (reader=N|ZONE|HOST), or both")
	fs.StringVar(&f.freeze, "freeze", "", "freeze (SIGSTOP) the server of the writer, of the standby or a reader, and have it go on after --for")
	fs.StringVar(&f.cut, "cut", "", "lose what the server of the writer, of the standby or a reader and the other servers say to each other, for --for")
	fs.BoolVar(&f.failover, "failover", false, "ask for a failover in order, as RebootDBInstance with ForceFailover or FailoverDBCluster does")
	fs.DurationVar(&f.duration, "for", freezeUsual, "how long a server is frozen or cut off")
	fs.DurationVar(&f.timeout, "timeout", timeoutUsual, "how long to wait until the instance is whole again")
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
