package query

import (
	"encoding/base64"
	"reflect"
	"slices"
	"strconv"
	"time"

	"kurabe/internal/aws/fault"
)

var (
	timeType = reflect.TypeFor[time.Time]()
	blobType = reflect.TypeFor[[]byte]()
)

const timeShape = "2006-01-02T15:04:05.000Z"

// appendTime writes a time as AWS does: UTC with milliseconds. The package time is fast in the
// layout without them.
func appendTime(b []byte, t time.Time) []byte {
	b = t.UTC().AppendFormat(b, time.RFC3339)
	ms := t.Nanosecond() / int(time.Millisecond)
	return append(b[:len(b)-1], '.', '0'+byte(ms/100), '0'+byte(ms/10%10), '0'+byte(ms%10), 'Z')
}

// parseTime reads ISO 8601 as the clients write it: with or without a fraction,
// with Z or an offset. Years outside 1..9999 have no such form.
func parseTime(text string) (time.Time, error) {
	t, err := time.Parse(time.RFC3339Nano, text)
	return t.UTC(), err
}

func decodeScalar(n *node, v reflect.Value) error {
	if len(n.children) > 0 {
		return malformed("The parameter %s is a value and has no members.", n.key)
	}
	n.consumed = true
	kind, ok := setScalar(v, n.value)
	if !ok {
		return fault.New(400, "InvalidParameterValue", "The value of parameter %s is not %s.", n.key, kind)
	}
	return nil
}

// setScalar stores text in v. It names what v wants, and says whether text was one.
func setScalar(v reflect.Value, text string) (want string, ok bool) {
	switch {
	case v.Type() == timeType:
		t, err := parseTime(text)
		v.Set(reflect.ValueOf(t))
		return "an ISO 8601 time such as 2006-01-02T15:04:05Z", err == nil
	case v.Type() == blobType:
		b, err := base64.StdEncoding.DecodeString(text)
		v.SetBytes(b)
		return "base64 text", err == nil
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(text)
		return "", true
	case reflect.Bool:
		v.SetBool(text == "true" || text == "True")
		return "a boolean (true or false)", slices.Contains([]string{"true", "false", "True", "False"}, text)
	case reflect.Int32, reflect.Int64:
		i, err := strconv.ParseInt(text, 10, v.Type().Bits())
		v.SetInt(i)
		return "an integer in range", err == nil
	case reflect.Float32, reflect.Float64:
		x, err := strconv.ParseFloat(text, v.Type().Bits())
		v.SetFloat(x)
		return "a number", err == nil && x-x == 0 // x-x is NaN for NaN and the infinities
	default: // a union: nobody here reads one
		return "supported by this version of Kurabe", false
	}
}

func formatScalar(v reflect.Value) string {
	switch v.Kind() {
	case reflect.String:
		return v.String()
	case reflect.Bool:
		return strconv.FormatBool(v.Bool())
	case reflect.Int32, reflect.Int64:
		return strconv.FormatInt(v.Int(), 10)
	case reflect.Float32, reflect.Float64:
		return strconv.FormatFloat(v.Float(), 'g', -1, v.Type().Bits())
	default:
		panic("query: the SDK's structs hold no " + v.Type().String())
	}
}
