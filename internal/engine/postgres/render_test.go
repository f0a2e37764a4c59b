package postgres

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"kurabe"
	"kurabe/internal/engine"
	"kurabe/internal/engine/enginetest"
	"kurabe/internal/engine/postgres/parameter"
)

func sample(family string, settings map[string]string) engine.Instance {
	home := engine.Home{Dir: "/srv/kurabe/db-1"}
	return engine.Instance{
		Assignment: kurabe.Assignment{
			Instance: "db-1", Name: "shop", Address: "127.66.0.7", Port: 5432, MasterUsername: "master", Settings: settings,
		},
		Home: home, SeenDir: "/run/kurabe/db-1",
		Version: kurabe.EngineVersion{Family: family, BinDir: "/trees/bin", Extensions: []string{"citext", "hstore"}},
	}
}

func TestRender(t *testing.T) {
	cases := map[string]engine.Instance{
		"plain":     sample("postgres15", map[string]string{"shared_buffers": "16384", "timezone": "UTC"}),
		"force-ssl": sample("postgres15", map[string]string{parameter.ForceSSL: "on"}),
		"newer":     sample("postgres17", nil),
		"hostile": sample("postgres15", map[string]string{
			"search_path":      "x'\nlisten_addresses = '*",
			"application_name": `back\slash'' and "quotes"` + "\x00\r",
			"port":             "1", // the service's own
			"hba_file":         "/tmp/evil",
			"a = 1\nb":         "not a name",
		}),
		"group-writer":   member(1, kurabe.Role{Duty: kurabe.DutyWrite, Followers: []kurabe.InstanceID{"db-1~2"}}),
		"group-waits":    member(1, kurabe.Role{Duty: kurabe.DutyWrite, Followers: []kurabe.InstanceID{"db-1~2"}, WaitFor: []kurabe.InstanceID{"db-1~2"}}),
		"group-held":     held(member(1, kurabe.Role{Duty: kurabe.DutyWrite, Followers: []kurabe.InstanceID{"db-1~2"}, WaitFor: []kurabe.InstanceID{"db-1~2"}})),
		"group-follower": member(2, kurabe.Role{Duty: kurabe.DutyFollow, Source: &kurabe.Source{ID: "db-1", Address: "127.66.0.7", Port: 5432}}),
	}
	reader := member(2, kurabe.Role{Duty: kurabe.DutyFollow, ServesReads: true, Source: &kurabe.Source{ID: "db-1", Address: "127.66.0.7", Port: 5432}})
	reader.ReaderAddress = "127.66.0.9"
	reader.Topology = []kurabe.TopologyServer{{ID: kurabe.ServerResourceID("db-1"), Endpoint: "127.66.0.7"}, {ID: kurabe.ServerResourceID("db-1~2"), Endpoint: "127.66.0.8"}}
	cases["cluster-reader"] = reader
	d := New(Config{Root: "/trees", ServiceUser: "root"})
	for name, i := range cases {
		t.Run(name, func(t *testing.T) {
			files := d.Render(i)
			var all strings.Builder
			for _, file := range slices.Sorted(maps.Keys(files)) {
				all.WriteString("==> " + file + "\n" + files[file])
			}
			enginetest.Golden(t, "render/"+name, all.String())
		})
	}
}

func TestCommand(t *testing.T) {
	got := New(Config{ServiceUser: "root"}).Command(sample("postgres15", nil)).Argv
	want := []string{"/trees/bin/postgres", "-D", "/run/kurabe/db-1/data", "-c", "config_file=/run/kurabe/db-1/conf/postgresql.conf"}
	if !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}

// A value never ends its line or its quotes.
func FuzzQuoteSetting(f *testing.F) {
	for _, seed := range []string{"", "plain", "'", `\'`, "\n", `\`, "''", "a\r\nb"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, value string) {
		quoted := quoteSetting(value)
		inner, ok := strings.CutPrefix(quoted, "'")
		inner, ok2 := strings.CutSuffix(inner, "'")
		if !ok || !ok2 || strings.ContainsAny(quoted, "\n\r\x00") {
			t.Fatalf("%q", quoted)
		}
		inner = strings.ReplaceAll(inner, `\\`, "")
		inner = strings.ReplaceAll(inner, "''", "")
		if strings.Contains(inner, "'") || strings.HasSuffix(inner, `\`) {
			t.Fatalf("%q ends early", quoted)
		}
	})
}

func TestErrorLog(t *testing.T) {
	i := sample("postgres15", nil)
	d := New(Config{ServiceUser: "root"})
	cases := []struct {
		name, want string
		names      []string
	}{
		{"none yet", i.Home.StartLog(), []string{"start.log"}},
		{"the newest hour", "/srv/kurabe/db-1/log/postgresql.log.2026-11-21-03", []string{
			"postgresql.log.2026-11-20-23", "postgresql.log.2026-11-21-03", "postgresql.log.2026-11-21-03.csv", "start.log",
		}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if got := d.ErrorLog(i, c.names); got != c.want {
				t.Errorf("got %s", got)
			}
		})
	}
}

// What Kurabe sets by itself must not be a user's to set.
func TestRenderedIsFixed(t *testing.T) {
	for _, l := range plumbing(sample("postgres17", nil)) {
		if parameter.Fixed[l.name] == "" && l.name != parameter.ExtensionsList {
			t.Errorf("%s is rendered by us and modifiable", l.name)
		}
	}
	if !slices.IsSorted(settable) {
		t.Error("a list is out of order")
	}
}
