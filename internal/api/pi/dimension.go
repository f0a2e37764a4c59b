package pi

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"

	"kurabe"
	"kurabe/internal/load"
)

// dimension is one of AWS's, with what it shows of a value of ours.
type dimension struct {
	name string
	of   load.Dimension
	show func(value string, texts map[string]load.Text) string // nil: the value itself
	hash bool                                                  // it cannot be filtered by: it is shown only
}

// group is one of AWS's groups of dimensions. All of its dimensions tell the values of by apart.
type group struct {
	name       string
	by         []load.Dimension
	dimensions []dimension
}

// statementShown is how much of a statement a key shows, in bytes; its details show the rest.
const statementShown = 500

func idOf(value string, _ map[string]load.Text) string {
	if value == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(value))
	return strings.ToUpper(hex.EncodeToString(sum[:8]))
}

func statementOf(id string, texts map[string]load.Text) string {
	text := texts[id].Statement
	if len(text) > statementShown {
		text = strings.ToValidUTF8(text[:statementShown], "")
	}
	return text
}

func nativeOf(id string, texts map[string]load.Text) string { return texts[id].NativeID }

// groups are all of them. db.blocking_user and db.blocking_sql_tokenized say for whom sessions
// wait; the names are ours.
var groups = []group{
	{"db", []load.Dimension{load.Database}, []dimension{{name: "db.name", of: load.Database}}},
	{"db.application", []load.Dimension{load.Application}, []dimension{{name: "db.application.name", of: load.Application}}},
	{"db.blocking_sql_tokenized", []load.Dimension{load.BlockingTokenized}, []dimension{
		{name: "db.blocking_sql_tokenized.id", of: load.BlockingTokenized},
		{name: "db.blocking_sql_tokenized.statement", of: load.BlockingTokenized, show: statementOf, hash: true}}},
	{"db.blocking_user", []load.Dimension{load.BlockingUser}, []dimension{{name: "db.blocking_user.name", of: load.BlockingUser}}},
	{"db.host", []load.Dimension{load.Host}, []dimension{
		{name: "db.host.id", of: load.Host, show: idOf, hash: true}, {name: "db.host.name", of: load.Host}}},
	{"db.session_type", []load.Dimension{load.Kind}, []dimension{{name: "db.session_type.name", of: load.Kind}}},
	{"db.sql", []load.Dimension{load.Statement, load.Tokenized}, []dimension{
		{name: "db.sql.db_id", of: load.Statement, show: nativeOf, hash: true}, {name: "db.sql.id", of: load.Statement},
		{name: "db.sql.statement", of: load.Statement, show: statementOf, hash: true}, {name: "db.sql.tokenized_id", of: load.Tokenized}}},
	{"db.sql_tokenized", []load.Dimension{load.Tokenized}, []dimension{
		{name: "db.sql_tokenized.db_id", of: load.Tokenized, show: nativeOf, hash: true}, {name: "db.sql_tokenized.id", of: load.Tokenized},
		{name: "db.sql_tokenized.statement", of: load.Tokenized, show: statementOf, hash: true}}},
	{"db.user", []load.Dimension{load.User}, []dimension{
		{name: "db.user.id", of: load.User, show: idOf, hash: true}, {name: "db.user.name", of: load.User}}},
	{"db.wait_event", []load.Dimension{load.Wait, load.WaitType}, []dimension{
		{name: "db.wait_event.name", of: load.Wait}, {name: "db.wait_event.type", of: load.WaitType}}},
	{"db.wait_event_type", []load.Dimension{load.WaitType}, []dimension{{name: "db.wait_event_type.name", of: load.WaitType}}},
}

// chosen is a group with the dimensions that are shown.
type chosen struct {
	group
	shown []dimension
	limit int
}

const (
	limitDefault = 10
	limitMax     = 25
)

// choose reads a group of a request. Member names it in errors.
func choose(member string, g *DimensionGroup) (c chosen, err error) {
	name := deref(g.Group)
	n := slices.IndexFunc(groups, func(g group) bool { return g.name == name })
	if n < 0 {
		return c, invalid("%s.Group %q is not an available group; ListAvailableResourceDimensions names them", member, name)
	}
	c = chosen{group: groups[n], shown: groups[n].dimensions, limit: limitDefault}
	if g.Limit != nil {
		c.limit = int(*g.Limit)
	}
	if c.limit < 1 || c.limit > limitMax {
		return c, invalid("%s.Limit must be from 1 to %d", member, limitMax)
	}
	if len(g.Dimensions) == 0 {
		return c, nil
	}
	c.shown, c.by = nil, nil
	for _, name := range g.Dimensions {
		n := slices.IndexFunc(c.dimensions, func(d dimension) bool { return d.name == name })
		if n < 0 {
			return c, invalid("%s.Dimensions: %q is not a dimension of the group %s", member, name, c.name)
		}
		d := c.dimensions[n]
		c.shown = append(c.shown, d)
		if !slices.Contains(c.by, d.of) {
			c.by = append(c.by, d.of)
		}
	}
	return c, nil
}

// key shows the values of a group, which begin at an offset of a longer list.
func (c chosen) key(values []string, texts map[string]load.Text) map[string]string {
	key := map[string]string{}
	for _, d := range c.shown {
		value := values[slices.Index(c.by, d.of)]
		if d.show != nil {
			value = d.show(value, texts)
		}
		if value != "" {
			key[d.name] = value
		}
	}
	return key
}

// conditions reads a filter.
func conditions(filter map[string]string) (list []load.Condition, err error) {
	for name, value := range filter {
		found := false
		for _, g := range groups {
			for _, d := range g.dimensions {
				if d.name == name && !d.hash {
					list, found = append(list, load.Condition{Dimension: d.of, Values: []string{value}}), true
				}
			}
		}
		if !found {
			return nil, invalid("Filter: %q is not a dimension by which load can be filtered", name)
		}
	}
	return list, nil
}

func invalid(format string, args ...any) error {
	return kurabe.Errorf(kurabe.CodeInvalidParameterValue, format, args...)
}

func deref[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}
