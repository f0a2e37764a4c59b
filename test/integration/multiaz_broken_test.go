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
