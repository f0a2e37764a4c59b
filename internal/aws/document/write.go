package document

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"maps"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"kurabe/internal/aws/fault"
	"kurabe/internal/aws/shape"
)

// writer writes an output as JSON or CBOR, without a tree in between: an answer may have a hundred
// thousand times and numbers. Absent members are left out, except that a list at the top of most
// services' answers is there although it is empty: clients index into it without asking.
type writer struct {
	model *shape.Model
	json  bool
	buf   []byte
}

// The major types of CBOR, and what else begins an item.
const (
	cborUnsigned = iota << 5
	cborNegative
	cborBlob
	cborText
	cborList
	cborMap
	cborTag

	cborFalse  = 0xf4
	cborTrue   = 0xf5
	cborNull   = 0xf6
	cborDouble = 0xfb
	cborEpoch  = cborTag | 1 // a time, in seconds
)

// EncodeJSON writes an output, a pointer to a struct.
func EncodeJSON(m *shape.Model, out any) []byte { return encode(writer{model: m, json: true}, out) }

// EncodeCBOR writes an output, a pointer to a struct.
func EncodeCBOR(m *shape.Model, out any) []byte { return encode(writer{model: m}, out) }

// FaultJSON writes the reply to a request that failed.
func FaultJSON(m *shape.Model, f *fault.Fault) []byte { return writer{model: m, json: true}.fault(f) }

// FaultCBOR writes the reply to a request that failed.
func FaultCBOR(m *shape.Model, f *fault.Fault) []byte { return writer{model: m}.fault(f) }

func encode(w writer, out any) []byte {
	if v := reflect.ValueOf(out); v.Kind() == reflect.Pointer && !v.IsNil() {
		w.structure(v.Elem(), !w.model.Sparse)
	} else {
		w.begin(cborMap, '{', 0)
		w.end('}')
	}
	return w.buf
}

func (w writer) fault(f *fault.Fault) []byte {
	members := map[string]any{"__type": w.model.ErrorName(f.Code), "message": f.Message}
	maps.Copy(members, f.Detail)
	w.value(reflect.ValueOf(members))
	return w.buf
}

func (w *writer) structure(v reflect.Value, top bool) {
	fields := slices.DeleteFunc(slices.Clone(w.model.Fields(v.Type())), func(f shape.Field) bool { return absent(v.Field(f.Index), top) })
	w.begin(cborMap, '{', len(fields))
	for n, f := range fields {
		w.next(n)
		w.name(f.Wire)
		w.value(v.Field(f.Index))
	}
	w.end('}')
}

// absent says whether a member is not there. An enum that is not set is absent; text, a number or
// a boolean that is no pointer always has a value.
func absent(v reflect.Value, top bool) bool {
	switch v.Kind() {
	case reflect.Slice:
		return v.IsNil() && (!top || v.Type() == blobType)
	case reflect.Pointer, reflect.Map, reflect.Interface:
		return v.IsNil()
	case reflect.String:
		return v.Len() == 0 && v.Type() != reflect.TypeFor[string]()
	}
	return false
}

func (w *writer) value(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() {
			w.word("null", cborNull) // in a sparse list or map
			return
		}
		w.value(v.Elem())
	case reflect.Struct:
		if v.Type() == timeType {
			w.time(v.Interface().(time.Time))
			return
		}
		w.structure(v, false)
	case reflect.Slice, reflect.Array:
		w.list(v)
	case reflect.Map:
		w.entries(v)
	case reflect.String:
		w.text(v.String())
	case reflect.Bool:
		if v.Bool() {
			w.word("true", cborTrue)
		} else {
			w.word("false", cborFalse)
		}
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		w.integer(v.Int())
	case reflect.Float32, reflect.Float64:
		w.number(v.Float())
	default:
		panic("document: no wire form of " + v.Type().String()) // a union, for one
	}
}

func (w *writer) list(v reflect.Value) {
	if v.Type() == blobType {
		w.blob(v.Bytes())
		return
	}
	w.begin(cborList, '[', v.Len())
	const likely = 12 // bytes of a time or a number
	w.buf = slices.Grow(w.buf, likely*v.Len())
	switch list := v.Interface().(type) {
	case []time.Time:
		for n, at := range list {
			w.next(n)
			w.time(at)
		}
	case []float64:
		for n, x := range list {
			w.next(n)
			w.number(x)
		}
	default:
		for n := range v.Len() {
			w.next(n)
			w.value(v.Index(n))
		}
	}
	w.end(']')
}

// entries writes a map in the order of its keys.
func (w *writer) entries(v reflect.Value) {
	w.begin(cborMap, '{', v.Len())
	keys := v.MapKeys()
	slices.SortFunc(keys, func(a, b reflect.Value) int { return strings.Compare(a.String(), b.String()) })
	for n, key := range keys {
		w.next(n)
		w.name(key.String())
		w.value(v.MapIndex(key))
	}
	w.end('}')
}

// begin begins a list or a map of n items; each has a next before it.
func (w *writer) begin(major, open byte, n int) {
	if w.json {
		w.buf = append(w.buf, open)
		return
	}
	w.head(major, uint64(n))
}

func (w *writer) next(n int) {
	if w.json && n > 0 {
		w.buf = append(w.buf, ',')
	}
}

func (w *writer) end(close byte) {
	if w.json {
		w.buf = append(w.buf, close)
	}
}

func (w *writer) name(text string) {
	w.text(text)
	if w.json {
		w.buf = append(w.buf, ':')
	}
}

// head writes the beginning of an item of CBOR, with its value or length in as few bytes as it takes.
func (w *writer) head(major byte, n uint64) {
	const oneByte = 24
	switch {
	case n < oneByte:
		w.buf = append(w.buf, major|byte(n))
	case n <= math.MaxUint8:
		w.buf = append(w.buf, major|oneByte, byte(n))
	case n <= math.MaxUint16:
		w.buf = binary.BigEndian.AppendUint16(append(w.buf, major|oneByte+1), uint16(n))
	case n <= math.MaxUint32:
		w.buf = binary.BigEndian.AppendUint32(append(w.buf, major|oneByte+2), uint32(n))
	default:
		w.buf = binary.BigEndian.AppendUint64(append(w.buf, major|oneByte+3), n)
	}
}

func (w *writer) word(text string, item byte) {
	if w.json {
		w.buf = append(w.buf, text...)
		return
	}
	w.buf = append(w.buf, item)
}

func (w *writer) text(s string) {
	if w.json {
		quoted, _ := json.Marshal(s) // text always marshals
		w.buf = append(w.buf, quoted...)
		return
	}
	w.head(cborText, uint64(len(s)))
	w.buf = append(w.buf, s...)
}

func (w *writer) integer(n int64) {
	switch {
	case w.json:
		w.buf = strconv.AppendInt(w.buf, n, 10)
	case n < 0:
		w.head(cborNegative, uint64(-1-n))
	default:
		w.head(cborUnsigned, uint64(n))
	}
}

// number writes what is no number as each format does. A whole one has a point in JSON, or
// clients without a model read an integer.
func (w *writer) number(n float64) {
	switch size := math.Abs(n); {
	case !w.json:
		w.buf = binary.BigEndian.AppendUint64(append(w.buf, cborDouble), math.Float64bits(n))
	case math.IsNaN(n):
		w.buf = append(w.buf, `"NaN"`...)
	case math.IsInf(n, 1):
		w.buf = append(w.buf, `"Infinity"`...)
	case math.IsInf(n, -1):
		w.buf = append(w.buf, `"-Infinity"`...)
	case n == math.Trunc(n) && size < maxPlain:
		w.buf = strconv.AppendFloat(w.buf, n, 'f', 1, 64)
	case size < minPlain || size >= maxPlain:
		w.buf = strconv.AppendFloat(w.buf, n, 'e', -1, 64)
	default:
		w.buf = strconv.AppendFloat(w.buf, n, 'f', -1, 64)
	}
}

// Numbers between minPlain and maxPlain have no exponent, as encoding/json writes them.
const (
	minPlain = 1e-6
	maxPlain = 1e21
)

// time has milliseconds, as all times of AWS.
func (w *writer) time(at time.Time) {
	ms := at.UnixMilli()
	if !w.json {
		w.buf = append(w.buf, cborEpoch)
	}
	switch {
	case ms%1000 == 0:
		w.integer(ms / 1000)
	case w.json:
		w.buf = strconv.AppendFloat(w.buf, float64(ms)/1000, 'f', -1, 64)
	default:
		w.number(float64(ms) / 1000)
	}
}

func (w *writer) blob(b []byte) {
	if w.json {
		w.text(base64.StdEncoding.EncodeToString(b))
		return
	}
	w.head(cborBlob, uint64(len(b)))
	w.buf = append(w.buf, b...)
}
