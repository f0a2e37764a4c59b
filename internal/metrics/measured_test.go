package metrics

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	promlabels "github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/textparse"
	"github.com/prometheus/prometheus/promql/parser"

	"kurabe"
	"kurabe/internal/metrics/catalog"
)

// full is a page of instances that have everything.
func full(t testing.TB, instances int) []byte {
	t.Helper()
	var p Page
	now := time.Now()
	for n := range instances {
		name := fmt.Sprint("db-", n)
		id := kurabe.InstanceID("db-" + strings.ToUpper(name))
		p.Instances = append(p.Instances, Instance{Name: name, Engine: "postgres", Load: []WaitLoad{{"Lock", 2}, {"IO", 0.5}, {kurabe.WaitCPU, 0}},
			Limits: kurabe.Limits{CPUs: 2, MemoryBytes: kurabe.GiB, StorageBytes: kurabe.GiB, ReadIOPS: 3000, ReadBytesPerSecond: 1 << 20}})
		for _, d := range catalog.All {
			p.Measured = append(p.Measured, Measured{Metric: d.Name, Instance: name, Engine: "postgres", Role: catalog.RolePrimary, Server: id, Value: 50})
		}
		p.Following = append(p.Following, kurabe.Following{Name: name, Standbys: true, UnprotectedSince: now, Waits: &kurabe.WaitCount{},
			Followers: []kurabe.Follower{{Server: id + "~2", Kind: kurabe.FollowerStandby, Instance: name, Lag: &kurabe.ReplicaLag{}}}})
		p.Topics = append(p.Topics, Topic{Name: name})
		p.Snapshots = append(p.Snapshots, kurabe.SnapshotKnown{Name: "nightly", Instance: name, Kind: kurabe.SnapshotManual, Taken: true, VerifiedAt: now})
	}
	var b bytes.Buffer
	if err := Render(&b, p, now); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// parse reads a page as Prometheus does: how many samples each name has.
func parse(t *testing.T, page []byte) map[string]int {
	t.Helper()
	p := textparse.NewOpenMetricsParser(page, promlabels.NewSymbolTable())
	got, seen := map[string]int{}, map[string]bool{}
	for {
		entry, err := p.Next()
		if errors.Is(err, io.EOF) {
			return got
		}
		if err != nil {
			t.Fatal(err)
		}
		if entry != textparse.EntrySeries {
			continue
		}
		var l promlabels.Labels
		p.Labels(&l)
		if got[l.Get("__name__")]++; seen[l.String()] {
			t.Errorf("twice: %s", l)
		}
		seen[l.String()] = true
	}
}

// The whole catalog is told, and Prometheus can read it.
func TestWholeCatalog(t *testing.T) {
	page := full(t, 2)
	got := parse(t, page)
	for _, f := range families {
		name := f.name
		if f.kind == "counter" {
			name += "_total"
		}
		if got[name] < 2 {
			t.Errorf("%s has %d samples", name, got[name])
		}
	}
	if !bytes.Contains(page, []byte("kurabe_cpu_utilization_ratio{instance=\"db-1\",server=\"1\",engine=\"postgres\",role=\"primary\"} 0.5\n")) {
		t.Errorf("%s", page)
	}
	// Of their own, and those that follow from the load by wait types.
	told := []string{"ReplicaLag", "UnprotectedTime", "DBLoad", "DBLoadCPU", "DBLoadNonCPU", "DBLoadRelativeToNumVCPUs"}
	for _, m := range measuredFamilies {
		told = append(told, m.metric)
	}
	for _, d := range catalog.All {
		if !slices.Contains(told, d.Name) {
			t.Errorf("no family tells %s", d.Name)
		}
	}
	if len(told) != len(catalog.All) {
		t.Errorf("%d metrics are told, the catalog has %d", len(told), len(catalog.All))
	}
}

// The names are those of Prometheus' conventions, as promtool checks them. It knows the older
// format, in which a counter's metadata has another name.
func TestNames(t *testing.T) {
	problems, err := promlint.New(bytes.NewReader(full(t, 1))).Lint()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		if !strings.HasSuffix(p.Metric, "_total") || p.Text != "no help text" {
			t.Errorf("%s: %s", p.Metric, p.Text)
		}
	}
}

// dashboard is what is read of a dashboard of Grafana.
type dashboard struct {
	UID, Title    string
	SchemaVersion int
	Panels        []struct {
		ID      int
		Type    string
		Title   string
		GridPos struct{ H, W, X, Y int }
		Targets []struct{ RefID, Expr string }
	}
}

// Each query of the dashboard is one of Prometheus, of metrics that a page has; panels have ids of
// their own and lie in the grid without a gap at its sides.
func TestDashboard(t *testing.T) {
	raw, err := os.ReadFile("../../docs/grafana/kurabe.json")
	if err != nil {
		t.Fatal(err)
	}
	var d dashboard
	if err := json.Unmarshal(raw, &d); err != nil {
		t.Fatal(err)
	}
	if d.UID == "" || d.Title == "" || d.SchemaVersion == 0 || len(d.Panels) == 0 {
		t.Errorf("%+v", d)
	}
	page := parse(t, full(t, 1))
	ids, rows := map[int]bool{}, 0
	for _, p := range d.Panels {
		if ids[p.ID] || p.Title == "" || p.GridPos.W <= 0 || p.GridPos.H <= 0 || p.GridPos.X+p.GridPos.W > 24 {
			t.Errorf("panel %+v", p)
		}
		ids[p.ID] = true
		if p.Type == "row" {
			rows++
			continue
		}
		if len(p.Targets) == 0 {
			t.Errorf("panel %s asks for nothing", p.Title)
		}
		for _, target := range p.Targets {
			checkExpression(t, target.Expr, page)
		}
	}
	if rows != 7 {
		t.Errorf("%d rows", rows)
	}
}

func checkExpression(t *testing.T, text string, page map[string]int) {
	t.Helper()
	e, err := parser.NewParser(parser.Options{}).ParseExpr(text)
	if err != nil {
		t.Errorf("%s: %v", text, err)
		return
	}
	found := false
	parser.Inspect(e, func(n parser.Node, _ []parser.Node) error {
		if v, is := n.(*parser.VectorSelector); is {
			if found = true; page[v.Name] == 0 {
				t.Errorf("%s: no page has %s; it has %s", text, v.Name, slices.Sorted(maps.Keys(page)))
			}
		}
		return nil
	})
	if !found {
		t.Errorf("%s asks for nothing", text)
	}
}

// What a page of 50 instances costs beside the answers of the hosts.
func BenchmarkPage(b *testing.B) {
	for b.Loop() {
		b.SetBytes(int64(len(full(b, 50))))
	}
}
