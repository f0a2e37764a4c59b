//go:build fault

package fault

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/rds"
	"github.com/aws/aws-sdk-go-v2/service/rds/types"

	"kurabe/internal/harness"
)

// TestKillAtEveryStepOfAReplica kills the service before and after each step by which a read
// replica is made, and by which one becomes an instance of its own, while a client writes
// into the source. Nothing of any of them is left at the source.
func TestKillAtEveryStepOfAReplica(t *testing.T) {
	for _, engine := range []string{"postgres", "mariadb"} {
		t.Run(engine, func(t *testing.T) {
			t.Parallel() // each engine on a service of its own
			s := harness.Start(t, harness.Options{Fault: true})
			s.NeedEngine(t, engine, s.Engines(t))
			in := harness.Request("source", engine)
			in.BackupRetentionPeriod = aws.Int32(1)
			b := &replicaBed{s: s, source: s.MustCreate(t, in), watcher: watch(t, s), places: newPlaces(t)}
			b.pulse = b.source.Pulse(t)
			b.everyStep(t)
			b.pulse.Stop()
			b.pulse.Verify(t)
			b.source.Delete(t)
			noOrphans(t, s)
		})
	}
}

type replicaBed struct {
	s       *harness.Service
	source  *harness.Instance
	pulse   *harness.Pulse
	watcher *watcher
	places  places
	serial  int
}

func (b *replicaBed) everyStep(t *testing.T) {
	began := time.Now()
	making, promoting := b.life(t, "", "")
	made, promoted := b.places.of(making), b.places.of(promoting)
	if len(made) == 0 || len(promoted) == 0 {
		t.Fatalf("steps of the making: %v, of the promotion: %v", making, promoting)
	}
	for n := range max(len(made), len(promoted)) {
		b.life(t, at(made, n), at(promoted, n))
	}
	t.Logf("making: %v; promotion: %v; %v", made, promoted, time.Since(began).Round(time.Millisecond))
}

// at is an item of a list, "" beyond its end.
func at(list []string, n int) string {
	if n < len(list) {
		return list[n]
	}
	return ""
}

// life makes a replica, promotes and deletes it, with a death of the service at a point of
// each, "" for none. It returns the steps of both.
func (b *replicaBed) life(t *testing.T, made, promoted string) (making, promoting []string) {
	t.Helper()
	b.serial++
	name := fmt.Sprintf("replica-%d", b.serial)
	b.source.WaitStatus(t, "available")
	r := *b.source
	r.Name = name
	making = b.die(t, made, func() error {
		_, err := b.s.CreateDBInstanceReadReplica(t.Context(), &rds.CreateDBInstanceReadReplicaInput{
			DBInstanceIdentifier: aws.String(name), SourceDBInstanceIdentifier: aws.String(b.source.Name),
		})
		return err
	}, func() {
		r.WaitStatus(t, "available")
		r.WaitReplicating(t)
	}, &r)
	b.pulse.WaitMore(t, pairBeats)
	b.pulse.VerifyAt(t, r.Login(t))
	promoting = b.die(t, promoted, func() error {
		_, err := b.s.PromoteReadReplica(t.Context(), &rds.PromoteReadReplicaInput{DBInstanceIdentifier: aws.String(name), BackupRetentionPeriod: aws.Int32(0)})
		return err
	}, func() { waitPromoted(t, &r) }, &r)
	own := r.Pulse(t)
	own.WaitMore(t, pairBeats)
	own.Stop()
	r.Delete(t)
	harness.Wait(t, pairSettleTime, "nothing is left of it at its source", func() string {
		members := b.s.Members(b.source.ID)
		if len(members) != 1 {
			return fmt.Sprint(len(members), " servers")
		}
		names, err := members[0].FollowerNames(t.Context())
		if err != nil || len(names) > 0 {
			return fmt.Sprint(names, err)
		}
		return ""
	})
	b.watcher.check(t)
	noOrphans(t, b.s)
	if t.Failed() {
		t.Fatalf("after deaths at %q and %q", made, promoted)
	}
	return making, promoting
}

// die does something while the service dies at a point of it and is started again, and
// returns the steps of the replica until it had come through. Who got no answer asks again.
func (b *replicaBed) die(t *testing.T, point string, ask func() error, through func(), r *harness.Instance) (steps []string) {
	t.Helper()
	if point != "" {
		b.s.Arm(t, point)
	}
	mark := b.s.Log.Mark()
	asked := ask()
	if asked != nil && point == "" {
		t.Fatalf("%s: %v", r.Name, asked)
	}
	if point != "" {
		harness.Wait(t, pairSettleTime, r.Name+" comes to "+point, func() string {
			if b.s.Running() {
				return "it does not"
			}
			return ""
		})
		b.s.Start(t)
	}
	if asked != nil {
		t.Logf("%s, asked again after %v: %v", r.Name, asked, ask())
	}
	through()
	r.ID = aws.ToString(r.Describe(t).DbiResourceId)
	for _, step := range b.s.Log.Steps(mark, r.ID) {
		if !slices.Contains(steps, step) {
			steps = append(steps, step)
		}
	}
	return steps
}

func waitPromoted(t *testing.T, r *harness.Instance) {
	t.Helper()
	r.WaitLike(t, "is an instance of its own", func(d types.DBInstance) string {
		if source := aws.ToString(d.ReadReplicaSourceDBInstanceIdentifier); source != "" || aws.ToString(d.DBInstanceStatus) != "available" {
			return fmt.Sprintf("its source is %q, it is %s", source, aws.ToString(d.DBInstanceStatus))
		}
		return ""
	})
}
