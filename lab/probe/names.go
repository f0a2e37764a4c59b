package probe

// Names are the totals of a phase that Cut can give, with their meaning and unit. Those
// that end in _end are no totals: they are what was there when the phase ended.
var Names = map[string]string{
	"wal_bytes":          "bytes of log that the engine made: WAL, or redo of InnoDB",
	"wal_records":        "records in that log",
	"wal_page_images":    "whole pages in that log, as after a checkpoint",
	"binlog_bytes":       "bytes of binary log",
	"fsyncs":             "syncs: of the WAL (PostgreSQL), of InnoDB's files (MariaDB)",
	"checkpoints":        "checkpoints begun",
	"checkpoint_buffers": "pages that checkpoints wrote",
	"blocks_read":        "pages that were not in the server's cache",
	"blocks_hit":         "pages that were",
	"deadlocks":          "deadlocks",
	"rollbacks":          "transactions that were rolled back",
	"temp_bytes":         "bytes of temporary files (PostgreSQL)",
	"temp_tables":        "temporary tables on disk (MariaDB)",
	"lock_waits":         "waits for a lock: for InnoDB's rows as it counts them; for the locks of MariaDB's tables, and for all of PostgreSQL's, by ten samples a second, so short ones are missed",
	"lock_wait_s":        "session-seconds spent waiting for a lock, counted or sampled likewise: a tenth of one for each sample",
	"data_read_bytes":    "bytes that InnoDB read",
	"data_written_bytes": "bytes that InnoDB wrote",
	"dirty_pages_end":    "pages of InnoDB's cache that were still to be written",
	"history_length_end": "transactions whose old rows InnoDB had not purged",
	"checkpoint_age_end": "bytes of redo since InnoDB's checkpoint",

	"cpu_s":            "processor seconds of the server's processes, to 0.01 s a process",
	"context_switches": "of the server's threads, as last seen: up to a second of one that ended is missed",
	"read_bytes":       "bytes that the server's processes had fetched from disks",
	"write_bytes":      "bytes that they had sent to disks",
	"processes_end":    "processes of the server",
	"read_ops":         "reads that the disk of the data had from the server's control group, as the kernel counts them against a limit",
	"write_ops":        "writes likewise",

	"cpu_limit_end":       "processors that the server may use, by its control groups and the machine",
	"memory_limit_end":    "bytes of memory likewise; absent without a limit",
	"read_ops_limit_end":  "reads a second that its control groups let through to the disk of the data; absent without a limit",
	"write_ops_limit_end": "writes a second likewise",

	"host_cpu_s":            "processor seconds of the whole machine, the load's own included",
	"host_steal_s":          "processor seconds that the hypervisor gave to others",
	"host_context_switches": "context switches of the whole machine",

	"wait_samples": "how often the sessions were looked at, for the shares of waits",
	"probe_s":      "seconds that this probe itself took, of the server and of the machine together",
}
