package document

import (
	"cmp"
	"encoding"
	"encoding/base64"
	"encoding/json"
	"math"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"time"

	"kurabe/internal/aws/fault"
	"kurabe/internal/aws/shape"
)

// Bounds of one document. The largest real ones are lists of some thousand data points or log
// events with a few members each.
const (
	maxDepth  = 32
	maxValues = 1 << 17
)

func unreadable(format string, args ...any) *fault.Fault {
	return fault.New(http.StatusBadRequest, "SerializationException", "Invalid request body: "+format+".", args...)
}

// filler puts a tree into a struct.
type filler struct {
	model *shape.Model
	text  bool // leaves are JSON's: times are numbers, blobs and NaN are strings
}

var (
	timeType = reflect.TypeFor[time.Time]()
	blobType = reflect.TypeFor[[]byte]()
)

// structure fills the members of v; path names it in messages.
func (f filler) structure(tree any, v reflect.Value, path string) error {
	members, ok := tree.(map[string]any)
	if !ok {
		return unreadable("%.100s is not a structure", cmp.Or(path, "the document"))
	}
	taken := 0
	for _, m := range f.model.Fields(v.Type()) {
		member := v.Field(m.Index)
		x, given := members[m.Wire]
		if given {
			taken++
			if err := f.value(x, member, below(path, m.Wire)); err != nil {
				return err
			}
		}
		if m.Required && x == nil {
			return f.missing(path + "." + m.Wire)
		}
	}
	if taken == len(members) {
		return nil
	}
	known := f.model.Fields(v.Type())
	for name := range members {
		if !slices.ContainsFunc(known, func(m shape.Field) bool { return m.Wire == name }) {
			return unreadable("unknown member %.100s", below(path, name))
		}
	}
	return nil
}

func below(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

// missing is said in AWS's words, and in those of the query protocol to its clients' successors.
func (f filler) missing(name string) error {
	if f.model.Compatible {
		return fault.New(http.StatusBadRequest, "MissingParameter", "The request must contain the parameter %s.", name)
	}
	return fault.New(http.StatusBadRequest, "ValidationException",
		"1 validation error detected: Value null at '%s' failed to satisfy constraint: Member must not be null", name)
}

// value fills one member. Null is an absent one.
func (f filler) value(x any, v reflect.Value, path string) error {
	switch {
	case x == nil:
		return nil
	case v.Kind() == reflect.Pointer:
		target := reflect.New(v.Type().Elem())
		if err := f.value(x, target.Elem(), path); err != nil {
			return err
		}
		v.Set(target)
		return nil
	case v.Type() == timeType || v.Type() == blobType:
		return f.leaf(x, v, path)
	}
	if t, ok := v.Addr().Interface().(encoding.TextUnmarshaler); ok {
		text, ok := x.(string)
		if !ok || t.UnmarshalText([]byte(text)) != nil {
			return unreadable("invalid value of %.100s", path)
		}
		return nil
	}
	switch v.Kind() {
	case reflect.Struct:
		return f.structure(x, v, path)
	case reflect.Slice:
		return f.list(x, v, path)
	case reflect.Map:
		return f.entries(x, v, path)
	default:
		return f.leaf(x, v, path)
	}
}

func (f filler) list(x any, v reflect.Value, path string) error {
	items, ok := x.([]any)
	if !ok {
		return unreadable("%.100s is not a list", path)
	}
	out := reflect.MakeSlice(v.Type(), len(items), len(items))
	for n, item := range items {
		if err := f.element(item, out.Index(n), path+"["+strconv.Itoa(n)+"]"); err != nil {
			return err
		}
	}
	v.Set(out)
	return nil
}

func (f filler) entries(x any, v reflect.Value, path string) error {
	members, ok := x.(map[string]any)
	if !ok {
		return unreadable("%.100s is not a map", path)
	}
	out := reflect.MakeMapWithSize(v.Type(), len(members))
	for name, item := range members {
		if !f.isText(name) {
			return unreadable("invalid name in %.100s", path)
		}
		value := reflect.New(v.Type().Elem()).Elem()
		if err := f.element(item, value, below(path, name)); err != nil {
			return err
		}
		out.SetMapIndex(reflect.ValueOf(name).Convert(v.Type().Key()), value)
	}
	v.Set(out)
	return nil
}

// element fills one of a list or map. Null is for the sparse ones, which hold pointers.
func (f filler) element(x any, v reflect.Value, path string) error {
	if x == nil && v.Kind() != reflect.Pointer {
		return unreadable("%.100s is null", path)
	}
	return f.value(x, v, path)
}

// leaf fills what is neither structure, list nor map.
func (f filler) leaf(x any, v reflect.Value, path string) error {
	want, ok := "", false
	switch {
	case v.Type() == timeType:
		want = "a time"
		var at time.Time
		if at, ok = f.time(x); ok {
			v.Set(reflect.ValueOf(at))
		}
	case v.Type() == blobType:
		want = "a blob"
		var b []byte
		if b, ok = f.blob(x); ok {
			v.SetBytes(b)
		}
	default:
		want, ok = f.scalar(x, v)
	}
	if !ok {
		return unreadable("%.100s is not %s", path, want)
	}
	return nil
}

func (f filler) scalar(x any, v reflect.Value) (want string, ok bool) {
	switch v.Kind() {
	case reflect.String:
		text, ok := x.(string)
		v.SetString(text)
		return "a string", ok && f.isText(text)
	case reflect.Bool:
		b, ok := x.(bool)
		v.SetBool(b)
		return "true or false", ok
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		i, ok := integer(x)
		v.SetInt(i)
		return "an integer in range", ok && v.Int() == i
	case reflect.Float32, reflect.Float64:
		n, ok := f.number(x)
		v.SetFloat(n)
		return "a number", ok
	default: // a union or a document: nobody here reads one
		return "supported by this version of Kurabe", false
	}
}

// isText says whether the service takes a text, which is UTF-8.
func (f filler) isText(text string) bool { return f.model.AnyText || shape.IsText(text) }

func integer(x any) (int64, bool) {
	switch x := x.(type) {
	case json.Number:
		i, err := strconv.ParseInt(string(x), 10, 64)
		return i, err == nil
	case uint64:
		return int64(x), x <= math.MaxInt64
	case int64:
		return x, true
	}
	return 0, false
}

// number takes what is no number only in the form that its protocol has for it.
func (f filler) number(x any) (float64, bool) {
	switch x := x.(type) {
	case json.Number:
		n, err := x.Float64()
		return n, err == nil
	case string:
		n, known := map[string]float64{"NaN": math.NaN(), "Infinity": math.Inf(1), "-Infinity": math.Inf(-1)}[x]
		return n, known && f.text
	case float64:
		return x, true
	}
	i, ok := integer(x)
	return float64(i), ok
}

// maxSeconds is the year 10000, which no form of AWS can write.
const maxSeconds = 253402300800

// time takes seconds since the epoch from JSON, and a tagged time from CBOR.
func (f filler) time(x any) (time.Time, bool) {
	at, ok := x.(time.Time)
	if f.text {
		var seconds float64
		if _, isText := x.(string); !isText {
			seconds, ok = f.number(x)
		}
		if ok = ok && math.Abs(seconds) < maxSeconds; ok {
			at = time.UnixMilli(int64(math.Round(seconds * 1000)))
		}
	}
	at = at.UTC().Round(time.Millisecond)
	return at, ok && at.Year() >= 1 && at.Unix() < maxSeconds
}

func (f filler) blob(x any) ([]byte, bool) {
	if text, ok := x.(string); ok && f.text {
		b, err := base64.StdEncoding.DecodeString(text)
		return b, err == nil
	}
	b, ok := x.([]byte)
	return b, ok
}
