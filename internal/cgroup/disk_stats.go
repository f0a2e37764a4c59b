package cgroup

import (
	"os"
	"strconv"
	"strings"
	"time"
)

// DiskStats are counters of one device since the machine started, whoever used it. The
// times are those of all requests added up.
type DiskStats struct {
	Reads, Writes    int64
	Reading, Writing time.Duration
}

// Disks reads the counters of all devices. A wait for a limit of a group is before the time
// that they count.
func Disks() (map[Device]DiskStats, error) {
	raw, err := os.ReadFile("/proc/diskstats")
	if err != nil {
		return nil, err
	}
	return parseDisks(string(raw)), nil
}

// parseDisks reads lines as of Documentation/admin-guide/iostats.rst of the kernel.
func parseDisks(raw string) map[Device]DiskStats {
	const major, minor, reads, readMillis, writes, writeMillis, fieldsMin = 0, 1, 3, 6, 7, 10, 14
	disks := map[Device]DiskStats{}
	for line := range strings.Lines(raw) {
		words := strings.Fields(line)
		if len(words) < fieldsMin {
			continue
		}
		device, ok := parseDevice(words[major] + ":" + words[minor])
		if !ok {
			continue
		}
		number := func(field int) int64 { n, _ := strconv.ParseInt(words[field], 10, 64); return n }
		disks[device] = DiskStats{
			Reads: number(reads), Writes: number(writes),
			Reading: time.Duration(number(readMillis)) * time.Millisecond, Writing: time.Duration(number(writeMillis)) * time.Millisecond,
		}
	}
	return disks
}
