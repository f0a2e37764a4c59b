package cgroup

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// tree makes a pretended hierarchy: folders and files with content.
func tree(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, content := range files {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func content(t *testing.T, path string) string {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// groupV2 is a group as the kernel would have made it.
func groupV2(at string) map[string]string {
	return map[string]string{
		at + "/cgroup.procs": "", at + "/cgroup.controllers": "cpu io memory\n", at + "/cgroup.subtree_control": "",
		at + "/cpu.max": "max 100000\n", at + "/io.max": "8:16 rbps=1 wbps=max riops=max wiops=max\n",
		at + "/memory.max": "max\n", at + "/memory.swap.max": "max\n", at + "/memory.current": "5000000\n",
		at + "/memory.stat":   "anon 3000000\nfile 1000000\nshmem 1000000\n",
		at + "/memory.events": "low 0\noom 3\noom_kill 2\n",
		at + "/cpu.stat":      "usage_usec 1500\nnr_throttled 4\nthrottled_usec 250\n",
		at + "/io.stat":       "254:0 rbytes=10 wbytes=20 rios=1 wios=2 dbytes=0 dios=0\n7:0 \n",
	}
}

func pureV2(t *testing.T) string {
	files := map[string]string{}
	for _, at := range []string{".", "kurabe-1", "kurabe-1/db"} {
		for name, text := range groupV2(at) {
			files[name] = text
		}
	}
	return tree(t, files)
}

func TestV2(t *testing.T) {
	root := pureV2(t)
	levers := Detect(root, "kurabe-1")
	for _, l := range []Lever{levers.CPU, levers.Memory, levers.IO} {
		if !l.Enforceable || l.Version != 2 {
			t.Fatalf("levers:\n%v", levers)
		}
	}
	g, err := levers.Ensure("db", Limits{
		CPUQuota: 1.5, MemoryBytes: 8 << 20, Device: Device{254, 0}, ReadIOPS: 3000, WriteBytesPerSecond: 125 << 20,
	})
	if err != nil {
		t.Fatal(err)
	}
	db := filepath.Join(root, "kurabe-1/db")
	want := map[string]string{
		"cpu.max": "150000 100000", "memory.max": "8388608", "memory.swap.max": "0",
		"io.max":                                "254:0 rbps=max wbps=131072000 riops=3000 wiops=max",
		"../cgroup.subtree_control":             "+io", // the kernel adds up; a file keeps the last
		"../../cgroup.subtree_control":          "+io",
		"../../kurabe-1/cgroup.subtree_control": "+io",
	}
	for name, text := range want {
		if got := content(t, filepath.Join(db, name)); got != text {
			t.Errorf("%s = %q, want %q", name, got, text)
		}
	}
	if got := g.ProcsFiles(); len(got) != 1 || got[0] != filepath.Join(db, procsFile) {
		t.Errorf("procs files = %v", got)
	}
	if err := g.Update(Limits{}); err != nil {
		t.Fatal(err)
	}
	if got := content(t, db+"/cpu.max") + " " + content(t, db+"/memory.max") + " " + content(t, db+"/io.max"); got != "max max 254:0 rbps=max wbps=max riops=max wiops=max" {
		t.Errorf("lifted limits = %q", got)
	}
	if names, err := levers.List(); err != nil || len(names) != 1 || names[0] != "db" {
		t.Errorf("list = %v, %v", names, err)
	}
	if _, ok := levers.Find("other"); ok {
		t.Error("found a group that is not there")
	}
}

func TestV2Stats(t *testing.T) {
	levers := Detect(pureV2(t), "kurabe-1")
	g, ok := levers.Find("db")
	if !ok {
		t.Fatal("not found")
	}
	s, err := g.Stats()
	if err != nil {
		t.Fatal(err)
	}
	io := s.IO[Device{254, 0}]
	if s.CPUUsage != 1500*time.Microsecond || s.CPUThrottled != 250*time.Microsecond || s.PeriodsThrottled != 4 ||
		s.MemoryBytes != 5000000 || s.MemoryUnreclaimableBytes != 4000000 || s.MemoryLimitBytes != 0 || s.OOMKills != 2 ||
		io != (IOStats{1, 2, 10, 20}) {
		t.Errorf("stats = %+v", s)
	}
	var used *MemoryInUseError
	if err := g.Update(Limits{MemoryBytes: 3 << 20}); !errors.As(err, &used) || used.UsedBytes != 4000000 {
		t.Errorf("lowered below use: %v", err)
	}
}

func TestV2MovesOwnProcessesIntoLeaf(t *testing.T) {
	root := pureV2(t)
	leaf := filepath.Join(root, "leaf")
	for _, dir := range []string{root, leaf} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, procsFile), []byte("77\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := moveAll(root, leaf); err != nil {
		t.Fatal(err)
	}
	if got := content(t, filepath.Join(leaf, procsFile)); got != "77" {
		t.Errorf("moved %q", got)
	}
}

func TestDetect(t *testing.T) {
	const manager = "user.slice/user@1000.service"
	const mine = manager + "/kurabe.service"
	v2 := func(top, own string) map[string]string {
		return map[string]string{
			"cgroup.controllers": top, "cgroup.procs": "",
			manager + "/cgroup.controllers": own, manager + "/cgroup.procs": "",
			mine + "/cgroup.controllers": own, mine + "/cgroup.procs": "",
		}
	}
	v1 := map[string]string{
		"cpu,cpuacct/cgroup.procs": "", "cpu,cpuacct/cpu.cfs_quota_us": "-1", "memory/cgroup.procs": "",
		"memory/memory.limit_in_bytes": "", "blkio/cgroup.procs": "",
		"unified/cgroup.controllers": "hugetlb", "unified/cgroup.procs": "",
	}
	all := func(string) bool { return true }
	none := func(string) bool { return false }
	own := func(dir string) bool { return strings.HasSuffix(dir, mine) }
	above := func(dir string) bool { return strings.Contains(dir, manager) }
	cases := map[string]struct {
		files    map[string]string
		writable func(string) bool
		uid      int
		cpu      string // "v1", "v2" or part of the reason
		io       string
	}{
		"nothing mounted":     {nil, all, 0, "not mounted", "not mounted"},
		"v1":                  {v1, all, 0, "v1", "built without I/O throttling"},
		"v1 read-only":        {v1, none, 0, "read-only", "read-only"},
		"v1 user":             {v1, none, 1000, "needs root", "needs root"},
		"v2 root":             {v2("cpu io memory", ""), all, 0, "v2", "v2"},
		"v2 without io":       {v2("cpu memory", ""), all, 0, "v2", "not mounted"},
		"v2 delegated":        {v2("cpu io memory", "cpu memory"), above, 1000, "v2", "not delegated"},
		"v2 own unit":         {v2("cpu io memory", "cpu io memory"), own, 1000, "DelegateSubgroup=", "own cgroup"},
		"v2 user":             {v2("cpu io memory", "cpu memory"), none, 1000, "systemctl --user", "needs root"},
		"v2 read-only (root)": {v2("cpu io memory", ""), none, 0, "read-only", "read-only"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			d := detector{tree(t, c.files), parseSelf("3:cpu,cpuacct:/" + mine + "\n0::/" + mine + "\n"), c.writable, c.uid}
			l := d.levers("p")
			for _, each := range []struct {
				lever Lever
				want  string
			}{{l.CPU, c.cpu}, {l.IO, c.io}} {
				if isVersion := each.want == "v1" || each.want == "v2"; isVersion != each.lever.Enforceable {
					t.Errorf("%+v, want %s", each.lever, each.want)
				}
				if !strings.Contains(l.String(), each.want) {
					t.Errorf("%q does not say %q", l.String(), each.want)
				}
			}
			_, err := l.Ensure("db", Limits{ReadIOPS: 1, Device: Device{8, 0}})
			var unsupported *UnsupportedError
			if !l.IO.Enforceable && (!errors.As(err, &unsupported) || unsupported.Reason != l.IO.Reason) {
				t.Errorf("a limit that cannot be enforced: %v", err)
			}
		})
	}
}

func TestEnsureRefuses(t *testing.T) {
	levers := Detect(pureV2(t), "kurabe-1")
	for _, name := range []string{"", ".", "..", "a/b", "../x", "cpu.max", "a b"} {
		if _, err := levers.Ensure(name, Limits{}); err == nil {
			t.Errorf("name %q accepted", name)
		}
	}
	if _, err := levers.Ensure("db", Limits{CPUQuota: -1}); err == nil {
		t.Error("negative quota accepted")
	}
	if _, err := levers.Ensure("db", Limits{ReadIOPS: 1}); err == nil {
		t.Error("I/O limit without a device accepted")
	}
}

func TestWithoutLevers(t *testing.T) {
	levers := Detect(t.TempDir(), "kurabe-1")
	g, err := levers.Ensure("db", Limits{})
	if err != nil || len(g.ProcsFiles()) != 0 {
		t.Fatalf("no limits asked for: %v", err)
	}
	if s, err := g.Stats(); err != nil || s.CPUUsage != 0 {
		t.Errorf("stats %+v, %v", s, err)
	}
	if err := g.Remove(context.Background()); err != nil {
		t.Error(err)
	}
}

func TestWholeDisk(t *testing.T) {
	sys := tree(t, map[string]string{
		"devices/vda/dev": "254:0\n", "devices/vda/vda1/dev": "254:1\n", "devices/vda/vda1/partition": "1\n",
		"devices/virtual/dm-0/dev": "253:0\n", "devices/virtual/loop0/dev": "7:0\n", "dev/block/x": "",
	})
	for number, target := range map[string]string{
		"254:0": "devices/vda", "254:1": "devices/vda/vda1", "253:0": "devices/virtual/dm-0", "7:0": "devices/virtual/loop0",
	} {
		if err := os.Symlink("../../"+target, filepath.Join(sys, "dev/block", number)); err != nil {
			t.Fatal(err)
		}
	}
	for from, want := range map[Device]Device{
		{254, 0}: {254, 0}, {254, 1}: {254, 0}, {253, 0}: {253, 0}, {7, 0}: {7, 0},
	} {
		if got, err := wholeDisk(sys, from); err != nil || got != want {
			t.Errorf("disk of %v = %v, %v", from, got, err)
		}
	}
	if _, err := wholeDisk(sys, Device{9, 9}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("unknown device: %v", err)
	}
}

func TestDeviceOf(t *testing.T) {
	var none *NoDeviceError
	if _, err := DeviceOf("/proc"); !errors.As(err, &none) || none.FileSystem != "proc" {
		t.Errorf("/proc: %v", err)
	}
	if _, err := DeviceOf("/nonexistent"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("missing: %v", err)
	}
	device, err := DeviceOf(t.TempDir())
	if err != nil && !errors.As(err, &none) {
		t.Error(err)
	}
	t.Log(device, err)
}

func TestKernelWithoutThrottling(t *testing.T) {
	root := pureV2(t)
	if err := os.Remove(filepath.Join(root, "kurabe-1/db/io.max")); err != nil {
		t.Fatal(err)
	}
	levers := Detect(root, "kurabe-1")
	if _, err := levers.Ensure("db", Limits{CPUQuota: 1}); err != nil {
		t.Errorf("no I/O limit asked for: %v", err)
	}
	var unsupported *UnsupportedError
	if _, err := levers.Ensure("db", Limits{ReadIOPS: 1, Device: Device{8, 0}}); !errors.As(err, &unsupported) {
		t.Errorf("I/O limit: %v", err)
	}
}
