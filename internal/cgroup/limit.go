package cgroup

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// The period is the kernel's default: a group that used up its quota stands still
// for up to 0.1 s. Shorter ones cost more switches. The kernel refuses a quota
// under 1 ms.
const (
	cpuPeriodMicros   = 100_000
	cpuQuotaMicrosMin = 1_000
)

// Weights say who yields when the processors are short. A group counts as one
// process against all others, so without them a database with eight busy sessions
// would get what one stray process gets: measured at 0.67 of the throughput of
// the same server outside a group. An instance weighs as much as eight processes
// for each processor of its class; all of them together as sixty-four processes
// (v2: ten times another slice), so that the host's own services still get on.
const (
	sharesOfProcess = 1024 // cpu.shares of v1, of which every process outside has so many
	weightDefault   = 100  // cpu.weight of v2
	processesPerCPU = 8
	parentProcesses = 64
	parentWeights   = 10
	weightMax       = 10_000
)

// weigh sets the weight of the service's parent group.
func (l Levers) weigh() error {
	dir := filepath.Join(l.CPU.base, l.parent)
	if l.CPU.Version == 2 {
		return set(dir, "cpu.weight", strconv.Itoa(weightDefault*parentWeights))
	}
	return set(dir, "cpu.shares", strconv.Itoa(sharesOfProcess*parentProcesses))
}

// setWeight sets the weight of the group among its siblings: by the processors
// that it may use, all of the host's when it has no limit.
func (g Group) setWeight(limits Limits) error {
	cpus := limits.CPUQuota
	if cpus == 0 {
		cpus = float64(runtime.NumCPU())
	}
	n := max(int(math.Round(cpus*processesPerCPU)), 1)
	if g.levers.CPU.Version == 2 {
		return set(g.dir(g.levers.CPU), "cpu.weight", strconv.Itoa(min(n*weightDefault, weightMax)))
	}
	return set(g.dir(g.levers.CPU), "cpu.shares", strconv.Itoa(n*sharesOfProcess))
}

func (g Group) setCPU(limits Limits) error {
	// A weight is no limit that was promised: a kernel without it does as well.
	if err := errors.Join(g.levers.weigh(), g.setWeight(limits)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	dir := g.dir(g.levers.CPU)
	quota := max(int64(math.Round(limits.CPUQuota*cpuPeriodMicros)), cpuQuotaMicrosMin)
	if g.levers.CPU.Version == 2 {
		if limits.CPUQuota == 0 {
			return set(dir, "cpu.max", "max")
		}
		return set(dir, "cpu.max", fmt.Sprintf("%d %d", quota, cpuPeriodMicros))
	}
	if limits.CPUQuota == 0 {
		return set(dir, "cpu.cfs_quota_us", "-1")
	}
	if err := set(dir, "cpu.cfs_period_us", strconv.Itoa(cpuPeriodMicros)); err != nil {
		return err
	}
	return set(dir, "cpu.cfs_quota_us", strconv.FormatInt(quota, 10))
}

// MemoryInUseError refuses to lower a limit under what cannot be given back.
type MemoryInUseError struct{ LimitBytes, UsedBytes int64 }

func (e *MemoryInUseError) Error() string {
	return fmt.Sprintf("cannot limit memory to %d MiB: %d MiB are in use beside the cache",
		e.LimitBytes>>20, e.UsedBytes>>20)
}

// Retryable: the use may go down, as after a restart of the engine.
func (e *MemoryInUseError) Retryable() bool { return true }

func (g Group) setMemory(limits Limits) error {
	dir := g.dir(g.levers.Memory)
	want := limits.MemoryBytes
	if want > 0 {
		// v2 would take the lower limit and kill until it holds.
		stat, err := flat(dir, "memory.stat")
		if err != nil {
			return err
		}
		if used := unreclaimable(g.levers.Memory.Version, stat); used > want {
			return &MemoryInUseError{want, used}
		}
	}
	if g.levers.Memory.Version == 2 {
		return setMemoryV2(dir, want)
	}
	err := setMemoryV1(dir, want)
	if errors.Is(err, unix.EBUSY) {
		used, _ := number(dir, "memory.usage_in_bytes")
		return &MemoryInUseError{want, used}
	}
	return err
}

// setMemoryV2 leaves memory.high alone: it slows a database down to a crawl near
// its limit, where RDS's users expect the limit itself. No swap: a database that
// swaps is slower than its class promises, and nobody sees why.
func setMemoryV2(dir string, want int64) error {
	if want == 0 {
		return errors.Join(setIfPresent(dir, "memory.swap.max", "max"), set(dir, "memory.max", "max"))
	}
	return errors.Join(setIfPresent(dir, "memory.swap.max", "0"),
		set(dir, "memory.max", strconv.FormatInt(want, 10)))
}

// setMemoryV1 keeps the rule limit <= limit with swap at every moment, so it raises
// one first and lowers the other first.
func setMemoryV1(dir string, want int64) error {
	value := "-1"
	if want > 0 {
		value = strconv.FormatInt(want, 10)
	}
	const plain, swap = "memory.limit_in_bytes", "memory.memsw.limit_in_bytes"
	now, err := number(dir, plain)
	if err != nil {
		return err
	}
	if want == 0 || want > now {
		if err := setIfPresent(dir, swap, value); err != nil {
			return err
		}
		return set(dir, plain, value)
	}
	if err := set(dir, plain, value); err != nil {
		return err
	}
	return setIfPresent(dir, swap, value)
}

// v1 has one file per kind of limit.
var ioFilesV1 = []struct {
	file  string
	value func(Limits) int64
}{
	{"blkio.throttle.read_iops_device", func(l Limits) int64 { return l.ReadIOPS }},
	{"blkio.throttle.write_iops_device", func(l Limits) int64 { return l.WriteIOPS }},
	{"blkio.throttle.read_bps_device", func(l Limits) int64 { return l.ReadBytesPerSecond }},
	{"blkio.throttle.write_bps_device", func(l Limits) int64 { return l.WriteBytesPerSecond }},
}

func (g Group) setIO(limits Limits) error {
	dir := g.dir(g.levers.IO)
	if g.levers.IO.Version == 2 {
		return setIOV2(dir, limits)
	}
	for _, each := range ioFilesV1 {
		if err := clearOthers(dir, each.file, limits, "0"); err != nil {
			return err
		}
		if limits.Device.IsZero() {
			continue
		}
		if err := set(dir, each.file, fmt.Sprintf("%v %d", limits.Device, each.value(limits))); err != nil {
			return err
		}
	}
	return nil
}

func setIOV2(dir string, limits Limits) error {
	if err := clearOthers(dir, "io.max", limits, "rbps=max wbps=max riops=max wiops=max"); err != nil {
		return err
	}
	if limits.Device.IsZero() {
		return nil
	}
	word := func(n int64) string {
		if n == 0 {
			return "max"
		}
		return strconv.FormatInt(n, 10)
	}
	return set(dir, "io.max", fmt.Sprintf("%v rbps=%s wbps=%s riops=%s wiops=%s", limits.Device,
		word(limits.ReadBytesPerSecond), word(limits.WriteBytesPerSecond), word(limits.ReadIOPS), word(limits.WriteIOPS)))
}

// clearOthers lifts limits on devices that the data has moved away from.
func clearOthers(dir, file string, limits Limits, none string) error {
	raw, err := os.ReadFile(filepath.Join(dir, file))
	if err != nil {
		return err
	}
	for _, line := range strings.Split(string(raw), "\n") {
		device, _, found := strings.Cut(line, " ")
		if !found || device == limits.Device.String() {
			continue
		}
		// A device that was unplugged takes its limit along.
		if err := set(dir, file, device+" "+none); err != nil && !errors.Is(err, unix.ENODEV) {
			return err
		}
	}
	return nil
}
