//go:build integration

package integration

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/rds"

	"kurabe/internal/blob"
	"kurabe/internal/harness"
)

// bulk makes a table, and adds 4 MiB to it that no compression makes smaller.
var bulk = map[string][2]string{
	"postgres": {"CREATE TABLE bulk (x bytea)",
		"INSERT INTO bulk SELECT (SELECT string_agg(uuid_send(gen_random_uuid()), '') FROM generate_series(1, 64) WHERE n > 0) FROM generate_series(1, 4096) n"},
	"mariadb": {"CREATE TABLE bulk (x varbinary(1024))", "INSERT INTO bulk SELECT random_bytes(1024) FROM seq_1_to_4096"},
}

// bulkTimes of it are more than a piece of the log, which is pushed when it is full.
const bulkTimes = 5

// pushedLog waits until everything that was written so far is in the repository: then
// the loss of the machine takes none of it. What comes later closes the piece.
func (l *lostBackup) pushedLog(t *testing.T) {
	t.Helper()
	l.Query(t, bulk[l.Engine][0])
	for range bulkTimes {
		l.Query(t, bulk[l.Engine][1])
	}
	l.logged(t)
	harness.Wait(t, 2*time.Minute, "the log is pushed", func() string {
		files, err := filepath.Glob(filepath.Join(l.Service.Data, "logs", l.ID, "*", "*.piece"))
		if err != nil || len(files) > 1 { // one grows
			return fmt.Sprintf("%q, %v", files, err)
		}
		return ""
	})
}

// wantArchived waits until so many snapshots are complete in a repository of any kind.
func wantArchived(t *testing.T, location string, want int) {
	t.Helper()
	repository, err := blob.Open(t.Context(), location, blob.Options{})
	if err != nil {
		t.Fatal(err)
	}
	harness.Wait(t, 2*time.Minute, "the snapshots are archived", func() string {
		complete := 0
		for o, err := range repository.List(t.Context(), "snapshots/") {
			if err != nil {
				return err.Error()
			}
			if strings.HasSuffix(o.Name, "/snapshot.json") {
				complete++
			}
		}
		if complete < want {
			return fmt.Sprintf("%d of %d are", complete, want)
		}
		return ""
	})
}

// A machine is lost without a farewell. A new one, which has an S3 store and nothing
// else, gets its databases back: as a snapshot has them, and as of a moment.
func TestImportFromS3(t *testing.T) {
	onceIsEnough(t)
	location, _ := slowStore(t)
	options := harness.Options{Args: []string{"--backup-repository", location, "--copy-rate", "0"}, Env: storeAccess}
	first := harness.Start(t, options)
	var lost []*lostBackup
	for _, engine := range first.Engines(t) {
		l := backedUp(t, first, engine)
		l.pushedLog(t)
		if _, err := first.CreateDBSnapshot(t.Context(), &rds.CreateDBSnapshotInput{DBInstanceIdentifier: aws.String(l.Name), DBSnapshotIdentifier: aws.String("kept-" + engine)}); err != nil {
			t.Fatal(err)
		}
		lost = append(lost, l)
	}
	for _, l := range lost {
		waitSnapshot(t, first, "kept-"+l.Engine, "available")
	}
	wantArchived(t, location, 2*len(lost)) // with the automated one of each
	first.Kill(t)
	if err := first.EndDatabases(t.Context()); err != nil {
		t.Fatal(err)
	}

	second := harness.Start(t, options)
	if out, err := kurabeImport(second, harness.Binary(t)); err != nil || !strings.Contains(out, fmt.Sprintf("%d imported", 2*len(lost))) {
		t.Fatalf("import: %v\n%s", err, out)
	}
	type wanted struct {
		*harness.Instance
		content string
	}
	var back []wanted
	for _, l := range lost {
		l.wantRetained(t, second)
		back = append(back, wanted{restored(t, second, "kept-"+l.Engine, l.Instance), l.whole}, wanted{l.restoreLost(t, second, "half-"+l.Engine, l.moment), l.half})
	}
	for _, i := range back {
		i.WaitStatus(t, "available")
		if got := i.Query(t, contentSQL); got != i.content {
			t.Errorf("%s holds %s, want %s", i.Name, got, i.content)
		}
	}
}
