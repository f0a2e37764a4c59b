//go:build fault

package fault

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"kurabe/internal/harness"
)

// TestKillTheServerAtEverySnapshotStep kills the server of the source before and after
// a snapshot is taken and while its sums are made, and that of the restored instance
// after every step with which it comes up. The service lives. Each snapshot comes to its end, and what is
// restored has every row that was there before the snapshot was asked for.
func TestKillTheServerAtEverySnapshotStep(t *testing.T) {
	t.Parallel()
	onFileSystems(t, harness.Options{Fault: true, Args: []string{"--copy-rate", "0"}}, func(t *testing.T, s *harness.Service, engine string, clones bool) {
		began := time.Now()
		b := &servedBed{snapshotBed: newSnapshotBed(t, s, engine), wanted: map[string]string{}}
		taken := []string{"before:take-snapshot", "after:take-snapshot"}
		if clones || engine == "mariadb" { // else the sums were made on the way
			taken = append(taken, "before:seal-snapshot")
		}
		for _, point := range taken {
			b.killSource(t, point, strings.ReplaceAll(point, ":", "-"))
		}
		b.clean(t)
		for n, point := range []string{"after:start", "after:wait-ready", "after:ensure-master", "after:probe"} {
			b.killRestored(t, point, strings.ReplaceAll(taken[n%len(taken)], ":", "-"))
		}
		b.ledger.Stop()
		b.ledger.Verify(t)
		noOrphans(t, s)
		t.Logf("%d rows, %v", b.ledger.Acked(), time.Since(began).Round(time.Millisecond))
	})
}

// servedBed is a snapshotBed whose server dies: the numbers of its rows have gaps.
type servedBed struct {
	*snapshotBed
	wanted map[string]string // how many rows, and the last of them, were there before a snapshot
}

// killSource has the source's server die at a point of a snapshot.
func (b *servedBed) killSource(t *testing.T, point, name string) {
	t.Helper()
	h := holdAt(t, b.s, point)
	b.wanted[name] = b.i.Query(t, "SELECT concat(count(*), ' ', max(n)) FROM ledger")
	if err := b.take(t, name); err != nil {
		t.Fatalf("%s: %v", point, err)
	}
	h.reached(t)
	killServers(t, b.s, b.i.ID)
	h.release(t)
	b.reaches(t, name, "available")
	b.ledger.WaitMore(t, 3)
	b.i.WaitStatus(t, "available")
}

// killRestored restores a snapshot while the new instance's server dies at a point.
func (b *servedBed) killRestored(t *testing.T, point, snapshot string) {
	t.Helper()
	name := strings.ReplaceAll(point, ":", "-")
	h := holdAt(t, b.s, point)
	r := b.restore(t, snapshot, name)
	h.reached(t)
	killServers(t, b.s, r.i.ID)
	h.release(t)
	r.i.WaitStatus(t, "available")
	var rows, last int
	if _, err := fmt.Sscan(b.wanted[snapshot], &rows, &last); err != nil {
		t.Fatal(err)
	}
	harness.Wait(t, settleTime, name+" serves with the rows of "+snapshot, func() string {
		session, err := harness.Open(t.Context(), r.i.Login(t))
		if err != nil {
			return err.Error()
		}
		defer session.Close()
		got, err := session.Rows(t.Context(), fmt.Sprintf("SELECT count(*) FROM ledger WHERE n <= %d", last))
		if err != nil || got[0] != fmt.Sprint(rows) {
			return fmt.Sprintf("it has %v of %d rows up to number %d, %v", got, rows, last, err)
		}
		return ""
	})
	r.i.Delete(t)
}
