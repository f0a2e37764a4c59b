package query

import (
	"bytes"
	"encoding/base64"
	"encoding/xml"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"time"

	"kurabe/internal/aws/fault"
	"kurabe/internal/aws/shape"
)

// ContentType is the media type of every reply.
const ContentType = "text/xml"

// EncodeResult writes the reply to an action. out is a pointer to the SDK's
// output struct. Absent members are omitted, except that a list at the top of
// the result is written empty: clients index into it without asking.
func EncodeResult(m *shape.Model, action, requestID string, out any) []byte {
	w := &writer{model: m}
	fmt.Fprintf(&w.buf, `<%sResponse xmlns="%s">`, action, m.Namespace)
	if m.HasResult(action) {
		w.open(action + "Result")
		if v := reflect.ValueOf(out); v.Kind() == reflect.Pointer && !v.IsNil() {
			w.structure(v.Elem(), true)
		}
		w.close(action + "Result")
	}
	w.open("ResponseMetadata")
	w.text("RequestId", requestID)
	w.close("ResponseMetadata")
	w.close(action + "Response")
	return w.buf.Bytes()
}

// EncodeFault writes the reply to a request that failed. m may be nil when the
// request did not even name a service.
func EncodeFault(m *shape.Model, f *fault.Fault, requestID string) []byte {
	w := &writer{model: m}
	if m != nil {
		fmt.Fprintf(&w.buf, `<ErrorResponse xmlns="%s">`, m.Namespace)
	} else {
		w.open("ErrorResponse")
	}
	w.open("Error")
	w.text("Type", f.Blame())
	w.text("Code", f.Code)
	w.text("Message", f.Message)
	w.close("Error")
	w.text("RequestId", requestID)
	w.close("ErrorResponse")
	return w.buf.Bytes()
}

// writer builds one document. Writing to its buffer cannot fail.
type writer struct {
	buf   bytes.Buffer
	model *shape.Model
}

func (w *writer) open(name string)  { w.buf.WriteString("<" + name + ">") }
func (w *writer) close(name string) { w.buf.WriteString("</" + name + ">") }

func (w *writer) text(name, value string) {
	w.open(name)
	_ = xml.EscapeText(&w.buf, []byte(value))
	w.close(name)
}

func (w *writer) structure(v reflect.Value, top bool) {
	for _, f := range w.model.Fields(v.Type()) {
		member := v.Field(f.Index)
		if top && member.Kind() == reflect.Slice && member.Type() != blobType && member.IsNil() {
			w.text(f.Wire, "")
			continue
		}
		w.value(f.Wire, f.Element, member)
	}
}

// value writes one member, or nothing if it is absent. An enum that is not set
// is absent; a number or boolean that is no pointer always has a value.
func (w *writer) value(name, element string, v reflect.Value) {
	switch {
	case v.Type() == timeType:
		w.text(name, string(appendTime(nil, v.Interface().(time.Time))))
		return
	case v.Type() == blobType:
		if !v.IsNil() {
			w.text(name, base64.StdEncoding.EncodeToString(v.Bytes()))
		}
		return
	}
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() {
			return
		}
		if v.Elem().Kind() == reflect.String {
			w.text(name, v.Elem().String())
			return
		}
		w.value(name, element, v.Elem())
	case reflect.Struct:
		w.open(name)
		w.structure(v, false)
		w.close(name)
	case reflect.Slice:
		w.list(name, element, v)
	case reflect.Map:
		w.entries(name, element, v)
	default:
		if v.Kind() != reflect.String || v.Len() > 0 {
			w.text(name, formatScalar(v))
		}
	}
}

func (w *writer) list(name, element string, v reflect.Value) {
	if v.IsNil() {
		return
	}
	w.open(name)
	before, behind := "<"+element+">", "</"+element+">"
	w.buf.Grow(v.Len() * (len(before) + len(behind) + len(timeShape)))
	switch list := v.Interface().(type) { // of these there are many
	case []time.Time:
		for _, at := range list {
			w.buf.WriteString(before)
			w.buf.Write(appendTime(w.buf.AvailableBuffer(), at))
			w.buf.WriteString(behind)
		}
	case []float64:
		for _, x := range list {
			w.buf.WriteString(before)
			w.buf.Write(strconv.AppendFloat(w.buf.AvailableBuffer(), x, 'g', -1, 64))
			w.buf.WriteString(behind)
		}
	default:
		for i := range v.Len() {
			w.item(element, v.Index(i))
		}
	}
	w.close(name)
}

// item writes an element of a list or map: an empty string is one, too.
func (w *writer) item(name string, v reflect.Value) {
	if v.Kind() == reflect.String {
		w.text(name, v.String())
		return
	}
	w.value(name, shape.DefaultElement, v)
}

// entries writes a map in the order of its keys.
func (w *writer) entries(name, element string, v reflect.Value) {
	if v.IsNil() {
		return
	}
	keyName, valueName := shape.EntryNames(element)
	w.open(name)
	keys := v.MapKeys()
	slices.SortFunc(keys, func(a, b reflect.Value) int { return bytes.Compare([]byte(a.String()), []byte(b.String())) })
	for _, key := range keys {
		w.open("entry")
		w.text(keyName, key.String())
		w.item(valueName, v.MapIndex(key))
		w.close("entry")
	}
	w.close(name)
}
