package query

import (
	"reflect"
	"strconv"

	"kurabe/internal/aws/fault"
	"kurabe/internal/aws/shape"
)

// decoder fills structs of one service.
type decoder struct{ model *shape.Model }

// Decode fills in, a pointer to one of the SDK's input structs, from the form.
// It refuses malformed values and absent required members with a *fault.Fault.
// What it has no place for stays in f.Unconsumed.
func Decode(m *shape.Model, f *Form, in any) error {
	return decoder{m}.structure(&f.root, reflect.ValueOf(in).Elem())
}

func (d decoder) structure(n *node, v reflect.Value) error {
	for _, f := range d.model.Fields(v.Type()) {
		if child := n.children[f.Wire]; child != nil {
			if err := d.value(child, v.Field(f.Index), f.Element); err != nil {
				return err
			}
		}
		if f.Required && isAbsent(v.Field(f.Index)) {
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

func missing(n *node, f shape.Field) error {
	name := f.Wire
	if n.key != "" {
		name = n.key + "." + f.Wire
	}
	return fault.New(400, "MissingParameter", "The request must contain the parameter %s.", name)
}

// value fills one member; element names the elements if it is a list.
func (d decoder) value(n *node, v reflect.Value, element string) error {
	switch {
	case v.Kind() == reflect.Pointer:
		target := reflect.New(v.Type().Elem())
		if err := d.value(n, target.Elem(), element); err != nil {
			return err
		}
		v.Set(target)
		return nil
	case v.Type() == timeType || v.Type() == blobType:
		return decodeScalar(n, v)
	}
	switch v.Kind() {
	case reflect.Struct:
		if err := noValue(n, "a structure"); err != nil {
			return err
		}
		return d.structure(n, v)
	case reflect.Slice:
		return d.list(n, v, element)
	case reflect.Map:
		return d.entries(n, v, element)
	default:
		return decodeScalar(n, v)
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

func (d decoder) list(n *node, v reflect.Value, element string) error {
	if err := noValue(n, "a list"); err != nil {
		return err
	}
	items, err := d.items(n, element)
	if err != nil {
		return err
	}
	out := reflect.MakeSlice(v.Type(), len(items), len(items))
	for i, item := range items {
		if err := d.value(item, out.Index(i), shape.DefaultElement); err != nil {
			return err
		}
	}
	v.Set(out)
	return nil
}

// items returns the elements X.<element>.1, X.<element>.2, …, or X.1, X.2, … of a flat
// model, in order. A gap is refused: it means that an element was lost on the way.
func (d decoder) items(n *node, element string) ([]*node, error) {
	if d.model.Flat {
		return numbered(n, n)
	}
	holder := n.children[element]
	if plain := n.children[shape.DefaultElement]; plain != nil && plain != holder {
		if holder != nil {
			return nil, malformed("The list %s mixes the element names %s and %s.", n.key, element, shape.DefaultElement)
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

// entries reads X.entry.N.key and X.entry.N.value, or what the model calls the two.
func (d decoder) entries(n *node, v reflect.Value, element string) error {
	if err := noValue(n, "a map"); err != nil {
		return err
	}
	entries, err := d.items(n, "entry")
	if err != nil {
		return err
	}
	out := reflect.MakeMapWithSize(v.Type(), len(entries))
	keyName, valueName := shape.EntryNames(element)
	for _, entry := range entries {
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		for name, target := range map[string]reflect.Value{keyName: key, valueName: value} {
			child := entry.children[name]
			if child == nil {
				return malformed("The map entry %s has no %s.", entry.key, name)
			}
			if err := d.value(child, target, shape.DefaultElement); err != nil {
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
