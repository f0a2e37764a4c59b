package failover

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"kurabe/test/bench/bed"
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

func TestPatroniOwesRestart(t *testing.T) {
	for body, want := range map[string]bool{
		`{"state": "running", "role": "replica", "pending_restart": true}`: true,
		`{"state": "running", "role": "replica"}`:                          false,
	} {
		if got, err := patroniOwesRestart([]byte(body)); err != nil || got != want {
			t.Errorf("%s: %t, %v", body, got, err)
		}
	}
	if _, err := patroniOwesRestart([]byte("x")); err == nil {
		t.Error("x owes no restart")
	}
}

// --quick has one form of peers, the whole run four, and --peers those that it names.
func TestPatroniForms(t *testing.T) {
	for name, c := range map[string]struct {
		settings bed.Settings
		want     []string
	}{
		"whole": {bed.Settings{}, PeerForms},
		"quick": {bed.Settings{Quick: true}, []string{"debian-fastest"}},
		"named": {bed.Settings{Quick: true, Peers: "current-default,debian-default"}, []string{"debian-default", "current-default"}},
		"none":  {bed.Settings{Peers: NoPeers}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, b := range patroniBuilds(&comparison{Run: &bed.Run{Settings: c.settings}}) {
				for _, pace := range b.paces {
					got = append(got, b.form+"-"+pace.form)
				}
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("%v, want %v", got, c.want)
			}
		})
	}
}

// Where Patroni was never fetched, as in this folder, a row says so and there is no peer.
func TestPeersThatCannotBeHad(t *testing.T) {
	for only, reason := range map[string]string{"failover": "scripts/install.sh bench", "": "only with --only failover"} {
		r := testRun(t, bed.Settings{Only: only})
		p := r.openPeers(t.Context(), &site{Lab: &bed.Lab{Dir: t.TempDir(), Engines: map[string]string{bed.Postgres: "15.18"}}})
		if err := p.close(); err != nil {
			t.Error(err)
		}
		r.failoverFigures()
		if len(p.contenders()) != 0 || len(r.Out.Rows) == 0 {
			t.Errorf("--only %q: %d peers, rows %+v", only, len(p.contenders()), r.Out.Rows)
		}
		for _, line := range r.Out.Rows {
			if line.Value != bed.NotMeasured || line.Verdict != "" || !strings.Contains(line.Note, reason) {
				t.Errorf("--only %q: %+v", only, line)
			}
		}
	}
}
