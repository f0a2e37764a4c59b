package snapshot

import (
	"testing"
	"time"

	"kurabe"
	"kurabe/internal/hostlink"
)

// standbyHere puts a standby on the host whose writer is on another one.
func (b *snapshotBed) standbyHere(generation kurabe.Generation, epoch kurabe.Epoch) {
	b.Helper()
	role := kurabe.Role{Epoch: epoch, Duty: kurabe.DutyFollow, Source: &kurabe.Source{ID: "db-1", Host: "h1", Address: "10.0.0.1", Port: 5432}}
	b.send(hostlink.Update{Orders: []kurabe.Word{of(follows(generation), generation, role)}})
}

// remoteOf is the order to take a snapshot of it.
func remoteOf(generation kurabe.Generation) kurabe.SnapshotAssignment {
	a := takeOf("snap-1", "db-1", generation)
	a.Standby, a.Epoch = second, 1
	return a
}

func TestSnapshotOfARemoteStandby(t *testing.T) {
	inSnapshotBubble(t, func(b *snapshotBed) {
		b.standbyHere(2, 1)
		b.order(remoteOf(1))
		b.pass(50 * time.Second)
		if got := b.set.List()[0].takes(); got != (taking{standby: second, remote: 1}) {
			t.Errorf("it is taken of %v", got)
		}
		b.pass(60 * time.Second)
		b.wantDone("snap-1", 1)
		if f := b.last("snap-1").Facts; f.TakenFrom != second || f.StandbySkipped != "" {
			t.Errorf("%+v", f)
		}
	})
}

// What an agent that died has left is made anew, by the order that it is told again.
func TestRemoteSnapshotAfterARestart(t *testing.T) {
	inSnapshotBubble(t, func(b *snapshotBed) {
		b.standbyHere(2, 1)
		b.order(remoteOf(1))
		b.pass(50 * time.Second)
		b.stop()
		b.start()
		b.order(remoteOf(1))
		b.pass(10 * time.Second)
		if r := b.last("snap-1"); r.Failure != nil {
			t.Errorf("it does not wait for its standby: %+v", r.Failure)
		}
		b.standbyHere(2, 1)
		b.pass(2 * time.Minute)
		b.wantDone("snap-1", 1)
		if f := b.last("snap-1").Facts; f.TakenFrom != second || f.StandbySkipped != "" {
			t.Errorf("%+v", f)
		}
	})
}

// A standby of another writer than the order is about could lack what was acknowledged: what is
// under way ends, and the planner is told.
func TestRemoteStandbyOfAnotherEpoch(t *testing.T) {
	inSnapshotBubble(t, func(b *snapshotBed) {
		b.standbyHere(2, 1)
		b.order(remoteOf(1))
		b.pass(50 * time.Second)
		b.standbyHere(3, 2)
		b.pass(time.Minute)
		if r := b.last("snap-1"); r.Done || r.Failure == nil || r.Facts.TakenFrom != "" {
			t.Errorf("%+v", r)
		}
		a := remoteOf(2)
		a.Goal = kurabe.SnapshotAbsent
		b.order(a)
		b.pass(10 * time.Second)
		if r := b.last("snap-1"); !r.Done || !r.Absent {
			t.Errorf("something is left: %+v", r)
		}
	})
}
