//go:build fault

package fault

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/rds"

	"kurabe/internal/harness"
)

// farCopyBed is a source of MariaDB on a machine that has joined, and a client who writes
// into it; its replicas are on the first machine.
type farCopyBed struct {
	there         *harness.Machine
	service, host *harness.Service
	source        *harness.Instance
	pulse         *harness.Pulse
	serial        int
}

const (
	copyHere  = "us-east-1a"
	copyThere = "us-east-1b"
	// silentTime is more than the other end of a copy may be silent.
	silentTime = 40 * time.Second
)

func newFarCopyBed(t *testing.T) *farCopyBed {
	t.Helper()
	network := harness.NewNetwork(t)
	here := network.Machine(t)
	b := &farCopyBed{there: network.Machine(t)}
	join := here.Address + ":7381"
	b.service = harness.Start(t, harness.Options{Fault: true, Machine: here, Args: []string{"--zone", copyHere, "--address-pool", here.Pool, "--host-listen", join}})
	b.service.NeedEngine(t, "mariadb", b.service.Engines(t))
	hosts := func(args ...string) string {
		t.Helper()
		out, err := exec.Command(harness.Binary(t), append([]string{"hosts", "--data", b.service.Data, "--endpoint", b.service.URL()}, args...)...).Output()
		if err != nil {
			t.Fatal(err)
		}
		return strings.TrimSpace(string(out))
	}
	b.host = harness.New(t, harness.Options{Fault: true, Machine: b.there, Agent: true, Args: []string{"--address-pool", b.there.Pool}, Env: []string{"KURABE_JOIN_TOKEN=" + hosts("token", "--only")}})
	b.host.Start(t, "--join", join, "--zone", copyThere)
	in := harness.Request("source", "mariadb")
	in.AvailabilityZone, in.BackupRetentionPeriod = aws.String(copyThere), aws.Int32(1)
	harness.Wait(t, settleTime, "there is a host for it", func() string {
		if list := hosts(); strings.Count(list, " ready ") < 2 {
			return list
		}
		return ""
	})
	b.source = b.service.MustCreate(t, in)
	b.pulse = b.source.Pulse(t)
	b.pulse.WaitMore(t, pairBeats)
	return b
}

// TestFarCopy breaks everything that takes part in a copy of MariaDB over the network, in
// its midst. The next try begins anew; nothing half is used or left, and the source writes
// on.
func TestFarCopy(t *testing.T) {
	needRoot(t)
	b := newFarCopyBed(t)
	for _, c := range []struct {
		name string
		at   *harness.Service
		hold string
		slow bool
		do   func(t *testing.T)
	}{
		{"nothing", b.host, "", false, func(*testing.T) {}},
		{"the source's agent dies", b.host, "before:send-feed", false, func(t *testing.T) { b.host.Kill(t); b.host.Start(t) }},
		{"the follower's host dies", b.host, "before:send-feed", true, func(t *testing.T) { b.service.Kill(t); b.service.Start(t) }},
		{"the follower's host dies with the copy there", b.service, "after:copy-data", false, func(t *testing.T) { b.service.Kill(t); b.service.Start(t) }},
		{"the source's server dies", b.host, "before:send-feed", false, func(t *testing.T) { killServers(t, b.host, b.source.ID) }},
		{"the cable is pulled", b.host, "before:send-feed", true, func(t *testing.T) {
			b.there.Plug(t, false)
			time.AfterFunc(silentTime, func() { b.there.Plug(t, true) })
		}},
	} {
		if c.slow && !harness.Whole() {
			continue
		}
		if !t.Run(c.name, func(t *testing.T) { b.replicate(t, c.at, c.hold, c.do) }) {
			t.FailNow()
		}
	}
	b.pulse.Stop()
	b.pulse.Verify(t)
}

// replicate makes a replica, during whose copy something happens, and removes it again.
func (b *farCopyBed) replicate(t *testing.T, at *harness.Service, point string, do func(t *testing.T)) {
	began := time.Now()
	b.source.WaitStatus(t, "available")
	b.serial++
	var h *hold
	if point != "" {
		h = holdAt(t, at, point)
	}
	out, err := b.service.CreateDBInstanceReadReplica(t.Context(), &rds.CreateDBInstanceReadReplicaInput{
		DBInstanceIdentifier: aws.String(fmt.Sprint("replica-", b.serial)), SourceDBInstanceIdentifier: aws.String(b.source.Name), AvailabilityZone: aws.String(copyHere),
	})
	if err != nil {
		t.Fatal(err)
	}
	r := *b.source
	r.Name, r.ID = aws.ToString(out.DBInstance.DBInstanceIdentifier), aws.ToString(out.DBInstance.DbiResourceId)
	if h != nil {
		h.reached(t)
		do(t)
		if err := os.Remove(h.file); err != nil { // whoever waits may be dead
			t.Fatal(err)
		}
	}
	r.WaitStatus(t, "available")
	r.WaitReplicating(t)
	b.pulse.WaitMore(t, pairBeats)
	b.pulse.VerifyAt(t, r.Login(t))
	t.Logf("it follows after %v", time.Since(began).Round(time.Millisecond))
	r.Delete(t)
	harness.Wait(t, settleTime, "nothing is left of the copy", func() string {
		left, err := os.ReadDir(filepath.Join(b.host.Data, "instances", b.source.ID, "feed"))
		if err != nil && !errors.Is(err, fs.ErrNotExist) || len(left) > 0 {
			return fmt.Sprint(left, err)
		}
		return ""
	})
	if homes := b.service.Homes(); len(homes) > 0 {
		t.Errorf("left of the replica: %v", homes)
	}
}
