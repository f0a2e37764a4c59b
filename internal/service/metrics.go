package service

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"kurabe"
	"kurabe/internal/control"
	"kurabe/internal/load"
	"kurabe/internal/logkey"
	"kurabe/internal/metrics"
	"kurabe/internal/metrics/catalog"
	"kurabe/internal/metrics/series"
	"kurabe/internal/volume"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// metricsTokenFile holds what a scraper shows. It opens nothing but the page of metrics, so a
// scraper need not hold the root credentials.
const metricsTokenFile = "metrics-token"

// metricsTokenBytesMin is what a token must have that a person has put there.
const metricsTokenBytesMin = 16

// metricsToken returns the token of the data folder, which is made at the first start.
func metricsToken(data string) (logkey.Secret, error) {
	path := filepath.Join(data, metricsTokenFile)
	raw, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		token := rand.Text()
		return logkey.Secret(token), volume.AtomicWrite(path, []byte(token+"\n"), 0o600)
	case err != nil:
		return "", err
	}
	token := strings.TrimSpace(string(raw))
	if len(token) < metricsTokenBytesMin {
		return "", fmt.Errorf("%s holds fewer than %d characters; remove it, and the next start makes another", path, metricsTokenBytesMin)
	}
	return logkey.Secret(token), nil
}

// metricsPage serves the page to who shows the token. ready is why nothing can be told now.
type metricsPage struct {
	token logkey.Secret
	ready func() error
	look  func(context.Context) metrics.Page
}

// ServeHTTP implements http.Handler.
func (p metricsPage) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	shown, bearer := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !bearer || subtle.ConstantTimeCompare([]byte(shown), []byte(p.token.Reveal())) != 1 {
		w.Header().Set("WWW-Authenticate", `Bearer realm="kurabe metrics"`)
		say(w, http.StatusUnauthorized, "show the token of the file "+metricsTokenFile+" in the data folder: Authorization: Bearer TOKEN")
		return
	}
	if p.ready() != nil { // what is known may be old
		say(w, http.StatusServiceUnavailable, "the service does not follow its state now")
		return
	}
	page := p.look(r.Context())
	w.Header().Set("Content-Type", metrics.ContentType)
	_ = metrics.Render(w, page, time.Now()) // a scraper that has gone is not our failure
}

// say answers a scraper, which is no client of AWS, with a line of text.
func say(w http.ResponseWriter, status int, line string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, line+"\n")
}

const (
	// pageWindow is what the page has the means of: nothing falls between the pages of a scraper
	// that asks as often, as most do.
	pageWindow = 15 * time.Second
	// slowWindow is that of metrics that are read each minute.
	slowWindow = 75 * time.Second
	// waitTypesMax bounds the types of wait of an instance; the engines have about ten.
	waitTypesMax = 20
)

// slowMetrics are those that are read each minute, fastMetrics the others.
var (
	slowMetrics = []string{"TransactionLogsDiskUsage"}
	fastMetrics = func() (list []string) {
		for _, d := range catalog.All {
			if !slices.Contains(slowMetrics, d.Name) && !strings.HasPrefix(d.Name, "DBLoad") {
				list = append(list, d.Name)
			}
		}
		return list
	}()
)

// pageSource asks for what the page tells.
type pageSource struct {
	control   *control.Control
	series    allSeries
	load      allLoad
	following func(context.Context) []kurabe.Following
	snapshots func() []kurabe.SnapshotKnown
}

// page waits for the slowest of its questions, each of which is bounded. Of hosts that do not
// answer it tells nothing.
func (s pageSource) page(ctx context.Context) (p metrics.Page) {
	now := time.Now()
	p.Snapshots = s.snapshots()
	instances, _ := s.control.Instances(control.InstanceFilter{}, "", math.MaxInt)
	var wait sync.WaitGroup
	wait.Go(func() { p.Following = s.following(ctx) })
	wait.Go(func() { p.Instances = s.instances(ctx, instances, now) })
	wait.Go(func() { p.Measured = s.measured(ctx, instances, now) })
	wait.Wait()
	return p
}

// measured are the means of all series of databases.
func (s pageSource) measured(ctx context.Context, instances []control.Instance, now time.Time) (list []metrics.Measured) {
	clusters := make(map[string]string, len(instances))
	for _, i := range instances {
		clusters[i.Name] = i.Cluster
	}
	of := func(window time.Duration, match series.Match) series.Query {
		return series.Query{
			Match: []series.Match{{Label: catalog.Namespace, Values: []string{catalog.RDS, catalog.Kurabe}}, match},
			From:  now.Add(-window), To: now.Add(time.Second), Period: window,
			By: []string{catalog.Metric, catalog.Instance, catalog.Server, catalog.Engine, catalog.Role},
		}
	}
	results, _, err := s.series.Query(ctx, []series.Query{
		of(pageWindow, series.Match{Label: catalog.Metric, Values: fastMetrics}), of(slowWindow, series.Match{Label: catalog.Metric, Values: slowMetrics}),
	})
	if err != nil {
		return nil
	}
	for _, r := range slices.Concat(results...) {
		var all series.Bucket
		for _, b := range r.Buckets {
			all.Add(b)
		}
		name := r.Labels.Get(catalog.Instance)
		if cluster, exists := clusters[name]; exists && all.Count > 0 {
			list = append(list, metrics.Measured{Metric: r.Labels.Get(catalog.Metric), Instance: name, Cluster: cluster, Engine: r.Labels.Get(catalog.Engine),
				Role: r.Labels.Get(catalog.Role), Server: kurabe.InstanceID(r.Labels.Get(catalog.Server)), Value: all.Sum / all.Count})
		}
	}
	return list
}

// instances are their limits, and the load of those that keep it.
func (s pageSource) instances(ctx context.Context, instances []control.Instance, now time.Time) []metrics.Instance {
	list := make([]metrics.Instance, len(instances))
	var queries []load.Query
	var of []int // the instance of each query
	for n, i := range instances {
		list[n] = metrics.Instance{Name: i.Name, Cluster: i.Cluster, Engine: i.Spec.Engine, Limits: i.Settings().Limits()}
		if !i.Spec.LoadKept {
			continue
		}
		q := load.Query{Instance: i.Spec.ID, From: now.Add(-pageWindow).Unix(), To: now.Unix() + 1, By: []load.Dimension{load.WaitType}, Largest: waitTypesMax}
		if i.Server != nil {
			q.Instance, q.Alone = i.Server.ID, true
		}
		queries, of = append(queries, q), append(of, n)
	}
	if len(queries) == 0 {
		return list
	}
	answers, err := s.load.LoadOfAll(ctx, queries)
	if err != nil {
		return list
	}
	for n, a := range answers {
		list[of[n]].Load = waitLoads(a)
	}
	return list
}

// waitLoads are averages; of an idle instance, it is known that no session is active.
func waitLoads(a load.Answer) (list []metrics.WaitLoad) {
	var seconds, cpu uint64
	for _, s := range a.Sampled {
		seconds += s
	}
	if seconds == 0 {
		return nil
	}
	a.Largest(waitTypesMax)
	for _, g := range a.Groups {
		if g.Values[0] == kurabe.WaitCPU {
			cpu = g.Total
			continue
		}
		list = append(list, metrics.WaitLoad{Type: g.Values[0], Sessions: float64(g.Total) / float64(seconds)})
	}
	return append(list, metrics.WaitLoad{Type: kurabe.WaitCPU, Sessions: float64(cpu) / float64(seconds)})
}
