package mariadb

import "kurabe"

// connBytes is the least that a session takes, beside what its own parameters say.
const connBytes = 96 << 10

// sessions multiply what each of them takes when it begins.
var sessions = []string{"max_connections"}

// demands are what parameters make the server take, at the start or as a bound of a session.
// Parameters that only bound what is written are not among them: the storage's own cap does.
var demands = kurabe.Demands{
	"aria_pagecache_buffer_size": {Resource: kurabe.Memory, Bytes: 1, Default: 128 << 20},
	"innodb_buffer_pool_size":    {Resource: kurabe.Memory, Bytes: 1, Default: 128 << 20},
	"innodb_log_buffer_size":     {Resource: kurabe.Memory, Bytes: 1, Default: 16 << 20},
	"key_buffer_size":            {Resource: kurabe.Memory, Bytes: 1, Default: 128 << 20},
	"query_cache_size":           {Resource: kurabe.Memory, Bytes: 1, Default: 1 << 20},
	"host_cache_size":            {Resource: kurabe.Memory, Bytes: 1 << 10, Default: 279},
	"log_tc_size":                {Resource: kurabe.Disk, Bytes: 1, Default: 24 << 10},
	"innodb_log_file_size":       {Resource: kurabe.Disk, Bytes: 1, Default: 96 << 20},
	// Aria begins another file when one is full, and keeps those since its checkpoint.
	"aria_log_file_size":               {Resource: kurabe.Disk, Bytes: 2, Default: 1 << 30, Alone: true},
	"innodb_max_undo_log_size":         {Resource: kurabe.Disk, Bytes: 1, Default: 10 << 20, Alone: true},
	"innodb_online_alter_log_max_size": {Resource: kurabe.Disk, Bytes: 1, Default: 128 << 20, Alone: true},
	"innodb_buffer_pool_chunk_size":    {Resource: kurabe.Memory, Bytes: 1, Alone: true},
	"innodb_buffer_pool_size_auto_min": {Resource: kurabe.Memory, Bytes: 1, Alone: true},
	"innodb_buffer_pool_size_max":      {Resource: kurabe.Memory, Bytes: 1, Alone: true},

	"max_connections":           {Resource: kurabe.Memory, Bytes: connBytes, Default: 151, Alone: true},
	"thread_stack":              {Resource: kurabe.Memory, Bytes: 1, Default: 292 << 10, Times: sessions, Alone: true},
	"query_prealloc_size":       {Resource: kurabe.Memory, Bytes: 1, Default: 24 << 10, Times: sessions, Alone: true},
	"query_alloc_block_size":    {Resource: kurabe.Memory, Bytes: 1, Default: 16 << 10, Times: sessions, Alone: true},
	"transaction_prealloc_size": {Resource: kurabe.Memory, Bytes: 1, Default: 4 << 10, Times: sessions, Alone: true},
	"net_buffer_length":         {Resource: kurabe.Memory, Bytes: 1, Default: 16 << 10, Times: sessions, Alone: true},
	"thread_cache_size":         {Resource: kurabe.Memory, Bytes: connBytes, Alone: true},
	"table_open_cache":          {Resource: kurabe.Memory, Bytes: 1 << 10, Default: 2000, Alone: true},
	"table_definition_cache":    {Resource: kurabe.Memory, Bytes: 256, Default: 400, Alone: true},
	"innodb_open_files":         {Resource: kurabe.Memory, Bytes: 256, Alone: true},

	"aria_sort_buffer_size":        {Resource: kurabe.Memory, Bytes: 1, Alone: true},
	"binlog_cache_size":            {Resource: kurabe.Memory, Bytes: 1, Alone: true},
	"binlog_stmt_cache_size":       {Resource: kurabe.Memory, Bytes: 1, Alone: true},
	"binlog_file_cache_size":       {Resource: kurabe.Memory, Bytes: 1, Alone: true},
	"bulk_insert_buffer_size":      {Resource: kurabe.Memory, Bytes: 1, Alone: true},
	"innodb_ft_cache_size":         {Resource: kurabe.Memory, Bytes: 1, Alone: true},
	"innodb_ft_result_cache_limit": {Resource: kurabe.Memory, Bytes: 1, Alone: true},
	"innodb_ft_total_cache_size":   {Resource: kurabe.Memory, Bytes: 1, Alone: true},
	"innodb_sort_buffer_size":      {Resource: kurabe.Memory, Bytes: 1, Alone: true},
	"join_buffer_size":             {Resource: kurabe.Memory, Bytes: 1, Alone: true},
	"join_buffer_space_limit":      {Resource: kurabe.Memory, Bytes: 1, Alone: true},
	"max_heap_table_size":          {Resource: kurabe.Memory, Bytes: 1, Alone: true},
	"mrr_buffer_size":              {Resource: kurabe.Memory, Bytes: 1, Alone: true},
	"myisam_sort_buffer_size":      {Resource: kurabe.Memory, Bytes: 1, Alone: true},
	"optimizer_trace_max_mem_size": {Resource: kurabe.Memory, Bytes: 1, Alone: true},
	"preload_buffer_size":          {Resource: kurabe.Memory, Bytes: 1, Alone: true},
	"query_cache_limit":            {Resource: kurabe.Memory, Bytes: 1, Alone: true},
	"range_alloc_block_size":       {Resource: kurabe.Memory, Bytes: 1, Alone: true},
	"read_buffer_size":             {Resource: kurabe.Memory, Bytes: 1, Alone: true},
	"read_rnd_buffer_size":         {Resource: kurabe.Memory, Bytes: 1, Alone: true},
	"rowid_merge_buff_size":        {Resource: kurabe.Memory, Bytes: 1, Alone: true},
	"sort_buffer_size":             {Resource: kurabe.Memory, Bytes: 1, Alone: true},
	"stored_program_cache":         {Resource: kurabe.Memory, Bytes: 1 << 10, Alone: true},
	"tmp_table_size":               {Resource: kurabe.Memory, Bytes: 1, Alone: true},
	"transaction_alloc_block_size": {Resource: kurabe.Memory, Bytes: 1, Alone: true},
}

// schemaSizes are the rows of the performance schema, which it has in memory from the start on
// when it is on; about what the largest of each kind takes.
var schemaSizes = map[string]int64{
	"accounts_size": 8 << 10, "hosts_size": 8 << 10, "users_size": 8 << 10, "digests_size": 2 << 10,
	"events_stages_history_long_size": 512, "events_statements_history_long_size": 4 << 10,
	"events_transactions_history_long_size": 512, "events_waits_history_long_size": 256,
	"max_cond_instances": 256, "max_file_instances": 1 << 10, "max_index_stat": 256, "max_metadata_locks": 256,
	"max_mutex_instances": 128, "max_prepared_statements_instances": 4 << 10, "max_program_instances": 2 << 10,
	"max_rwlock_instances": 256, "max_socket_instances": 512, "max_table_handles": 2 << 10, "max_table_instances": 16 << 10,
	"max_table_lock_stat": 1 << 10, "max_thread_instances": 64 << 10, "setup_actors_size": 512, "setup_objects_size": 1 << 10,
	"max_digest_length": 10 << 10, "max_sql_text_length": 10 << 10, "session_connect_attrs_size": 1 << 10,
}

func init() {
	for name, bytes := range schemaSizes {
		demands["performance_schema_"+name] = kurabe.Demand{Resource: kurabe.Memory, Bytes: bytes, If: "performance_schema"}
	}
}

// Demands implements engine.Demander.
func (d *Driver) Demands() kurabe.Demands { return demands }
