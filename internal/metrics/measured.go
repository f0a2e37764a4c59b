package metrics

import (
	"strconv"
	"time"

	"kurabe"
	"kurabe/internal/metrics/catalog"
)

// Instance is an instance, or a server of a cluster, with what bounds it.
type Instance struct {
	Name, Cluster string
	Engine        kurabe.EngineName
	Limits        kurabe.Limits
	Load          []WaitLoad // nil: nothing is known
}

// WaitLoad is the average number of the sessions that were active with a type of wait.
type WaitLoad struct {
	Type     string
	Sessions float64
}

// Measured is the mean of a metric of the catalog over the last seconds.
type Measured struct {
	Metric, Instance, Cluster, Engine, Role string
	Server                                  kurabe.InstanceID
	Value                                   float64 // in the catalog's unit
}

// measuredFamilies are the metrics of the catalog under the names of Prometheus, in its units:
// scale makes them of the catalog's. The catalog has rates where Prometheus would count: they stay
// rates, and are named so. ReplicaLag and UnprotectedTime are asked for when the page is, and are
// families of their own; DBLoad and its kin follow from kurabe_database_load_sessions.
var measuredFamilies = []struct {
	metric, name, unit string
	scale              float64
}{
	{"BackupAge", "kurabe_backup_age_seconds", "seconds", 1},
	{"BinLogDiskUsage", "kurabe_binlog_size_bytes", "bytes", 1},
	{"CPUThrottledTime", "kurabe_cpu_throttled_seconds_per_second", "", 1},
	{"CPUUtilization", "kurabe_cpu_utilization_ratio", "ratio", 0.01},
	{"CheckpointLag", "kurabe_checkpoint_lag_seconds", "seconds", 1},
	{"DatabaseConnections", "kurabe_database_connections", "", 1},
	{"Deadlocks", "kurabe_deadlocks_per_second", "", 1},
	{"DiskQueueDepth", "kurabe_disk_queue_depth", "", 1},
	{"FreeStorageSpace", "kurabe_free_storage_bytes", "bytes", 1},
	{"FreeableMemory", "kurabe_freeable_memory_bytes", "bytes", 1},
	{"IOLimitUtilization", "kurabe_io_limit_utilization_ratio", "ratio", 0.01},
	{"LatestRestorableTimeAge", "kurabe_latest_restorable_time_age_seconds", "seconds", 1},
	{"MaximumUsedTransactionIDs", "kurabe_maximum_used_transaction_ids", "", 1},
	{"NetworkReceiveThroughput", "kurabe_network_receive_bytes_per_second", "", 1},
	{"NetworkTransmitThroughput", "kurabe_network_transmit_bytes_per_second", "", 1},
	{"OldestReplicationSlotLag", "kurabe_oldest_replication_slot_lag_bytes", "bytes", 1},
	{"ReadIOPS", "kurabe_read_requests_per_second", "", 1},
	{"ReadLatency", "kurabe_read_latency_seconds", "seconds", 1},
	{"ReadThroughput", "kurabe_read_bytes_per_second", "", 1},
	{"SwapUsage", "kurabe_swap_usage_bytes", "bytes", 1},
	{"TransactionLogsDiskUsage", "kurabe_wal_size_bytes", "bytes", 1},
	{"TransactionLogsGeneration", "kurabe_wal_bytes_per_second", "", 1},
	{"VerifiedRestoreAge", "kurabe_verified_restore_age_seconds", "seconds", 1},
	{"WriteIOPS", "kurabe_write_requests_per_second", "", 1},
	{"WriteLatency", "kurabe_write_latency_seconds", "seconds", 1},
	{"WriteThroughput", "kurabe_write_bytes_per_second", "", 1},
}

// measuredAndLimits are the families of what is measured once a second, and of its bounds.
func measuredAndLimits() (list []family) {
	for _, m := range measuredFamilies {
		help := m.metric + ": " + catalog.Of(m.metric).Help + "."
		list = append(list, family{m.name, "gauge", m.unit, help, func(p Page, _ time.Time) (list []sample) {
			for _, one := range p.Measured {
				if one.Metric == m.metric {
					list = append(list, sample{one.labels(), one.Value * m.scale})
				}
			}
			return list
		}})
	}
	for _, f := range limitFamilies {
		list = append(list, family{f.name, "gauge", f.unit, f.help, func(p Page, _ time.Time) (list []sample) {
			for _, i := range p.Instances {
				if v := f.of(i.Limits); v > 0 {
					list = append(list, sample{i.labels(), v})
				}
			}
			return list
		}})
	}
	return append(list, family{"kurabe_database_load_sessions", "gauge", "sessions", "Average number of active sessions by type of wait; CPU: they wait for nothing.", loads})
}

// limitFamilies are what instances are bounded to. An instance without a limit has no sample.
var limitFamilies = []struct {
	name, unit, help string
	of               func(kurabe.Limits) float64
}{
	{"kurabe_vcpus", "", "vCPUs of the class; no sample for a class without a limit.", func(l kurabe.Limits) float64 { return l.CPUs }},
	{"kurabe_memory_limit_bytes", "bytes", "Memory of the class; no sample for a class without a limit.", func(l kurabe.Limits) float64 { return float64(l.MemoryBytes) }},
	{"kurabe_allocated_storage_bytes", "bytes", "Allocated storage.", func(l kurabe.Limits) float64 { return float64(l.StorageBytes) }},
	{"kurabe_iops_limit", "", "Read requests a second that the storage type allows, and as many write requests.", func(l kurabe.Limits) float64 { return float64(l.ReadIOPS) }},
	{"kurabe_throughput_limit_bytes_per_second", "", "Bytes read a second that the storage type allows, and as many written.", func(l kurabe.Limits) float64 { return float64(l.ReadBytesPerSecond) }},
}

func (m Measured) labels() labels {
	l := ofInstance(m.Instance, m.Cluster)
	return append(l, "server", strconv.Itoa(m.Server.Number()), "engine", m.Engine, "role", m.Role)
}

func (i Instance) labels() labels {
	return append(ofInstance(i.Name, i.Cluster), "engine", string(i.Engine))
}

func ofInstance(name, cluster string) labels {
	if cluster != "" {
		return labels{"instance", name, "cluster", cluster}
	}
	return labels{"instance", name}
}

func loads(p Page, _ time.Time) (list []sample) {
	for _, i := range p.Instances {
		for _, w := range i.Load {
			list = append(list, sample{append(ofInstance(i.Name, i.Cluster), "wait_type", w.Type), w.Sessions})
		}
	}
	return list
}
