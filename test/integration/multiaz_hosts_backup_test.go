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

	"kurabe/internal/harness"
)

// TestMultiAZApartBackups restores to moments of an instance whose writer has been on two
// hosts: each on the host that has the snapshot and the log of that time. Where both hosts have
// one repository the log has no gap, and moments between the two are restored too.
func TestMultiAZApartBackups(t *testing.T) {
	t.Run("a repository each", func(t *testing.T) { apartBackups(t, "", "postgres") })
	t.Run("one repository", func(t *testing.T) {
		apartBackups(t, filepath.Join(t.TempDir(), "repository"), "mariadb")
	})
}

// apartBackups does so with one engine, or with each where there is the time.
func apartBackups(t *testing.T, repository, first string) {
	flags := []string{"--copy-rate", "0"}
	if repository != "" {
		flags = append(flags, "--backup-repository", repository)
	}
	bed := newApartBed(t, flags...)
	bed.service.EachEngine(t, func(t *testing.T, engine string) {
		if engine != first && !harness.Whole() {
			t.Skip("with KURABE_WHOLE=1")
		}
		p := &apartBackup{apart: bed.create(t, engine)}
		p.backupBed = &backupBed{pairBed: &pairBed{p.apart.Instance, p.apart.pulse}}
		first, second := p.roles(t)
		p.mark(t, "before", first)
		p.moves(t, repository == "", func(*apartHost) func() { must(t, p.apart.AskFailover(t)); return func() {} })
		p.mark(t, "on the other host", second)
		p.moves(t, false, func(writer *apartHost) func() { return writer.FreezeAll(t, p.apart.ID) })
		p.mark(t, "back", first)
		p.apart.pulse.Stop()
		for n, m := range p.moments {
			if repository != "" && m.claimed && p.on[n] != nil {
				continue // those are restored when the instance is gone
			}
			t.Run(m.name, func(t *testing.T) { p.restoredOn(t, m, p.on[n]) })
		}
		folders := []string{first.Data, second.Data}
		if repository != "" {
			folders = append(folders, filepath.Dir(repository))
		}
		for _, folder := range folders {
			if len(backupFiles(t, folder)) == 0 {
				t.Errorf("no backups are in %s", folder)
			}
		}
		p.delete(t, repository != "")
		for _, folder := range folders {
			noBackupFile(t, folder)
		}
	})
}

// apartBackup is a pair on two hosts whose log is kept.
type apartBackup struct {
	*apart
	*backupBed
	on []*apartHost // where each of the moments is
}

// delete removes the instance with its backups, or keeps them for a while: of both hosts.
func (p *apartBackup) delete(t *testing.T, retain bool) {
	t.Helper()
	if !retain {
		p.apart.Delete(t)
		return
	}
	_, err := p.bed.service.DeleteDBInstance(t.Context(), &rds.DeleteDBInstanceInput{DBInstanceIdentifier: aws.String(p.apart.Name),
		SkipFinalSnapshot: aws.Bool(true), DeleteAutomatedBackups: aws.Bool(false)})
	must(t, err)
	p.apart.WaitGone(t)
	p.retained = true
	for n, m := range p.moments {
		if m.claimed && p.on[n] != nil {
			t.Run("retained, "+m.name, func(t *testing.T) { p.restoredOn(t, m, p.on[n]) })
		}
	}
	_, err = p.bed.service.DeleteDBInstanceAutomatedBackup(t.Context(), &rds.DeleteDBInstanceAutomatedBackupInput{DbiResourceId: aws.String(p.apart.ID)})
	must(t, err)
}

// mark notes a moment that the API claims by now, and on which host it is.
func (p *apartBackup) mark(t *testing.T, name string, on *apartHost) {
	t.Helper()
	came := time.Now()
	p.note(name, p.grows(t), on, true)
	t.Logf("%s: it can be restored after %v", name, time.Since(came).Round(time.Millisecond))
}

// note notes a moment. One in a gap may be refused. Between two hosts without a gap no host in
// particular has it.
func (p *apartBackup) note(name string, at time.Time, on *apartHost, claimed bool) {
	grain := time.Millisecond
	if p.apart.Engine == "mariadb" {
		grain = time.Second // its log has no finer one
	}
	p.moments = append(p.moments, backupMoment{name, at.Truncate(grain), claimed})
	p.on = append(p.on, on)
}

// moves has the other host write. A gap of the log is told, and its end: where there is no
// repository of both, and this host has not written before. What the former writer's host says
// of the time after that, when it comes back, does not count.
func (p *apartBackup) moves(t *testing.T, gap bool, strike func(writer *apartHost) (repair func())) {
	t.Helper()
	writer, standby := p.roles(t)
	from := time.Now()
	repair := strike(writer)
	p.apart.pulse.WaitMore(t, beatsAfter)
	p.note(fmt.Sprintf("when zone %s took over", standby.zone), time.Now(), nil, !gap)
	repair()
	p.takenOver(t, from, standby)
	p.givenUp(t, writer)
	if gap {
		p.apart.WaitEventsFrom(t, from, "log of the DB instance has a gap", "is followed again", "finished DB instance backup")
		return
	}
	if len(p.moments) < 3 { // the first move; a host that writes again has its own snapshot
		p.apart.WaitEventsFrom(t, from, "finished DB instance backup")
	}
	for _, e := range p.apart.EventsFrom(t, from) {
		if strings.Contains(e, "has a gap") || strings.Contains(e, "is followed again") {
			t.Errorf("event: %s", e)
		}
	}
}

func (p *apartBackup) restoredOn(t *testing.T, m backupMoment, on *apartHost) {
	from := time.Now()
	if zone := p.restore(t, m); on != nil && zone != on.zone {
		t.Errorf("it was restored in zone %s, and its snapshot is in %s", zone, on.zone)
	}
	t.Logf("it took %v", time.Since(from).Round(time.Millisecond))
}

// backupFiles are those of logs and snapshots below a folder.
func backupFiles(t *testing.T, folder string) (files []string) {
	t.Helper()
	for _, pattern := range []string{"logs/*/*", "snapshots/*", "repository/logs/*/*/*/*", "repository/snapshots/*/*"} {
		found, err := filepath.Glob(filepath.Join(folder, pattern))
		must(t, err)
		files = append(files, found...)
	}
	return files
}

// noBackupFile demands that neither log nor snapshot is below a folder.
func noBackupFile(t *testing.T, folder string) {
	t.Helper()
	harness.Wait(t, hostTime, "all backups are gone", func() string {
		if left := backupFiles(t, folder); len(left) > 0 {
			return fmt.Sprint(left)
		}
		return ""
	})
}
