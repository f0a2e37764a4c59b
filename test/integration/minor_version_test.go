//go:build integration

package integration

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/rds"
	"github.com/aws/aws-sdk-go-v2/service/rds/types"

	"kurabe/internal/harness"
)

// minorBed is a pair and an instance with one server, whose engine has a later minor version
// after the service has started again.
type minorBed struct {
	*pairBed
	alone     *harness.Instance
	have, own string // versions: before, and of the packages now
}

// TestMinorVersion has the packages of both engines bring a later minor version, as apt does:
// in the place of the one that servers run. What the API tells is at any time what the server
// at the endpoint says of itself.
func TestMinorVersion(t *testing.T) {
	needRoot(t)
	onceIsEnough(t)
	s := harness.Start(t, harness.Options{})
	s.EachEngine(t, func(t *testing.T, engine string) {
		b := &minorBed{pairBed: makePair(t, s, "minor-"+engine, engine), alone: s.MustCreate(t, harness.Request("minor-alone-"+engine, engine))}
		b.have = aws.ToString(b.Describe(t).EngineVersion)
		b.own = harness.Successor(t, engine, b.have)
		for _, part := range []struct {
			name string
			do   func(t *testing.T)
		}{
			{"the service starts again", b.restarts},
			{"the standby dies", b.standbyDies},
			{"modified", b.modified},
			{"one server dies", b.aloneDies},
		} {
			inTurn(t, part.name, part.do)
		}
		b.pulse.Stop()
		b.gone(t)
	})
}

// restarts: nobody notices, and what is offered is the successor.
func (b *minorBed) restarts(t *testing.T) {
	b.pulse.WaitMore(t, beatsBefore)
	before := b.pids(t)
	b.Service.Terminate(t)
	b.Service.Start(t)
	b.settled(t)
	if after := b.pids(t); after != before {
		t.Errorf("servers %s after %s", after, before)
	}
	out, err := b.Service.DescribeDBEngineVersions(t.Context(), &rds.DescribeDBEngineVersionsInput{Engine: aws.String(b.Engine)})
	if err != nil {
		t.Fatal(err)
	}
	if len(out.DBEngineVersions) != 1 || aws.ToString(out.DBEngineVersions[0].EngineVersion) != b.own {
		t.Errorf("offered: %+v, want %s alone", out.DBEngineVersions, b.own)
	}
	b.runs(t, b.Instance, b.have)
	b.runs(t, b.alone, b.have)
}

func (b *minorBed) pids(t *testing.T) string {
	writer, standby := b.Pair(t)
	return fmt.Sprint(b.Service.Servers(writer.ID), b.Service.Servers(standby.ID))
}

// runs demands that an instance runs a version, says so itself, and is said to.
func (b *minorBed) runs(t *testing.T, i *harness.Instance, version string) {
	t.Helper()
	i.WaitLike(t, "is said to run "+version, func(d types.DBInstance) string {
		if told, status := aws.ToString(d.EngineVersion), aws.ToString(d.DBInstanceStatus); told != version || status != "available" {
			return status + ", told: " + told
		}
		return ""
	})
	if says := i.Query(t, "SELECT version()"); !strings.Contains(says, version) {
		t.Errorf("%s says that it is %q, and it is told that it is %s", i.Name, says, version)
	}
}

// standbyDies: it is started with the successor, and what is told is the writer's.
func (b *minorBed) standbyDies(t *testing.T) {
	_, standby := b.Pair(t)
	must(t, harness.KillServers(standby))
	b.settled(t)
	b.runs(t, b.Instance, b.have)
}

// modified: the version goes to the standby first, which takes over.
func (b *minorBed) modified(t *testing.T) {
	_, standby := b.Pair(t)
	from := time.Now()
	b.Modify(t, func(in *rds.ModifyDBInstanceInput) { in.EngineVersion = aws.String(b.own) })
	b.WaitEvent(t, "patched: engine version "+b.own)
	b.settled(t)
	t.Logf("nobody could write for %v", b.pulse.Gap(from).Round(time.Millisecond))
	b.runs(t, b.Instance, b.own)
	if now, _ := b.Pair(t); now != standby {
		t.Errorf("%s writes, and the successor went to %s first", now.ID, standby.ID)
	}
}

// aloneDies: the only server is started with the successor, which is told.
func (b *minorBed) aloneDies(t *testing.T) {
	must(t, harness.KillServers(onlyMember(t, b.alone)))
	b.runs(t, b.alone, b.own)
	b.alone.WaitEvent(t, "patched: engine version "+b.own)
	b.alone.Delete(t)
}
