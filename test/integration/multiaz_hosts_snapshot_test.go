//go:build integration

package integration

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"kurabe"
	"kurabe/internal/harness"
)

// TestMultiAZApartSnapshots takes snapshots of a pair on two hosts, where files can be cloned: by
// the standby's host, of its standby. Where that is not heard any more the writer's host does.
func TestMultiAZApartSnapshots(t *testing.T) {
	onceIsEnough(t)
	bed := newApartBed(t, "--pool", "loop")
	for _, h := range bed.hosts {
		unmounted(t, h.Service)
	}
	bed.service.EachEngine(t, func(t *testing.T, engine string) {
		p := newApartSnapshots(t, bed, engine)
		inTurn(t, "of the standby", p.ofTheStandby)
		inTurn(t, "its host is not heard", p.notHeard)
		p.apart.pulse.Stop()
		p.apart.Delete(t)
	})
}

// TestMultiAZApartSnapshotMoves has the writer die while its standby is copied, which takes over.
func TestMultiAZApartSnapshotMoves(t *testing.T) {
	onceIsEnough(t)
	bed := newApartBed(t, "--copy-rate", "2")
	bed.service.NeedEngine(t, "postgres", bed.service.Engines(t))
	p := newApartSnapshots(t, bed, "postgres")
	writer, standby := p.roles(t)
	asked := p.ask(t, "moved")
	p.copying(t, "moved")
	must(t, harness.KillServers(writer.member(t, p.apart.ID)))
	f := p.taken(t, "moved", asked)
	t.Logf("it is of %s: %s", f.TakenFrom, f.StandbySkipped)
	if want := standby.member(t, p.apart.ID).ID; string(f.TakenFrom) != want || f.StandbySkipped == "" {
		t.Errorf("it is of %s, want %s: %q", f.TakenFrom, want, f.StandbySkipped)
	}
	p.noPart(t, writer)
	p.waitWhole(t)
	p.apart.pulse.Verify(t)
	p.apart.pulse.Stop()
	p.apart.Delete(t)
}

// TestClusterApartSnapshot takes a snapshot of a cluster on three hosts, where files can be cloned:
// it is of a reader, on whose host it lies.
func TestClusterApartSnapshot(t *testing.T) {
	onceIsEnough(t)
	bed := newApartBed(t, "--pool", "loop")
	bed.add(t, zoneHere, "--pool", "loop")
	for _, h := range bed.hosts {
		unmounted(t, h.Service)
	}
	bed.service.EachEngine(t, func(t *testing.T, engine string) {
		b := &clusterApart{newClusterBed(t, bed.service, engine), bed.hosts}
		b.pulse.WaitMore(t, 50)
		writer, name := b.writerHost(t), "ring-"+engine
		asked := b.snapshot(t, name)
		var zones []string
		for _, h := range b.hosts {
			f, there := recordedIn(t, h.Data, name)
			if !there {
				continue
			}
			zones = append(zones, h.zone)
			if of := string(f.TakenFrom); h == writer || f.StandbySkipped != "" || len(h.Homes()) != 1 || of != h.Homes()[0] {
				t.Errorf("in zone %s it is of %s: %q; the writer is in %s", h.zone, of, f.StandbySkipped, writer.zone)
			}
		}
		if len(zones) != 1 {
			t.Errorf("the zones %v have it", zones)
		}
		b.restores(t, name, asked)
		b.pulse.Stop()
		b.delete(t)
	})
}

// apartSnapshots is a pair on two hosts of which snapshots are taken.
type apartSnapshots struct {
	*apart
	*backupBed
}

func newApartSnapshots(t *testing.T, bed *apartBed, engine string) *apartSnapshots {
	t.Helper()
	a := bed.create(t, engine)
	return &apartSnapshots{a, &backupBed{pairBed: &pairBed{a.Instance, a.pulse}}}
}

// ofTheStandby: it has all that was acknowledged, is sound, and lies on the standby's host.
func (p *apartSnapshots) ofTheStandby(t *testing.T) {
	writer, standby := p.roles(t)
	name := "far-" + p.apart.Engine
	asked := p.ask(t, name)
	f := p.taken(t, name, asked)
	t.Logf("taken within %s, by %s, at %s; the longest gap between commits meanwhile: %s", f.UsableAt.Sub(asked).Round(time.Millisecond), f.Method, f.Position, p.apart.pulse.Gap(asked).Round(time.Millisecond))
	if want := standby.member(t, p.apart.ID).ID; string(f.TakenFrom) != want || f.StandbySkipped != "" {
		t.Errorf("it is of %s, and the standby is %s: %q", f.TakenFrom, want, f.StandbySkipped)
	}
	if want := kurabe.InstanceID(writer.member(t, p.apart.ID).ID); f.Position.File == "" || f.Position.Server != want {
		t.Errorf("it is at %+v, and %s writes", f.Position, want)
	}
	if f.MarkedAt.IsZero() {
		t.Error("no marker is known to be in it")
	}
	if said, err := kurabeCommand(p.bed.service, harness.Binary(t), "verify", name); err != nil {
		t.Errorf("verify: %v: %s", err, said)
	}
}

// notHeard: the order to the standby's host is called off, and nothing is left of it there.
func (p *apartSnapshots) notHeard(t *testing.T) {
	writer, standby := p.roles(t)
	standby.Freeze(t)
	name := "near-" + p.apart.Engine
	asked := p.ask(t, name)
	waitSnapshot(t, p.bed.service, name, "available")
	f := p.facts(t)[name]
	t.Logf("it took %s, of %s: %s", f.UsableAt.Sub(asked).Round(time.Millisecond), f.TakenFrom, f.StandbySkipped)
	if want := writer.member(t, p.apart.ID).ID; string(f.TakenFrom) != want || f.StandbySkipped == "" {
		t.Errorf("it is of %s, and %s writes: %q", f.TakenFrom, want, f.StandbySkipped)
	}
	p.apart.WaitEventsFrom(t, asked, name+" was taken from the server that serves clients: ")
	standby.Thaw(t)
	p.noPart(t, standby)
	p.apart.bed.waitUsed(t)
	p.waitWhole(t)
}

// noPart demands that a host has no order and no folder of what was called off there.
func (p *apartSnapshots) noPart(t *testing.T, h *apartHost) {
	t.Helper()
	harness.Wait(t, hostTime, "nothing is left of what was called off", func() string {
		orders, err := filepath.Glob(filepath.Join(h.Data, "snapshot-assignments", "*.json"))
		must(t, err)
		folders, err := filepath.Glob(filepath.Join(h.Data, "snapshots", "snap-*"))
		must(t, err)
		if len(orders) != len(folders) {
			return fmt.Sprint(orders, folders)
		}
		return ""
	})
}
