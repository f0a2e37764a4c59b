//go:build fault

package fault

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"kurabe/internal/harness"
)

// logPoints are passed by each piece of a log on its way into the repository.
var logPoints = []string{"before:close-piece", "after:close-piece", "before:push-piece", "after:push-marks", "before:settle-piece", "after:settle-piece"}

// trimPoints are passed when a log is trimmed: nothing is removed yet, the claims are
// smaller, one object is removed, all are.
var trimPoints = []string{"before:trim-log", "after:trim-claims", "after:trim-object", "after:trim-log"}

// TestKillAtEveryPointOfTheLog kills the service wherever a piece of the log can be on
// its way, and wherever a trim can be. The log goes on without a gap each time, and a
// restore to a moment after each death is exact.
func TestKillAtEveryPointOfTheLog(t *testing.T) {
	for _, engine := range []string{"postgres", "mariadb"} {
		t.Run(engine, func(t *testing.T) {
			t.Parallel() // each engine on a service of its own
			s := harness.Start(t, harness.Options{Fault: true, Args: []string{"--copy-rate", "0"}})
			s.NeedEngine(t, engine, s.Engines(t))
			began := time.Now()
			b, session := oldLogBed(t, s, engine)
			moments := []time.Time{b.grows(t)}
			for _, point := range logPoints {
				s.Arm(t, point)
				b.pourInto(t, session, pieceBytes)
				b.died(t, point)
				s.Start(t)
				moments = append(moments, b.grows(t))
			}
			b.stop()
			b.learn(t)
			b.pushed(t)
			for _, e := range b.i.Events(t) {
				if strings.Contains(e, "has a gap") {
					t.Errorf("the log did not go on: %s", e)
				}
			}
			b.exact(t, moments...)
			b.i.Delete(t)
			noOrphans(t, s)
			t.Log(time.Since(began).Round(time.Millisecond))
		})
	}
}

// oldLogBed is an instance whose log is older than its first snapshot, and was trimmed
// by services that died of it. Its session is one that needs no service.
func oldLogBed(t *testing.T, s *harness.Service, engine string) (*logBed, harness.Session) {
	t.Helper()
	in := harness.Request("source-"+engine, engine)
	in.BackupRetentionPeriod, in.DBParameterGroupName = aws.Int32(1), keepsTimes(t, s, engine)
	h := holdAt(t, s, "before:take-snapshot")
	i := s.Create(t, in)
	h.reached(t)
	b := writeInto(t, i)
	session := i.Open(t)
	b.pourInto(t, session, oldBytes)
	// What was written just now need not have been followed yet.
	var old []string
	harness.Wait(t, pushTime, "the log is in the repository", func() string {
		if old = b.pieces(t); len(old) < oldBytes/pieceBytes-1 {
			return fmt.Sprintf("%d pieces of it are", len(old))
		}
		return ""
	})
	s.Arm(t, trimPoints[0]) // by the time that something is needless
	h.release(t)
	harness.Wait(t, trimTime, "the first snapshot is there", func() string {
		if at, err := b.restorable(t); s.Running() && (err != nil || at.IsZero()) {
			return "it is not"
		}
		return ""
	})
	for n, point := range trimPoints {
		if n > 0 || s.Disarm() { // a start trims at once, and later each minute
			s.Kill(t)
			s.Arm(t, point)
			s.Launch(t)
		}
		b.trimmed(t, point)
		if n == 0 {
			if _, err := os.Stat(old[0]); err != nil {
				t.Fatalf("the oldest piece went before it was needless: %v", err)
			}
		}
	}
	s.Start(t)
	i.WaitStatus(t, "available")
	if left := b.pieces(t); len(left) > 0 && left[0] == old[0] {
		t.Errorf("nothing of %d pieces was trimmed", len(old))
	}
	return b, session
}

// oldBytes are more than one file of either engine's log.
const oldBytes = 80 << 20

// trimTime is a trim, which comes each minute, and the snapshot before it.
const trimTime = 2 * time.Minute

func (b *logBed) trimmed(t *testing.T, point string) {
	t.Helper()
	harness.Wait(t, trimTime, "the service dies "+point, func() string {
		if b.s.Running() {
			return "it does not"
		}
		return ""
	})
}
