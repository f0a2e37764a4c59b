//go:build integration

package integration

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/rds"

	"kurabe"
	"kurabe/internal/harness"
)

// A large table that a client of the world has made, and writes, is in a snapshot whole:
// on a file system that clones and on one that does not.
func TestSnapshotUnderAClientOfTheWorld(t *testing.T) {
	onceIsEnough(t)
	t.Run("copied", func(t *testing.T) {
		s := harness.Start(t, harness.Options{Args: []string{"--copy-rate", "0"}})
		s.EachEngine(t, func(t *testing.T, engine string) { snapshotUnderLoad(t, s, engine, "") })
	})
	t.Run("cloned", func(t *testing.T) {
		s, _ := poolService(t, outerDisk(t, 6*poolGiB))
		s.Start(t, "--pool", "loop", "--pool-size", "5GiB")
		s.EachEngine(t, func(t *testing.T, engine string) { snapshotUnderLoad(t, s, engine, kurabe.SnapshotCloned) })
	})
}

// snapshotUnderLoad takes it by one method, or by any.
func snapshotUnderLoad(t *testing.T, s *harness.Service, engine string, method kurabe.SnapshotMethod) {
	g := generators[engine]
	i := s.MustCreate(t, harness.Request("loaded-"+engine, engine))
	if out, err := g.command(t, i, g.fill).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", g.tool, err, out)
	}
	end := g.start(t, i)
	g.waitDone(t, i, loadFewest)
	before := g.done(t, i)
	if _, err := s.CreateDBSnapshot(t.Context(), &rds.CreateDBSnapshotInput{DBInstanceIdentifier: aws.String(i.Name), DBSnapshotIdentifier: aws.String("under-" + engine)}); err != nil {
		t.Fatal(err)
	}
	waitSnapshot(t, s, "under-"+engine, "available")
	taken := explained(t, s, i.Name)
	if method != "" && taken.Facts.Method != method {
		t.Errorf("taken by %s, want %s", taken.Facts.Method, method)
	}
	g.waitDone(t, i, g.done(t, i)+loadFewest) // it was not ended by the snapshot
	end()
	after := g.done(t, i)

	back := restored(t, s, "under-"+engine, i)
	back.WaitStatus(t, "available")
	for _, c := range g.consistent {
		for _, i := range []*harness.Instance{i, back} {
			if got := i.Query(t, c[0]); got != c[1] {
				t.Errorf("%s: %s: %s, want %s", i.Name, c[0], got, c[1])
			}
		}
	}
	t.Logf("%s of %s by %s, between transactions %d and %d", i.Name, kurabe.FormatBytes(taken.Facts.SizeBytes), taken.Facts.Method, before, after)
	if engine == "postgres" {
		if n := g.done(t, back); n < before || n > after {
			t.Errorf("%d transactions are in it, of %d before and %d after", n, before, after)
		}
		back.Query(t, "CREATE EXTENSION amcheck")
		back.Query(t, "SELECT bt_index_check('pgbench_accounts_pkey', true)")
	} else {
		wholeTables(t, back)
	}
	back.AskDelete(t)
	i.Delete(t)
}
