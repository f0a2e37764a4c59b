package mariadb

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"kurabe/internal/engine"
	"kurabe/internal/engine/mariadb/conf"
	"kurabe/internal/engine/mariadb/guard"
	"kurabe/internal/engine/mariadb/parameter"
	"kurabe/internal/engine/mariadb/replica"
	"kurabe/internal/engine/mariadb/sqltext"
)

// running is a variable of the live server.
type running struct {
	name, value, origin, kind string
	readOnly                  bool
}

const runningQuery = `SELECT LOWER(VARIABLE_NAME), GLOBAL_VALUE, GLOBAL_VALUE_ORIGIN, VARIABLE_TYPE, READ_ONLY
 FROM information_schema.SYSTEM_VARIABLES WHERE VARIABLE_SCOPE <> 'SESSION ONLY'`

// Reload implements engine.Driver. Dynamic variables get the values that are
// rendered; those that are rendered no longer, or that somebody has set in the
// running server, their own defaults. Static ones wait for a restart.
func (d *Driver) Reload(ctx context.Context, i engine.Instance) error {
	err := guard.With(ctx, i, func(a *guard.Session) error {
		if err := replica.LetGo(ctx, a, i); err != nil {
			return err
		}
		rows, err := a.Query(ctx, runningQuery)
		if err != nil {
			return err
		}
		var variables []running
		for _, r := range rows {
			variables = append(variables, running{name: r[0], value: r[1], origin: r[2], kind: r[3], readOnly: r[4] == "YES"})
		}
		for _, change := range changes(i, variables) {
			if err := a.Exec(ctx, change.statement()); err != nil {
				return fmt.Errorf("set %s: %w", change.name, err)
			}
		}
		if err := a.Exec(ctx, "FLUSH LOCAL SSL"); err != nil {
			return err
		}
		if err := guard.Upkeep(ctx, a); err != nil {
			return err
		}
		return d.Assume(ctx, a, i)
	})
	if err != nil {
		return fmt.Errorf("reload: %w", err)
	}
	return nil
}

// change is a variable to set; no literal means its default.
type change struct{ name, literal string }

func (c change) statement() string {
	if c.literal == "" {
		c.literal = "DEFAULT"
	}
	return "SET GLOBAL " + c.name + " = " + c.literal
}

// changes compares what runs with what is rendered. A value in another notation
// counts as a change, which setting it again is not. That commits wait comes last, when
// all is in place that it rests on.
func changes(i engine.Instance, variables []running) []change {
	wanted := map[string]string{}
	for _, o := range append(conf.Plumbing(i), conf.Chosen(i)...) {
		wanted[parameter.VariableOf(o.Name)] = o.Value
	}
	var all []change
	for _, v := range variables {
		value, ok := wanted[v.name]
		switch {
		case v.readOnly || commands[v.name] || i.Role != nil && conf.ByHand[v.name]:
		case ok && !same(v, value):
			all = append(all, change{v.name, literal(v, value)})
		case !ok && (v.origin == "SQL" || v.origin == "CONFIG") && wanted[aliases[v.name]] == "":
			all = append(all, change{v.name, ""})
		}
	}
	slices.SortStableFunc(all, func(a, b change) int { return cmp.Compare(rank(a), rank(b)) })
	return all
}

func rank(c change) int {
	if c.name == replica.WaitingSetting {
		return 1
	}
	return 0
}

// commands are variables that do something when they are set, or that the server
// sets itself as it goes.
var commands = map[string]bool{
	"innodb_buffer_pool_dump_now": true, "innodb_buffer_pool_load_abort": true, "innodb_buffer_pool_load_now": true,
	"innodb_log_checkpoint_now": true, "innodb_max_purge_lag_wait": true, "innodb_monitor_disable": true, "innodb_monitor_enable": true,
	"innodb_monitor_reset": true, "innodb_monitor_reset_all": true, "innodb_ft_aux_table": true,
	"gtid_slave_pos": true, "gtid_binlog_state": true, "sql_slave_skip_counter": true,
	// A list as a variable and single values as options, which a follower takes up when it
	// is started.
	"replicate_wild_ignore_table": true,
}

// aliases are second names of a variable: what one is set to, the other shows.
var aliases = map[string]string{
	"log_slow_query": "slow_query_log", "slow_query_log": "log_slow_query",
	"log_slow_query_file": "slow_query_log_file", "slow_query_log_file": "log_slow_query_file",
	"log_slow_query_time": "long_query_time", "long_query_time": "log_slow_query_time",
	"log_slow_min_examined_row_limit": "min_examined_row_limit", "min_examined_row_limit": "log_slow_min_examined_row_limit",
	"default_storage_engine": "storage_engine", "storage_engine": "default_storage_engine",
	"expire_logs_days": "binlog_expire_logs_seconds", "binlog_expire_logs_seconds": "expire_logs_days",
	"slave_parallel_threads": "slave_parallel_workers", "slave_parallel_workers": "slave_parallel_threads",
	"tmp_table_size": "tmp_memory_table_size", "tmp_memory_table_size": "tmp_table_size",
	"character_set_database": "character_set_server", "collation_database": "collation_server",
}

func same(v running, value string) bool {
	if v.kind == "BOOLEAN" {
		return conf.IsOn(value) == conf.IsOn(v.value)
	}
	return strings.EqualFold(v.value, value)
}

// literal writes the value in SQL. Numbers and switches may not be quoted there,
// and the letters that an option may end with are unknown.
func literal(v running, value string) string {
	switch {
	case v.kind == "BOOLEAN" && conf.IsOn(value):
		return "1"
	case v.kind == "BOOLEAN" && off.MatchString(value):
		return "0"
	case number.MatchString(value) && v.kind != "VARCHAR":
		return value
	}
	if m := suffix.FindStringSubmatch(value); m != nil && v.kind != "VARCHAR" && v.kind != "ENUM" {
		factor := "1"
		for range strings.Index("kmgtpe", strings.ToLower(m[2])) + 1 {
			factor += " * 1024"
		}
		return m[1] + " * " + factor
	}
	return sqltext.Literal(value)
}

var (
	off    = regexp.MustCompile(`(?i)^(0|off|false)$`)
	number = regexp.MustCompile(`^-?[0-9]+(\.[0-9]+)?$`)
	suffix = regexp.MustCompile(`(?i)^([0-9]+)([kmgtpe])$`)
)
