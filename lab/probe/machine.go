package probe

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// machine is what all processors did since the machine started, seconds.
type machine struct {
	total, busy, steal, switches float64
}

func readMachine(root string) (machine, error) {
	data, err := os.ReadFile(filepath.Join(root, "stat"))
	if err != nil {
		return machine{}, err
	}
	return parseMachine(data)
}

// parseMachine reads /proc/stat: user, nice, system, idle, iowait, irq, softirq, steal in
// ticks, of which guests' time is a part already.
func parseMachine(data []byte) (machine, error) {
	const idle, iowait, steal, columns = 3, 4, 7, 8
	line, _, _ := bytes.Cut(data, []byte("\n"))
	fields := strings.Fields(string(line))
	if len(fields) < columns+1 || fields[0] != "cpu" {
		return machine{}, errors.New("stat does not begin with the processors' times")
	}
	var m machine
	for n, field := range fields[1 : columns+1] {
		ticks, err := strconv.ParseUint(field, 10, 64)
		if err != nil {
			return machine{}, fmt.Errorf("stat: %w", err)
		}
		seconds := float64(ticks) / ticksPerSecond
		m.total += seconds
		switch n {
		case idle, iowait:
		case steal:
			m.steal = seconds
		default:
			m.busy += seconds
		}
	}
	switches, err := numberAfter(data, "ctxt")
	m.switches = float64(switches)
	return m, err
}

// readStall gives how long some process was ready and had no processor, seconds since the
// machine started. Kernels without pressure figures give an error.
func readStall(root string) (float64, error) {
	data, err := os.ReadFile(filepath.Join(root, "pressure", "cpu"))
	if err != nil {
		return 0, err
	}
	return parseStall(data)
}

func parseStall(data []byte) (float64, error) {
	for line := range strings.Lines(string(data)) {
		fields := strings.Fields(line)
		if len(fields) == 0 || fields[0] != "some" {
			continue
		}
		for _, field := range fields {
			if text, ok := strings.CutPrefix(field, "total="); ok {
				us, err := strconv.ParseUint(text, 10, 64)
				if err != nil {
					return 0, fmt.Errorf("pressure: %w", err)
				}
				return float64(us) / 1e6, nil
			}
		}
	}
	return 0, errors.New("pressure without a total")
}

// Host describes the machine that the lab runs on: cpu, cores, memory_bytes, kernel,
// governor, virtualization, and file_system and mount of a folder. What cannot be known is
// left out.
func Host(folder string) map[string]string {
	h := map[string]string{}
	put := func(name, value string) {
		if value = strings.TrimSpace(value); value != "" {
			h[name] = value
		}
	}
	info := readText("/proc/cpuinfo")
	put("cpu", valueOf(info, "model name"))
	put("cores", strconv.Itoa(runtime.NumCPU()))
	if kib, err := numberAfter([]byte(readText("/proc/meminfo")), "MemTotal:"); err == nil {
		put("memory_bytes", strconv.FormatUint(kib<<10, 10))
	}
	var name unix.Utsname
	if unix.Uname(&name) == nil {
		put("kernel", unix.ByteSliceToString(name.Sysname[:])+" "+unix.ByteSliceToString(name.Release[:]))
		put("architecture", unix.ByteSliceToString(name.Machine[:]))
	}
	put("governor", readText("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"))
	put("virtualization", virtualization(info))
	kind, mount := fileSystem(readText("/proc/self/mountinfo"), folder)
	put("file_system", kind)
	put("mount", mount)
	return h
}

func readText(path string) string {
	data, err := os.ReadFile(path)
	if err != nil {
		return "" // left out
	}
	return string(data)
}

// valueOf reads the first "name : value" of /proc/cpuinfo.
func valueOf(info, name string) string {
	for line := range strings.Lines(info) {
		if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == name {
			return value
		}
	}
	return ""
}

// virtualization names the product where a hypervisor says that it is one.
func virtualization(cpuinfo string) string {
	if !slices.Contains(strings.Fields(valueOf(cpuinfo, "flags")), "hypervisor") {
		return "none seen"
	}
	vendor := strings.TrimSpace(readText("/sys/class/dmi/id/sys_vendor"))
	product := strings.TrimSpace(readText("/sys/class/dmi/id/product_name"))
	if both := strings.TrimSpace(vendor + " " + product); both != "" {
		return both
	}
	return "hypervisor"
}

// fileSystem finds the mount that a folder is on, in the form of mountinfo:
// 36 35 98:0 /root /mount options … - type source superoptions.
func fileSystem(mountinfo, folder string) (kind, options string) {
	path, err := filepath.Abs(folder)
	if err != nil {
		return "", ""
	}
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	longest := -1
	for line := range strings.Lines(mountinfo) {
		before, after, ok := strings.Cut(line, " - ")
		left, right := strings.Fields(before), strings.Fields(after)
		const mount, mountOptions = 4, 5
		if !ok || len(left) <= mountOptions || len(right) == 0 {
			continue
		}
		at := left[mount]
		if (path == at || strings.HasPrefix(path, strings.TrimSuffix(at, "/")+"/")) && len(at) >= longest {
			longest, kind, options = len(at), right[0], left[mountOptions]
		}
	}
	return kind, options
}
