//go:build integration

package integration

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/rds"

	"kurabe/internal/harness"
)

// hostsBed is a service on one machine and an agent on another one, each in a zone.
type hostsBed struct {
	network       *harness.Network
	here, there   *harness.Machine
	service, host *harness.Service
	join          string
}

const (
	zoneHere  = "us-east-1a"
	zoneThere = "us-east-1b"

	hostTime = time.Minute // bounds a wait for what takes seconds
)

func newHostsBed(t *testing.T) *hostsBed {
	t.Helper()
	b := &hostsBed{network: harness.NewNetwork(t)}
	b.here, b.there = b.network.Machine(t), b.network.Machine(t)
	b.join = b.here.Address + ":7381"
	b.service = harness.Start(t, harness.Options{Machine: b.here, Args: []string{"--zone", zoneHere, "--address-pool", b.here.Pool, "--host-listen", b.join}})
	return b
}

// token is what kurabe hosts token prints.
func (b *hostsBed) token(t *testing.T) string {
	t.Helper()
	out, err := kurabeCommand(b.service, harness.Binary(t), "hosts", "token", "--only")
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return strings.TrimSpace(out)
}

// admit has the second machine join, and waits until it is used.
func (b *hostsBed) admit(t *testing.T) {
	t.Helper()
	b.host = harness.New(t, harness.Options{Machine: b.there, Agent: true, Args: []string{"--address-pool", b.there.Pool}, Env: []string{"KURABE_JOIN_TOKEN=" + b.token(t)}})
	b.host.Start(t, "--join", b.join, "--zone", zoneThere)
	b.waitHost(t, "ready")
}

// waitHost waits until kurabe hosts tells such a status of the second machine.
func (b *hostsBed) waitHost(t *testing.T, status string) {
	t.Helper()
	id := b.host.HostID()
	harness.Wait(t, hostTime, id+" is "+status, func() string {
		out, err := kurabeCommand(b.service, harness.Binary(t), "hosts")
		if err != nil {
			return err.Error() + ": " + out
		}
		for line := range strings.Lines(out) {
			if f := strings.Fields(line); len(f) > 2 && f[0] == id && strings.HasPrefix(strings.Join(f[1:], " "), status) {
				return ""
			}
		}
		return out
	})
}

// far is an instance on the second machine: the service is asked for it, and the machine
// has its server.
type far struct {
	*harness.Instance
	pulse *harness.Pulse
	pid   int
}

func (b *hostsBed) create(t *testing.T, name, engine, zone string) *harness.Instance {
	t.Helper()
	in := harness.Request(name, engine)
	in.AvailabilityZone, in.BackupRetentionPeriod = aws.String(zone), aws.Int32(1)
	return b.service.MustCreate(t, in)
}

// server is the pid of the one server of an instance on the second machine.
func (b *hostsBed) server(t *testing.T, i *harness.Instance) int {
	t.Helper()
	there := *i
	there.Service = b.host
	return there.Server(t)
}

// TestHosts lives with a machine that has joined: its databases are made, read, replicated,
// restored and deleted from the first one, and go on while either agent or service is gone.
func TestHosts(t *testing.T) {
	needRoot(t)
	b := newHostsBed(t)
	b.admit(t)
	b.service.EachEngine(t, func(t *testing.T, engine string) {
		if engine == "postgres" && !harness.Whole() {
			t.Skip("with KURABE_WHOLE=1: nothing here depends on the engine but its copy, and MariaDB's is the one of its own")
		}
		i := b.create(t, "far-"+engine, engine, zoneThere)
		f := &far{i, i.Pulse(t), b.server(t, i)}
		f.pulse.WaitMore(t, beatsBefore)
		if d := i.Describe(t); aws.ToString(d.AvailabilityZone) != zoneThere || !slices.Contains(b.there.Addresses(t), aws.ToString(d.Endpoint.Address)) {
			t.Errorf("it is in %s at %s; the machine has %v", aws.ToString(d.AvailabilityZone), aws.ToString(d.Endpoint.Address), b.there.Addresses(t))
		}
		for _, part := range []struct {
			name string
			run  func(*testing.T, *far)
		}{
			{"its log files are read", b.logFiles}, {"the agent dies", b.agentDies}, {"the service dies", b.serviceDies},
			{"the cable is pulled", b.cablePulled}, {"the machine is switched off", b.switchedOff},
			{"a snapshot is restored beside it", b.restored}, {"a read replica on the other machine", b.replicated},
		} {
			if !t.Run(part.name, func(t *testing.T) { part.run(t, f) }) {
				t.FailNow()
			}
		}
		f.pulse.Verify(t)
		f.pulse.Stop()
		address := aws.ToString(i.Describe(t).Endpoint.Address)
		i.Delete(t)
		if slices.Contains(b.there.Addresses(t), address) || slices.Contains(b.host.Homes(), i.ID) {
			t.Errorf("something is left of it: %v, %v", b.there.Addresses(t), b.host.Homes())
		}
	})
}

func (b *hostsBed) logFiles(t *testing.T, f *far) {
	list, err := b.service.DescribeDBLogFiles(t.Context(), &rds.DescribeDBLogFilesInput{DBInstanceIdentifier: aws.String(f.Name)})
	if err != nil || len(list.DescribeDBLogFiles) == 0 {
		t.Fatalf("%+v, %v", list, err)
	}
	name := list.DescribeDBLogFiles[0].LogFileName
	out, err := b.service.DownloadDBLogFilePortion(t.Context(), &rds.DownloadDBLogFilePortionInput{DBInstanceIdentifier: aws.String(f.Name), LogFileName: name})
	if err != nil || !strings.Contains(aws.ToString(out.LogFileData), "ready") {
		t.Errorf("%s: %v, %+v", aws.ToString(name), err, out)
	}
	_, err = b.service.DownloadDBLogFilePortion(t.Context(), &rds.DownloadDBLogFilePortionInput{DBInstanceIdentifier: aws.String(f.Name), LogFileName: aws.String("error/none.log")})
	if err == nil || !strings.Contains(err.Error(), "DBLogFileNotFound") {
		t.Errorf("a file that is not there: %v", err)
	}
}

// unmoved demands that clients have gone on with the same server.
func (b *hostsBed) unmoved(t *testing.T, f *far) {
	t.Helper()
	f.WaitStatus(t, "available")
	f.pulse.WaitMore(t, beatsAfter)
	if pid := b.server(t, f.Instance); pid != f.pid {
		t.Errorf("its server is %d by now; it was %d", pid, f.pid)
	}
}

// uncut demands that the client has met no error since, so that no session of it ended.
func (b *hostsBed) uncut(t *testing.T, f *far, from time.Time) {
	t.Helper()
	if n, err := f.pulse.Errors(from); n > 0 {
		t.Errorf("the client has met %d errors, the last was %v", n, err)
	}
}

func (b *hostsBed) agentDies(t *testing.T, f *far) {
	from := time.Now()
	defer b.uncut(t, f, from)
	b.host.Kill(t)
	f.WaitStatus(t, "unreachable")
	f.WaitEvent(t, "has not been heard since")
	f.pulse.WaitMore(t, beatsAfter)
	b.waitHost(t, "lost")
	b.host.Start(t)
	b.waitHost(t, "ready")
	b.unmoved(t, f)
	f.WaitEvent(t, "is heard again")
}

func (b *hostsBed) serviceDies(t *testing.T, f *far) {
	from := time.Now()
	defer b.uncut(t, f, from)
	b.service.Kill(t)
	f.pulse.WaitMore(t, beatsAfter)
	// An agent that starts while there is no service does what it was told before.
	b.host.Kill(t)
	b.host.Start(t)
	f.pulse.WaitMore(t, beatsAfter)
	b.service.Start(t)
	b.waitHost(t, "ready")
	b.unmoved(t, f)
}

func (b *hostsBed) cablePulled(t *testing.T, f *far) {
	b.there.Plug(t, false)
	defer b.there.Plug(t, true)
	f.WaitStatus(t, "unreachable")
	// A server that dies now is started again by its agent, which asks nobody.
	if err := syscall.Kill(f.pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	harness.Wait(t, hostTime, f.Name+" has another server", func() string {
		if now := b.host.Servers(f.ID); len(now) != 1 || now[0] == f.pid {
			return fmt.Sprint(now)
		}
		return ""
	})
	f.pid = b.server(t, f.Instance)
	b.there.Plug(t, true)
	b.unmoved(t, f)
	f.WaitEvent(t, "restarted")
}

func (b *hostsBed) switchedOff(t *testing.T, f *far) {
	b.host.Kill(t)
	if err := b.host.EndDatabases(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.there.Forget(t)
	f.WaitStatus(t, "unreachable")
	b.host.Start(t)
	f.WaitStatus(t, "available")
	f.pulse.WaitMore(t, beatsAfter)
	f.pid = b.server(t, f.Instance)
}

func (b *hostsBed) restored(t *testing.T, f *far) {
	name := f.Name + "-snapshot"
	if _, err := b.service.CreateDBSnapshot(t.Context(), &rds.CreateDBSnapshotInput{DBInstanceIdentifier: aws.String(f.Name), DBSnapshotIdentifier: aws.String(name)}); err != nil {
		t.Fatal(err)
	}
	harness.Wait(t, hostTime, name+" is available", func() string {
		out, err := b.service.DescribeDBSnapshots(t.Context(), &rds.DescribeDBSnapshotsInput{DBSnapshotIdentifier: aws.String(name)})
		if err != nil || len(out.DBSnapshots) != 1 {
			return fmt.Sprint(err)
		}
		if status := aws.ToString(out.DBSnapshots[0].Status); status != "available" {
			return status
		}
		return ""
	})
	in := &rds.RestoreDBInstanceFromDBSnapshotInput{DBSnapshotIdentifier: aws.String(name), DBInstanceIdentifier: aws.String(f.Name + "-restored"), BackupRetentionPeriod: aws.Int32(0)}
	in.AvailabilityZone = aws.String(zoneHere)
	if _, err := b.service.RestoreDBInstanceFromDBSnapshot(t.Context(), in); err == nil || !strings.Contains(err.Error(), "has the snapshot") {
		t.Errorf("in the zone of the other machine: %v", err)
	}
	in.AvailabilityZone = nil
	out, err := b.service.RestoreDBInstanceFromDBSnapshot(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	r := *f.Instance
	r.Name, r.ID = f.Name+"-restored", aws.ToString(out.DBInstance.DbiResourceId)
	r.WaitStatus(t, "available")
	if zone := aws.ToString(r.Describe(t).AvailabilityZone); zone != zoneThere || r.Query(t, "SELECT 1") != "1" {
		t.Errorf("restored in %s", zone)
	}
	r.Delete(t)
	if _, err := b.service.DeleteDBSnapshot(t.Context(), &rds.DeleteDBSnapshotInput{DBSnapshotIdentifier: aws.String(name)}); err != nil {
		t.Error(err)
	}
}

// replicated moves a database to the other machine, as people do.
func (b *hostsBed) replicated(t *testing.T, f *far) {
	r := b.replicate(t, f.Instance, zoneHere)
	if !slices.Contains(b.service.Homes(), r.ID) || !slices.Contains(b.here.Addresses(t), aws.ToString(r.Describe(t).Endpoint.Address)) {
		t.Errorf("it is not on the first machine: %v, %v", b.service.Homes(), b.here.Addresses(t))
	}
	f.pulse.WaitMore(t, beatsAfter)
	f.pulse.VerifyAt(t, r.Login(t))
	back := b.replicate(t, r, zoneThere) // a source that follows itself
	f.pulse.WaitMore(t, beatsAfter)
	f.pulse.VerifyAt(t, back.Login(t))
	back.Delete(t)
	r.Promote(t, 0)
	r.WaitStatus(t, "available")
	address := aws.ToString(r.Describe(t).Endpoint.Address)
	r.Delete(t)
	if slices.Contains(b.here.Addresses(t), address) || slices.Contains(b.service.Homes(), r.ID) {
		t.Errorf("something is left of it: %v, %v", b.here.Addresses(t), b.service.Homes())
	}
}

// replicate makes a read replica in a zone, and waits until it follows.
func (b *hostsBed) replicate(t *testing.T, of *harness.Instance, zone string) *harness.Instance {
	t.Helper()
	out, err := b.service.CreateDBInstanceReadReplica(t.Context(), &rds.CreateDBInstanceReadReplicaInput{
		DBInstanceIdentifier: aws.String(of.Name + "-replica"), SourceDBInstanceIdentifier: aws.String(of.Name), AvailabilityZone: aws.String(zone),
	})
	if err != nil {
		t.Fatal(err)
	}
	r := *of
	r.Name, r.ID = of.Name+"-replica", aws.ToString(out.DBInstance.DbiResourceId)
	r.WaitStatus(t, "available")
	r.WaitReplicating(t)
	return &r
}

// TestHostsRefused tries what must not work.
func TestHostsRefused(t *testing.T) {
	needRoot(t)
	b := newHostsBed(t)
	third := b.network.Machine(t)
	attempt := func(what, says, token string, args ...string) {
		t.Helper()
		dir := harness.Folder(t, false)
		cmd := exec.Command(harness.Binary(t), append([]string{"agent", "--data", filepath.Join(dir, "data"), "--address-pool", third.Pool}, args...)...)
		cmd.Env = append(os.Environ(), "KURABE_JOIN_TOKEN="+token)
		var out strings.Builder
		cmd.Stdout, cmd.Stderr = &out, &out
		if err := third.Start(t, cmd); err != nil {
			t.Fatal(err)
		}
		if err := cmd.Wait(); err == nil || !strings.Contains(out.String(), says) {
			t.Errorf("%s: %v; it wants %q:\n%s", what, err, says, out.String())
		}
		if token != "" && strings.Contains(out.String(), strings.Split(token+"..", ".")[2]+".") {
			t.Errorf("%s: the token is in the log", what)
		}
	}
	good := b.token(t)
	joins := []string{"--join", b.join, "--zone", zoneThere}
	attempt("no token", "kurabe hosts token", "", joins...)
	attempt("no token at all", "invalid join token", "hello", joins...)
	attempt("half a token", "damaged", good[:len(good)-1], joins...)
	attempt("no zone", "--zone", good, "--join", b.join)
	attempt("another zone", "there is no zone", good, "--join", b.join, "--zone", "us-east-1z")
	attempt("another pool", "no interface", good, append(joins, "--address-pool", "10.99.0.0/27")...)
	attempt("another authority", "authority", good[:len(good)-64]+strings.Repeat("0", 64), joins...)
	attempt("another secret", "not known or has expired", good[:21]+strings.Repeat("0", 32)+good[53:], joins...)
	b.host = harness.New(t, harness.Options{Machine: b.there, Agent: true, Args: []string{"--address-pool", b.there.Pool}, Env: []string{"KURABE_JOIN_TOKEN=" + good}})
	b.host.Start(t, "--join", b.join, "--zone", zoneThere) // none of these has spent it
	b.waitHost(t, "ready")
	attempt("a used token", "was used", good, joins...)

	in := harness.Request("refused", "postgres")
	in.AvailabilityZone = aws.String("us-east-1c")
	if _, err := b.service.CreateDBInstance(t.Context(), in); err == nil || !strings.Contains(err.Error(), "InsufficientDBInstanceCapacity") {
		t.Errorf("a zone that has no host: %v", err)
	}
	b.drainAndRemove(t)
}

// TestHostNeverComesBack: a machine burns with an instance, a replica of PostgreSQL's on the
// other machine, and a snapshot.
func TestHostNeverComesBack(t *testing.T) {
	needRoot(t)
	b := newHostsBed(t)
	b.admit(t)
	hosts := func(args ...string) string {
		out, err := kurabeCommand(b.service, harness.Binary(t), append([]string{"hosts"}, args...)...)
		return fmt.Sprint(out, err)
	}
	id := b.host.HostID()
	burnt, kept := b.create(t, "burnt", "mariadb", zoneThere), b.create(t, "kept", "postgres", zoneThere)
	if out := hosts("give-up", id, "--yes"); !strings.Contains(out, "is heard") {
		t.Errorf("a host that is heard is given up: %s", out)
	}
	replica := b.replicate(t, kept, zoneHere)
	pulse := kept.Pulse(t)
	pulse.WaitMore(t, beatsBefore)
	pulse.Stop()
	pulse.VerifyAt(t, replica.Login(t))
	b.host.Kill(t)
	if err := b.host.EndDatabases(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.there.Forget(t)
	burnt.WaitStatus(t, "unreachable")
	if out := hosts("give-up", id, "--yes"); !strings.Contains(out, "given up") {
		t.Fatal(out)
	}
	burnt.WaitStatus(t, "failed")
	burnt.WaitEvent(t, "is gone for good")
	replica.Promote(t, 0)
	replica.WaitStatus(t, "available")
	pulse.VerifyAt(t, replica.Login(t))
	if out := hosts("remove", id); !strings.Contains(out, "DB instance burnt") {
		t.Errorf("removed with what is on it: %s", out)
	}
	burnt.Delete(t)
	kept.Delete(t)
	if out := hosts("remove", id); strings.Contains(out, id) {
		t.Errorf("not removed: %s", out)
	}
	b.host.Start(t) // somebody finds it
	harness.Wait(t, hostTime, "the agent is told", func() string {
		if strings.Contains(b.host.Log.String(), "was removed or has never joined") {
			return ""
		}
		return "it is not"
	})
}

// drainAndRemove ends the life of the second machine in the service.
func (b *hostsBed) drainAndRemove(t *testing.T) {
	id := b.host.HostID()
	i := b.create(t, "stays", "postgres", zoneThere)
	hosts := func(wants string, args ...string) {
		t.Helper()
		out, _ := kurabeCommand(b.service, harness.Binary(t), append([]string{"hosts"}, args...)...)
		if !strings.Contains(out, wants) {
			t.Errorf("kurabe hosts %v: it wants %q:\n%s", args, wants, out)
		}
	}
	b.copyIsRefused(t, i)
	hosts("drain it first", "remove", id)
	hosts("there is no host", "drain", "host-none")
	hosts("a server of the service runs on", "drain", b.service.HostID())
	hosts("snapshots: DB instance stays", "drain", id, "--no-wait")
	in := harness.Request("refused", "postgres")
	in.AvailabilityZone = aws.String(zoneThere)
	if _, err := b.service.CreateDBInstance(t.Context(), in); err == nil || !strings.Contains(err.Error(), "is drained") {
		t.Errorf("on a drained host: %v", err)
	}
	hosts("DB instance stays", "remove", id)
	hosts("ready ", "drain", id, "--undo")
	hosts("ready, drained", "drain", id, "--no-wait")
	i.Delete(t)
	hosts(b.service.HostID(), "remove", id)
	harness.Wait(t, hostTime, "the agent is told", func() string {
		if strings.Contains(b.host.Log.String(), "was removed or has never joined") {
			return ""
		}
		return fmt.Sprint(len(b.host.Log.String()), " bytes of log")
	})
	if out, err := kurabeCommand(b.service, harness.Binary(t), "hosts"); err != nil || strings.Contains(out, id) {
		t.Errorf("it is listed on: %v, %s", err, out)
	}
}
