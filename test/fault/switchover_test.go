//go:build fault

package fault

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/rds/types"

	"kurabe/internal/harness"
)

// TestKillAtEveryStepOfASwitchover kills the service before and after each step by which an
// instance and a read replica of it change roles, while a client writes into the source and
// another one tries the replica. It comes through each time; nothing acknowledged is lost, and
// there is one source.
func TestKillAtEveryStepOfASwitchover(t *testing.T) {
	for _, engine := range []string{"postgres", "mariadb"} {
		t.Run(engine, func(t *testing.T) {
			t.Parallel() // each engine on a service of its own
			s := harness.Start(t, harness.Options{Fault: true})
			s.NeedEngine(t, engine, s.Engines(t))
			in := harness.Request("one", engine)
			in.BackupRetentionPeriod = aws.Int32(1)
			b := &switchoverBed{s: s, source: s.MustCreate(t, in), watcher: watch(t, s), places: newPlaces(t)}
			b.heir = b.source.MustReplicate(t, "two")
			b.everyStep(t)
			b.source.WaitStatus(t, "available")
			b.heir.Delete(t)
			b.source.Delete(t)
			noOrphans(t, s)
		})
	}
}

type switchoverBed struct {
	s            *harness.Service
	source, heir *harness.Instance
	watcher      *watcher
	places       places
	serial       int
}

func (b *switchoverBed) everyStep(t *testing.T) {
	began := time.Now()
	for range 2 { // the first time either is the other it gets a certificate for that
		b.switches(t, "")
	}
	yielding, leading := b.switches(t, "")
	var points []string
	for _, p := range append(b.places.of(yielding), b.places.of(leading)...) {
		if !slices.Contains(points, p) {
			points = append(points, p)
		}
	}
	if !slices.Contains(yielding, "yield") || !slices.Contains(yielding, "rejoin") || !slices.Contains(leading, "promote") {
		t.Fatalf("steps of the source: %v, of the replica: %v", yielding, leading)
	}
	for _, p := range points {
		b.switches(t, p)
	}
	t.Logf("%d places of %v and %v; %v", len(points), yielding, leading, time.Since(began).Round(time.Millisecond))
}

// switches changes the roles, with a death of the service at a point of it, "" for none. It
// returns the steps of either, until it had come through.
func (b *switchoverBed) switches(t *testing.T, point string) (yielding, leading []string) {
	t.Helper()
	b.serial++
	b.source.WaitStatus(t, "available")
	b.heir.WaitStatus(t, "available")
	table := fmt.Sprintf("after_%d", b.serial)
	if err := b.source.Open(t).Exec(t.Context(), "CREATE TABLE "+table+" (n bigint)"); err != nil {
		t.Fatal(err)
	}
	before := b.source.Pulse(t)
	before.WaitMore(t, pairBeats)
	b.heir.WaitReplicating(t)
	after := b.heir.PulseOn(t, table)
	mark := b.s.Log.Mark()
	b.die(t, point)
	after.WaitMore(t, pairBeats)
	b.heir.WaitRoles(t, b.source)
	yielding, leading = b.s.Log.Steps(mark, b.source.ID), b.s.Log.Steps(mark, b.heir.ID)
	for _, p := range []*harness.Pulse{before, after} {
		p.Stop()
		p.VerifyAt(t, b.heir.Login(t))
		p.VerifyAt(t, b.source.Login(t))
	}
	b.watcher.check(t)
	if t.Failed() {
		t.Fatalf("after a death at %q", point)
	}
	t.Logf("%s: nobody could write for %v", point, before.GapTo(after).Round(time.Millisecond))
	b.source, b.heir = b.heir, b.source
	return yielding, leading
}

// die asks for a switchover while the service dies at a point of it and is started again. One
// that had not been begun, or was called off, is asked for again, once.
func (b *switchoverBed) die(t *testing.T, point string) {
	t.Helper()
	if point != "" {
		b.s.Arm(t, point)
	}
	asked := b.heir.Switchover(t)
	if point != "" {
		harness.Wait(t, pairSettleTime, "the service comes to "+point, func() string {
			if b.s.Running() {
				return "it does not"
			}
			return ""
		})
		b.s.Start(t)
	} else if asked != nil {
		t.Fatal(asked)
	}
	b.source.WaitLike(t, "is one or the other", func(d types.DBInstance) string {
		if status := aws.ToString(d.DBInstanceStatus); status != "available" {
			return status
		}
		return ""
	})
	if b.source.Describe(t).ReadReplicaSourceDBInstanceIdentifier != nil {
		return
	}
	t.Logf("%s: called off, after %v", point, asked)
	b.heir.WaitStatus(t, "available")
	b.heir.WaitReplicating(t)
	if err := b.heir.Switchover(t); err != nil {
		t.Fatalf("asked again after a death at %s: %v", point, err)
	}
}
