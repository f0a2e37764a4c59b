package series

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"math"
)

// wireResult is a result between hosts: its buckets are one text, since a week of minutes as JSON
// numbers would take longer to write and read than to find.
type wireResult struct {
	Labels  Labels
	Buckets string
}

// MarshalJSON implements json.Marshaler.
func (r Result) MarshalJSON() ([]byte, error) {
	raw := binary.AppendUvarint(nil, uint64(len(r.Buckets)))
	last := int64(0)
	for _, b := range r.Buckets {
		raw = binary.AppendVarint(raw, b.Start-last)
		last = b.Start
		raw = appendFloats(raw, b.Count, b.Sum, b.Min, b.Max)
		raw = binary.AppendUvarint(raw, uint64(len(b.Values)))
		for _, v := range b.Values {
			raw = appendFloats(raw, v.Value, v.Count)
		}
	}
	return json.Marshal(wireResult{r.Labels, base64.StdEncoding.EncodeToString(raw)})
}

// appendFloats writes the bytes of each number from the highest on: round numbers end in zeros,
// which are left out and counted.
func appendFloats(raw []byte, list ...float64) []byte {
	for _, f := range list {
		bits := math.Float64bits(f)
		at := len(raw)
		raw = append(raw, 0)
		for ; bits != 0; bits <<= 8 {
			raw = append(raw, byte(bits>>56))
		}
		raw[at] = byte(len(raw) - at - 1)
	}
	return raw
}

var errWire = errors.New("malformed buckets")

// UnmarshalJSON implements json.Unmarshaler.
func (r *Result) UnmarshalJSON(text []byte) error {
	var w wireResult
	if err := json.Unmarshal(text, &w); err != nil {
		return err
	}
	raw, err := base64.StdEncoding.DecodeString(w.Buckets)
	if err != nil {
		return err
	}
	in := wireReader{raw: raw}
	r.Labels, r.Buckets = w.Labels, make([]Bucket, in.count(6))
	last := int64(0)
	for n := range r.Buckets {
		b := &r.Buckets[n]
		last += in.varint()
		b.Start = last
		b.Count, b.Sum, b.Min, b.Max = in.float(), in.float(), in.float(), in.float()
		if values := in.count(2); values > 0 {
			b.Values = make([]Weighted, values)
		}
		for m := range b.Values {
			b.Values[m] = Weighted{in.float(), in.float()}
		}
	}
	if in.bad || len(in.raw) > 0 {
		return errWire
	}
	return nil
}

// wireReader reads zeros once something is malformed.
type wireReader struct {
	raw []byte
	bad bool
}

func (w *wireReader) skip(n int) {
	if n <= 0 || n > len(w.raw) {
		w.raw, w.bad = nil, true
		return
	}
	w.raw = w.raw[n:]
}

func (w *wireReader) varint() int64 {
	v, n := binary.Varint(w.raw)
	w.skip(n)
	return v
}

// count reads how many items follow, each of which has bytesMin at least.
func (w *wireReader) count(bytesMin int) int {
	v, n := binary.Uvarint(w.raw)
	w.skip(n)
	if v > uint64(len(w.raw)/bytesMin) {
		w.raw, w.bad = nil, true
		return 0
	}
	return int(v)
}

func (w *wireReader) float() float64 {
	if len(w.raw) == 0 || w.raw[0] > 8 || len(w.raw) <= int(w.raw[0]) {
		w.raw, w.bad = nil, true
		return 0
	}
	n := int(w.raw[0])
	bits := uint64(0)
	for _, b := range w.raw[1 : 1+n] {
		bits = bits<<8 | uint64(b)
	}
	w.raw = w.raw[1+n:]
	return math.Float64frombits(bits << (8 * (8 - n)))
}
