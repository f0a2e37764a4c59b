package bed

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"kurabe/internal/cgroup"
)

// Machine is where a run took place.
type Machine struct {
	// ID tells this machine from others of its kind, "" where nothing does. It is no secret
	// that others could use: what the machine calls itself is hashed.
	ID          string            `json:"id,omitempty"`
	CPU         string            `json:"cpu"`
	CPUs        int               `json:"cpus"`
	MemoryBytes int64             `json:"memoryBytes"`
	Kernel      string            `json:"kernel"`
	FileSystem  string            `json:"fileSystem"`
	Device      string            `json:"device"`
	Levers      string            `json:"levers"`
	Root        bool              `json:"root"`
	Versions    map[string]string `json:"versions"`
	Load        string            `json:"load"`
	BusyShare   float64           `json:"busyShare"` // of all processors, over a second before the run
}

// busyMost is how much of the processors others may use before the run warns.
const busyMost = 0.05

// DescribeMachine looks at this machine, for a second.
func DescribeMachine(ctx context.Context, s Settings) Machine {
	m := Machine{ID: machineID(), CPUs: runtime.NumCPU(), Load: loadAverage(), Root: os.Getuid() == 0, Versions: map[string]string{}}
	for _, line := range ReadLines("/proc/cpuinfo") {
		if name, value, _ := strings.Cut(line, ":"); strings.TrimSpace(name) == "model name" {
			m.CPU = strings.TrimSpace(value)
			break
		}
	}
	var info unix.Sysinfo_t
	if unix.Sysinfo(&info) == nil {
		m.MemoryBytes = int64(info.Totalram) * int64(info.Unit)
	}
	if release, err := os.ReadFile("/proc/sys/kernel/osrelease"); err == nil {
		m.Kernel = strings.TrimSpace(string(release))
	}
	m.FileSystem = firstLine(ctx, "stat", "-f", "-c", "%T", s.Dir)
	m.Device = "none of its own"
	if device, err := cgroup.DeviceOf(s.Dir); err == nil {
		m.Device = device.String()
	}
	m.Levers = strings.Join(strings.Split(strings.TrimSpace(cgroup.Detect(cgroupRoot, "kurabe-bench").String()), "\n"), "; ")
	for name, argv := range map[string][]string{
		"kurabe": {s.Bin, "--version"}, "postgres": {Newest("postgres"), "--version"}, "pgbench": {Newest("pgbench"), "--version"},
		"mariadb": {"mariadbd", "--version"}, "sysbench": {"sysbench", "--version"},
	} {
		if text := firstLine(ctx, argv...); text != "" {
			m.Versions[name] = text
		}
	}
	m.Versions["go"] = runtime.Version()
	m.BusyShare = busyShare(ctx, time.Second)
	return m
}

// machineID is of the installation, and of the hardware or virtual machine where that says
// which one it is: a copy of a disk has the same of the former.
func machineID() string {
	var known []byte
	for _, path := range []string{"/etc/machine-id", "/sys/class/dmi/id/product_uuid"} {
		text, _ := os.ReadFile(path) // what cannot be read says nothing
		known = append(known, bytes.TrimSpace(text)...)
	}
	if len(known) == 0 {
		return ""
	}
	sum := sha256.Sum256(append([]byte("kurabe bench "), known...))
	return hex.EncodeToString(sum[:6])
}

// memoryDiffers is by how much of it the kernel may say otherwise after a restart.
const memoryDiffers = 0.02

// Differs says how another machine is not this one, "" when it may be the same. Of what a file
// of an earlier version lacks nothing is said.
func (m Machine) Differs(o Machine) string {
	switch {
	case m.CPU != o.CPU || m.CPUs != o.CPUs || m.Kernel != o.Kernel:
		return fmt.Sprintf("%d × %s with Linux %s, and this is %d × %s with Linux %s", o.CPUs, o.CPU, o.Kernel, m.CPUs, m.CPU, m.Kernel)
	case math.Abs(float64(m.MemoryBytes-o.MemoryBytes)) > memoryDiffers*float64(m.MemoryBytes):
		return fmt.Sprintf("a machine with %.1f GiB, and this one has %.1f", float64(o.MemoryBytes)/(1<<30), float64(m.MemoryBytes)/(1<<30))
	case m.ID != "" && o.ID != "" && m.ID != o.ID:
		return fmt.Sprintf("another machine of the same kind (%s), and this is %s", o.ID, m.ID)
	case m.Root != o.Root:
		return fmt.Sprintf("root %t, and this is with %t", o.Root, m.Root)
	case m.FileSystem != o.FileSystem:
		return fmt.Sprintf("%s, and this is on %s", o.FileSystem, m.FileSystem)
	}
	for _, name := range []string{Postgres, MariaDB} {
		if m.Versions[name] != o.Versions[name] {
			return fmt.Sprintf("%q, and this machine has %q", o.Versions[name], m.Versions[name])
		}
	}
	return ""
}

// lines are the machine in words.
func (m Machine) lines() []string {
	names := make([]string, 0, len(m.Versions))
	for name := range m.Versions {
		names = append(names, name)
	}
	slices.Sort(names)
	versions := make([]string, len(names))
	for n, name := range names {
		versions[n] = m.Versions[name]
		if !strings.HasPrefix(versions[n], name) {
			versions[n] = name + " " + versions[n]
		}
	}
	id := ""
	if m.ID != "" {
		id = " " + m.ID
	}
	return []string{
		fmt.Sprintf("machine%s: %d × %s, %.1f GiB, Linux %s, %s on device %s", id, m.CPUs, m.CPU, float64(m.MemoryBytes)/(1<<30), m.Kernel, m.FileSystem, m.Device),
		fmt.Sprintf("root: %t; levers: %s", m.Root, m.Levers),
		"versions: " + strings.Join(versions, "; "),
		fmt.Sprintf("before the run: load %s, %.0f %% of the processors busy", m.Load, 100*m.BusyShare),
	}
}

// Newest is the program of the highest PostgreSQL that Debian installed, else the
// one of the search path.
func Newest(name string) string {
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/" + name)
	major := func(path string) int {
		n, _ := strconv.Atoi(strings.Split(path, "/")[4])
		return n
	}
	slices.SortFunc(found, func(a, b string) int { return major(b) - major(a) })
	return append(found, name)[0]
}

func firstLine(ctx context.Context, argv ...string) string {
	out, err := exec.CommandContext(ctx, argv[0], argv[1:]...).Output()
	if err != nil {
		return ""
	}
	line, _, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
	return line
}

func loadAverage() string {
	raw, _ := os.ReadFile("/proc/loadavg")
	return strings.Join(strings.Fields(string(raw))[:min(3, len(strings.Fields(string(raw))))], " ")
}

// busyShare is how much of all processors is in use over a while.
func busyShare(ctx context.Context, over time.Duration) float64 {
	busy, all := cpuTicks()
	select {
	case <-time.After(over):
	case <-ctx.Done():
	}
	busyAfter, allAfter := cpuTicks()
	if allAfter == all {
		return 0
	}
	return float64(busyAfter-busy) / float64(allAfter-all)
}

// cpuTicks counts the first line of /proc/stat: user nice system idle iowait irq
// softirq steal; what follows is in user already.
func cpuTicks() (busy, all int64) {
	fields := strings.Fields(ReadLines("/proc/stat")[0])
	for n, f := range fields[1:min(9, len(fields))] {
		ticks, _ := strconv.ParseInt(f, 10, 64)
		all += ticks
		if n != 3 && n != 4 {
			busy += ticks
		}
	}
	return busy, all
}

// ReadLines are those of a file, none when it cannot be read.
func ReadLines(path string) []string {
	raw, _ := os.ReadFile(path)
	return strings.Split(string(raw), "\n")
}
