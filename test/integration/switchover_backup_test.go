//go:build integration

package integration

import (
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"kurabe/internal/harness"
)

// TestSwitchoverBackups restores an instance that was source, replica and source again, and
// the one that was source meanwhile, to moments of each time.
func TestSwitchoverBackups(t *testing.T) {
	onceIsEnough(t)
	eachEngineBeside(t, func(t *testing.T, engine string) {
		s := harness.Start(t, harness.Options{Args: []string{"--copy-rate", "0"}})
		in := harness.Request("backed-"+engine, engine)
		in.BackupRetentionPeriod = aws.Int32(1)
		b := &switchBed{source: s.MustCreate(t, in)}
		b.heir = b.source.MustReplicate(t, b.source.Name+"-heir")
		first, second := b.source, b.heir
		before, during := b.writers(t)
		was := (&backupBed{pairBed: &pairBed{first, before}}).grows(t)
		(&backupBed{pairBed: &pairBed{first, before}}).grows(t)
		b.takesOver(t, during)
		before.Stop()
		meanwhile := &backupBed{pairBed: &pairBed{second, during}}
		there := meanwhile.grows(t)
		meanwhile.grows(t)
		during.Stop()
		again, after := b.writers(t)
		b.takesOver(t, after)
		again.Stop()
		at := &backupBed{pairBed: &pairBed{first, after}}
		back := at.grows(t)
		at.grows(t)
		after.Stop()
		for _, m := range []struct {
			what string
			of   *backupBed
			m    backupMoment
		}{
			{"of the first, before", &backupBed{pairBed: &pairBed{first, before}}, backupMoment{"before", was, true}},
			{"of the second, as a source", meanwhile, backupMoment{"meanwhile", there, true}},
			// Where its log cannot go on over its time as a replica, that is a gap, and is said.
			{"of the first, as a replica", &backupBed{pairBed: &pairBed{first, during}}, backupMoment{"as a replica", there, false}},
			{"of the first, after", at, backupMoment{"after", back, true}},
		} {
			m.m.at = m.m.at.Truncate(time.Second)
			t.Run(m.what, func(t *testing.T) { m.of.restore(t, m.m) })
		}
	})
}

// takesOver has the heir take the place of the source, to which a client comes.
func (b *switchBed) takesOver(t *testing.T, after *harness.Pulse) {
	t.Helper()
	b.source.WaitStatus(t, "available")
	b.heir.WaitStatus(t, "available")
	must(t, b.heir.Switchover(t))
	after.WaitMore(t, beatsAfter)
	b.heir.WaitRoles(t, b.source)
	b.source, b.heir = b.heir, b.source
}
