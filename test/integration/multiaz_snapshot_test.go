//go:build integration

package integration

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/rds"
	"github.com/aws/aws-sdk-go-v2/service/rds/types"

	"kurabe"
	"kurabe/internal/harness"
)

// TestMultiAZSnapshots takes snapshots of a pair, where files can be cloned: each is of the
// standby, and has what was acknowledged when it was asked for.
func TestMultiAZSnapshots(t *testing.T) {
	onceIsEnough(t)
	s, _ := poolService(t, outerDisk(t, 4*poolGiB))
	s.Start(t, "--pool", "loop")
	s.EachEngine(t, func(t *testing.T, engine string) {
		b := makeSpared(t, s, engine)
		inTurn(t, "manual", b.manual)
		inTurn(t, "automated", b.automated)
		b.pulse.Stop()
		b.gone(t)
	})
}

// TestMultiAZSnapshotCopied takes them where files are copied, for some seconds each, and loses
// the standby or the writer meanwhile.
func TestMultiAZSnapshotCopied(t *testing.T) {
	onceIsEnough(t)
	s := harness.Start(t, harness.Options{Args: []string{"--copy-rate", "8"}})
	s.NeedEngine(t, "postgres", s.Engines(t))
	b := makeSpared(t, s, "postgres")
	inTurn(t, "manual", b.manual)
	inTurn(t, "the standby dies", func(t *testing.T) {
		writer, standby := b.Pair(t)
		asked := b.ask(t, "bereft")
		b.copying(t, "bereft")
		must(t, harness.KillServers(standby))
		f := b.taken(t, "bereft", asked)
		if string(f.TakenFrom) != writer.ID || f.StandbySkipped == "" {
			t.Errorf("%+v", f)
		}
		b.WaitEventsFrom(t, asked, "bereft was taken from the server that serves clients: ")
		b.settled(t)
	})
	inTurn(t, "the writer dies", func(t *testing.T) {
		writer, _ := b.Pair(t)
		asked := b.ask(t, "inherited")
		b.copying(t, "inherited")
		must(t, harness.KillServers(writer))
		b.taken(t, "inherited", asked)
		b.settled(t)
		f := b.taken(t, "settled", b.ask(t, "settled"))
		t.Logf("the next one is of %s %s", f.TakenFrom, f.StandbySkipped)
	})
	b.pulse.Stop()
	b.gone(t)
}

func makeSpared(t *testing.T, s *harness.Service, engine string) *backupBed {
	t.Helper()
	in := harness.MultiAZRequest("spared-"+engine, engine)
	in.BackupRetentionPeriod = aws.Int32(0)
	i := s.MustCreate(t, in)
	i.WaitWhole(t)
	return &backupBed{pairBed: &pairBed{i, i.Pulse(t)}}
}

// ask asks for a snapshot, and returns when.
func (b *backupBed) ask(t *testing.T, name string) time.Time {
	t.Helper()
	b.pulse.WaitMore(t, 50)
	asked := time.Now()
	_, err := b.Service.CreateDBSnapshot(t.Context(), &rds.CreateDBSnapshotInput{DBInstanceIdentifier: aws.String(b.Name), DBSnapshotIdentifier: aws.String(name)})
	must(t, err)
	return asked
}

// copying waits until a part of it is there.
func (b *backupBed) copying(t *testing.T, name string) {
	t.Helper()
	harness.Wait(t, time.Minute, name+" is being copied", func() string {
		if f := b.facts(t)[name]; f.Percent < 10 || f.Percent == 100 {
			return fmt.Sprintf("%d %%", f.Percent)
		}
		return ""
	})
}

// facts are those of the instance's snapshots, by name.
func (b *backupBed) facts(t *testing.T) map[string]kurabe.SnapshotFacts {
	t.Helper()
	var e struct {
		Snapshots []struct {
			Name  string
			Facts kurabe.SnapshotFacts
		}
	}
	out, err := kurabeCommand(b.Service, harness.Binary(t), "explain", b.Name, "--json")
	if err == nil {
		err = json.Unmarshal([]byte(out), &e)
	}
	must(t, err)
	all := map[string]kurabe.SnapshotFacts{}
	for _, s := range e.Snapshots {
		all[s.Name] = s.Facts
	}
	return all
}

// taken waits for a snapshot and restores it.
func (b *backupBed) taken(t *testing.T, name string, asked time.Time) kurabe.SnapshotFacts {
	t.Helper()
	waitSnapshot(t, b.Service, name, "available")
	f := b.facts(t)[name]
	back := restored(t, b.Service, name, b.Instance)
	back.WaitStatus(t, "available")
	hasBy(t, b.pulse, back, asked)
	back.Delete(t)
	return f
}

// hasBy: every row that was acknowledged by then is there, once, and none that nobody wrote.
func hasBy(t *testing.T, p *harness.Pulse, back *harness.Instance, asked time.Time) {
	t.Helper()
	rows, err := p.RowsAt(t.Context(), back.Login(t))
	must(t, err)
	have := map[string]int{}
	for _, r := range rows {
		have[r]++
	}
	least := 0
	for _, beat := range p.Beats() {
		n := fmt.Sprint(beat.N)
		if beat.Acked.Before(asked) && !beat.Acked.IsZero() {
			least++
			if have[n] != 1 {
				t.Fatalf("row %s, acknowledged at %s, is there %d times", n, beat.Acked, have[n])
			}
		}
	}
	t.Logf("%d rows acknowledged when it was asked for, %d there", least, len(rows))
	if least == 0 {
		t.Error("no row shows anything")
	}
}

// manual: the writer's server is not the one that is copied, and a pair can be made of it.
func (b *backupBed) manual(t *testing.T) {
	_, standby := b.Pair(t)
	asked := b.ask(t, "manual-"+b.Engine)
	f := b.taken(t, "manual-"+b.Engine, asked)
	t.Logf("taken within %s, by %s; the longest gap between commits meanwhile: %s", f.UsableAt.Sub(asked).Round(time.Millisecond), f.Method, b.pulse.Gap(asked).Round(time.Millisecond))
	if string(f.TakenFrom) != standby.ID || f.StandbySkipped != "" {
		t.Errorf("it is of %s, and the standby is %s: %q", f.TakenFrom, standby.ID, f.StandbySkipped)
	}
	out, err := b.Service.RestoreDBInstanceFromDBSnapshot(t.Context(), &rds.RestoreDBInstanceFromDBSnapshotInput{
		DBInstanceIdentifier: aws.String("pair-" + b.Engine), DBSnapshotIdentifier: aws.String("manual-" + b.Engine),
		DBInstanceClass: aws.String(harness.Class("micro")), MultiAZ: aws.Bool(true),
	})
	must(t, err)
	back := *b.Instance
	back.Name, back.ID = "pair-"+b.Engine, aws.ToString(out.DBInstance.DbiResourceId)
	back.WaitWhole(t)
	hasBy(t, b.pulse, &back, asked)
	must(t, back.AskFailover(t))
	back.WaitWhole(t)
	hasBy(t, b.pulse, &back, asked)
	back.Delete(t)
}

// automated: a snapshot of the standby, the log of the writer, and then that of its successor.
func (b *backupBed) automated(t *testing.T) {
	_, standby := b.Pair(t)
	began := time.Now()
	b.Modify(t, func(in *rds.ModifyDBInstanceInput) { in.BackupRetentionPeriod = aws.Int32(1) })
	b.WaitLike(t, "keeps backups", func(d types.DBInstance) string {
		if d.LatestRestorableTime == nil {
			return "no moment can be restored"
		}
		return b.Service.NotWhole(d)
	})
	var all []string
	for name, f := range b.facts(t) {
		if !strings.HasPrefix(name, "rds:") {
			continue
		}
		all = append(all, name)
		if f.StandbySkipped == "" && string(f.TakenFrom) != standby.ID {
			t.Errorf("%s is of %s, and the standby is %s", name, f.TakenFrom, standby.ID)
		}
		if f.StandbySkipped != "" && !slices.ContainsFunc(b.EventsFrom(t, began), func(e string) bool { return strings.Contains(e, f.StandbySkipped) }) {
			t.Errorf("no event says why it is of the writer: %s", f.StandbySkipped)
		}
		t.Logf("%s is of %s %s, at %s", name, f.TakenFrom, f.StandbySkipped, f.Position)
	}
	if len(all) != 1 {
		t.Fatalf("automated snapshots: %v", all)
	}
	note := func(when string, at time.Time) {
		b.moments = append(b.moments, backupMoment{when, at.Truncate(time.Second), true})
	}
	note("before", b.grows(t))
	b.fail(t, "killed", func(t *testing.T, _ *pairBed, writer harness.Member) { must(t, harness.KillServers(writer)) })
	b.noGap(t)
	for _, m := range b.moments {
		b.restore(t, m)
	}
}
