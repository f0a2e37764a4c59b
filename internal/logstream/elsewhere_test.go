package logstream

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"kurabe"
	"kurabe/internal/blob/blobtest"
)

// moved is an instance whose writer has been on one host and is on another, with one repository.
func moved(t *testing.T, repo *blobtest.Memory) (a *joined, b *bed) {
	t.Helper()
	a = &joined{bed: newBed(t, quickDir(t), repo)}
	a.cfg.Host, a.first = "host-a", a.server
	t.Cleanup(a.stopAll)
	a.start()
	time.Sleep(1500 * time.Millisecond)
	at, from := a.server.snapshot()
	a.x = snap{at, from}
	for range 4 {
		a.server.write(3000)
		time.Sleep(time.Second)
	}
	time.Sleep(2 * time.Minute) // pushed
	a.server.write(3000)
	time.Sleep(3 * time.Second) // not pushed yet
	a.common = time.Now().UTC()
	b = newBed(t, quickDir(t), repo)
	b.cfg.Host = "host-b"
	b.server, b.serverID = after(a.server, a.common), otherServer
	t.Cleanup(b.stopAll)
	return a, b
}

// TestGoesOnElsewhere: the log on a host goes on from what the host of the former writer has
// brought into the repository of both, and that host restores moments of the other's time.
func TestGoesOnElsewhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, repo := context.Background(), blobtest.NewMemory()
		a, b := moved(t, repo)
		idle, err := New(b.cfg)
		if err != nil {
			t.Fatal(err)
		}
		if at, ok, err := idle.Elsewhere(ctx, db); err != nil || !ok || at.Server != db || at.File != fileName(0) || at.Offset > 12000 {
			t.Errorf("what the other host has kept: %v, %v, %v", at, ok, err)
		}
		b.start()
		time.Sleep(1500 * time.Millisecond)
		b.server.write(2000)
		time.Sleep(1500 * time.Millisecond)
		a.stopFollow()
		if err := a.store.End(db, "another host writes"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Minute)
		l, own := b.log(), a.log()
		if r := l.Runs[0]; len(l.Runs) != 1 || !r.Elsewhere || !r.Continues.Equal(own.Runs[0].Began) || r.After.Server != db || r.Pushed.Position.Offset != 2700 {
			t.Fatalf("%+v", l)
		}
		whole, _ := kurabe.JoinLogs([]kurabe.InstanceLog{own.ToldBy("a"), l.ToldBy("b")})
		facts := kurabe.SnapshotFacts{TakenAt: a.x.at, UsableAt: a.x.at, Position: a.x.from, Host: "a"}
		_, to, ok := whole.Moments(facts)
		if !ok || !to.After(own.Last().At) {
			t.Fatalf("it is brought to %v, and its own host's log ends at %v", to, own.Last().At)
		}
		a.fetch(t, a.x, own.Last().At, a.first)
		a.fetch(t, a.x, to, a.first, b.server)
		a.fetch(t, a.x, own.Last().At.Add(time.Second), a.first, b.server)
		if told := a.log(); len(told.Runs) != 1 {
			t.Errorf("it has taken over what is another host's: %+v", told)
		}
		// And back.
		second := b.server
		b.stopFollow()
		if err := b.store.End(db, "another host writes"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		back := a.first
		back.set(func() {
			back.ends, back.oldest = append(back.ends, 500), 1
			back.goesOn = func(kurabe.LogMark) (kurabe.LogPosition, error) { return kurabe.LogPosition{File: fileName(1)}, nil }
		})
		a.stopRun()
		a.start()
		a.server.write(100)
		time.Sleep(2 * time.Minute)
		if l := a.log(); len(l.Runs) != 2 || !l.Runs[1].Elsewhere {
			t.Fatalf("%+v", l)
		}
		a.fetch(t, a.x, a.log().Last().At, a.first, second, back)
		if err := errors.Join(a.store.Trim(ctx, db, a.x.at), b.store.Trim(ctx, db, a.x.at)); err != nil {
			t.Fatal(err)
		}
		a.fetch(t, a.x, a.log().Last().At, a.first, second, back)
	})
}

// TestGoesOnFromNowhere: without a word of the repository, or where the server does not have
// what follows, another run begins as ever.
func TestGoesOnFromNowhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var away atomic.Bool
		repo := blobtest.NewMemory()
		repo.Faults = func(op, _ string) blobtest.Fault {
			if op == "list" && away.Load() {
				return blobtest.Fault{Err: errors.New("away")}
			}
			return blobtest.Fault{}
		}
		_, b := moved(t, repo)
		away.Store(true)
		b.start()
		time.Sleep(elsewherePatience / 2)
		if l := b.log(); len(l.Runs) != 0 || !strings.Contains(l.Failure, "look for the log of another host") {
			t.Errorf("the repository does not answer: %+v", l)
		}
		time.Sleep(elsewherePatience)
		if l := b.log(); len(l.Runs) != 1 || l.Runs[0].Elsewhere || !l.Runs[0].Continues.IsZero() {
			t.Errorf("it goes on from nowhere: %+v", l)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		_, b := moved(t, blobtest.NewMemory())
		tries := 0
		b.server.goesOn = func(kurabe.LogMark) (kurabe.LogPosition, error) {
			tries++
			return kurabe.LogPosition{File: fileName(b.server.oldest - 1)}, nil // which is gone
		}
		b.start()
		time.Sleep(10 * time.Second)
		if l := b.log(); len(l.Runs) != 1 || l.Runs[0].Elsewhere || tries != 1 || l.SpoolBytes > 700 {
			t.Errorf("after %d tries with what is gone: %+v", tries, l)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		_, b := moved(t, blobtest.NewMemory())
		b.server.goesOn = func(kurabe.LogMark) (kurabe.LogPosition, error) { return kurabe.LogPosition{}, errGone }
		b.start()
		time.Sleep(3 * time.Second)
		if l := b.log(); len(l.Runs) != 1 || l.Runs[0].Elsewhere {
			t.Errorf("its log is gone: %+v", l)
		}
	})
}
