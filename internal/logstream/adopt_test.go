package logstream

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"kurabe/internal/blob/blobtest"
)

// lived is a host whose server wrote for a while and writes no more, and a snapshot of it.
func lived(t *testing.T, host string, repo *blobtest.Memory) (*bed, snap) {
	t.Helper()
	b := newBed(t, quickDir(t), repo)
	b.cfg.Host = host
	b.start()
	time.Sleep(1500 * time.Millisecond)
	at, from := b.server.snapshot()
	for range 5 {
		b.server.write(3000)
		time.Sleep(2 * time.Second)
	}
	b.stopFollow()
	if err := b.store.End(db, "another host writes"); err != nil {
		t.Fatal(err)
	}
	time.Sleep(2 * time.Minute) // pushed, and surveyed
	return b, snap{at, from}
}

// TestHostsShareARepository: what each of two hosts keeps of one log is no business of the
// other, until an import brings it to a host that has the snapshot.
func TestHostsShareARepository(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, repo := context.Background(), blobtest.NewMemory()
		first, of := lived(t, "host-a", repo)
		second, _ := lived(t, "host-b", repo)
		reach := first.log().Last().At
		if a, b := first.log(), second.log(); len(a.Runs) != 1 || len(b.Runs) != 1 || a.SpoolBytes+b.SpoolBytes != 0 || a.Runs[0].Ended == "" || !b.Runs[0].Began.After(a.Runs[0].Began) {
			t.Fatalf("one has %+v\nthe other %+v", a, b)
		}
		must := func(err error) {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
		}
		must(second.store.Trim(ctx, db, time.Now()))
		must(second.store.Remove(ctx, db))
		first.want(of.at, of.from, reach)
		second.stopRun()
		first.stopRun()

		again, kept := lived(t, "host-b", repo)
		machine := newBed(t, quickDir(t), repo)
		machine.cfg.Host = "host-c"
		adopted := func(want int) {
			t.Helper()
			var err error
			machine.store, err = New(machine.cfg)
			must(err)
			must(machine.store.survey(ctx, machine.repo))
			if n := len(machine.log().Runs); n != want {
				t.Fatalf("%d runs of other hosts are kept, not %d", n, want)
			}
		}
		adopted(0)
		for range 2 {
			must(machine.store.Adopt(ctx, db, of.at, of.from))
		}
		machine.want(of.at, of.from, reach)
		machine.refuse(kept.at, kept.from, kept.at)
		adopted(1) // from its own index
		must(machine.store.Remove(ctx, db))
		again.want(kept.at, kept.from, again.log().Last().At)
		must(again.store.Adopt(ctx, db, kept.at, kept.from))
		must(again.store.Remove(ctx, db))
		for info, err := range repo.List(ctx, "") {
			t.Errorf("left is %s, %v", info.Name, err)
		}
		again.stopRun()
	})
}

// TestNamesOfRuns: names sort by the time, with the mark of a host and without.
func TestNamesOfRuns(t *testing.T) {
	now := time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)
	old := runName(now, "", "", "abcdefgh")
	one := runName(now, old, owner("host-a"), "abcdefgh")
	two := runName(now.Add(-time.Hour), one, owner("host-b"), "abcdefgh")
	if old >= one || one >= two || ownerOf(old) != "" || ownerOf(one) != owner("host-a") || ownerOf(two) == ownerOf(one) || !runBegan(two).After(runBegan(one)) {
		t.Errorf("%s, %s, %s", old, one, two)
	}
}
