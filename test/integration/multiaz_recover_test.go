//go:build integration

package integration

import (
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"

	"kurabe/internal/harness"
)

// TestRecover has an operator accept a loss, for each engine: what only the old writer had
// is gone, all that both had is there, and nothing of it happens before it is accepted.
func TestRecover(t *testing.T) {
	onceIsEnough(t)
	eachPair(t, "recovered", func(t *testing.T, b *pairBed) {
		b.Query(t, "CREATE TABLE said (what varchar(20))")
		inTurn(t, "the data of the writer is gone", func(t *testing.T) {
			b.recovered(t, func(t *testing.T, writer harness.Member) { must(t, writer.LoseData()) })
		})
		inTurn(t, "the writer hangs", func(t *testing.T) {
			from := time.Now()
			b.recovered(t, func(*testing.T, harness.Member) {})
			b.WaitEventsFrom(t, from, "that its standby never had")
		})
	})
}

// recovered has the standby miss a row, loses the writer, and recovers with the standby.
func (b *pairBed) recovered(t *testing.T, lose func(t *testing.T, writer harness.Member)) {
	t.Helper()
	b.pulse.Stop()
	b.pulse = b.Pulse(t)
	writer, standby := b.Pair(t)
	b.Query(t, "DELETE FROM said")
	b.Query(t, "INSERT INTO said VALUES ('both have it')")
	if said := b.recover(t, false); !strings.Contains(said, "nothing need be lost") {
		t.Errorf("of a whole instance: %s", said)
	}
	b.standbyFrozen(t)
	b.pulse.Stop() // its rows are to be lost
	b.Query(t, "INSERT INTO said VALUES ('one has it')")
	if said := b.recover(t, false, "--accept-data-loss", "--yes"); !strings.Contains(said, "the server that has every commit writes") {
		t.Errorf("while the writer writes: %s", said)
	}

	login := b.Login(t)
	from := time.Now()
	must(t, writer.Freeze())
	lose(t, writer)
	// What the network has brought to a server that hangs would be there when it goes on.
	must(t, harness.KillServers(standby))
	if said := b.recover(t, false); !strings.Contains(said, "WOULD BE LOST") || !strings.Contains(said, "nothing was changed") {
		t.Errorf("without the word: %s", said)
	}
	if now := b.Service.Members(b.ID); len(now) != 2 || !standby.Follows() {
		t.Errorf("something was changed: %v", now)
	}
	harness.Wait(t, gapBound, "the loss is accepted", func() string {
		said, err := b.askRecover(t, "--accept-data-loss", "--yes")
		if err != nil {
			return said
		}
		t.Log(said)
		return ""
	})
	b.WaitEventsFrom(t, from, "has accepted a loss", "failover completed")
	b.WaitWhole(t)
	if now, _ := b.Pair(t); now != standby {
		t.Errorf("%s writes, want %s", now.ID, standby.ID)
	}
	session, err := harness.Open(t.Context(), login)
	must(t, err)
	defer session.Close()
	rows, err := session.Rows(t.Context(), "SELECT what FROM said")
	if must(t, err); fmt.Sprint(rows) != "[both have it]" {
		t.Errorf("there is %q", rows)
	}
}

// recover runs the command, which must end as said, and returns what it says.
func (b *pairBed) recover(t *testing.T, accepted bool, flags ...string) string {
	t.Helper()
	said, err := b.askRecover(t, flags...)
	if (err == nil) != accepted {
		t.Errorf("recover %v: %v: %s", flags, err, said)
	}
	return said
}

func (b *pairBed) askRecover(t *testing.T, flags ...string) (string, error) {
	t.Helper()
	args := append([]string{"recover", b.Name, "--endpoint", b.Service.URL(), "--data", b.Service.Data}, flags...)
	out, err := exec.CommandContext(t.Context(), harness.Binary(t), args...).CombinedOutput()
	return string(out), err
}
