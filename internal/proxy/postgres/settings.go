package postgres

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"kurabe/internal/proxy"
	"kurabe/internal/proxy/pool"
	"kurabe/internal/wire/pg"
)

// settings are what a session has set. Nobody changes one: two that are the same pointer are
// the same settings.
type settings struct{ values map[string]string }

func decimal(n uint64) string { return strconv.FormatUint(n, 10) }

func poolKey(s *proxy.Settings, startup *pg.Startup) pool.Key {
	key := pool.Key{Reads: s.Reads, User: startup.Get("user"), Database: startup.Get("database")}
	if key.Database == "" {
		key.Database = key.User
	}
	return key
}

// settable are those of the parameters that the server reports which a session can set. Names
// are in lower case here; the server reports some otherwise (lowerCase).
var settable = map[string]bool{
	"application_name": true, "client_encoding": true, "datestyle": true, "default_transaction_read_only": true, "intervalstyle": true,
	"scram_iterations": true, "search_path": true, "standard_conforming_strings": true, "timezone": true,
}

func literal(text string) string {
	text = strings.ReplaceAll(text, "'", "''")
	if strings.Contains(text, `\`) {
		return " E'" + strings.ReplaceAll(text, `\`, `\\`) + "'"
	}
	return "'" + text + "'"
}

func identifier(text string) string {
	parts := strings.Split(text, ".")
	for i := range parts {
		parts[i] = `"` + strings.ReplaceAll(parts[i], `"`, `""`) + `"`
	}
	return strings.Join(parts, ".")
}

// difference gives the statements that make s's settings the wanted ones, empty if they are.
func (s *server) difference(want *settings) string {
	var resets, sets []string
	for name := range s.set {
		if _, ok := want.values[name]; !ok {
			resets = append(resets, "RESET "+identifier(name))
		}
	}
	for name, value := range want.values {
		now, ok := s.set[name]
		if !ok {
			now, ok = s.parameters[name]
		}
		if !ok || now != value {
			sets = append(sets, "pg_catalog.set_config("+literal(name)+", "+literal(value)+", false)")
		}
	}
	slices.Sort(resets)
	slices.Sort(sets)
	if len(sets) > 0 {
		resets = append(resets, "SELECT "+strings.Join(sets, ", "))
	}
	return strings.Join(resets, "; ")
}

// took notes that the settings of a connection are these.
func (s *server) took(want *settings) {
	s.set = maps.Clone(want.values)
	if s.set == nil {
		s.set = map[string]string{}
	}
	s.applied = want
}

// restore sets what the client has set, where it differs. It says false while it waits for the
// server.
func (c *client) restore() bool {
	s := c.server
	if s.applied == c.want {
		return true
	}
	text := s.difference(c.want)
	if text == "" {
		s.applied = c.want
		return true
	}
	c.restoring = true
	c.conn.Pause(true)
	want := c.want
	s.run(text, &own{done: func(failure *pg.Failure) {
		c.restoring = false
		if failure != nil {
			s.doubtful = true
			failure.Severity, failure.Message = "FATAL", "the settings of the session cannot be set again: "+failure.Message
			c.end(failure)
			return
		}
		s.took(want)
		c.conn.Resume()
	}})
	return false
}

// read asks the server what the settings are that the client may have changed. It is asked
// after the transaction, so that what was rolled back, or local to it, is out of the way.
func (c *client) read() {
	s := c.server
	names, all := c.touched, c.touchedAll
	if all {
		names = s.unlisted(names)
	}
	c.touched, c.touchedAll = nil, false
	var parts []string
	for _, name := range names {
		parts = append(parts, "SELECT "+literal(name)+"::text, pg_catalog.current_setting("+literal(name)+", true)")
	}
	if all {
		parts = append(parts, "SELECT pg_catalog.lower(name), pg_catalog.current_setting(name) FROM pg_catalog.pg_settings WHERE source OPERATOR(pg_catalog.=) 'session'")
	}
	found := map[string]string{}
	s.run(strings.Join(parts, " UNION ALL "), &own{
		row: func(body []byte) {
			var values [2][]byte
			if n, ok := pg.Row(body, values[:]); ok && n == 2 && values[1] != nil {
				found[string(values[0])] = string(values[1])
			}
		},
		done: func(failure *pg.Failure) {
			if failure != nil {
				c.pinned(proxy.PinSetting)
				return
			}
			c.found(found, all)
			if text := s.difference(c.want); all && c.pin != "" && text != "" {
				s.run(text, &own{})
				s.took(c.want)
			}
			s.rest()
		},
	})
}

// found takes what the server says. With all, whatever it does not name has its default again,
// which is what the client's startup message asked for.
func (c *client) found(found map[string]string, all bool) {
	s := c.server
	var next map[string]string
	if all {
		next = maps.Clone(c.startup.values)
		s.set = map[string]string{}
	} else {
		next = maps.Clone(c.want.values)
	}
	if next == nil {
		next = map[string]string{}
	}
	for name, value := range found {
		next[name] = value
		s.set[name] = value
	}
	c.want = &settings{values: next}
	if maps.Equal(next, c.startup.values) {
		c.want = c.startup
	}
	s.applied = nil
}

// unlisted are those of the touched settings, and of those that are set, that pg_settings does
// not have.
func (s *server) unlisted(touched []string) (names []string) {
	for name := range s.set {
		touched = append(touched, name)
	}
	for _, name := range touched {
		if (name == "role" || strings.Contains(name, ".")) && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// tell reports what the client's settings will be with its next statement, where the server
// has reported something else.
func (c *client) tell() {
	b := c.f.scratch[:0]
	for name, value := range c.want.values {
		if now, ok := c.server.parameters[name]; ok && now != value {
			b = pg.AppendParameter(b, c.server.spelling(name), value)
		}
	}
	c.conn.Write(b)
}

var readingSettings = []string{"client_encoding", "datestyle", "intervalstyle", "timezone", "standard_conforming_strings"}

// reading is what the client's statements are kept under. While the transaction is open in which
// it may have changed how they are read, nobody knows yet: they are shared with none.
func (c *client) reading() string {
	private := c.touchedAll
	for _, name := range c.touched {
		private = private || slices.Contains(readingSettings, name)
	}
	if private {
		return "\x01" + decimal(names.Add(1))
	}
	return c.server.reading
}

// read notes the settings that decide what literals of a text mean.
func (s *server) read() {
	s.reading = ""
	for _, name := range readingSettings {
		s.reading += "\x00" + s.parameters[name]
	}
}

// reports notes a ParameterStatus of the server.
func (s *server) reports(body []byte) {
	name, rest, ok := pg.Text(body)
	if !ok {
		return
	}
	value, _, ok := pg.Text(rest)
	if !ok {
		return
	}
	lower := strings.ToLower(string(name))
	if _, known := s.parameters[lower]; !known {
		s.reported = append(s.reported, lower)
		s.spellings[lower] = string(name)
	}
	s.parameters[lower] = string(value)
	s.read()
	c := s.client
	if c == nil || c.phase != serving || s.owns() || !settable[lower] {
		return
	}
	if asked, ok := c.startup.values[lower]; ok && (c.touchedAll || s.discarded) && asked != string(value) && s.base[lower] == string(value) {
		// It has its default again: for the client, what its startup message asked for.
		s.instead = pg.AppendParameter(nil, string(name), asked)
		return
	}
	if s.discarded {
		return
	}
	next := maps.Clone(c.want.values)
	if next == nil {
		next = map[string]string{}
	}
	next[lower] = string(value)
	c.want = &settings{values: next}
	s.set[lower] = string(value)
	s.applied = nil
}

func (s *server) spelling(name string) string {
	if spelled := s.spellings[name]; spelled != "" {
		return spelled
	}
	return name
}
