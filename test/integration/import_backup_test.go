//go:build integration

package integration

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/rds"
	"github.com/aws/aws-sdk-go-v2/service/rds/types"

	"kurabe/internal/harness"
)

// lostBackup is an instance that is gone, with its automated backups.
type lostBackup struct {
	*harness.Instance
	moment      time.Time // after the first half of the rows, before the second
	half, whole string    // contentSQL at the moment, and at the end
}

// backedUp makes an instance with automated backups, whose log reaches beyond a moment.
func backedUp(t *testing.T, s *harness.Service, engine string) *lostBackup {
	t.Helper()
	in := harness.Request("lost-"+engine, engine)
	in.BackupRetentionPeriod, in.CopyTagsToSnapshot = aws.Int32(3), aws.Bool(true)
	in.Tags = []types.Tag{{Key: aws.String("team"), Value: aws.String("billing")}}
	l := &lostBackup{Instance: s.MustCreate(t, in)}
	fill(t, l.Instance)
	l.half = l.Query(t, contentSQL)
	// A moment is exact to the second in which a transaction of MariaDB began.
	harness.Wait(t, time.Minute, "a second goes by", pastSecond(time.Now()))
	l.moment = time.Now().UTC()
	harness.Wait(t, time.Minute, "a second goes by", pastSecond(l.moment))
	l.Query(t, "INSERT INTO kept VALUES (1000, 'z')")
	l.whole = l.Query(t, contentSQL)
	l.logged(t)
	return l
}

// logged waits until the log reaches what was written so far.
func (l *lostBackup) logged(t *testing.T) {
	t.Helper()
	now := time.Now()
	harness.Wait(t, time.Minute, "the log reaches what was written", func() string {
		if at := aws.ToTime(l.Describe(t).LatestRestorableTime); at.Before(now) {
			return "it reaches " + at.String()
		}
		return ""
	})
}

// loseOne makes an instance with automated backups and deletes it without them.
func loseOne(t *testing.T, s *harness.Service, engine string) *lostBackup {
	t.Helper()
	l := backedUp(t, s, engine)
	_, err := s.DeleteDBInstance(t.Context(), &rds.DeleteDBInstanceInput{
		DBInstanceIdentifier: aws.String(l.Name), SkipFinalSnapshot: aws.Bool(true), DeleteAutomatedBackups: aws.Bool(false),
	})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func pastSecond(begin time.Time) func() string {
	return func() string {
		if time.Now().Before(begin.Truncate(time.Second).Add(1100 * time.Millisecond)) {
			return "not yet"
		}
		return ""
	}
}

// restoreLost restores it to a moment, zero for the latest one.
func (l *lostBackup) restoreLost(t *testing.T, s *harness.Service, name string, at time.Time) *harness.Instance {
	t.Helper()
	in := &rds.RestoreDBInstanceToPointInTimeInput{
		SourceDbiResourceId: aws.String(l.ID), TargetDBInstanceIdentifier: aws.String(name), DBInstanceClass: aws.String(harness.Class("micro")),
	}
	if at.IsZero() {
		in.UseLatestRestorableTime = aws.Bool(true)
	} else {
		in.RestoreTime = aws.Time(at)
	}
	out, err := s.RestoreDBInstanceToPointInTime(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	i := *l.Instance
	i.Service, i.Name, i.ID = s, name, aws.ToString(out.DBInstance.DbiResourceId)
	return &i
}

// The automated backups of an instance that was deleted outlive the loss of the
// machine too: a new one, which has nothing but the repository, restores it to a
// moment.
func TestImportOfRetainedBackups(t *testing.T) {
	repository := filepath.Join(harness.Folder(t, false), "repository")
	flags := []string{"--backup-repository", repository, "--copy-rate", "0"}
	first := harness.Start(t, harness.Options{Args: flags})
	var lost []*lostBackup
	for _, engine := range first.Engines(t) {
		lost = append(lost, loseOne(t, first, engine))
	}
	for _, l := range lost {
		l.WaitGone(t)
	}
	// The log is pushed before an instance goes.
	harness.Wait(t, time.Minute, "the snapshots are in the repository", func() string {
		if there := archived(repository); len(there) < len(lost) {
			return fmt.Sprintf("%d are", len(there))
		}
		return ""
	})
	first.Terminate(t)

	second := harness.Start(t, harness.Options{Args: flags})
	if out, err := kurabeImport(second, harness.Binary(t)); err != nil || !strings.Contains(out, fmt.Sprintf("%d imported", len(lost))) {
		t.Fatalf("import: %v\n%s", err, out)
	}
	for _, l := range lost {
		l.wantRetained(t, second)
	}
	var back [][2]*harness.Instance
	for _, l := range lost {
		back = append(back, [2]*harness.Instance{l.restoreLost(t, second, "half-"+l.Engine, l.moment), l.restoreLost(t, second, "whole-"+l.Engine, time.Time{})})
	}
	for n, pair := range back {
		for k, want := range []string{lost[n].half, lost[n].whole} {
			pair[k].WaitStatus(t, "available")
			if got := pair[k].Query(t, contentSQL); got != want {
				t.Errorf("%s holds %s, want %s", pair[k].Name, got, want)
			}
		}
	}
}

// wantRetained waits until the backups are offered as those of a deleted instance.
func (l *lostBackup) wantRetained(t *testing.T, s *harness.Service) {
	t.Helper()
	harness.Wait(t, time.Minute, "the backups of "+l.Name+" are offered", func() string {
		out, err := s.DescribeDBInstanceAutomatedBackups(t.Context(), &rds.DescribeDBInstanceAutomatedBackupsInput{DbiResourceId: aws.String(l.ID)})
		if err != nil {
			return err.Error()
		}
		b := out.DBInstanceAutomatedBackups[0]
		if w := b.RestoreWindow; aws.ToString(b.Status) != "retained" || w == nil || w.LatestTime == nil || w.EarliestTime.After(l.moment) || w.LatestTime.Before(l.moment) {
			return fmt.Sprintf("%s, window %+v", aws.ToString(b.Status), w)
		}
		return ""
	})
	out, err := s.DescribeDBSnapshots(t.Context(), &rds.DescribeDBSnapshotsInput{DbiResourceId: aws.String(l.ID), SnapshotType: aws.String("automated")})
	if err != nil || len(out.DBSnapshots) != 1 {
		t.Fatalf("%+v, %v", out, err)
	}
	d := out.DBSnapshots[0]
	if tags := d.TagList; aws.ToString(d.SnapshotType) != "automated" || !strings.HasPrefix(aws.ToString(d.DBSnapshotIdentifier), "rds:"+l.Name) || len(tags) != 1 || aws.ToString(tags[0].Value) != "billing" {
		t.Errorf("%+v", d)
	}
}
