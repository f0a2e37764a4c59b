//go:build integration

package integration

import (
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/rds"
	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"

	"kurabe"
	"kurabe/internal/blob"
	"kurabe/internal/harness"
	"kurabe/internal/snapshot"
)

const (
	// One after the other they would take longer than a connection of the API lives.
	slowSnapshots = 200
	slowAnswer    = 300 * time.Millisecond
)

// slowStore is an S3 whose every answer takes a while, once slow says so. This process
// may open it too.
func slowStore(t *testing.T) (location string, slow *atomic.Bool) {
	t.Helper()
	for _, e := range storeAccess {
		name, value, _ := strings.Cut(e, "=")
		t.Setenv(name, value)
	}
	backend := s3mem.New()
	if err := backend.CreateBucket("bucket"); err != nil {
		t.Fatal(err)
	}
	real := gofakes3.New(backend).Server()
	slow = &atomic.Bool{}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if slow.Load() {
			harness.Pause(r.Context(), slowAnswer)
		}
		real.ServeHTTP(w, r)
	}))
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // the fake answers twice to some requests
	server.Start()
	t.Cleanup(server.Close)
	return "s3://bucket/prefix?endpoint=" + url.QueryEscape(server.URL), slow
}

// storeAccess is the environment of a client of the store, and of no other.
var storeAccess = []string{"AWS_ACCESS_KEY_ID=test", "AWS_SECRET_ACCESS_KEY=test", "AWS_CONFIG_FILE=/dev/null", "AWS_SHARED_CREDENTIALS_FILE=/dev/null"}

// shelve puts the records of snapshots into a repository: an import reads nothing else.
func shelve(t *testing.T, location string, engine shelfEngine) {
	t.Helper()
	repository, err := blob.Init(t.Context(), location, blob.Options{})
	if err != nil {
		t.Fatal(err)
	}
	shelved := time.Now().UTC() // too young for a verification, which would look for the files
	for n := range slowSnapshots {
		id := kurabe.SnapshotID(fmt.Sprintf("snap-%05d", n))
		r := snapshot.Record{
			Format: 1, Snapshot: id, Name: fmt.Sprintf("rds:lost-%05d", n), Engine: engine.name, Family: engine.family, Sealed: true, ListSum: strings.Repeat("a", 64),
			Kind: kurabe.SnapshotAutomated, Tags: []kurabe.Tag{{Key: "number", Value: fmt.Sprint(n)}},
			Facts: kurabe.SnapshotFacts{Method: kurabe.SnapshotCopied, EngineVersion: engine.version, TakenAt: shelved.Add(-time.Duration(n) * time.Minute), SizeBytes: 1 << 20, Percent: 100},
			Source: kurabe.SnapshotSource{
				Instance: "db-LOST", Name: "lost", Engine: engine.name, MasterUsername: "master", OptionGroup: "default:postgres-15",
				Settings: kurabe.InstanceSettings{EngineVersion: engine.version, Class: "db.t3.micro", StorageGiB: 20, StorageType: "local", Port: 5432},
			},
		}
		raw, err := json.Marshal(r)
		if err == nil {
			err = repository.Put(t.Context(), "snapshots/"+string(id)+"/snapshot.json", strings.NewReader(string(raw)))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// shelfEngine is an engine as a record names it.
type shelfEngine struct {
	name            kurabe.EngineName
	version, family string
}

// following is the import command in the background.
type following struct {
	cmd  *exec.Cmd
	out  *harness.Log
	done chan error
}

func follow(t *testing.T, s *harness.Service) *following {
	t.Helper()
	f := &following{cmd: clientCommand(s, harness.Binary(t), "import"), out: &harness.Log{}, done: make(chan error, 1)}
	f.cmd.Stdout, f.cmd.Stderr = f.out, f.out
	if err := f.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { f.done <- f.cmd.Wait() }()
	return f
}

// imported waits until the command has shown so many.
func (f *following) imported(t *testing.T, least int) {
	t.Helper()
	harness.Wait(t, time.Minute, fmt.Sprintf("%d are imported", least), func() string {
		if n := strings.Count(f.out.String(), "imported  rds:lost-"); n < least {
			return fmt.Sprintf("%d are:\n%s", n, f.out)
		}
		return ""
	})
}

// ends waits for the end of the command, which must fail and say why.
func (f *following) ends(t *testing.T, words string) {
	t.Helper()
	select {
	case err := <-f.done:
		if err == nil || !strings.Contains(f.out.String(), words) {
			t.Errorf("the command ended with %v:\n%s", err, f.out)
		}
	case <-time.After(time.Minute):
		t.Fatalf("the command does not end:\n%s", f.out)
	}
}

// A repository with more snapshots than one request could list is imported all the
// same, whoever watches, and through the death of the service.
func TestImportFromASlowStore(t *testing.T) {
	onceIsEnough(t)
	location, slow := slowStore(t)
	shelve(t, location, shelfEngine{kurabe.Postgres, "15.1", "postgres15"})
	s := harness.Start(t, harness.Options{Args: []string{"--backup-repository", location}, Env: storeAccess})
	slow.Store(true)
	began := time.Now()
	f := follow(t, s)
	f.imported(t, 20)
	if err := f.cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	f.ends(t, "the import goes on in the service")
	f = follow(t, s) // joins it: what came before is shown too
	f.imported(t, 60)
	s.Kill(t)
	f.ends(t, "repeat the command")
	s.Start(t)
	out, err := kurabeImport(s, harness.Binary(t))
	var imported, known int
	if last := out[strings.LastIndex(strings.TrimSpace(out), "\n")+1:]; err == nil {
		_, err = fmt.Sscanf(last, "%d imported, %d known before, 0 refused", &imported, &known)
	}
	if err != nil || imported+known != slowSnapshots || known < 60 || imported == 0 {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Logf("%d snapshots took %v, with two interruptions", slowSnapshots, time.Since(began).Round(time.Millisecond))
	wantShelved(t, s)
}

// wantShelved waits until each imported snapshot was found by the host.
func wantShelved(t *testing.T, s *harness.Service) {
	t.Helper()
	took := harness.Wait(t, 2*time.Minute, "all are available", func() string {
		available, tagged, untagged := 0, 0, ""
		pages := rds.NewDescribeDBSnapshotsPaginator(s.Client, &rds.DescribeDBSnapshotsInput{SnapshotType: aws.String("automated")})
		for pages.HasMorePages() {
			page, err := pages.NextPage(t.Context())
			if err != nil {
				return err.Error()
			}
			for _, d := range page.DBSnapshots {
				if aws.ToString(d.Status) == "available" {
					available++
				}
				number := strings.TrimLeft(strings.TrimPrefix(aws.ToString(d.DBSnapshotIdentifier), "rds:lost-"), "0")
				if tags := d.TagList; len(tags) == 1 && aws.ToString(tags[0].Key) == "number" && strings.TrimLeft(aws.ToString(tags[0].Value), "0") == number {
					tagged++
				} else {
					untagged = fmt.Sprintf("%s has %+v", aws.ToString(d.DBSnapshotIdentifier), d.TagList)
				}
			}
		}
		if available != slowSnapshots || tagged != slowSnapshots {
			return fmt.Sprintf("%d are, %d have their tags; %s", available, tagged, untagged)
		}
		return ""
	})
	t.Logf("all are available %v later", took.Round(time.Millisecond))
}
