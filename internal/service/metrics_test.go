package service

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"kurabe"
	"kurabe/internal/control"
	"kurabe/internal/hostread"
	"kurabe/internal/load"
	"kurabe/internal/metrics"
	"kurabe/internal/metrics/catalog"
	"kurabe/internal/metrics/series"
)

// The token is made once, and what a person puts in its place counts.
func TestMetricsToken(t *testing.T) {
	data := t.TempDir()
	first, err := metricsToken(data)
	if err != nil || len(first.Reveal()) < metricsTokenBytesMin {
		t.Fatalf("%d characters, %v", len(first.Reveal()), err)
	}
	if again, err := metricsToken(data); err != nil || again != first {
		t.Errorf("the next start has another one, %v", err)
	}
	path := filepath.Join(data, metricsTokenFile)
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	for text, refused := range map[string]bool{"a-token-of-a-person\n": false, "short": true, "": true} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := metricsToken(data)
		if (err != nil) != refused || err == nil && got.Reveal() != strings.TrimSpace(text) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// Nobody reads the page without the token, and nothing is told that may be old.
func TestMetricsPage(t *testing.T) {
	const token = "0123456789abcdef"
	asked, trouble := 0, error(nil)
	p := metricsPage{token: token, ready: func() error { return trouble }, look: func(context.Context) metrics.Page {
		asked++
		return metrics.Page{Following: []kurabe.Following{{Name: "shop", Standbys: true, Synced: true}}}
	}}
	get := func(authorization string) *httptest.ResponseRecorder {
		r := httptest.NewRequest(http.MethodGet, "/metrics", http.NoBody)
		if authorization != "" {
			r.Header.Set("Authorization", authorization)
		}
		w := httptest.NewRecorder()
		p.ServeHTTP(w, r)
		return w
	}
	for _, wrong := range []string{"", token, "Bearer", "Bearer ", "Bearer " + token + "x", "Basic " + token} {
		if w := get(wrong); w.Code != http.StatusUnauthorized || strings.Contains(w.Body.String(), "shop") || strings.Contains(w.Body.String(), token) {
			t.Errorf("%q: %d %s", wrong, w.Code, w.Body)
		}
	}
	if asked != 0 {
		t.Error("hosts are asked for a stranger")
	}
	if w := get("Bearer " + token); w.Code != http.StatusOK || !strings.Contains(w.Body.String(), `kurabe_standby_in_sync{instance="shop"} 1`) {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	trouble = errors.New("the state is away")
	if w := get("Bearer " + token); w.Code != http.StatusServiceUnavailable || strings.Contains(w.Body.String(), "shop") {
		t.Errorf("of a state that is away: %d %s", w.Code, w.Body)
	}
}

// Of a host that does not answer, the page tells nothing, and of the others all: what was measured,
// limits and load.
func TestMetricsPageWithoutAHost(t *testing.T) {
	n := openSeries(t, "here")
	now := time.Now()
	cpu := series.NewLabels(catalog.Namespace, catalog.RDS, catalog.Metric, "CPUUtilization", catalog.Instance, "shop", catalog.Server, "db-A", catalog.Engine, "postgres", catalog.Role, catalog.RolePrimary)
	if err := n.series.Append(now, []series.Sample{{Labels: cpu, Value: 50}}); err != nil {
		t.Fatal(err)
	}
	n.load = load.New(t.TempDir(), false, func(_ kurabe.InstanceID, reason string) { t.Error(reason) })
	if err := n.load.Add("db-A", load.Sample{At: now, Engine: kurabe.Postgres, Sessions: []kurabe.ActiveSession{{WaitType: kurabe.WaitCPU}, {WaitType: "Lock"}}}); err != nil {
		t.Fatal(err)
	}
	n.handleLoad()
	ask := hostread.Hosts{Here: n.reads, Far: func(ctx context.Context, q hostread.Frame) (hostread.Frame, error) {
		if q.Host == "hangs" {
			<-ctx.Done()
		}
		return hostread.Frame{}, errors.New("there is no way")
	}}
	hosts := func() []kurabe.HostID { return []kurabe.HostID{"away", "hangs", "here"} }
	s := pageSource{series: allSeries{n.series, ask, hosts}, load: allLoad{ask, hosts}}
	instances := []control.Instance{{Name: "shop", Spec: &kurabe.InstanceSpec{ID: "db-A", Name: "shop", Engine: kurabe.Postgres, LoadKept: true, Now: kurabe.InstanceSettings{Class: "db.t3.micro", StorageGiB: 20}}}}
	if list := s.measured(t.Context(), instances, now); len(list) != 1 || list[0].Value != 50 || list[0].Role != catalog.RolePrimary {
		t.Errorf("measured %+v", list)
	}
	list := s.instances(t.Context(), instances, now)
	if len(list) != 1 || list[0].Limits.CPUs != 2 || len(list[0].Load) != 2 || list[0].Load[0].Sessions != 1 {
		t.Errorf("instances %+v", list)
	}
}
