package series

import (
	"encoding/json"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestWire(t *testing.T) {
	in := Result{Labels: cpu, Buckets: []Bucket{
		{Start: 60, Count: 60, Sum: 12.345678901234567, Min: -1, Max: math.MaxFloat64, Values: []Weighted{{0.1, 3}, {0, 1}}},
		{Start: 1795867200, Count: 1, Sum: math.SmallestNonzeroFloat64, Max: 1},
		{Start: -60},
	}}
	text, err := json.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	var out Result
	if err := json.Unmarshal(text, &out); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(in, out); d != "" {
		t.Error(d)
	}
}

// The largest answer, behind a chunk that was not full, fits into a frame.
func TestLargestAnswerFits(t *testing.T) {
	in := Result{Labels: cpu, Buckets: make([]Bucket, periodsMost)}
	for n := range in.Buckets {
		v := math.Sqrt(float64(n) + 2)
		in.Buckets[n] = Bucket{Start: int64(n) * 60, Count: 60, Sum: v * 60, Min: v / 3, Max: v * 3}
		for m := range valuesMost / periodsMost {
			in.Buckets[n].Values = append(in.Buckets[n].Values, Weighted{v + float64(m), 1})
		}
	}
	in.Buckets[0].Values = make([]Weighted, valuesMost%periodsMost)
	for n := range in.Buckets[0].Values {
		in.Buckets[0].Values[n] = Weighted{math.Sqrt(float64(n) + 2), 1}
	}
	text, err := json.Marshal(in)
	if most := 8<<20 - 50_000*12 - 64<<10; err != nil || len(text) > most {
		t.Errorf("%v, %d bytes, more than %d", err, len(text), most)
	}
}

func FuzzWire(f *testing.F) {
	text, _ := json.Marshal(Result{Labels: cpu, Buckets: []Bucket{{Start: 60, Count: 2, Values: []Weighted{{1, 1}}}}})
	f.Add(text)
	f.Add([]byte(`{"Buckets":"////////////"}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		var r, again Result
		if json.Unmarshal(text, &r) != nil {
			return
		}
		text, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(text, &again); err != nil || len(again.Buckets) != len(r.Buckets) {
			t.Fatalf("%v: %v, %v", err, r, again)
		}
	})
}
