package document

import (
	"encoding/base64"
	"encoding/json"
	"math"
	"reflect"
	"strconv"
	"time"

	"kurabe/internal/aws/shape"
)

// grower makes a tree of a struct. Absent members are left out, except that a list at the top
// is there although it is empty: clients index into it without asking.
type grower struct {
	model *shape.Model
	text  bool // leaves are JSON's
}

// output returns the tree of an output, which is a pointer to a struct and may be nil.
func (g grower) output(out any) any {
	v := reflect.ValueOf(out)
	if v.Kind() == reflect.Pointer && !v.IsNil() {
		return g.structure(v.Elem(), true)
	}
	return map[string]any{}
}

func (g grower) structure(v reflect.Value, top bool) any {
	fields := g.model.Fields(v.Type())
	tree := make(map[string]any, len(fields))
	for _, f := range fields {
		member := v.Field(f.Index)
		switch {
		case top && member.Kind() == reflect.Slice && member.Type() != blobType && member.IsNil():
			tree[f.Wire] = []any{}
		case !absent(member):
			tree[f.Wire] = g.value(member)
		}
	}
	return tree
}

// absent says whether a member is not there. An enum that is not set is absent; text, a number or
// a boolean that is no pointer always has a value.
func absent(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Map, reflect.Interface:
		return v.IsNil()
	case reflect.String:
		return v.Len() == 0 && v.Type() != reflect.TypeFor[string]()
	}
	return false
}

func (g grower) value(v reflect.Value) any {
	if v.Kind() == reflect.Pointer {
		if v.IsNil() {
			return nil // in a sparse list or map
		}
		return g.value(v.Elem())
	}
	switch x := v.Interface().(type) {
	case time.Time:
		return g.time(x)
	case []byte:
		return g.blob(x)
	}
	switch v.Kind() {
	case reflect.Struct:
		return g.structure(v, false)
	case reflect.Slice, reflect.Array:
		list := make([]any, v.Len())
		for n := range list {
			list[n] = g.value(v.Index(n))
		}
		return list
	case reflect.Map:
		tree := make(map[string]any, v.Len())
		for entries := v.MapRange(); entries.Next(); {
			tree[entries.Key().String()] = g.value(entries.Value())
		}
		return tree
	case reflect.String:
		return v.String()
	case reflect.Bool:
		return v.Bool()
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return v.Int()
	case reflect.Float32, reflect.Float64:
		return g.number(v.Float())
	default:
		panic("document: no wire form of " + v.Type().String()) // a union, for one
	}
}

// number writes what is no number as each format does. A whole one has a point in JSON, or
// clients without a model read an integer.
func (g grower) number(n float64) any {
	switch {
	case !g.text:
	case math.IsNaN(n):
		return "NaN"
	case math.IsInf(n, 1):
		return "Infinity"
	case math.IsInf(n, -1):
		return "-Infinity"
	case n == math.Trunc(n) && math.Abs(n) < maxExact:
		return json.Number(strconv.FormatFloat(n, 'f', 1, 64))
	}
	return n
}

// maxExact is the limit of the whole numbers that encoding/json writes without an exponent.
const maxExact = 1e21

// time has milliseconds, as all times of AWS.
func (g grower) time(at time.Time) any {
	if g.text {
		return float64(at.UnixMilli()) / 1000
	}
	return at.Truncate(time.Millisecond)
}

func (g grower) blob(b []byte) any {
	if g.text {
		return base64.StdEncoding.EncodeToString(b)
	}
	return b
}
