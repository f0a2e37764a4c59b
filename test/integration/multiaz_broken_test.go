//go:build integration

package integration

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"kurabe/internal/harness"
)

// brokenFile is, by engine, what no server starts without.
var brokenFile = map[string]string{"postgres": "global/pg_control", "mariadb": "ibdata1"}

// TestStandbyBroken damages the data of a standby so that its server cannot start. It is
// made anew, by itself, while clients notice nothing but the wait for it.
func TestStandbyBroken(t *testing.T) {
	onceIsEnough(t)
	eachEngineBeside(t, func(t *testing.T, engine string) {
		b := makePair(t, harness.Start(t, harness.Options{}), "broken", engine)
		b.pulse.WaitMore(t, beatsBefore)
		_, standby := b.Pair(t)
		from := time.Now()
		must(t, standby.Freeze())
		wipe(t, filepath.Join(standby.DataDir(), brokenFile[engine]))
		must(t, harness.KillServers(standby))
		b.WaitEventsFrom(t, from, "cannot start")
		b.back(t, from)
		b.WaitEventsFrom(t, from, "every commit again")
		if n, newest := b.pulse.Errors(from); n > 0 {
			t.Errorf("the client saw %d errors, the newest: %v", n, newest)
		}
		b.lose(t, func(t *testing.T, _ *pairBed, writer harness.Member) { must(t, harness.KillServers(writer)) })
	})
}

// TestReadReplicaBroken damages the data of a read replica in the same way. A replica has
// parameters of its own, so that it is its data must follow from the server's words alone.
func TestReadReplicaBroken(t *testing.T) {
	onceIsEnough(t)
	eachEngineBeside(t, func(t *testing.T, engine string) {
		b := newReplicaBed(t, harness.Start(t, harness.Options{}), "brokencopy", engine, false)
		b.caughtUp(t)
		replica := onlyMember(t, b.replica)
		from := time.Now()
		must(t, replica.Freeze())
		wipe(t, filepath.Join(replica.DataDir(), brokenFile[engine]))
		must(t, harness.KillServers(replica))
		b.replica.WaitEventsFrom(t, from, "cannot start", "made anew")
		b.caughtUp(t)
		if n, newest := b.pulse.Errors(from); n > 0 {
			t.Errorf("the client of the source saw %d errors, the newest: %v", n, newest)
		}
	})
}

// wipe writes zeros over a file.
func wipe(t *testing.T, path string) {
	t.Helper()
	info, err := os.Stat(path)
	must(t, err)
	file, err := os.OpenFile(path, os.O_WRONLY, 0)
	must(t, err)
	defer file.Close()
	_, err = file.WriteAt(make([]byte, info.Size()), 0)
	must(t, err)
}
