package probe

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// machineOfGroups is a folder like /proc and /sys with a server 10 in the group db, below
// the group service. Its data is on the first partition of disk 7:0.
func machineOfGroups(t *testing.T, names, mounts string) proc {
	t.Helper()
	p := newProc(t)
	p.write("proc/10/cgroup", names)
	p.write("proc/self/mountinfo", inRoot(p, mounts))
	data := filepath.Join(p.root, "data")
	if err := os.Mkdir(data, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(data, filepath.Join(p.root, "proc/10/cwd")); err != nil {
		t.Fatal(err)
	}
	return p
}

func (p proc) group(own func(int) bool) *group {
	p.t.Helper()
	g, err := findGroup(filepath.Join(p.root, "proc"), filepath.Join(p.root, "sys"), 10, own)
	if err != nil {
		p.t.Fatal(err)
	}
	g.disk = "7:0" // which disk the test's folder is on is the machine's
	return g
}

func isServer(pid int) bool { return pid == 10 || pid == 11 }

func TestGroupOfVersion1(t *testing.T) {
	const mounts = "36 25 0:31 / ROOT/cpu rw,relatime shared:1 - cgroup cgroup rw,cpu,cpuacct\n" +
		"37 25 0:32 / ROOT/memory rw - cgroup cgroup rw,memory\n38 25 0:33 / ROOT/blkio rw - cgroup cgroup rw,blkio\n39 25 0:34 / ROOT/unified rw - cgroup2 cgroup2 rw\n"
	p := machineOfGroups(t, "7:blkio:/service/db\n4:memory:/service/db\n1:cpu,cpuacct:/service/db\n0::/\n", mounts)
	p.write("cpu/service/db/cpu.cfs_quota_us", "200000\n")
	p.write("cpu/service/db/cpu.cfs_period_us", "100000\n")
	p.write("cpu/service/cpu.cfs_quota_us", "50000\n")
	p.write("cpu/service/cpu.cfs_period_us", "100000\n")
	p.write("cpu/cpu.cfs_quota_us", "-1\n")
	p.write("memory/service/db/memory.limit_in_bytes", "2147483648\n")
	p.write("memory/service/memory.limit_in_bytes", "9223372036854771712\n")
	p.write("blkio/service/db/cgroup.procs", "10\n11\n")
	p.write("blkio/service/db/blkio.throttle.write_iops_device", "254:0 77\n7:0 1000\n")
	p.write("blkio/service/db/blkio.throttle.read_iops_device", "7:0 2000\n")
	p.write("blkio/service/db/blkio.throttle.io_serviced", "254:0 Read 9\n254:0 Write 9\n7:0 Read 3\n7:0 Write 42\n7:0 Sync 40\n7:0 Total 45\nTotal 63\n")
	g := p.group(isServer)
	if want := (limits{cpus: 0.5, memoryBytes: 2 << 30, readOps: 2000, writeOps: 1000}); g.limits() != want {
		t.Errorf("limits %+v", g.limits())
	}
	if o, err := g.operations(); err != nil || o != (operations{read: 3, write: 42}) {
		t.Errorf("%+v, %v", o, err)
	}
}

// inRoot puts a folder's path where a text of mounts says ROOT.
func inRoot(p proc, text string) string { return strings.ReplaceAll(text, "ROOT", p.root) }

func TestGroupOfVersion2(t *testing.T) {
	const mounts = "36 25 0:31 / ROOT/cgroup rw shared:1 - cgroup2 cgroup2 rw,nsdelegate\n"
	p := machineOfGroups(t, "0::/service/db\n", mounts)
	p.write("cgroup/service/db/cgroup.procs", "10\n11\n")
	p.write("cgroup/service/db/cpu.max", "max 100000\n")
	p.write("cgroup/service/db/memory.max", "max\n")
	p.write("cgroup/service/memory.max", "1073741824\n")
	p.write("cgroup/service/db/io.max", "7:0 rbps=max wbps=max riops=max wiops=1000\n254:0 rbps=max wbps=max riops=5 wiops=5\n")
	p.write("cgroup/service/io.max", "7:0 rbps=max wbps=max riops=3000 wiops=3000\n")
	p.write("cgroup/service/db/io.stat", "254:0 rbytes=1 wbytes=1 rios=9 wios=9 dbytes=0 dios=0\n7:0 rbytes=1 wbytes=1 rios=3 wios=42 dbytes=0 dios=0\n")
	g := p.group(isServer)
	if want := (limits{cpus: float64(runtime.NumCPU()), memoryBytes: 1 << 30, readOps: 3000, writeOps: 1000}); g.limits() != want {
		t.Errorf("limits %+v", g.limits())
	}
	if o, err := g.operations(); err != nil || o != (operations{read: 3, write: 42}) {
		t.Errorf("%+v, %v", o, err)
	}
}

// What is not the server's own, or of no disk, is not counted for it.
func TestOperationsThatCannotBeTold(t *testing.T) {
	for name, c := range map[string]struct {
		procs string
		own   func(int) bool
		disk  string
		want  error
	}{
		"a neighbour in the group": {"10\n99\n", isServer, "7:0", errShared},
		"nobody":                   {"", isServer, "7:0", errShared},
		"no number":                {"10\nx\n", isServer, "7:0", errShared},
		"no disk":                  {"10\n", isServer, "", errNoDisk},
		"a kernel without":         {"10\n", isServer, "7:0", os.ErrNotExist},
	} {
		t.Run(name, func(t *testing.T) {
			p := machineOfGroups(t, "0::/db\n", "36 25 0:31 / ROOT/cgroup rw - cgroup2 cgroup2 rw\n")
			p.write("cgroup/db/cgroup.procs", c.procs)
			g := p.group(c.own)
			g.disk = c.disk
			if _, err := g.operations(); !errors.Is(err, c.want) {
				t.Errorf("%v", err)
			}
		})
	}
}

func TestPlaces(t *testing.T) {
	const mounts = "36 25 0:31 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct\n37 25 0:32 /docker/abc /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n" +
		"torn line\n38 25 0:33 / /proc rw - proc proc rw\n"
	for name, c := range map[string]struct {
		names string
		want  map[string]place
	}{
		"version 1":                   {"3:cpu,cpuacct:/a\n", map[string]place{"cpu": {"/sys/fs/cgroup/cpu", "/sys/fs/cgroup/cpu/a", 1}, "cpuacct": {"/sys/fs/cgroup/cpu", "/sys/fs/cgroup/cpu/a", 1}}},
		"version 2 of a container":    {"0::/docker/abc/db\n", map[string]place{"": {"/sys/fs/cgroup", "/sys/fs/cgroup/db", 2}}},
		"itself":                      {"0::/docker/abc\n", map[string]place{"": {"/sys/fs/cgroup", "/sys/fs/cgroup", 2}}},
		"a name that begins likewise": {"0::/docker/abcd/db\n", nil},
		"outside of what is mounted":  {"0::/../other\n0::/system\n", nil},
		"not mounted":                 {"5:pids:/a\n", nil},
		"torn":                        {"0\n:\n\n", nil},
	} {
		t.Run(name, func(t *testing.T) {
			if got := places(c.names, mounts); !maps.Equal(got, c.want) {
				t.Errorf("%+v", got)
			}
		})
	}
}

func TestWholeDisk(t *testing.T) {
	p := newProc(t)
	p.write("devices/sda/dev", "8:0\n")
	p.write("devices/sda/sda1/partition", "1\n")
	p.write("devices/loop0/dev", "7:0\n")
	for device, folder := range map[string]string{"8:1": "devices/sda/sda1", "7:0": "devices/loop0"} {
		link := filepath.Join(p.root, "dev/block", device)
		if err := os.MkdirAll(filepath.Dir(link), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(filepath.Join(p.root, folder), link); err != nil {
			t.Fatal(err)
		}
	}
	for device, want := range map[string]string{"8:1": "8:0", "7:0": "7:0", "0:45": ""} {
		if got := wholeDisk(p.root, device); got != want {
			t.Errorf("%s: %q", device, got)
		}
	}
}

func FuzzGroupFiles(f *testing.F) {
	f.Add("7:blkio:/a\n0::/b\n", "36 25 0:31 / /x rw - cgroup cgroup rw,blkio\n", "7:0 rios=1 wios=2\n7:0 Read 3\n")
	f.Fuzz(func(t *testing.T, names, mounts, lines string) {
		for _, p := range places(names, mounts) {
			if p.dir == "" || p.version == 0 {
				t.Errorf("%+v", p)
			}
		}
		dir := t.TempDir()
		for _, file := range []string{"io.stat", "io.max", "cpu.max", "memory.max", "cgroup.procs"} {
			if err := os.WriteFile(filepath.Join(dir, file), []byte(lines), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		here := place{dir, dir, 2}
		g := &group{cpu: here, io: here, memory: here, disk: "7:0", owned: true}
		l := g.limits()
		o, err := g.operations()
		for _, x := range []float64{l.cpus, l.memoryBytes, l.readOps, l.writeOps, o.read, o.write} {
			if x < 0 || x != x || err != nil {
				t.Errorf("%+v, %+v, %v", l, o, err)
			}
		}
	})
}
