//go:build fault

package fault

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

// TestKillAtEveryStepOfAFarSnapshot kills the agent of the standby's host before, in and after each
// step of a snapshot that it takes of its standby. It is back at once, or not before the writer's
// host has the snapshot: each becomes available, has every row that was acknowledged before it was
// asked for, and lies on one host, of whose server it is.
func TestKillAtEveryStepOfAFarSnapshot(t *testing.T) {
	needRoot(t)
	for _, engine := range []string{"postgres", "mariadb"} {
		t.Run(engine, func(t *testing.T) {
			clones, rate := false, farRate
			if engine == "mariadb" { // which is copied from a standby there only
				clones, rate = true, 0 // a bound would hold up the sums alone
			}
			bed := newApartBed(t, hostChange{options: func(o *harness.Options) {
				o.Fault, o.Args = true, append(o.Args, "--copy-rate", fmt.Sprint(rate))
				if clones {
					dir := cloningFolder(t)
					if dir == "" {
						t.Skip("there is no file system that clones")
					}
					o.Data = filepath.Join(dir, "data")
				}
			}})
			bed.service.NeedEngine(t, engine, bed.service.Engines(t))
			p := bed.create(t, "far", engine)
			p.pulse = p.Pulse(t)
			(&farSnapshots{p, map[string]time.Time{}}).killEveryStep(t, clones)
			p.pulse.Stop()
			p.tidy(t)
		})
	}
}

const (
	// farRate has a copy take seconds, so that there is a midst to be killed in.
	farRate = 8
	// farSnapshotTime is what a snapshot may take whose host is lost on the way.
	farSnapshotTime = 2 * time.Minute
)

// farSnapshots is a pair on two hosts, and when each snapshot of it was asked for.
type farSnapshots struct {
	*apart
	asked map[string]time.Time
}

func (p *farSnapshots) killEveryStep(t *testing.T, clones bool) {
	points := []string{"before:take-snapshot", "after:take-snapshot"}
	if clones { // else the sums were made on the way
		points = append(points, "before:seal-snapshot", "after:seal-snapshot")
	} else {
		p.killCopying(t, "amid")
	}
	for _, point := range points {
		p.kill(t, point, nameOf(point), true)
	}
	for _, point := range points[:2] { // a sealed one is told of already
		p.kill(t, point, nameOf(point)+"-away", false)
	}
	p.restores(t, nameOf(points[len(points)-1]))
	p.restores(t, nameOf(points[1])+"-away")
	p.killRemoving(t, "before:remove-snapshot", nameOf(points[0]))
	p.killRemoving(t, "after:remove-snapshot", nameOf(points[1]))
	p.waitWhole(t)
	p.pulse.Verify(t)
}

func nameOf(point string) string { return strings.ReplaceAll(point, ":", "-") }

// standby is the host of the standby, once that may be copied: it has every commit, and its host
// is heard.
func (p *farSnapshots) standby(t *testing.T) *apartHost {
	t.Helper()
	p.bed.waitUsed(t)
	harness.Wait(t, farSnapshotTime, "commits wait for the standby", func() string {
		said, err := p.bed.command(t, "explain", p.Name)
		if err != nil || !strings.Contains(said, "writes, commits wait for ") {
			return fmt.Sprint(said, err)
		}
		return ""
	})
	_, standby := p.roles(t)
	return standby
}

// kill has the agent of the standby's host die at a point of a snapshot. It is back at once, or
// when the snapshot is there.
func (p *farSnapshots) kill(t *testing.T, point, name string, soon bool) {
	t.Helper()
	standby := p.standby(t)
	standby.Arm(t, point)
	p.ask(t, name)
	dead(t, standby, point)
	if soon {
		standby.launch(t)
	}
	p.available(t, name)
	standby.launch(t)
	holder, f := p.settled(t, name)
	if server, there := p.server(holder); !there || server.ID != string(f.TakenFrom) {
		t.Errorf("%s is of %s, and lies where %s is", name, f.TakenFrom, server.ID)
	}
	t.Logf("killed %s it is of %s, in zone %s; %q", point, f.TakenFrom, holder.zone, f.StandbySkipped)
	if !soon && (holder == standby || f.StandbySkipped == "") {
		t.Errorf("%s: it is of %s, whose agent was dead, %q", name, f.TakenFrom, f.StandbySkipped)
	}
}

// killCopying kills it as soon as there is a part of the snapshot.
func (p *farSnapshots) killCopying(t *testing.T, name string) {
	t.Helper()
	standby := p.standby(t)
	p.ask(t, name)
	harness.Wait(t, farSnapshotTime, "there is a part of "+name, func() string {
		if len(parts(t, standby, "snapshots", "snap-*", "data*", "*")) == 0 {
			return "there is none"
		}
		return ""
	})
	standby.killAgent(t)
	standby.launch(t)
	p.available(t, name)
	p.settled(t, name)
	p.restores(t, name)
}

// killRemoving kills the agent of the host that has a snapshot while it goes.
func (p *farSnapshots) killRemoving(t *testing.T, point, name string) {
	t.Helper()
	holder, _ := p.settled(t, name)
	holder.Arm(t, point)
	if _, err := p.bed.service.DeleteDBSnapshot(t.Context(), &rds.DeleteDBSnapshotInput{DBSnapshotIdentifier: aws.String(name)}); err != nil {
		t.Fatal(err)
	}
	dead(t, holder, point)
	holder.launch(t)
	harness.Wait(t, farSnapshotTime, name+" is gone", func() string {
		if state := p.state(t, name); !strings.Contains(state, "DBSnapshotNotFound") {
			return "it is " + state
		}
		return ""
	})
	p.noParts(t)
}
