package filter

import (
	"encoding/json"
	"strings"

	"kurabe"
)

// Attributes says whether a policy wants a notification with these attributes.
func (p Policy) Attributes(attributes map[string]kurabe.MessageAttribute) bool {
	return matchAll(p.all, func(key string) (any, bool) {
		a, ok := attributes[key]
		if !ok {
			return nil, false
		}
		return attributeValue(a), true
	})
}

// attributeValue is an attribute as a value of JSON: SNS compares the two alike.
func attributeValue(a kurabe.MessageAttribute) any {
	kind, _, _ := strings.Cut(a.Type, ".")
	switch {
	case a.Type == "String.Array":
		var list []any
		d := json.NewDecoder(strings.NewReader(a.Text))
		d.UseNumber()
		if d.Decode(&list) != nil {
			return a.Text
		}
		return list
	case kind == "Number":
		return json.Number(a.Text)
	case kind == "Binary":
		return []any{} // it is there, and nothing can be compared with it
	}
	return a.Text
}

// Body says whether a policy wants a notification with this text. One that is no JSON object is
// wanted by no policy, not even an empty one.
func (p Policy) Body(text string) bool {
	object, ok := parseBody(text)
	return ok && matchObject(p.all, object)
}

func matchObject(all []clause, object map[string]any) bool {
	return matchAll(all, func(key string) (any, bool) { v, ok := object[key]; return v, ok })
}

func matchAll(all []clause, get func(key string) (any, bool)) bool {
	for _, c := range all {
		if !c.match(get) {
			return false
		}
	}
	return true
}

func (c clause) match(get func(key string) (any, bool)) bool {
	if c.either != nil {
		for _, one := range c.either {
			if matchAll(one, get) {
				return true
			}
		}
		return false
	}
	v, there := get(c.key)
	if c.below != nil {
		return matchBelow(c.below, v)
	}
	return c.matchValue(v, there)
}

// matchBelow matches keys in an object, or in one of a list. Where there is no object, only
// conditions that want a key to be absent match.
func matchBelow(below []clause, v any) bool {
	switch v := v.(type) {
	case map[string]any:
		return matchObject(below, v)
	case []any:
		for _, item := range v {
			if matchBelow(below, item) {
				return true
			}
		}
		return false
	}
	return matchObject(below, nil)
}

// matchValue matches a scalar, or one of a list.
func (c clause) matchValue(v any, there bool) bool {
	if list, ok := v.([]any); ok {
		for _, item := range list {
			if c.matchValue(item, true) {
				return true
			}
		}
		if len(list) > 0 {
			return false
		}
		v = list // an empty list is there, and equals nothing
	}
	var one *value
	if there {
		one = &value{plain(v)}
	}
	for _, condition := range c.conditions {
		if condition(one) {
			return true
		}
	}
	return false
}

// none is a value that nothing equals.
type none struct{ _ *byte }

func plain(v any) any {
	switch v := v.(type) {
	case json.Number:
		if f, err := v.Float64(); err == nil {
			return accurate(f)
		}
	case string, bool, nil:
		return v
	}
	return none{}
}
