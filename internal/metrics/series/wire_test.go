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
