//go:build integration

package integration

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/rds"
	"github.com/aws/smithy-go"
	clientv3 "go.etcd.io/etcd/client/v3"

	"kurabe/internal/harness"
)

// etcdBed is a service whose state is in an etcd of others, with a database and its client.
type etcdBed struct {
	etcd    *harness.Etcd
	service *harness.Service
	kept    *harness.Instance
	pulse   *harness.Pulse
	from    time.Time
}

func newEtcdBed(t *testing.T) *etcdBed {
	t.Helper()
	b := &etcdBed{etcd: harness.StartEtcd(t, 3, "127.0.0.1")}
	b.service = harness.Start(t, harness.Options{Args: b.etcd.Args()})
	return b
}

// keep has a database and its client.
func (b *etcdBed) keep(t *testing.T, engine string) {
	t.Helper()
	b.kept = b.service.MustCreate(t, harness.Request("kept-"+engine, engine))
	b.pulse = b.kept.Pulse(t)
	b.pulse.WaitMore(t, beatsBefore)
	b.from = time.Now()
}

// uncut demands that the client has noticed nothing since.
func (b *etcdBed) uncut(t *testing.T, what string) {
	t.Helper()
	b.pulse.WaitMore(t, beatsAfter)
	if n, err := b.pulse.Errors(b.from); n > 0 {
		t.Errorf("%s: the client has met %d errors, the last was %v", what, n, err)
	}
	t.Logf("%s: %s", what, time.Since(b.from))
	b.from = time.Now()
}

func (b *etcdBed) loseAll(t *testing.T) {
	t.Helper()
	for _, m := range b.etcd.Members {
		m.Kill(t)
	}
}

func (b *etcdBed) bringBack(t *testing.T) {
	t.Helper()
	for _, m := range b.etcd.Members {
		m.Start(t)
	}
}

// health is the status of the service's own word.
func (b *etcdBed) waitHealth(t *testing.T, status int) {
	t.Helper()
	harness.Wait(t, hostTime, fmt.Sprintf("/healthz is %d", status), func() string {
		r, err := http.Get(b.service.URL() + "/healthz")
		if err != nil {
			return err.Error()
		}
		defer r.Body.Close()
		if r.StatusCode != status {
			return r.Status
		}
		return ""
	})
}

// resize orders more storage, and waits until the order is obeyed.
func (b *etcdBed) resize(t *testing.T, gib int32) {
	t.Helper()
	b.kept.Modify(t, func(in *rds.ModifyDBInstanceInput) { in.AllocatedStorage = aws.Int32(gib) })
	harness.Wait(t, hostTime, "the order is obeyed", func() string {
		if d := b.kept.Describe(t); aws.ToInt32(d.AllocatedStorage) != gib || aws.ToString(d.DBInstanceStatus) != "available" {
			return aws.ToString(d.DBInstanceStatus)
		}
		return ""
	})
}

// TestStateInAnEtcd loses the service, one member, the leader, and all of them.
func TestStateInAnEtcd(t *testing.T) {
	b := newEtcdBed(t)
	b.service.EachEngine(t, func(t *testing.T, engine string) {
		b.keep(t, engine)
		b.service.Kill(t)
		b.service.Start(t)
		b.uncut(t, "the service is killed")
		b.etcd.Leader(t).Kill(t)
		b.etcd.WaitHealthy(t)
		b.resize(t, 25)
		b.uncut(t, "etcd's leader is killed")
		b.loseAll(t)
		b.waitHealth(t, http.StatusServiceUnavailable)
		in := harness.Request("refused", engine)
		_, err := b.service.CreateDBInstance(t.Context(), in)
		var refused smithy.APIError
		if !errors.As(err, &refused) || refused.ErrorCode() != "ServiceUnavailable" || !strings.Contains(refused.ErrorMessage(), "nothing was changed") {
			t.Errorf("etcd is away: %v", err)
		}
		if d := b.kept.Describe(t); aws.ToString(d.DBInstanceStatus) != "available" {
			t.Errorf("etcd is away: %s", aws.ToString(d.DBInstanceStatus))
		}
		b.uncut(t, "etcd is away")
		b.service.Terminate(t)
		b.service.Launch(t)
		if err := syscall.Kill(b.kept.Server(t), syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		b.pulse.WaitMore(t, beatsAfter) // the service looks after it, and waits for etcd
		b.from = time.Now()
		b.bringBack(t)
		b.service.WaitReady(t)
		b.waitHealth(t, http.StatusOK)
		b.resize(t, 30)
		b.uncut(t, "etcd is back")
		b.pulse.Verify(t)
	})
}

// attempt starts a service that must be refused.
func attempt(t *testing.T, what, says, data string, args ...string) {
	t.Helper()
	if data == "" {
		data = filepath.Join(harness.Folder(t, false), "data")
	}
	cmd := exec.Command(harness.Binary(t), append([]string{"server", "--data", data, "--listen", "127.0.0.1:0"}, args...)...)
	if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), says) {
		t.Errorf("%s: %v; it wants %q:\n%s", what, err, says, out)
	}
}

// TestEtcdIsShared: services share an etcd, and none is taken for another.
func TestEtcdIsShared(t *testing.T) {
	b := newEtcdBed(t)
	b.keep(t, "postgres")
	args := b.etcd.Args()
	attempt(t, "the same prefix", "records belong to another service", "", args...)
	attempt(t, "a prefix within", "lies within /kurabe/", "", append(args, "--etcd-prefix", "/kurabe/second")...)
	other := harness.Start(t, harness.Options{Args: append(args, "--etcd-prefix", "/second/deep")})
	attempt(t, "a prefix around", "belongs to another program", "", append(args, "--etcd-prefix", "/second")...)
	twin := other.MustCreate(t, harness.Request("twin", "postgres"))
	copied := filepath.Join(harness.Folder(t, false), "data")
	if out, err := exec.Command("cp", "-a", other.Data, copied).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	attempt(t, "a copy of the folder", "another server runs with the name of this one", copied, append(args, "--etcd-prefix", "/second/deep")...)
	twin.Delete(t)
	other.Terminate(t)
	attempt(t, "without etcd", "start it with --etcd-endpoints", other.Data)
	attempt(t, "another prefix", "--etcd-prefix says /third/", other.Data, append(args, "--etcd-prefix", "/third")...)
	own := harness.Start(t, harness.Options{})
	own.Terminate(t)
	attempt(t, "a folder with a state", "has a state of its own", own.Data, args...)
	b.resize(t, 25)
	b.uncut(t, "shared")
}

// state runs kurabe state, and demands what it says.
func (b *etcdBed) state(t *testing.T, says string, args ...string) {
	t.Helper()
	c := clientCommand(b.service, harness.Binary(t))
	c.Args = append(c.Args[:1], append([]string{"state"}, args...)...)
	if out, _ := c.CombinedOutput(); !strings.Contains(string(out), says) {
		t.Errorf("kurabe state %v: it wants %q:\n%s", args, says, out)
	}
}

// TestStateMovesBetweenEtcds goes back to a backup in the same etcd, from there into the
// data folder, and back; clients notice nothing.
func TestStateMovesBetweenEtcds(t *testing.T) {
	b := newEtcdBed(t)
	b.keep(t, "postgres")
	s, data := b.service, []string{"--data", b.service.Data, "--yes"}
	file := func(name string) string { return filepath.Join(harness.Folder(t, false), name) }
	over, direct := file("over"), file("direct")
	b.state(t, "", "backup", over, "--data", s.Data, "--endpoint", s.URL())
	b.resize(t, 25)
	b.state(t, "", append([]string{"backup", direct}, b.etcd.Args()...)...)
	b.state(t, "there is nothing", append([]string{"backup", file("none"), "--etcd-prefix", "/none"}, b.etcd.Args()...)...)
	into := append(data, b.etcd.Args()...)
	// Who removes the records ends the service, and no database.
	c := b.etcd.Client(t)
	s.Terminate(t)
	b.state(t, "the store already has records", append([]string{"restore", over}, into...)...)
	s.Start(t)
	if _, err := c.Delete(t.Context(), "/kurabe/", clientv3.WithPrefix()); err != nil {
		t.Fatal(err)
	}
	if err := s.WaitEnd(t, hostTime); err == nil || !strings.Contains(s.Log.String(), "is not the earlier one") {
		t.Errorf("the service ended with %v", err)
	}
	b.uncut(t, "the records are gone")
	b.state(t, "records are restored", append([]string{"restore", over}, into...)...)
	s.Start(t)
	if d := b.kept.Describe(t); aws.ToInt32(d.AllocatedStorage) != 20 {
		t.Errorf("%d GiB", aws.ToInt32(d.AllocatedStorage))
	}
	b.resize(t, 26)
	b.uncut(t, "restored in the same etcd")
	s.Terminate(t)
	b.state(t, "records are restored", append([]string{"restore", direct}, data...)...)
	own := harness.New(t, harness.Options{Data: s.Data})
	b.service, b.kept.Service = own, own
	own.Start(t)
	if d := b.kept.Describe(t); aws.ToInt32(d.AllocatedStorage) != 25 {
		t.Errorf("%d GiB", aws.ToInt32(d.AllocatedStorage))
	}
	b.resize(t, 30)
	back := file("back")
	b.state(t, "", "backup", back, "--data", s.Data, "--endpoint", own.URL())
	own.Terminate(t)
	b.uncut(t, "moved into the folder")
	b.state(t, "records are restored", append([]string{"restore", back, "--etcd-prefix", "/moved/"}, into...)...)
	moved := harness.New(t, harness.Options{Data: s.Data, Args: append(b.etcd.Args(), "--etcd-prefix", "/moved")})
	b.service, b.kept.Service = moved, moved
	moved.Start(t)
	b.resize(t, 35)
	b.uncut(t, "moved back")
	b.pulse.Verify(t)
	if _, err := os.Stat(filepath.Join(s.Data, "etcd")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the folder has a state of its own: %v", err)
	}
}
