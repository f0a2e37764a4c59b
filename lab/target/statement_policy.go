package target

import (
	"slices"
	"strings"

	"kurabe/lab/study"
)

// A server behind a URL holds more than the study's own database, and nothing of the rest
// could be put back. A statement is run unasked only when its words show that it reads, or
// that it stays in that database; one that they do not show it of may be harmless, and is
// refused too.

// scope is what statements are judged by.
type scope struct {
	engine string
	// databases are the server's others, in lower case. A PostgreSQL session has but one.
	databases map[string]bool
	// split says that the text is cut at its semicolons before it is sent, as a script is.
	// MariaDB takes all of another text for one statement, and has bodies with semicolons.
	split bool
}

// readingVerbs begin statements that read, or that are of the session alone; stayingVerbs
// those that write where the names in them lead. What they may name is looked at, too.
var (
	readingVerbs = wordSet("select with values table show describe desc explain analyze begin start commit end rollback abort savepoint release set reset " +
		"declare fetch move close discard listen unlisten notify")
	stayingVerbs = wordSet("insert update delete replace merge truncate create alter drop rename comment copy vacuum reindex cluster optimize check refresh lock unlock")
	// kinds are what may be created, altered and dropped; words before them say how.
	kinds = wordSet("table index view materialized sequence type domain extension statistics rule aggregate function procedure trigger policy column")
	how   = wordSet("or replace unique fulltext spatial temporary temp unlogged concurrently if not exists ignore online offline global local recursive constraint default")
	// elsewhere are words of what is the whole server's, of other servers, and of SQL that
	// is made up while it runs. In the body of a function they refuse it, wherever they are.
	elsewhere = wordSet("global persist persist_only system role user database tablespace server subscription publication grant revoke execute prepare call load " +
		"install uninstall flush purge kill shutdown outfile dumpfile copy program foreign event handler import backup change")
	// engines keep rows elsewhere than the server's own do.
	enginesElsewhere = wordSet("federated federatedx connect spider s3 connection directory")
	// extensionsElsewhere reach out of their database, as do all whose name ends in _fdw.
	extensionsElsewhere = wordSet("dblink adminpack pg_cron pg_net http aws_s3 aws_lambda aws_commons plpython3u plperlu pltclu lo")
)

func wordSet(list string) map[string]bool {
	set := map[string]bool{}
	for w := range strings.FieldsSeq(list) {
		set[w] = true
	}
	return set
}

// refuses says why statements may do more than read or stay, "" when they do not.
func (s scope) refuses(text string) string {
	tokens, why := lex(s.engine, text, s.split)
	if why != "" {
		return why
	}
	for _, statement := range s.statements(tokens) {
		if why := s.refusesOne(statement); why != "" {
			return why
		}
	}
	return ""
}

// statements cuts at semicolons, where the server or the generator does.
func (s scope) statements(tokens []token) [][]token {
	var all [][]token
	begin := 0
	for n, t := range tokens {
		if t.is(";") && (s.engine == study.Postgres || s.split) {
			all, begin = append(all, tokens[begin:n]), n+1
		}
	}
	return append(all, tokens[begin:])
}

func (s scope) refusesOne(statement []token) string {
	for len(statement) > 0 && (statement[0].is("(") || statement[0].is(";")) {
		statement = statement[1:]
	}
	if len(statement) == 0 {
		return ""
	}
	if why := s.leads(statement); why != "" {
		return why
	}
	verb := statement[0].word
	if !readingVerbs[verb] && !stayingVerbs[verb] {
		return "a statement that begins with " + strings.ToUpper(statement[0].show()) + " may do anything"
	}
	rest := statement[1:]
	switch verb {
	case "rename", "lock", "unlock":
		if s.engine != study.Postgres && (len(rest) == 0 || !rest[0].in("table", "tables")) {
			return strings.ToUpper(verb) + " is not of tables alone"
		}
	case "create", "alter", "drop", "comment":
		return s.object(verb, rest)
	case "explain", "analyze", "describe", "desc":
		return s.explained(rest)
	case "set", "reset", "start":
		return s.session(verb, rest)
	case "copy":
		if has(rest, "program") || has(rest, "to") && !has(rest, "stdout") {
			return "COPY writes where the server says"
		}
	}
	if s.engine != study.Postgres && (verb == "begin" && len(rest) > 0 && !rest[0].in("work") || has(rest, "outfile") || has(rest, "dumpfile")) {
		return "a block of statements, or a file of the server, may be anything"
	}
	return ""
}

// object judges what is created, altered, dropped or described.
func (s scope) object(verb string, rest []token) string {
	if verb == "comment" && len(rest) > 0 {
		rest = rest[1:] // ON
	}
	for len(rest) > 0 && how[rest[0].word] {
		rest = rest[1:]
	}
	if len(rest) == 0 || !kinds[rest[0].word] && !(rest[0].is("schema") && s.engine == study.Postgres) {
		named := "that"
		if len(rest) > 0 {
			named = strings.ToUpper(rest[0].show())
		}
		return strings.ToUpper(verb) + " " + named + " is not of the study's own database alone"
	}
	switch rest[0].word {
	case "extension":
		for _, t := range rest[1:] {
			if extensionsElsewhere[t.name()] || strings.HasSuffix(t.name(), "_fdw") {
				return "extension " + t.name() + " reaches out of its database"
			}
		}
	case "function", "procedure", "trigger", "aggregate", "rule":
		return s.body(rest[1:])
	}
	for _, t := range rest {
		if s.engine != study.Postgres && enginesElsewhere[strings.ToLower(t.text)] {
			return strings.ToUpper(t.show()) + " may keep its rows elsewhere"
		}
	}
	return ""
}

// body judges a function by its words, those in its quotes too. A language that is not
// SQL's can do anything.
func (s scope) body(rest []token) string {
	for n, t := range rest {
		if t.is("language") && (n+1 == len(rest) || !slices.Contains([]string{"sql", "plpgsql"}, rest[n+1].name())) {
			return "its language may do anything"
		}
		if elsewhere[t.word] && !(t.word == "execute" && n+1 < len(rest) && rest[n+1].in("function", "procedure")) {
			return strings.ToUpper(t.word) + " in a body may do anything"
		}
		if t.word == "do" && n+1 < len(rest) && (rest[n+1].quoted || rest[n+1].is("language")) {
			return "DO in a body may do anything"
		}
		if !t.quoted || s.engine != study.Postgres {
			continue
		}
		inner, why := lex(s.engine, t.text, false)
		if strings.Contains(t.text, `\`) {
			why = unclear
		}
		if why == "" {
			why = s.leads(inner)
		}
		if why == "" {
			why = s.body(inner)
		}
		if why != "" {
			return why
		}
	}
	return ""
}

// explained judges what is explained, which may be carried out.
func (s scope) explained(rest []token) string {
	for n, t := range rest {
		if t.in("table", "tables", "begin", "start", "end", "set", "show", "analyze", "check") {
			continue // ANALYZE TABLE, and options
		}
		if readingVerbs[t.word] || stayingVerbs[t.word] {
			return s.refusesOne(rest[n:])
		}
		if elsewhere[t.word] {
			return strings.ToUpper(t.word) + " may do anything"
		}
	}
	return ""
}

// session judges SET, RESET and START, which are of the session unless they say otherwise.
func (s scope) session(verb string, rest []token) string {
	first := token{}
	if len(rest) > 0 {
		first = rest[0]
	}
	switch {
	case verb == "start" && !first.in("transaction"), verb == "reset" && s.engine != study.Postgres:
		return strings.ToUpper(verb) + " " + strings.ToUpper(first.show()) + " is of the whole server"
	case verb == "set" && s.engine != study.Postgres:
		if first.in("password", "role", "default", "statement") || has(rest, "global") || has(rest, "persist") || has(rest, "persist_only") {
			return "this SET is of more than the session"
		}
	}
	return ""
}

// leads looks where the names of a statement lead: to another database, or to a function
// that acts on the server.
func (s scope) leads(statement []token) string {
	for n, t := range statement {
		if n+1 == len(statement) {
			break
		}
		switch next := statement[n+1]; {
		case next.is(".") && s.databases[t.name()]:
			return "it names database " + t.name()
		case next.is("(") && s.engine == study.Postgres && t.name() != "":
			schema, before := "", n-1
			if n > 1 && statement[n-1].is(".") {
				schema, before = statement[n-2].name(), n-3
			}
			if !listsColumns(statement, before) && acts(schema, t.name()) {
				return "function " + t.name() + " may act on the server"
			}
		}
	}
	return ""
}

// listsColumns says of the place before a name with a bracket that the bracket holds
// columns: INSERT INTO t (…), CREATE TABLE t (…), CREATE INDEX … ON t (…).
func listsColumns(statement []token, before int) bool {
	if before < 0 {
		return false
	}
	b := statement[before]
	return b.in("into", "table", "references") || b.in("on", "exists") && statement[0].word == "create"
}

// harmless are functions of PostgreSQL that only tell, wait or lock, beside those that
// begin as harmlessBegin does.
var (
	harmless      = wordSet("pg_sleep pg_sleep_for pg_sleep_until pg_backend_pid pg_typeof pg_column_size pg_database_size pg_is_in_recovery pg_postmaster_start_time pg_notify pg_prewarm pg_advisory_lock pg_advisory_unlock pg_advisory_unlock_all pg_advisory_xact_lock pg_try_advisory_lock pg_try_advisory_xact_lock pg_stat_statements pg_size_pretty pg_relation_size pg_total_relation_size pg_table_size pg_indexes_size pg_conf_load_time pg_blocking_pids pg_collation_for pg_lsn pg_wal_lsn_diff")
	harmlessBegin = []string{"pg_get_", "pg_current_", "pg_stat_get_", "pg_column_", "pg_encoding_"}
	ownSchemas    = []string{"", "public", "pg_catalog", "information_schema"}
)

// acts says whether a function may do more than its database shows. Those of schemas that
// extensions make are not known.
func acts(schema, name string) bool {
	switch {
	case !slices.Contains(ownSchemas, schema):
		return true
	case harmless[name], slices.ContainsFunc(harmlessBegin, func(begin string) bool { return strings.HasPrefix(name, begin) }):
		return false
	}
	return slices.ContainsFunc([]string{"pg_", "lo_", "dblink", "query_to_", "cursor_to_"}, func(begin string) bool { return strings.HasPrefix(name, begin) })
}

// writes says whether a script has a statement that is more than reading.
func writes(engine, script string) bool {
	tokens, why := lex(engine, script, true)
	if why != "" {
		return true
	}
	for _, statement := range (scope{engine: engine, split: true}).statements(tokens) {
		for _, t := range statement {
			if t.in("insert", "update", "delete", "replace", "merge", "truncate", "drop", "alter", "create", "copy", "load") {
				if statement[0].word == t.word || statement[0].in("with") {
					return true
				}
			}
		}
	}
	return false
}
