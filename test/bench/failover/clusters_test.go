package failover

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/rds/types"

	"kurabe"
	"kurabe/internal/control"
	"kurabe/test/bench/bed"
)

// The gap is that of the client that waited longest, what it still waits for included; what was
// before the loss does not count.
func TestReadsGap(t *testing.T) {
	began := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	at := func(ms int) time.Time { return began.Add(time.Duration(ms) * time.Millisecond) }
	r := &reads{endedNow: at(6000)}
	for n := range readClients {
		for ms := 0; ms < 6000; ms += 10 {
			if n == 1 && ms > 1000 && ms < 1700 || n == 2 && ms > 100 && ms < 900 { // the latter before the loss
				continue
			}
			r.answered(n, []string{"a", "b"}[n%2], at(ms))
		}
	}
	if got := r.gap(at(1005)); got != 700*time.Millisecond {
		t.Errorf("%v", got)
	}
	if err := r.spread(); err != nil {
		t.Error(err)
	}
	if err := r.answeredSince(at(5000), readsAfter); err != nil {
		t.Error(err)
	}
	if r.answeredSince(at(5900), readsAfter) == nil {
		t.Error("ten answers are enough for twenty")
	}
	r.endedNow = at(9000)
	if got := r.gap(at(1005)); got < 3*time.Second {
		t.Errorf("who still waits does not count: %v", got)
	}
	r.at[1], r.at[3] = "a", "a"
	if r.spread() == nil {
		t.Error("one reader counts as two")
	}
	if (&reads{}).spread() == nil {
		t.Error("nobody counts as a reader")
	}
}

// A cluster has no peer and no bars, and its rows are held against nothing but its own rows.
func TestClusterRows(t *testing.T) {
	r := testRun(t, bed.Settings{Only: Clusters})
	each(r.book.side(about{Name: "PostgreSQL cluster", Role: roleCluster}), clusterLosses, 0.25, 0.75)
	each(r.book.side(about{Name: "MariaDB cluster", Role: roleClusterOther}), clusterLosses, 1)
	r.clusterFigures()
	line := r.found(t, "cluster: reader killed: "+longestUnread)
	if line.Value != "median 0.50 s, worst 0.75 s" || line.Bar != "" || !strings.Contains(line.Note, "2 rounds") {
		t.Errorf("%+v", line)
	}
	if line := r.found(t, missingRows+", MariaDB cluster"); line.Verdict != bed.Meets {
		t.Errorf("%+v", line)
	}
	if len(r.Out.Rows) != 2*len(clusterLosses)+2 {
		t.Errorf("%d rows", len(r.Out.Rows))
	}
}

// The folders of a cluster are found by what users see of it.
func TestRecordID(t *testing.T) {
	const id = kurabe.InstanceID("db-23GSJ4TJFYPCVUONZ4KH77DYS4")
	if got := recordID(types.DBCluster{DbClusterResourceId: aws.String(control.ClusterResourceID(id))}); got != string(id) {
		t.Errorf("%s, want %s", got, id)
	}
}

// What could not be made is no side: there is nothing of it to take away.
func TestNoCluster(t *testing.T) {
	l := &site{Lab: &bed.Lab{Api: bed.NewClient("http://127.0.0.1:1", "none")}}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	s, err := l.clusterSide(bed.Postgres).make(ctx, 1)
	if err == nil || s != nil {
		t.Errorf("%v, %v", s, err)
	}
}

func TestListClusters(t *testing.T) {
	for only, want := range map[string]bool{Clusters: true, Hosts: false, "failover," + Clusters: true} {
		r := &comparison{Run: &bed.Run{Settings: bed.Settings{Only: only, Rounds: 5, Blocks: 6, Seconds: 1, List: true}}, book: NewBook()}
		var out bytes.Buffer
		r.listFailovers(&out)
		if has := strings.Contains(out.String(), "PostgreSQL cluster"); has != want {
			t.Errorf("%s:\n%s", only, &out)
		}
		if peer := strings.Contains(out.String(), "Patroni"); peer != (only != Clusters) {
			t.Errorf("%s:\n%s", only, &out)
		}
	}
}
