package query

import (
	"reflect"
	"strconv"

	"kurabe/internal/aws/fault"
)

// Decode fills in, a pointer to one of the SDK's input structs, from the form.
// It refuses malformed values and absent required members with a *fault.Fault.
// What it has no place for stays in f.Unconsumed.
func (m *Model) Decode(f *Form, in any) error {
	return m.decodeStruct(&f.root, reflect.ValueOf(in).Elem())
}

func (m *Model) decodeStruct(n *node, v reflect.Value) error {
	for _, f := range m.fieldsOf(v.Type()) {
		if child := n.children[f.wire]; child != nil {
			if err := m.decodeValue(child, v.Field(f.index), f.element); err != nil {
				return err
			}
		}
		if f.required && isAbsent(v.Field(f.index)) {
			return missing(n, f)
		}
	}
	return nil
}

// isAbsent says whether a required member has not come; an empty list has.
func isAbsent(v reflect.Value) bool {
	if v.Kind() == reflect.Slice {
		return v.IsNil()
	}
	return v.IsZero()
}

func missing(n *node, f field) error {
	name := f.wire
	if n.key != "" {
		name = n.key + "." + f.wire
	}
	return fault.New(400, "MissingParameter", "The request must contain the parameter %s.", name)
}

// decodeValue fills one member; element names the elements if it is a list.
func (m *Model) decodeValue(n *node, v reflect.Value, element string) error {
	switch {
	case v.Kind() == reflect.Pointer:
		target := reflect.New(v.Type().Elem())
		if err := m.decodeValue(n, target.Elem(), element); err != nil {
			return err
		}
		v.Set(target)
		return nil
	case v.Type() == timeType || v.Type() == blobType:
		return m.decodeScalar(n, v)
	}
	switch v.Kind() {
	case reflect.Struct:
		if err := noValue(n, "a structure"); err != nil {
			return err
		}
		return m.decodeStruct(n, v)
	case reflect.Slice:
		return m.decodeList(n, v, element)
	case reflect.Map:
		return m.decodeMap(n, v)
	default:
		return m.decodeScalar(n, v)
	}
}

// noValue refuses text where members are due. Empty text is how clients send an
// empty list, so it counts as read.
func noValue(n *node, kind string) error {
	if n.hasValue && (n.value != "" || len(n.children) > 0) {
		return malformed("The parameter %s is %s, not a value.", n.key, kind)
	}
	n.consumed = true
	return nil
}

func (m *Model) decodeList(n *node, v reflect.Value, element string) error {
	if err := noValue(n, "a list"); err != nil {
		return err
	}
	items, err := m.listItems(n, element)
	if err != nil {
		return err
	}
	out := reflect.MakeSlice(v.Type(), len(items), len(items))
	for i, item := range items {
		if err := m.decodeValue(item, out.Index(i), defaultElement); err != nil {
			return err
		}
	}
	v.Set(out)
	return nil
}

// listItems returns the elements X.<element>.1, X.<element>.2, …, or X.1, X.2, … of a flat
// model, in order. A gap is refused: it means that an element was lost on the way.
func (m *Model) listItems(n *node, element string) ([]*node, error) {
	if m.Flat {
		return numbered(n, n)
	}
	holder := n.children[element]
	if plain := n.children[defaultElement]; plain != nil && plain != holder {
		if holder != nil {
			return nil, malformed("The list %s mixes the element names %s and %s.", n.key, element, defaultElement)
		}
		holder = plain
	}
	if holder == nil {
		return nil, nil
	}
	if err := noValue(holder, "a list"); err != nil {
		return nil, err
	}
	return numbered(n, holder)
}

// numbered returns the children 1, 2, … of what holds the elements of list n.
func numbered(n, holder *node) ([]*node, error) {
	if len(holder.children) > MaxListItems {
		return nil, malformed("The list %s has more than %d elements.", n.key, MaxListItems)
	}
	items := make([]*node, 0, len(holder.children))
	for i := 1; i <= len(holder.children); i++ {
		item := holder.children[strconv.Itoa(i)]
		if item == nil {
			return nil, malformed("The elements of the list %s are not numbered from 1 without a gap.", n.key)
		}
		items = append(items, item)
	}
	return items, nil
}

// decodeMap reads X.entry.N.key and X.entry.N.value.
func (m *Model) decodeMap(n *node, v reflect.Value) error {
	if err := noValue(n, "a map"); err != nil {
		return err
	}
	entries, err := m.listItems(n, "entry")
	if err != nil {
		return err
	}
	out := reflect.MakeMapWithSize(v.Type(), len(entries))
	for _, entry := range entries {
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		for name, target := range map[string]reflect.Value{"key": key, "value": value} {
			child := entry.children[name]
			if child == nil {
				return malformed("The map entry %s has no %s.", entry.key, name)
			}
			if err := m.decodeValue(child, target, defaultElement); err != nil {
				return err
			}
		}
		if out.MapIndex(key).IsValid() {
			return malformed("The map %s holds a key twice.", n.key)
		}
		out.SetMapIndex(key, value)
	}
	v.Set(out)
	return nil
}
