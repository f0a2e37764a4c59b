package shape

import (
	"reflect"
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

// DefaultElement is the name of a list's element where the model names none.
// Clients that ignore the model use it for every list, so forms may always have it.
const DefaultElement = "member"

// Model is the wire form of one service.
type Model struct {
	Text
	actions  map[string]bool     // every action; false when its reply has no result element
	elements map[string]string   // "Field" or "Type.Field" to the element name of the list
	names    map[string]string   // "Type.Field" to a wire name that the rule does not give
	required map[string][]string // type to its required fields
	errors   map[string]string   // code of a query error to the name of its shape
	plans    sync.Map            // reflect.Type to []Field, filled as types are met
}

// Text is a Model as the generator writes it: words, and key=value words.
type Text struct {
	Service   string // signing name, "rds"
	Version   string // "2014-10-31"
	Namespace string // of XML replies
	Flat      bool   // elements of a form's list are X.1, as EC2 has them, not X.member.1
	Lower     bool   // members begin in lower case
	// Compatible: clients of the service's newer protocols get the code of the query protocol
	// beside the name of the error's shape (the trait awsQueryCompatible).
	Compatible bool
	// AnyText: members may hold control characters. Other services' texts are kept where XML
	// shows them.
	AnyText bool
	// Sparse: a list that is not there is left out at the top of an answer, too.
	Sparse bool

	Actions, Silent, Elements, Names, Required, Errors string
}

// New makes a Model.
func New(t Text) *Model {
	m := &Model{
		Text: t, actions: map[string]bool{}, required: map[string][]string{},
		elements: pairs(t.Elements), names: pairs(t.Names), errors: pairs(t.Errors),
	}
	for _, action := range strings.Fields(t.Actions) {
		m.actions[action] = true
	}
	for _, action := range strings.Fields(t.Silent) {
		m.actions[action] = false
	}
	for typ, members := range pairs(t.Required) {
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

// HasResult says whether the XML reply to an action has a result element.
func (m *Model) HasResult(action string) bool { return m.actions[action] }

// Actions lists every action of the service in order.
func (m *Model) Actions() []string {
	out := make([]string, 0, len(m.actions))
	for action := range m.actions {
		out = append(out, action)
	}
	slices.Sort(out)
	return out
}

// ErrorName returns the name of the shape of an error, which most codes are themselves.
func (m *Model) ErrorName(code string) string {
	if m.errors[code] != "" {
		return m.errors[code]
	}
	return code
}

// Field is one member of a struct as both directions need it.
type Field struct {
	Index    int
	Wire     string // name
	Element  string // name of the elements of a list in a form or in XML; of a map see EntryNames
	Required bool
}

// Fields lists the members of a struct that travel, in the struct's order.
func (m *Model) Fields(t reflect.Type) []Field {
	if known, ok := m.plans.Load(t); ok {
		return known.([]Field)
	}
	fields := make([]Field, 0, t.NumField())
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if !f.IsExported() || f.Name == "ResultMetadata" || name == "-" {
			continue // the SDK's own book-keeping, or ours
		}
		if name == "" {
			name = m.name(t.Name(), f.Name)
		}
		fields = append(fields, Field{
			Index: i, Wire: name, Element: m.element(t.Name(), f.Name),
			Required: slices.Contains(m.required[t.Name()], f.Name),
		})
	}
	m.plans.Store(t, fields)
	return fields
}

func (m *Model) name(typ, field string) string {
	if wire, ok := m.names[typ+"."+field]; ok {
		return wire
	}
	if m.Lower {
		return string(unicode.ToLower(rune(field[0]))) + field[1:]
	}
	return field
}

func (m *Model) element(typ, field string) string {
	if element, ok := m.elements[typ+"."+field]; ok {
		return element
	}
	if element, ok := m.elements[field]; ok {
		return element
	}
	return DefaultElement
}

// EntryNames says what key and value of a map's entries are called; element is the field's.
func EntryNames(element string) (key, value string) {
	if key, value, named := strings.Cut(element, ","); named {
		return key, value
	}
	return "key", "value"
}

// IsText says whether XML can carry s, so that what is stored reads back the same.
func IsText(s string) bool {
	if !utf8.ValidString(s) {
		return false
	}
	for _, r := range s {
		if r < 0x20 && r != '\t' && r != '\n' && r != '\r' || r == 0xFFFE || r == 0xFFFF {
			return false
		}
	}
	return true
}
