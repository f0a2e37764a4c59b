//go:build integration

package integration

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/rds"

	"kurabe"
	"kurabe/internal/harness"
	"kurabe/internal/volume"
)

// occupiedTime is how long the figure may be late on a busy machine: looks are half a
// minute apart.
const occupiedTime = 2 * time.Minute

// TestOccupiedFollowsItsSource: a clone occupies next to nothing, and comes to own
// what its source overwrites. The figure that users are told follows, and a restart
// does not forget it.
func TestOccupiedFollowsItsSource(t *testing.T) {
	s, _ := poolService(t, outerDisk(t, 3*poolGiB))
	s.Start(t, "--pool", "loop", "--pool-size", "2GiB")
	i := s.MustCreate(t, harness.Request("grown", "postgres"))
	const rows, least = "160000", 128 << 20
	i.Query(t, "CREATE TABLE filler AS SELECT n, repeat('x', 1000) AS t FROM generate_series(1, "+rows+") AS n")
	i.Query(t, "CHECKPOINT")
	_, err := s.CreateDBSnapshot(t.Context(), &rds.CreateDBSnapshotInput{DBInstanceIdentifier: aws.String(i.Name), DBSnapshotIdentifier: aws.String("kept")})
	if err != nil {
		t.Fatal(err)
	}
	var before explainedSnapshot
	harness.Wait(t, settlePool, "the snapshot is a clone", func() string {
		if before = explained(t, s, i.Name); before.State != kurabe.SnapshotAvailable || before.Facts.Method != kurabe.SnapshotCloned {
			return string(before.State)
		}
		return ""
	})
	if before.Facts.OccupiedBytes > least/2 {
		t.Errorf("at first it occupies %d bytes", before.Facts.OccupiedBytes)
	}
	i.Query(t, "UPDATE filler SET n = n + 1") // every page of the old rows changes too
	i.Query(t, "CHECKPOINT")
	var after explainedSnapshot
	took := harness.Wait(t, occupiedTime, "the figure follows", func() string {
		if after = explained(t, s, i.Name); after.Facts.OccupiedBytes < before.Facts.OccupiedBytes+least {
			truth, err := volume.OwnBytes(filepath.Join(s.Data, "snapshots", string(after.ID)))
			return fmt.Sprintf("%d bytes, and in truth %d, %v", after.Facts.OccupiedBytes, truth, err)
		}
		return ""
	})
	truth, err := volume.OwnBytes(filepath.Join(s.Data, "snapshots", string(after.ID)))
	if off := max(truth-after.Facts.OccupiedBytes, after.Facts.OccupiedBytes-truth); err != nil || off > max(64<<20, truth/20) {
		t.Errorf("told %d bytes, and it is %d, %v", after.Facts.OccupiedBytes, truth, err)
	}
	t.Logf("occupied %s, %v later %s of %s", kurabe.FormatBytes(before.Facts.OccupiedBytes), took.Round(time.Second),
		kurabe.FormatBytes(after.Facts.OccupiedBytes), kurabe.FormatBytes(after.Facts.SizeBytes))
	want := before.Facts
	want.OccupiedBytes = after.Facts.OccupiedBytes
	if after.State != kurabe.SnapshotAvailable || after.Facts != want {
		t.Errorf("more changed than what it occupies: %+v after %+v", after, before)
	}
	list, err := kurabeCommand(s, harness.Binary(t), "snapshots", i.Name)
	if err != nil || !strings.Contains(list, kurabe.FormatBytes(after.Facts.OccupiedBytes)) {
		t.Errorf("the list does not say %s: %v\n%s", kurabe.FormatBytes(after.Facts.OccupiedBytes), err, list)
	}
	s.Kill(t)
	s.Start(t, "--pool", "loop")
	if again := explained(t, s, i.Name); again.Facts != after.Facts {
		t.Errorf("after a restart: %+v; before it: %+v", again.Facts, after.Facts)
	}
}

// explainedSnapshot is the only snapshot of an instance, as `kurabe explain` has it.
type explainedSnapshot struct {
	ID    kurabe.SnapshotID
	State kurabe.SnapshotState
	Facts kurabe.SnapshotFacts
}

func explained(t *testing.T, s *harness.Service, name string) explainedSnapshot {
	t.Helper()
	var e struct{ Snapshots []explainedSnapshot }
	out, err := kurabeCommand(s, harness.Binary(t), "explain", name, "--json")
	if err == nil {
		err = json.Unmarshal([]byte(out), &e)
	}
	if err != nil || len(e.Snapshots) != 1 {
		t.Fatalf("explained with %d snapshots, %v: %s", len(e.Snapshots), err, out)
	}
	return e.Snapshots[0]
}
