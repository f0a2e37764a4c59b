package study

import (
	"fmt"
	"maps"
	"net"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Bounds of a variant.
const (
	TitleMax     = 200 // bytes
	ParameterMax = 100 // of one variant
	ValueMax     = 8192
	IOPSMax      = 256_000
	StorageMax   = 65_536 // GiB
)

var (
	parameterName = regexp.MustCompile(`^[a-z_][a-z0-9_]*(?:\.[a-z_][a-z0-9_]*)?$`)
	className     = regexp.MustCompile(`^db\.[a-z0-9-]+\.[a-z0-9-]+$`)
	storageNames  = []string{"local", "gp2", "gp3", "io1", "io2", "standard"}
	needName      = regexp.MustCompile(`^[a-z][a-z0-9_-]{0,39}$`)
	streamModes   = []string{"sync", "async"}
)

func (c *checker) variant(path string, v Variant) {
	if !cellName.MatchString(v.Name) {
		// The twin is the only name with another letter, and nobody writes it.
		if v.TwinOf == "" || v.Name != Twin(v.TwinOf) {
			c.refuse(path+".name", "%q must be of letters, digits, ., _, + and -, 60 at the most", brief(v.Name))
		}
	}
	if len(v.Title) > TitleMax {
		c.refuse(path+".title", "has %d bytes; %d are possible", len(v.Title), TitleMax)
	}
	c.engines(path+".engines", v.Engines, c.study.Engines)
	c.parameters(path+".parameters", v.Parameters)
	c.statements(path+".sql", v.SQL, v.Engines)
	c.hardware(path, v)
	c.endpoint(path, v)
	if v.Needs != "" && !needName.MatchString(v.Needs) {
		c.refuse(path+".needs", "%q is no feature; name %s, %s, %s or a library of the server, as pgaudit", brief(v.Needs), NeedActivityStream, NeedProxy, NeedSuperuser)
	}
	if v.ActivityStream != "" && c.oneOf(path+".activity_stream", v.ActivityStream, streamModes) && v.Needs != NeedActivityStream {
		c.refuse(path+".needs", "%q must be %s with an activity stream, so that a target without one says so", v.Needs, NeedActivityStream)
	}
	c.change(path, v)
}

func (c *checker) parameters(path string, values map[string]string) {
	if len(values) > ParameterMax {
		c.refuse(path, "has %d parameters; %d are possible", len(values), ParameterMax)
		return
	}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		switch {
		case !parameterName.MatchString(name):
			c.refuse(join(path, name), "%q is no name of a parameter; write it in small letters, as SHOW does", brief(name))
		case len(values[name]) > ValueMax:
			c.refuse(join(path, name), "has %d bytes; %d are possible", len(values[name]), ValueMax)
		}
	}
}

// statements checks SQL by engine. The key "" is for all.
func (c *checker) statements(path string, by map[string][]string, limit []string) {
	for _, engine := range slices.Sorted(maps.Keys(by)) {
		at := path
		if engine != "" {
			at = join(path, engine)
			if !slices.Contains(c.enginesOf(limit), engine) {
				c.refuse(at, "%q is none of the engines that it is for, %s", brief(engine), strings.Join(c.enginesOf(limit), ", "))
			}
		}
		if n := len(by[engine]); n == 0 || n > StatementMax {
			c.refuse(at, "has %d statements; 1 to %d are possible", n, StatementMax)
		}
		for i, text := range by[engine] {
			if strings.TrimSpace(text) == "" {
				c.refuse(fmt.Sprintf("%s[%d]", at, i), "is empty; write a statement, or remove the line")
			}
		}
	}
}

// hardware checks what a target with classes is asked for. Which classes there are and
// which storage takes how many IOPS is the target's to say.
func (c *checker) hardware(path string, v Variant) {
	if v.Class != "" && !className.MatchString(v.Class) {
		c.refuse(path+".class", "%q is no class; one looks like db.t3.medium", brief(v.Class))
	}
	if v.StorageType != "" {
		c.oneOf(path+".storage_type", v.StorageType, storageNames)
	}
	c.within(path+".iops", v.IOPS, 0, IOPSMax)
	c.within(path+".storage_gib", v.StorageGiB, 0, StorageMax)
	if v.IOPS > 0 && v.StorageType == "" {
		c.refuse(path+".iops", "needs storage_type, such as io1: others take no number of IOPS")
	}
}

func (c *checker) endpoint(path string, v Variant) {
	path += ".endpoint"
	switch v.Endpoint {
	case "", EndpointHAProxy:
	case EndpointPgBouncer:
		if others := without(c.enginesOf(v.Engines), Postgres); len(others) > 0 {
			c.refuse(path, "%s speaks to %s only, and the variant is for %s, too; give it engines: [%s]", EndpointPgBouncer, Postgres, strings.Join(others, ", "), Postgres)
		}
	case EndpointProxy:
		if v.Needs != NeedProxy {
			c.refuse(path, "%s is the service's own; add needs: %s, so that a target without one says so", EndpointProxy, NeedProxy)
		}
	default:
		host, port, err := net.SplitHostPort(v.Endpoint)
		number, portErr := strconv.Atoi(port)
		if err != nil || host == "" || portErr != nil || number < 1 || number > 65535 {
			c.refuse(path, "%q is none of %s, %s, %s, HOST:PORT", brief(v.Endpoint), EndpointPgBouncer, EndpointHAProxy, EndpointProxy)
		}
	}
}

func without(list []string, word string) []string {
	return slices.DeleteFunc(slices.Clone(list), func(x string) bool { return x == word })
}

// change checks that of one variant. When one makes a change all do, the baseline a
// sham: otherwise its trials would have no such phases to compare with.
func (c *checker) change(path string, v Variant) {
	if !HasChanges(c.study) && len(v.Change) == 0 {
		if v.Tool != "" {
			c.refuse(path+".tool", "makes a change, and there is none; add change, or remove the tool")
		}
		if len(v.Changed) > 0 {
			c.refuse(path+".changed", "asks for a change, and there is none; add change, or remove the questions")
		}
		return
	}
	c.statements(path+".change", v.Change, v.Engines)
	c.statements(path+".changed", v.Changed, v.Engines)
	for _, e := range c.enginesOf(v.Engines) {
		_, all := v.Change[""]
		_, own := v.Change[e]
		switch {
		case all && own:
			c.refuse(path+".change", "is there for all engines and for %s; write it for each, or once", e)
		case !all && !own:
			c.refuse(path+".change", "there is none for %s; other variants make a change while the load runs, so each does (a baseline one without effect, as SELECT 1)", e)
		}
	}
	if v.Tool == "" {
		return
	}
	if c.oneOf(path+".tool", v.Tool, []string{ToolPtOSC}) {
		if slices.Contains(c.enginesOf(v.Engines), Postgres) {
			c.refuse(path+".tool", "%s speaks to %s and %s only; give the variant engines: [%s]", v.Tool, MariaDB, MySQL, MariaDB)
		}
	}
	for _, engine := range slices.Sorted(maps.Keys(v.Change)) {
		for _, text := range v.Change[engine] {
			if word, _, _ := strings.Cut(strings.TrimSpace(text), " "); strings.EqualFold(word, "ALTER") {
				c.refuse(path+".change", "%q: the tool is told what follows ALTER TABLE {table}; leave that out", brief(text))
			}
		}
	}
}

// namesTable says whether a change of the study is of the load's own table.
func (c *checker) namesTable() bool {
	for _, v := range c.study.Variants {
		if v.Tool != "" {
			return true
		}
		for _, by := range []map[string][]string{v.Change, v.Changed} {
			for _, list := range by {
				if slices.ContainsFunc(list, func(text string) bool { return strings.Contains(text, "{table}") }) {
					return true
				}
			}
		}
	}
	return false
}
