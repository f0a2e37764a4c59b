package agent

import (
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"kurabe"
	"kurabe/internal/metrics/catalog"
	"kurabe/internal/metrics/sample"
	"kurabe/internal/metrics/series"
)

// keptSamples remembers what was appended.
type keptSamples struct {
	mu   sync.Mutex // guards the rest
	at   map[string][]time.Time
	of   map[string]series.Sample // the newest
	fail error
}

func (k *keptSamples) Append(at time.Time, list []series.Sample) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.fail != nil {
		return k.fail
	}
	for _, s := range list {
		metric := s.Labels.Get(catalog.Metric)
		k.at[metric], k.of[metric] = append(k.at[metric], at), s
	}
	return nil
}

// take returns how many samples a metric has got since the last take.
func (k *keptSamples) take(metric string) int {
	k.mu.Lock()
	defer k.mu.Unlock()
	n := len(k.at[metric])
	delete(k.at, metric)
	return n
}

const (
	free, sessions, written = "FreeStorageSpace", "DatabaseConnections", "TransactionLogsGeneration"
)

// Each second has a sample. A server that hangs or is stopped costs its own, and none of what is
// known without it.
func TestSamples(t *testing.T) {
	inBubble(t, func(b *bed) {
		b.series = &keptSamples{at: map[string][]time.Time{}, of: map[string]series.Sample{}}
		want := wanted(1)
		want.Limits.StorageBytes = 3 << 20
		b.start()
		b.send(want)
		time.Sleep(time.Second / 2) // virtual; a minute begins and ends between two seconds
		minute := func(what string, most map[string]int) {
			t.Helper()
			for metric := range most {
				b.series.take(metric)
			}
			time.Sleep(time.Minute) // virtual
			synctest.Wait()
			for metric, n := range most {
				if got := b.series.take(metric); got != n {
					t.Errorf("%s: %d samples of %s in a minute, want %d", what, got, metric, n)
				}
			}
		}
		minute("running", map[string]int{free: 60, sessions: 60})
		if s := b.series.of[free]; s.Value != 2<<20 || s.Labels.Get(catalog.Instance) != "orders" || s.Labels.Get(catalog.Role) != catalog.RolePrimary ||
			s.Labels.Get(catalog.Namespace) != catalog.RDS || s.Labels.Get(catalog.Server) != "db-1" || s.Labels.Get(catalog.Engine) != "postgres" {
			t.Errorf("%+v", s)
		}
		b.engine.Freeze("db-1")
		time.Sleep(10 * time.Second) // virtual; until it is known to hang
		minute("hanging", map[string]int{free: 60, sessions: 0})
		b.engine.Thaw("db-1")
		time.Sleep(10 * time.Second) // virtual
		minute("back", map[string]int{free: 60, sessions: 60, written: 60})
		want.Generation, want.Goal = 2, kurabe.GoalStopped
		b.send(want)
		minute("stopped", map[string]int{free: 60, sessions: 0})
		b.series.mu.Lock()
		b.series.fail = errors.New("full")
		b.series.mu.Unlock()
		minute("store away", map[string]int{free: 0})
		b.series.mu.Lock()
		b.series.fail = nil
		b.series.mu.Unlock()
		minute("store back", map[string]int{free: 60})
	})
}

// The name and the role that a server's series have.
func TestSeriesIdentity(t *testing.T) {
	role := func(r kurabe.Role) *kurabe.Role { return &r }
	source := func(id kurabe.InstanceID) *kurabe.Source { return &kurabe.Source{ID: id} }
	cases := map[string]struct {
		a    []kurabe.Assignment // in turn
		want string
	}{
		"alone":                {[]kurabe.Assignment{{Instance: "db-A"}}, "n primary"},
		"primary":              {[]kurabe.Assignment{{Instance: "db-A", Role: role(kurabe.Role{Duty: kurabe.DutyWrite})}}, "n primary"},
		"standby":              {[]kurabe.Assignment{{Instance: "db-A~2", Role: role(kurabe.Role{Duty: kurabe.DutyFollow, Source: source("db-A")})}}, "n standby"},
		"fenced":               {[]kurabe.Assignment{{Instance: "db-A", Role: role(kurabe.Role{Duty: kurabe.DutyFenced})}}, "n standby"},
		"read replica":         {[]kurabe.Assignment{{Instance: "db-B", Role: role(kurabe.Role{Duty: kurabe.DutyFollow, ServesReads: true, Source: source("db-A")})}}, "n replica"},
		"of a cluster":         {[]kurabe.Assignment{{Instance: "db-A~2", Role: role(kurabe.Role{Duty: kurabe.DutyFollow, ServesReads: true, Source: source("db-A")})}}, "n-instance-2 reader"},
		"primary of a cluster": {[]kurabe.Assignment{{Instance: "db-A", ReaderAddress: "x", Role: role(kurabe.Role{Duty: kurabe.DutyWrite})}}, "n-instance-1 primary"},
		"fenced in a cluster":  {[]kurabe.Assignment{{Instance: "db-A", ReaderAddress: "x", Role: role(kurabe.Role{Duty: kurabe.DutyWrite})}, {Instance: "db-A", Role: role(kurabe.Role{Duty: kurabe.DutyFenced})}}, "n-instance-1 reader"},
		"after a failover":     {[]kurabe.Assignment{{Instance: "db-A", Role: role(kurabe.Role{Duty: kurabe.DutyWrite})}, {Instance: "db-A", Role: role(kurabe.Role{Duty: kurabe.DutyFollow, Source: source("db-A~2")})}}, "n standby"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			var l labeller
			var got series.Labels
			for _, a := range c.a {
				a.Name = "n"
				got = l.label(a, []sample.Value{{Metric: "CPUUtilization"}})[0].Labels
			}
			if text := got.Get(catalog.Instance) + " " + got.Get(catalog.Role); text != c.want {
				t.Errorf("%s, want %s", text, c.want)
			}
		})
	}
}
