package target

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"kurabe/lab/study"
)

func sized(scale int) *study.Study {
	return &study.Study{Baseline: "plain", Variants: []study.Variant{{Name: "plain"}, {Name: "small", StorageGiB: 20}},
		Workloads: []study.Workload{{Name: "w", Generator: study.GeneratorPgbench, Kit: "tpcb-like", Scale: scale}}}
}

// muchScale is data that no disk has room for: 1.6 PB.
const muchScale = 100_000_000

func TestPrivateWithoutRoom(t *testing.T) {
	p := &private{dir: t.TempDir()}
	if _, err := p.Check(t.Context(), sized(muchScale)); err == nil || !strings.Contains(err.Error(), "GiB free: choose another folder with TMPDIR") {
		t.Errorf("error %v", err)
	}
}

func TestInstanceWithoutRoom(t *testing.T) {
	on := newTarget(t, newFake())
	why, err := on.Check(t.Context(), sized(2000)) // 31 GiB
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(why["small"], "20 GiB has no room") || !strings.Contains(why["small"], "storage_gib: 33") {
		t.Errorf("small: %q", why["small"])
	}
	if why["plain"] != "" {
		t.Errorf("one whose storage is chosen for it: %q", why["plain"])
	}
	if why, err := on.Check(t.Context(), sized(10)); err != nil || why["small"] != "" {
		t.Errorf("little data: %q, %v", why, err)
	}
}

func TestNoRoom(t *testing.T) {
	changing := sized(700) // 10.9 GiB
	changing.Variants[0].Change = map[string][]string{"": {"SELECT 1"}}
	logging := sized(700)
	logging.Variants[0].Parameters = map[string]string{"general_log": "1"}
	logging.Plan.Measure = study.Duration(20 * time.Minute)
	for name, c := range map[string]struct {
		study *study.Study
		gib   int
		want  bool
	}{
		"enough":               {sized(700), 20, false},
		"its own size":         {sized(700), 11, true},
		"a table is made anew": {changing, 20, true},
		"a log of twenty":      {logging, 20, true},
		"a service that grows": {sized(700), 0, false},
	} {
		if why := noRoom(c.study, c.gib); (why != "") != c.want {
			t.Errorf("%s: %q", name, why)
		}
	}
}

// The folder of a server is believed only when a process of this machine works in it.
func TestLocalData(t *testing.T) {
	folder, err := filepath.EvalSymlinks(t.TempDir())
	must(t, err)
	here, err := os.Getwd()
	must(t, err)
	pid := filepath.Join(folder, "postmaster.pid")
	must(t, os.WriteFile(pid, []byte(fmt.Sprintf("%d\n%s\n", os.Getpid(), folder)), 0o600))
	settings := func(at string) map[string]setting { return map[string]setting{"data_directory": {value: at}} }
	if got := localData("127.0.0.1", study.Postgres, settings(folder)); got != "" {
		t.Errorf("a process that works elsewhere: %q", got)
	}
	t.Chdir(folder)
	for name, c := range map[string]struct{ host, folder, want string }{
		"here":           {"127.0.0.1", folder, folder},
		"here, by name":  {"localhost", folder, folder},
		"elsewhere":      {"10.0.0.1", folder, ""},
		"not told":       {"127.0.0.1", "", ""},
		"no such folder": {"127.0.0.1", "/no/such/folder", ""},
		"no pid file":    {"127.0.0.1", here, ""},
	} {
		if got := localData(c.host, study.Postgres, settings(c.folder)); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
	if got := localData("::1", study.MariaDB, map[string]setting{"datadir": {value: folder + "/"}, "pid_file": {value: "postmaster.pid"}}); got != folder {
		t.Errorf("MariaDB: %q", got)
	}
	u := &urlTarget{have: settings(folder)}
	u.admin.Engine, u.admin.Host = study.Postgres, "127.0.0.1"
	if err := u.checkDisk(sized(muchScale)); err == nil || !strings.Contains(err.Error(), folder) {
		t.Errorf("error %v", err)
	}
	u.admin.Host = "10.0.0.1"
	if err := u.checkDisk(sized(muchScale)); err != nil {
		t.Errorf("of another machine's disk something is claimed: %v", err)
	}
}
