package logquery

import (
	"bytes"
	"cmp"
	"math"
	"strconv"
	"time"
)

type valueKind uint8

const (
	absent valueKind = iota
	numeric
	textual
	truthful // 1 or 0, as CloudWatch shows them
	instant  // Unix milliseconds
)

// value is a value of a field or expression. The bytes of a text belong to the block or the row
// that it comes from.
type value struct {
	Kind   valueKind `json:"k,omitempty"`
	Number float64   `json:"n,omitempty"`
	Text   []byte    `json:"t,omitempty"` // also of a number that stands in an event: it is shown as written there
}

func textValue(text []byte) value  { return value{Kind: textual, Text: text} }
func timeValue(millis int64) value { return value{Kind: instant, Number: float64(millis)} }
func numberValue(number float64) value {
	if math.IsNaN(number) || math.IsInf(number, 0) {
		return value{}
	}
	return value{Kind: numeric, Number: number}
}

func truthValue(is bool) value {
	if is {
		return value{Kind: truthful, Number: 1}
	}
	return value{Kind: truthful}
}

// num returns the number that a value is, or that its text reads as.
func (v value) num() (float64, bool) {
	if v.Kind == textual {
		return parseNumber(v.Text)
	}
	return v.Number, v.Kind != absent
}

// parseNumber reads a decimal number.
func parseNumber(text []byte) (float64, bool) {
	const most = 32 // the conversion to a string of up to 32 bytes does not allocate
	if len(text) == 0 || len(text) > most {
		return 0, false
	}
	for _, c := range text {
		if (c < '0' || c > '9') && c != '.' && c != '-' && c != '+' && c != 'e' && c != 'E' {
			return 0, false
		}
	}
	n, err := strconv.ParseFloat(string(text), 64)
	return n, err == nil
}

// holds says whether a filter keeps an event for which its condition has this value.
func (v value) holds() bool {
	if v.Kind == textual {
		n, ok := parseNumber(v.Text)
		return len(v.Text) > 0 && (!ok || n != 0) && !bytes.EqualFold(v.Text, []byte("false"))
	}
	return v.Kind != absent && v.Number != 0
}

// timeLayout is how CloudWatch shows times, in UTC.
const timeLayout = "2006-01-02 15:04:05.000"

// appendText appends a value as results show it.
func (v value) appendText(b []byte) []byte {
	switch {
	case v.Kind == absent || v.Kind == textual || len(v.Text) > 0:
		return append(b, v.Text...)
	case v.Kind == instant:
		return time.UnixMilli(int64(v.Number)).UTC().AppendFormat(b, timeLayout)
	}
	return appendNumber(b, v.Number)
}

// appendNumber shows a computed number with up to four decimals, as CloudWatch does; one below a
// thousandth with four digits.
func appendNumber(b []byte, n float64) []byte {
	switch size := math.Abs(n); {
	case size >= 1e21 || size < 1e-3 && size > 0:
		return strconv.AppendFloat(b, n, 'g', 4, 64)
	case n == math.Trunc(n):
		return strconv.AppendFloat(b, n, 'f', 0, 64)
	case size < 1e11:
		n = math.Round(n*1e4) / 1e4
	}
	return strconv.AppendFloat(b, n, 'f', -1, 64)
}

// bytesOf returns the text of a value; the row keeps it where it has to be made.
func (r *row) bytesOf(v value) []byte {
	if v.Kind == textual || len(v.Text) > 0 {
		return v.Text
	}
	return r.keep(func(b []byte) []byte { return v.appendText(b) })
}

// compare orders two values that are there: as numbers if both are, as texts otherwise.
func (r *row) compare(a, b value) int {
	if x, ok := a.num(); ok {
		if y, ok := b.num(); ok {
			return cmp.Compare(x, y)
		}
	}
	if a.Kind == truthful || b.Kind == truthful { // true = "true", and = 1
		if t, ok := truthOf(a); ok {
			if u, ok := truthOf(b); ok {
				return cmp.Compare(t, u)
			}
		}
	}
	return bytes.Compare(r.bytesOf(a), r.bytesOf(b))
}

func truthOf(v value) (float64, bool) {
	switch {
	case v.Kind != textual:
		return v.Number, v.Kind == truthful
	case bytes.EqualFold(v.Text, []byte("true")):
		return 1, true
	case bytes.EqualFold(v.Text, []byte("false")):
		return 0, true
	}
	return 0, false
}

// order is the order of sort: absent values, texts in natural order, numbers.
func (a value) order(b value) int {
	x, isX := a.num()
	y, isY := b.num()
	switch {
	case isX && isY:
		return cmp.Compare(x, y)
	case isX:
		return 1
	case isY:
		return -1
	case a.Kind == absent || b.Kind == absent:
		return cmp.Compare(a.Kind, b.Kind)
	}
	return natural(a.Text, b.Text)
}

func digit(c byte) bool { return c >= '0' && c <= '9' }

// natural compares texts by their characters, but runs of digits by length, then by value.
func natural(a, b []byte) int {
	for len(a) > 0 && len(b) > 0 {
		if !digit(a[0]) || !digit(b[0]) {
			if c := cmp.Compare(a[0], b[0]); c != 0 {
				return c
			}
			a, b = a[1:], b[1:]
			continue
		}
		n, m := 0, 0
		for n < len(a) && digit(a[n]) {
			n++
		}
		for m < len(b) && digit(b[m]) {
			m++
		}
		if c := cmp.Or(cmp.Compare(n, m), bytes.Compare(a[:n], b[:m])); c != 0 {
			return c
		}
		a, b = a[n:], b[m:]
	}
	return cmp.Compare(len(a), len(b))
}
