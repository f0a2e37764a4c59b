package query

import (
	"reflect"
	"slices"
	"strings"
	"sync"

	"kurabe/internal/aws/fault"
)

// defaultElement is what a list element is called when the model names none.
// Clients that ignore the model use it for every list, so Decode always takes it.
const defaultElement = "member"

// Model is the wire form of one service.
type Model struct {
	Service   string // signing name, "rds"
	Version   string // "2014-10-31"
	Namespace string // of the XML replies
	Flat      bool   // elements are X.1, as EC2 has them, not X.member.1

	actions  map[string]bool     // every action; false when its reply has no result element
	elements map[string]string   // "Field" or "Type.Field" to the element name of the list
	names    map[string]string   // "Type.Field" to a wire name that is not the Go name
	required map[string][]string // type to its required fields
	plans    sync.Map            // reflect.Type to []field, filled as types are met
}

// modelText is a Model as the generator writes it: words, and key=value words.
type modelText struct {
	service, version, namespace                string
	actions, silent, elements, names, required string
}

func newModel(t modelText) *Model {
	m := &Model{
		Service: t.service, Version: t.version, Namespace: t.namespace,
		actions: map[string]bool{}, elements: pairs(t.elements), names: pairs(t.names),
		required: map[string][]string{},
	}
	for _, action := range strings.Fields(t.actions) {
		m.actions[action] = true
	}
	for _, action := range strings.Fields(t.silent) {
		m.actions[action] = false
	}
	for typ, members := range pairs(t.required) {
		m.required[typ] = strings.Split(members, ",")
	}
	return m
}

func pairs(text string) map[string]string {
	out := map[string]string{}
	for _, word := range strings.Fields(text) {
		key, value, _ := strings.Cut(word, "=")
		out[key] = value
	}
	return out
}

// Has says whether the service has the action, offered or not.
func (m *Model) Has(action string) bool {
	_, ok := m.actions[action]
	return ok
}

// Actions lists every action of the service in order.
func (m *Model) Actions() []string {
	out := make([]string, 0, len(m.actions))
	for action := range m.actions {
		out = append(out, action)
	}
	slices.Sort(out)
	return out
}

// field is one member of a struct as both directions need it.
type field struct {
	index    int
	wire     string
	element  string // of a list
	required bool
}

// fieldsOf lists the members of a struct that travel, in the struct's order.
func (m *Model) fieldsOf(t reflect.Type) []field {
	if known, ok := m.plans.Load(t); ok {
		return known.([]field)
	}
	fields := make([]field, 0, t.NumField())
	for i := range t.NumField() {
		f := t.Field(i)
		if !f.IsExported() || f.Name == "ResultMetadata" {
			continue // the SDK's own book-keeping
		}
		fields = append(fields, field{
			index:    i,
			wire:     m.wireName(t.Name(), f.Name),
			element:  m.elementName(t.Name(), f.Name),
			required: slices.Contains(m.required[t.Name()], f.Name),
		})
	}
	m.plans.Store(t, fields)
	return fields
}

func (m *Model) wireName(typ, name string) string {
	if wire, ok := m.names[typ+"."+name]; ok {
		return wire
	}
	return name
}

func (m *Model) elementName(typ, name string) string {
	if element, ok := m.elements[typ+"."+name]; ok {
		return element
	}
	if element, ok := m.elements[name]; ok {
		return element
	}
	return defaultElement
}

func malformed(format string, args ...any) *fault.Fault {
	return fault.New(400, "MalformedInput", format, args...)
}
