package sample

import (
	"kurabe"
	"kurabe/internal/cgroup"
)

// Group is what was read of a control group and of the machine around it.
type Group struct {
	Stats  cgroup.Stats
	Limits kurabe.Limits
	// Device is the disk of the data folder, Disk its counters; zero where there is none.
	Device cgroup.Device
	Disk   cgroup.DiskStats
	// CPUs and AvailableBytes are the machine's, for a server without limits.
	CPUs           int
	AvailableBytes int64
}

// Values returns the values of the group for Between.
func (g Group) Values() []Value {
	cpus := g.Limits.CPUs
	if cpus == 0 {
		cpus = float64(g.CPUs)
	}
	free := g.AvailableBytes
	if g.Stats.MemoryLimitBytes > 0 {
		free = max(0, g.Stats.MemoryLimitBytes-g.Stats.MemoryUnreclaimableBytes)
	}
	values := []Value{
		{Metric: "CPUUtilization", Kind: Rate, Value: g.Stats.CPUUsage.Seconds() / cpus * 100},
		{Metric: "CPUThrottledTime", Kind: Increase, Value: g.Stats.CPUThrottled.Seconds()},
		{Metric: "FreeableMemory", Value: float64(free)},
		{Metric: "SwapUsage", Value: float64(g.Stats.SwapBytes)},
	}
	if g.Device.IsZero() || g.Stats.IO == nil {
		return values
	}
	io := g.Stats.IO[g.Device] // a device that the group has not used yet is not listed
	values = append(values,
		Value{Metric: "ReadIOPS", Kind: Rate, Value: float64(io.ReadOps)},
		Value{Metric: "WriteIOPS", Kind: Rate, Value: float64(io.WriteOps)},
		Value{Metric: "ReadThroughput", Kind: Rate, Value: float64(io.ReadBytes)},
		Value{Metric: "WriteThroughput", Kind: Rate, Value: float64(io.WriteBytes)},
		Value{Metric: "ReadLatency", Kind: Mean, Value: g.Disk.Reading.Seconds(), Count: float64(g.Disk.Reads)},
		Value{Metric: "WriteLatency", Kind: Mean, Value: g.Disk.Writing.Seconds(), Count: float64(g.Disk.Writes)},
	)
	for _, each := range []struct{ used, limit int64 }{
		{io.ReadOps, g.Limits.ReadIOPS}, {io.WriteOps, g.Limits.WriteIOPS},
		{io.ReadBytes, g.Limits.ReadBytesPerSecond}, {io.WriteBytes, g.Limits.WriteBytesPerSecond},
	} {
		if each.limit > 0 {
			values = append(values, Value{Metric: "IOLimitUtilization", Kind: Rate, Value: float64(each.used) / float64(each.limit) * 100})
		}
	}
	return values
}

// WithQueueDepth adds the mean number of requests under way, by Little's law: those of a
// second by the mean time of one.
func WithQueueDepth(samples []Value) []Value {
	by := map[string]float64{}
	for _, s := range samples {
		by[s.Metric] = s.Value
	}
	if _, known := by["ReadIOPS"]; !known {
		return samples
	}
	depth := by["ReadIOPS"]*by["ReadLatency"] + by["WriteIOPS"]*by["WriteLatency"]
	return append(samples, Value{Metric: "DiskQueueDepth", Value: depth})
}
