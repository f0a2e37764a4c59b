//go:build integration

package integration

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/rds/types"

	"kurabe/internal/harness"
)

const (
	// comesBound is what a switchover may take, from the wish on, on a machine under load.
	comesBound = 2 * time.Minute
	// switchTries is how often one is asked for: a replica that has lost its connection at the
	// moment has it called off.
	switchTries = 3
)

// switchBed is a source with a read replica that takes its place, others that stand by, and
// clients that write to whoever takes it.
type switchBed struct {
	source, heir *harness.Instance
	others       []*harness.Instance
	serial       int
}

func newSwitchBed(t *testing.T, s *harness.Service, engine string) *switchBed {
	t.Helper()
	in := harness.Request("switch-"+engine, engine)
	in.BackupRetentionPeriod = aws.Int32(1)
	b := &switchBed{source: s.MustCreate(t, in)}
	b.heir = b.source.MustReplicate(t, b.source.Name+"-heir")
	b.others = append(b.others, b.source.MustReplicate(t, b.source.Name+"-other"))
	return b
}

// TestSwitchover changes the roles of an instance and a read replica of it, there and back,
// while a client writes: nothing acknowledged is lost, one of them writes, and the other
// replica follows whoever that is.
func TestSwitchover(t *testing.T) {
	onceIsEnough(t)
	s := harness.Start(t, harness.Options{})
	s.EachEngine(t, func(t *testing.T, engine string) {
		b := newSwitchBed(t, s, engine)
		for _, part := range []struct {
			name string
			do   func(t *testing.T)
		}{
			{"there", b.switches},
			{"backed up", b.backedUp},
			{"back", b.switches},
			{"what is left of it", b.left},
			{"its heir has a replica", b.below},
			{"its heir hangs", b.heirHangs},
			{"its heir dies", b.heirDies},
			{"its server dies", b.sourceDies},
			{"what is left of that", b.left},
			{"deleted", b.deleted},
		} {
			inTurn(t, part.name, part.do)
		}
	})
}

// writers are a client of the source and one that tries the heir all the time.
func (b *switchBed) writers(t *testing.T) (before, after *harness.Pulse) {
	t.Helper()
	b.serial++
	table := fmt.Sprintf("after_%d", b.serial)
	must(t, b.source.Open(t).Exec(t.Context(), "CREATE TABLE "+table+" (n bigint)"))
	before = b.source.Pulse(t)
	before.WaitMore(t, beatsBefore)
	return before, b.heir.PulseOn(t, table)
}

// switches has the heir take the place of the source, and names them anew.
func (b *switchBed) switches(t *testing.T) {
	before, after := b.writers(t)
	began := time.Now()
	for tries := 1; ; tries++ {
		calledOff := b.comesThrough(t, after)
		if calledOff == "" {
			break
		}
		if tries == switchTries {
			t.Fatalf("called off %d times: %s", tries, calledOff)
		}
		t.Log(calledOff)
		before.WaitMore(t, beatsAfter) // the source goes on, and the user asks again
		began = time.Now()
	}
	before.Stop()
	t.Logf("nobody could write for %v, %v after it was asked for", before.GapTo(after).Round(time.Millisecond), after.Beats()[0].Acked.Sub(began).Round(time.Millisecond))
	b.source, b.heir = b.heir, b.source
	b.whole(t, before, after)
}

// comesThrough asks for a switchover, and waits until the heir takes writes, or says why it
// was called off.
func (b *switchBed) comesThrough(t *testing.T, after *harness.Pulse) (calledOff string) {
	t.Helper()
	harness.Wait(t, gapBound, "a switchover is accepted", func() string {
		err := b.heir.Switchover(t)
		var not *types.InvalidDBInstanceStateFault
		if errors.As(err, &not) && strings.Contains(not.ErrorMessage(), "backing-up") {
			return not.ErrorMessage() // a new source is backed up at once
		}
		must(t, err)
		return ""
	})
	asked := time.Now()
	harness.Wait(t, comesBound, "the heir takes writes", func() string {
		if after.Acked() >= beatsAfter {
			return ""
		}
		events := b.source.EventsFrom(t, asked)
		if n := slices.IndexFunc(events, func(m string) bool { return strings.Contains(m, "called off") }); n >= 0 {
			calledOff = events[n]
			return ""
		}
		return "so far: " + strings.Join(events, "; ")
	})
	return calledOff
}

// below has the heir come with a read replica of its own, which stays one of it.
func (b *switchBed) below(t *testing.T) {
	b.others = append(b.others, b.heir.MustReplicate(t, b.source.Name+"-below"))
	b.switches(t)
}

// whole demands that the source has all rows, the replicas come to have them, and that
// nobody writes anywhere else.
func (b *switchBed) whole(t *testing.T, pulses ...*harness.Pulse) {
	t.Helper()
	replicas := slices.Concat([]*harness.Instance{b.heir}, b.others)
	b.source.WaitRoles(t, replicas...)
	for _, p := range pulses {
		p.Stop()
		for _, i := range slices.Concat([]*harness.Instance{b.source}, replicas) {
			p.VerifyAt(t, i.Login(t))
		}
	}
	for _, i := range replicas {
		if err := i.Open(t).Exec(t.Context(), "CREATE TABLE here (n int)"); err == nil {
			t.Errorf("%s takes writes", i.Name)
		}
	}
}

// left demands that each server has what its followers need, and nothing else.
func (b *switchBed) left(t *testing.T) {
	replicas := slices.Concat([]*harness.Instance{b.heir}, b.others)
	noFollowerBut(t, b.source, replicas...)
	if b.source.Engine == "mariadb" { // whose accounts are in everybody's data
		return
	}
	for _, i := range replicas {
		noFollowerBut(t, i)
	}
}

// backedUp demands that the new source is backed up, and that the old one's backups stay.
func (b *switchBed) backedUp(t *testing.T) {
	b.source.WaitLike(t, "has a moment to restore", func(d types.DBInstance) string {
		if aws.ToInt32(d.BackupRetentionPeriod) != 1 || d.LatestRestorableTime == nil {
			return fmt.Sprint(aws.ToInt32(d.BackupRetentionPeriod), d.LatestRestorableTime)
		}
		return ""
	})
	if d := b.heir.Describe(t); aws.ToInt32(d.BackupRetentionPeriod) != 1 || d.LatestRestorableTime == nil {
		t.Errorf("of the old source: kept for %d days, restorable up to %v", aws.ToInt32(d.BackupRetentionPeriod), d.LatestRestorableTime)
	}
	b.source.WaitStatus(t, "available")
}

// heirDies has the replica die at some moment of a switchover, and sourceDies the source: it
// comes through or is called off, and there is one source either way.
func (b *switchBed) heirDies(t *testing.T) {
	b.dies(t, func() *harness.Instance { return b.heir })
}

func (b *switchBed) sourceDies(t *testing.T) {
	b.dies(t, func() *harness.Instance { return b.source })
}

func (b *switchBed) dies(t *testing.T, who func() *harness.Instance) {
	for _, after := range []time.Duration{0, 50 * time.Millisecond, 150 * time.Millisecond, 400 * time.Millisecond, time.Second} {
		b.source.WaitStatus(t, "available")
		b.heir.WaitStatus(t, "available")
		pulse, next := b.writers(t)
		victim, began := who(), time.Now()
		must(t, b.heir.Switchover(t))
		<-time.After(after - time.Since(began))
		if err := harness.KillServers(onlyMember(t, victim)); err != nil {
			t.Logf("it had stopped by then: %v", err)
		}
		ends := b.source.WaitLike(t, "is a source or a replica of its heir", func(d types.DBInstance) string {
			if status := aws.ToString(d.DBInstanceStatus); status != "available" && status != "backing-up" {
				return status
			}
			return ""
		})
		came := b.source.Describe(t).ReadReplicaSourceDBInstanceIdentifier != nil
		t.Logf("%s died after %v: came through: %v, %v", victim.Name, after, came, ends.Round(time.Millisecond))
		pulse.Stop()
		next.Stop()
		if came {
			b.source, b.heir = b.heir, b.source
		} else if n := next.Acked(); n > 0 {
			t.Errorf("%s acknowledged %d rows, and is no source", b.heir.Name, n)
		}
		b.whole(t, pulse, next)
	}
}

// heirHangs has the replica stand still when it is to take over: the source goes on, and does
// not wait for it to be back.
func (b *switchBed) heirHangs(t *testing.T) {
	frozen := onlyMember(t, b.heir)
	pulse, next := b.writers(t)
	must(t, frozen.Freeze())
	began := time.Now()
	must(t, b.heir.Switchover(t))
	b.source.WaitEvent(t, "called off")
	pulse.WaitMore(t, beatsAfter)
	t.Logf("called off; nobody could write for %v", pulse.Gap(began).Round(time.Millisecond))
	must(t, frozen.Thaw())
	b.source.WaitStatus(t, "available")
	b.heir.WaitStatus(t, "available")
	next.Stop()
	if n := next.Acked(); n > 0 {
		t.Errorf("%s acknowledged %d rows, and is no source", b.heir.Name, n)
	}
	b.whole(t, pulse)
}

// deleted demands that nothing is left of them.
func (b *switchBed) deleted(t *testing.T) {
	b.source.WaitStatus(t, "available")
	for _, i := range slices.Concat(b.others, []*harness.Instance{b.heir, b.source}) {
		i.Delete(t)
		noMemberLeft(t, i)
	}
}

// TestHostsSwitchover changes roles over two machines, there and back.
func TestHostsSwitchover(t *testing.T) {
	needRoot(t)
	b := newHostsBed(t)
	b.admit(t)
	b.service.EachEngine(t, func(t *testing.T, engine string) {
		far := b.create(t, "far-"+engine, engine, zoneThere)
		s := &switchBed{source: far, heir: b.replicate(t, far, zoneHere)}
		inTurn(t, "here", s.switches)
		inTurn(t, "there", s.switches)
		s.source.WaitStatus(t, "available")
		s.heir.Delete(t)
		s.source.Delete(t)
	})
}
