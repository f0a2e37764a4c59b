//go:build integration

package integration

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"kurabe/internal/harness"
)

// lagShown is what makes a lag one that nobody takes for the pace of replication.
const lagShown = 2.0

// metricsOf reads the page of metrics, by sample.
func metricsOf(t *testing.T, s *harness.Service) map[string]float64 {
	t.Helper()
	token, err := os.ReadFile(filepath.Join(s.Data, "metrics-token"))
	must(t, err)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL()+"/metrics", http.NoBody)
	must(t, err)
	r.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	a, err := http.DefaultClient.Do(r)
	must(t, err)
	defer a.Body.Close()
	page, err := io.ReadAll(a.Body)
	must(t, err)
	if a.StatusCode != http.StatusOK || !strings.HasSuffix(string(page), "# EOF\n") {
		t.Fatalf("%s\n%s", a.Status, page)
	}
	samples := map[string]float64{}
	for _, line := range strings.Split(string(page), "\n") {
		name, value, found := strings.Cut(line, " ")
		if !found || name == "#" {
			continue
		}
		n, err := strconv.ParseFloat(value, 64)
		must(t, err)
		samples[name] = n
	}
	return samples
}

// waitMetric waits until a sample is as it has to be.
func waitMetric(t *testing.T, s *harness.Service, name, what string, holds func(float64) bool) {
	t.Helper()
	harness.Wait(t, gapBound, name+" is "+what, func() string {
		samples := metricsOf(t, s)
		value, there := samples[name]
		if there && holds(value) {
			return ""
		}
		return fmt.Sprintf("%v, %v of %v", value, there, samples)
	})
}

// waitReaders waits until both readers of the cluster have next to no lag.
func waitReaders(t *testing.T, s *harness.Service) {
	t.Helper()
	waitNear(t, s, 2, `cluster="ring"`, `kind="reader"`)
}

// waitNear waits until so many followers with these labels have next to no lag.
func waitNear(t *testing.T, s *harness.Service, followers int, labels ...string) {
	t.Helper()
	harness.Wait(t, gapBound, fmt.Sprint("followers are up to date: ", labels), func() string {
		samples, near := metricsOf(t, s), 0
		for name, value := range samples {
			missing := slices.ContainsFunc(labels, func(l string) bool { return !strings.Contains(name, l) })
			if strings.HasPrefix(name, "kurabe_replica_lag_seconds{") && !missing && little(value) {
				near++
			}
		}
		if near != followers {
			return fmt.Sprint(samples)
		}
		return ""
	})
}

func none(v float64) bool   { return v == -1 }
func zero(v float64) bool   { return v == 0 }
func once(v float64) bool   { return v == 1 }
func shown(v float64) bool  { return v >= lagShown }
func little(v float64) bool { return v >= 0 && v < 1 }

// TestReplicaLag has followers fall behind, hang and come back, and demands that it is shown:
// by the page of metrics, by kurabe ls and by kurabe explain.
func TestReplicaLag(t *testing.T) {
	onceIsEnough(t)
	s := harness.Start(t, harness.Options{})
	s.EachEngine(t, func(t *testing.T, engine string) {
		b := newReplicaBed(t, s, "lag", engine, true)
		inTurn(t, "what is replicated waits for a lock", b.lagOfALock)
		inTurn(t, "the replica hangs", b.lagOfAHang)
		inTurn(t, "the standby hangs", b.unprotected)
		inTurn(t, "failover", b.failoverCounted)
	})
}

func (b *replicaBed) sample(name, kind string) string {
	if kind == "" {
		return fmt.Sprintf("%s{instance=%q}", name, b.source.Name)
	}
	return fmt.Sprintf("%s{instance=%q,server=\"1\",kind=%q}", name, b.replica.Name, kind)
}

// wantShown demands that ls and explain say something of an instance.
func wantShown(t *testing.T, i *harness.Instance, listed, explained string) {
	t.Helper()
	harness.Wait(t, gapBound, fmt.Sprintf("ls has %q, explain %q of %s", listed, explained, i.Name), func() string {
		list, err := kurabeCommand(i.Service, harness.Binary(t), "ls")
		must(t, err)
		text, err := kurabeCommand(i.Service, harness.Binary(t), "explain", i.Name)
		must(t, err)
		for _, line := range strings.Split(list, "\n") {
			if strings.HasPrefix(line, i.Name+" ") && strings.Contains(line, listed) && strings.Contains(text, explained) {
				return ""
			}
		}
		return list + text
	})
}

// lagOfALock holds a table at the replica that the source alters.
func (b *replicaBed) lagOfALock(t *testing.T) {
	lag := b.sample("kurabe_replica_lag_seconds", "replica")
	b.source.Query(t, "CREATE TABLE held (n int)")
	b.caughtUpAll(t)
	waitMetric(t, b.source.Service, lag, "nothing", little)
	wantShown(t, b.replica, "of "+b.source.Name+": 0.", "0.")
	session := b.replica.Open(t)
	for _, statement := range []string{"BEGIN", "SELECT count(*) FROM held"} {
		must(t, session.Exec(t.Context(), statement))
	}
	b.source.Query(t, "ALTER TABLE held ADD COLUMN m int")
	waitMetric(t, b.source.Service, lag, "shown", shown)
	first := metricsOf(t, b.source.Service)[lag]
	waitMetric(t, b.source.Service, lag, "growing", func(v float64) bool { return v > first })
	wantShown(t, b.replica, "of "+b.source.Name+": ", "s behind")
	must(t, session.Exec(t.Context(), "ROLLBACK"))
	waitMetric(t, b.source.Service, lag, "nothing again", little)
	b.caughtUp(t)
}

// caughtUpAll waits until the replica follows, without ending the pulse.
func (b *replicaBed) caughtUpAll(t *testing.T) {
	b.pulse.WaitMore(t, beatsBefore)
	b.replica.WaitReplicating(t)
}

// lagOfAHang freezes the replica: who does not answer follows nobody, for all that is known.
func (b *replicaBed) lagOfAHang(t *testing.T) {
	lag := b.sample("kurabe_replica_lag_seconds", "replica")
	m := onlyMember(t, b.replica)
	must(t, m.Freeze())
	thaw := func() { must(t, m.Thaw()) }
	defer thaw()
	waitMetric(t, b.source.Service, lag, "none", none)
	wantShown(t, b.replica, "not following", "its server does not answer")
	thaw()
	waitMetric(t, b.source.Service, lag, "nothing again", little)
}

// unprotected freezes the standby: commits go on alone, and since when is shown.
func (b *replicaBed) unprotected(t *testing.T) {
	s := b.source.Service
	since, synced := b.sample("kurabe_unprotected_seconds", ""), b.sample("kurabe_standby_in_sync", "")
	b.source.WaitWhole(t)
	waitMetric(t, s, since, "nothing", zero)
	_, standby := b.source.Pair(t)
	lag := fmt.Sprintf("kurabe_replica_lag_seconds{instance=%q,server=\"%d\",kind=\"standby\"}", b.source.Name, standby.Number())
	waitMetric(t, s, lag, "nothing", little)
	must(t, standby.Freeze())
	thaw := func() { must(t, standby.Thaw()) }
	defer thaw()
	waitMetric(t, s, since, "shown", shown)
	waitMetric(t, s, synced, "no", zero)
	waitMetric(t, s, lag, "none", none)
	wantShown(t, b.source, "no standby for ", "would be lost with the writer")
	thaw()
	waitMetric(t, s, synced, "yes", once)
	waitMetric(t, s, since, "nothing again", zero)
	waitMetric(t, s, lag, "nothing again", little)
}

// failoverCounted asks for one.
func (b *replicaBed) failoverCounted(t *testing.T) {
	name := b.sample("kurabe_failovers_total", "")
	b.source.WaitWhole(t)
	before := metricsOf(t, b.source.Service)[name]
	must(t, b.source.AskFailover(t))
	waitMetric(t, b.source.Service, name, "one more", func(v float64) bool { return v == before+1 })
	b.source.WaitWhole(t)
	waitMetric(t, b.source.Service, b.sample("kurabe_replica_lag_seconds", "replica"), "nothing again", little)
	b.caughtUp(t)
}
