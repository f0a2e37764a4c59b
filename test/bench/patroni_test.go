package main

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"kurabe/internal/harness"
)

func renderConf(t *testing.T, pace patroniPace) (text string, at func(path ...string) any) {
	t.Helper()
	text = patroniConf{scope: "s", name: "node-1", address: "127.78.0.2", etcd: "127.78.0.1", dir: "/x y/node-1", binDir: "/pg/bin", password: `a"b: c`, pace: pace}.render()
	var all map[string]any
	if err := yaml.Unmarshal([]byte(text), &all); err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	return text, func(path ...string) any {
		var here any = all
		for _, key := range path {
			m, _ := here.(map[string]any)
			here = m[key]
		}
		return here
	}
}

func TestPatroniConf(t *testing.T) {
	_, fastest := renderConf(t, patroniFastest)
	for path, want := range map[string]any{
		"scope": "s", "name": "node-1",
		"restapi listen":                                         "127.78.0.2:18008",
		"etcd3 host":                                             "127.78.0.1:12379",
		"bootstrap dcs ttl":                                      20,
		"bootstrap dcs loop_wait":                                1,
		"bootstrap dcs retry_timeout":                            3,
		"bootstrap dcs synchronous_mode":                         true,
		"bootstrap dcs synchronous_mode_strict":                  false,
		"bootstrap dcs postgresql use_pg_rewind":                 true,
		"bootstrap dcs postgresql parameters wal_sender_timeout": "3s",
		"postgresql listen":                                      "127.78.0.2:15432",
		"postgresql data_dir":                                    "/x y/node-1/data",
		"postgresql authentication superuser password":           `a"b: c`,
	} {
		if got := fastest(strings.Fields(path)...); got != want {
			t.Errorf("%s: %v, want %v", path, got, want)
		}
	}
	text, byItself := renderConf(t, patroniDefault)
	for _, key := range []string{"ttl", "loop_wait", "retry_timeout", "wal_sender_timeout"} {
		if strings.Contains(text, key+":") {
			t.Errorf("%s is set where Patroni's own settings are measured", key)
		}
	}
	if byItself("bootstrap", "dcs", "synchronous_mode") != true {
		t.Error("a default that acknowledges without the standby is no comparison")
	}
}

// Patroni demands it of every pace: a leader that cannot reach the store must be able to
// give up within its lease.
func TestPatroniFastestIsAccepted(t *testing.T) {
	p := patroniFastest
	if p.ttl < 20 || p.loopWait < 1 || p.retryTimeout < 3 || p.loopWait+2*p.retryTimeout > p.ttl {
		t.Errorf("%+v", p)
	}
}

func TestPatroniRoles(t *testing.T) {
	for body, want := range map[string]map[string]string{
		`{"members": [{"name": "node-1", "role": "leader", "state": "running", "timeline": 3}, {"name": "node-2", "role": "sync_standby", "state": "streaming", "lag": 0}], "scope": "s"}`: {"node-1": "leader", "node-2": "sync_standby"},
		`{"members": [{"name": "node-1", "role": "leader", "state": "running"}, {"name": "node-2", "role": "replica", "state": "starting"}]}`:                                              {"node-1": "leader"},
		`{}`: {},
		`x`:  nil,
	} {
		got, err := patroniRoles([]byte(body))
		if (err != nil) != (want == nil) || !maps.Equal(got, want) {
			t.Errorf("%s: %v, %v; want %v", body, got, err, want)
		}
	}
}

func TestPatroniVersion(t *testing.T) {
	for text, want := range map[string]string{
		"patroni 3.0.2\n":                 "3.0.2",
		"__main__.py 4.1.5\n":             "4.1.5",
		"No module named patroni\n":       "",
		"/usr/bin/python3: not installed": "",
		"":                                "",
	} {
		if got := patroniVersion(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

// Each loss has its own rows: those that an earlier one has cost stay missing.
func TestTallyOfAPeer(t *testing.T) {
	raw, err := os.Create(filepath.Join(t.TempDir(), "raw"))
	if err != nil {
		t.Fatal(err)
	}
	defer raw.Close()
	own, peer, away := newTally("Kurabe", "", nil), newTally("P", "settings", nil), newTally("Q", "settings", nil)
	lost := []int64{}
	for n, x := range losses {
		own.count(x, 0.5, harness.PulseVerdict{Acked: 10 * (n + 1)})
		if n == 1 {
			lost = []int64{4, 5}
		}
		peer.count(x, 2, harness.PulseVerdict{Acked: 10 * (n + 1), Missing: lost})
	}
	away.err = os.ErrDeadlineExceeded
	r := &run{out: &report{raw: raw}}
	r.failoverRows(own, nil, []*tally{peer, away})
	var values []string
	for _, line := range r.out.rows {
		if line.Verdict != "" && strings.Contains(line.What, "P") {
			t.Errorf("a peer has a verdict: %s", line.What)
		}
		if strings.HasSuffix(line.What, ", P") {
			values = append(values, line.Value)
		}
		if strings.HasSuffix(line.What, ", Q") && !strings.HasPrefix(line.What, "acknowledged") && (line.Value != notMeasured || !strings.Contains(line.Note, "given up")) {
			t.Errorf("%s: %s, %s", line.What, line.Value, line.Note)
		}
	}
	figure := "median 2.00 s, worst 2.00 s; × 4.0 and × 4.0 of Kurabe's"
	if want := []string{figure, figure, figure, figure, "2 of 40"}; !slices.Equal(values, want) {
		t.Errorf("%q, want %q", values, want)
	}
	if got, want := peer.lost(), "2 after "+losses[1].name; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// --quick has one peer, the whole form four.
func TestPatroniArms(t *testing.T) {
	for quick, want := range map[bool]int{true: 1, false: 4} {
		r := &run{settings: settings{Quick: quick}}
		if got := len(patroniBuilds(r)) * len(patroniPaces(r)); got != want {
			t.Errorf("quick %t: %d, want %d", quick, got, want)
		}
	}
}

// Where Patroni was never fetched, as in this folder, a row says so and there is no peer.
func TestPeersThatCannotBeHad(t *testing.T) {
	for only, reason := range map[string]string{"failover": "", "": "only with --only failover"} {
		raw, err := os.Create(filepath.Join(t.TempDir(), "raw"))
		if err != nil {
			t.Fatal(err)
		}
		defer raw.Close()
		r := &run{settings: settings{Only: only}, out: &report{raw: raw}}
		p, list := r.openPeers(t.Context(), &lab{dir: t.TempDir(), engines: map[string]string{postgres: "15.18"}})
		if err := p.close(); err != nil {
			t.Error(err)
		}
		if len(list) != 0 || len(r.out.rows) != 1 || r.out.rows[0].Value != notMeasured || r.out.rows[0].Verdict != "" || !strings.Contains(r.out.rows[0].Note, reason) || r.out.rows[0].Note == "" {
			t.Errorf("--only %q: %d peers, rows %+v", only, len(list), r.out.rows)
		}
	}
}
