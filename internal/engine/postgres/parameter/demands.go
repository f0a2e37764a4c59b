package parameter

import "kurabe"

// What a server takes for each, about: `postgres -C shared_memory_size` of 15 with other values
// of one parameter gives it.
const (
	kiB        = 1 << 10
	blockBytes = 8 << 10
	// backendBytes is what shared memory holds of one backend, connBytes the least that a
	// session has of its own.
	backendBytes = 8 << 10
	connBytes    = 128 << 10
	lockBytes    = 416 // a LOCK, two PROCLOCKs and their hash entries
	predBytes    = 272
	statBytes    = 1 << 10 // of pg_stat_statements, without its texts
)

// otherBackends are those that max_connections does not count: auxiliary processes, and the
// replication senders that the service gives.
const otherBackends = 20

// backends are the parameters that say how many of them there are.
var backends = []string{"max_connections", "max_prepared_transactions", "max_worker_processes", "autovacuum_max_workers"}

// Demands are what parameters make the server take, at the start or as a bound of a session.
// Numbers without a unit in a settings file: in the unit of pg_settings.
var Demands = kurabe.Demands{
	"shared_buffers":                 {Resource: kurabe.Memory, Bytes: blockBytes, Default: 16384},
	"wal_buffers":                    {Resource: kurabe.Memory, Bytes: blockBytes, Default: 2048},
	"max_connections":                {Resource: kurabe.Memory, Bytes: connBytes, Default: 100, Alone: true},
	"max_prepared_transactions":      {Resource: kurabe.Memory, Bytes: backendBytes},
	"max_worker_processes":           {Resource: kurabe.Memory, Bytes: backendBytes, Default: 8},
	"autovacuum_max_workers":         {Resource: kurabe.Memory, Bytes: backendBytes, Default: 3},
	"autovacuum_worker_slots":        {Resource: kurabe.Memory, Bytes: backendBytes, Default: 16},
	"max_locks_per_transaction":      {Resource: kurabe.Memory, Bytes: lockBytes, Default: 64, Times: backends, Plus: otherBackends},
	"max_pred_locks_per_transaction": {Resource: kurabe.Memory, Bytes: predBytes, Default: 64, Times: backends, Plus: otherBackends},
	"track_activity_query_size":      {Resource: kurabe.Memory, Bytes: 1, Default: 1024, Times: backends, Plus: otherBackends},
	"pg_stat_statements.max":         {Resource: kurabe.Memory, Bytes: statBytes, Default: 5000},
	"wal_decode_buffer_size":         {Resource: kurabe.Memory, Bytes: 1, Default: 524288},
	"commit_timestamp_buffers":       {Resource: kurabe.Memory, Bytes: blockBytes},
	"multixact_member_buffers":       {Resource: kurabe.Memory, Bytes: blockBytes, Default: 32},
	"multixact_offset_buffers":       {Resource: kurabe.Memory, Bytes: blockBytes, Default: 16},
	"notify_buffers":                 {Resource: kurabe.Memory, Bytes: blockBytes, Default: 16},
	"serializable_buffers":           {Resource: kurabe.Memory, Bytes: blockBytes, Default: 32},
	"subtransaction_buffers":         {Resource: kurabe.Memory, Bytes: blockBytes},
	"transaction_buffers":            {Resource: kurabe.Memory, Bytes: blockBytes},
	"io_max_concurrency":             {Resource: kurabe.Memory, Bytes: 2 * kiB, Times: backends, Plus: otherBackends},

	"autovacuum_work_mem":       {Resource: kurabe.Memory, Bytes: kiB, Alone: true},
	"gin_pending_list_limit":    {Resource: kurabe.Memory, Bytes: kiB, Alone: true},
	"logical_decoding_work_mem": {Resource: kurabe.Memory, Bytes: kiB, Alone: true},
	"maintenance_work_mem":      {Resource: kurabe.Memory, Bytes: kiB, Alone: true},
	"temp_buffers":              {Resource: kurabe.Memory, Bytes: blockBytes, Alone: true},
	"vacuum_buffer_usage_limit": {Resource: kurabe.Memory, Bytes: kiB, Alone: true},
	"work_mem":                  {Resource: kurabe.Memory, Bytes: kiB, Alone: true},

	"max_wal_size": {Resource: kurabe.Disk, Bytes: 1 << 20, Alone: true},
	"min_wal_size": {Resource: kurabe.Disk, Bytes: 1 << 20, Alone: true},
}
