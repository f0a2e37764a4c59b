package mariadb

import (
	"slices"
	"strings"
)

// tracked are the variables that are set again on another connection, in the order of the
// alphabet. A server reports each change of one of them; a change of another one pins. The
// collation of the connection is behind its character set, which sets it.
var tracked = []string{
	"auto_increment_increment", "auto_increment_offset", "autocommit",
	"character_set_client", "character_set_connection", "character_set_results",
	"collation_connection", "completion_type", "default_storage_engine", "div_precision_increment",
	"foreign_key_checks", "group_concat_max_len", "innodb_lock_wait_timeout", "interactive_timeout",
	"join_buffer_size", "lc_messages", "lc_time_names", "lock_wait_timeout", "max_join_size",
	"max_statement_time", "net_read_timeout", "net_write_timeout", "optimizer_switch",
	"query_cache_type", "sort_buffer_size", "sql_auto_is_null", "sql_big_selects", "sql_mode",
	"sql_notes", "sql_quote_show_create", "sql_safe_updates", "sql_select_limit", "sql_warnings",
	"time_zone", "tx_isolation", "tx_read_only", "unique_checks", "updatable_views_with_limit",
	"wait_timeout",
}

// trackingVariables are the server's reports themselves, which the proxy switches on again.
const trackingPrefix = "session_track_"

// askReports has a server report all changes of a session.
const askReports = "SET session_track_system_variables='*', session_track_state_change=1, session_track_schema=1"

func isTracked(name string) bool {
	_, ok := slices.BinarySearch(tracked, name)
	return ok
}

// variable is one of a session, with its value as the server reports it. NULL is "".
type variable struct{ name, value string }

// state is what of a session can be set again on another connection. It is not changed.
type state struct {
	database  string
	variables []variable // by name: those that differ from a new connection's
}

// value gives a variable's, or that of a new connection.
func (s *state) value(name string, fresh map[string]string) string {
	for i := range s.variables {
		if s.variables[i].name == name {
			return s.variables[i].value
		}
	}
	return fresh[name]
}

// with gives the state after a variable has changed.
func (s *state) with(name, value string, fresh map[string]string) *state {
	changed := &state{database: s.database}
	for _, v := range s.variables {
		if v.name != name {
			changed.variables = append(changed.variables, v)
		}
	}
	if fresh[name] != value {
		changed.variables = append(changed.variables, variable{name, value})
		slices.SortFunc(changed.variables, func(a, b variable) int { return strings.Compare(a.name, b.name) })
	}
	return changed
}

func (s *state) in(database string) *state {
	return &state{database: database, variables: s.variables}
}

func (s *state) same(other *state) bool {
	return s == other || s.database == other.database && slices.Equal(s.variables, other.variables)
}

// settings gives the statement that brings the variables of one state into those of
// another, or "" when none differs.
func settings(from, to *state, fresh map[string]string) string {
	if slices.Equal(from.variables, to.variables) {
		return ""
	}
	var b strings.Builder
	set := func(name string, charsets bool) {
		value := to.value(name, fresh)
		if value == from.value(name, fresh) && !charsets {
			return
		}
		if b.Len() == 0 {
			b.WriteString("SET ")
		} else {
			b.WriteByte(',')
		}
		b.WriteString(name)
		b.WriteByte('=')
		b.WriteString(literal(name, value))
	}
	for _, name := range tracked {
		// A character set brings a collation of its own.
		charset := to.value("character_set_connection", fresh) != from.value("character_set_connection", fresh)
		set(name, charset && name == "collation_connection")
	}
	return b.String()
}

// literal writes a value that a server reported.
func literal(name, value string) string {
	if value == "" && name == "character_set_results" {
		return "NULL"
	}
	number := value != ""
	for i := 0; i < len(value); i++ {
		if c := value[i]; (c < '0' || c > '9') && c != '.' {
			number = false
		}
	}
	if number {
		return value
	}
	// No value of a tracked variable has a backslash, whose meaning depends on the SQL mode.
	return "'" + strings.ReplaceAll(strings.ReplaceAll(value, "'", "''"), `\`, "") + "'"
}

// numeric are the tracked variables whose values are numbers; 0 and 1 of others are switches.
var numeric = map[string]bool{
	"auto_increment_increment": true, "auto_increment_offset": true, "div_precision_increment": true,
	"group_concat_max_len": true, "innodb_lock_wait_timeout": true, "interactive_timeout": true,
	"join_buffer_size": true, "lock_wait_timeout": true, "max_join_size": true, "max_statement_time": true,
	"net_read_timeout": true, "net_write_timeout": true, "sort_buffer_size": true, "sql_select_limit": true,
	"wait_timeout": true,
}
