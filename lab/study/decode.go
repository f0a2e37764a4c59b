package study

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// itemsMax bounds every list and mapping of a definition.
const itemsMax = 1000

// decoder fills a value from YAML and knows afterwards where each key stood. The
// library's own decoding drops columns, stops at the first fault of a kind, and reads
// aliases, with which a small file becomes a large value.
type decoder struct{ *places }

func (d decoder) decode(path string, n *yaml.Node, into any) {
	d.at[path] = place{n.Line, n.Column}
	d.value(path, n, reflect.ValueOf(into).Elem())
}

// value reads a node into a value of one of the kinds that the types of a study have.
func (d decoder) value(path string, n *yaml.Node, into reflect.Value) {
	switch {
	case n.Kind == yaml.AliasNode:
		d.refuse(path, "aliases (*%s) are not read; write it out", brief(n.Value))
		return
	case n.Anchor != "":
		d.refuse(path, "anchors (&%s) are not read; write it out where it is wanted", brief(n.Anchor))
		return
	case n.Style&yaml.TaggedStyle != 0:
		d.refuse(path, "tags (%s) are not read", brief(n.Tag))
		return
	case n.ShortTag() == "!!null":
		d.refuse(path, "has no value; give one, or leave the key out")
		return
	}
	switch into.Kind() {
	case reflect.Pointer:
		into.Set(reflect.New(into.Type().Elem()))
		d.value(path, n, into.Elem())
	case reflect.Struct:
		d.structure(path, n, into)
	case reflect.Slice:
		d.list(path, n, into)
	case reflect.Map:
		d.mapping(path, n, into)
	default:
		d.scalar(path, n, into)
	}
}

// structure reads a mapping with known keys. A key whose tag has no omitempty must be
// there.
func (d decoder) structure(path string, n *yaml.Node, into reflect.Value) {
	fields, required := keysOf(into.Type())
	seen := d.pairs(path, n, func(key string, keyNode, value *yaml.Node) {
		i := slices.Index(fields, key)
		if i < 0 || key == "-" {
			d.refuse(join(path, key), "no such key; there are %s", strings.Join(slices.DeleteFunc(slices.Clone(fields), func(f string) bool { return f == "-" }), ", "))
			return
		}
		d.value(join(path, key), value, into.Field(i))
	})
	if seen == nil {
		return
	}
	for _, key := range required {
		if _, there := seen[key]; !there {
			d.refuse(join(path, key), "is missing")
		}
	}
}

// keysOf gives the key of each field, in their order, and those that are required.
func keysOf(t reflect.Type) (keys, required []string) {
	for i := range t.NumField() {
		key, options, _ := strings.Cut(t.Field(i).Tag.Get("yaml"), ",")
		keys = append(keys, key)
		if key != "-" && options == "" {
			required = append(required, key)
		}
	}
	return keys, required
}

// pairs visits the pairs of a mapping, each key once, and gives the keys; nil when it is
// no mapping.
func (d decoder) pairs(path string, n *yaml.Node, visit func(key string, keyNode, value *yaml.Node)) map[string]int {
	if n.Kind != yaml.MappingNode {
		d.refuse(path, "is %s; a mapping, lines of `key: value`, belongs here", kindOf(n))
		return nil
	}
	if len(n.Content) > 2*itemsMax {
		d.refuse(path, "has more than %d keys", itemsMax)
		return nil
	}
	seen := map[string]int{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i]
		if key.Kind != yaml.ScalarNode || key.Anchor != "" {
			d.refuseAt(place{key.Line, key.Column}, path, "a key is a plain word")
			continue
		}
		at := join(path, key.Value)
		if line, twice := seen[key.Value]; twice {
			d.refuseAt(place{key.Line, key.Column}, at, "is here twice, first in line %d; remove one", line)
			continue
		}
		seen[key.Value] = key.Line
		d.at[at] = place{key.Line, key.Column}
		visit(key.Value, key, n.Content[i+1])
	}
	return seen
}

func (d decoder) list(path string, n *yaml.Node, into reflect.Value) {
	if n.Kind != yaml.SequenceNode {
		d.refuse(path, "is %s; a list belongs here, as [a, b] or lines that begin with -", kindOf(n))
		return
	}
	if len(n.Content) > itemsMax {
		d.refuse(path, "has %d items; %d are read at the most", len(n.Content), itemsMax)
		return
	}
	into.Set(reflect.MakeSlice(into.Type(), len(n.Content), len(n.Content)))
	for i, item := range n.Content {
		at := fmt.Sprintf("%s[%d]", path, i)
		d.at[at] = place{item.Line, item.Column}
		d.value(at, item, into.Index(i))
	}
}

// mapping reads names of the writer's own. A list where statements by engine belong is
// for all engines.
func (d decoder) mapping(path string, n *yaml.Node, into reflect.Value) {
	into.Set(reflect.MakeMap(into.Type()))
	one := func(at, key string, value *yaml.Node) {
		v := reflect.New(into.Type().Elem()).Elem()
		d.value(at, value, v)
		into.SetMapIndex(reflect.ValueOf(key), v)
	}
	if n.Kind == yaml.SequenceNode && into.Type().Elem().Kind() == reflect.Slice {
		one(path, "", n)
		return
	}
	d.pairs(path, n, func(key string, _, value *yaml.Node) {
		// A parameter's value is text, whatever YAML takes it for: 1, off, 0.5.
		if into.Type().Elem().Kind() == reflect.String && value.Kind == yaml.ScalarNode && value.Style&yaml.TaggedStyle == 0 && value.ShortTag() != "!!null" {
			value = &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: value.Value, Anchor: value.Anchor, Line: value.Line, Column: value.Column}
		}
		one(join(path, key), key, value)
	})
}

func (d decoder) scalar(path string, n *yaml.Node, into reflect.Value) {
	want := map[reflect.Kind]string{
		reflect.String: "a text", reflect.Int: "a whole number", reflect.Uint64: "a whole number that is not negative",
		reflect.Float64: "a number", reflect.Bool: "true or false",
	}[into.Kind()]
	if n.Kind != yaml.ScalarNode {
		d.refuse(path, "is %s; %s belongs here", kindOf(n), want)
		return
	}
	if duration, ok := into.Addr().Interface().(*Duration); ok {
		if err := duration.UnmarshalText([]byte(n.Value)); err != nil {
			d.refuse(path, "%v", err)
		}
		return
	}
	fits := map[reflect.Kind][]string{
		reflect.String: {"!!str", "!!timestamp"}, reflect.Int: {"!!int"}, reflect.Uint64: {"!!int"},
		reflect.Float64: {"!!int", "!!float"}, reflect.Bool: {"!!bool"},
	}[into.Kind()]
	if !slices.Contains(fits, n.ShortTag()) {
		if into.Kind() == reflect.String {
			want += ", in quotes,"
		}
		d.refuse(path, "%q is %s; %s belongs here", brief(n.Value), kindOf(n), want)
		return
	}
	if into.Kind() == reflect.String {
		into.SetString(n.Value)
		return
	}
	if err := n.Decode(into.Addr().Interface()); err != nil {
		d.refuse(path, "%q is out of range; %s belongs here", brief(n.Value), want)
	}
}

// kindOf names what stands in the file.
func kindOf(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "a mapping"
	case yaml.SequenceNode:
		return "a list"
	case yaml.AliasNode:
		return "an alias"
	}
	switch n.ShortTag() {
	case "!!int", "!!float":
		return "a number"
	case "!!bool":
		return "true or false"
	}
	return "a text"
}

// join is the path of a key in what path names.
func join(path, key string) string {
	switch {
	case key == "":
		key = `""`
	case len(key) > briefMax:
		key = brief(key)
	}
	if path == "" {
		return key
	}
	return path + "." + key
}

// briefMax bounds what an error repeats of the file, in bytes.
const briefMax = 60

func brief(text string) string {
	if len(text) <= briefMax {
		return text
	}
	return strings.ToValidUTF8(text[:briefMax], "") + "…"
}
