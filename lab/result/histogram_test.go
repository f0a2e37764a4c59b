package result

import (
	"bytes"
	"compress/zlib"
	"encoding/base64"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/HdrHistogram/hdrhistogram-go"
)

func filled(t testing.TB, values map[int64]int64) *hdrhistogram.Histogram {
	t.Helper()
	h := NewHistogram()
	for value, count := range values {
		if err := h.RecordValues(value, count); err != nil {
			t.Fatal(err)
		}
	}
	return h
}

// The library's codec keeps every counter, so there is no codec of our own.
func TestHistogramRoundTripIsExact(t *testing.T) {
	random := map[int64]int64{}
	rng := rand.New(rand.NewPCG(1, 2))
	for range 20_000 {
		random[int64(math.Exp(rng.NormFloat64()*3+7))]++
	}
	for name, values := range map[string]map[int64]int64{
		"empty":           {},
		"only zero":       {0: 3},
		"one":             {1: 1},
		"both ends":       {1: 1, MaxHistogramMicros: 1},
		"single zeros":    {2: 1, 4: 1, 6: 1},
		"every bucket":    {1: 1, 3000: 1, 5000: 2, 9999: 3, 20_000: 1, 50_000: 1, 600_000: 7, 59_000_000: 1},
		"large counts":    {17: math.MaxInt32 + 1, 18: 1 << 55, 19: 1},
		"a long tail":     random,
		"counts of bytes": {1: 63, 2: 64, 3: 127, 4: 128, 5: 8191, 6: 8192, 7: 1 << 20, 8: 1 << 27, 9: 1 << 34, 10: 1 << 41, 11: 1 << 48},
	} {
		t.Run(name, func(t *testing.T) {
			h := filled(t, values)
			text, err := EncodeHistogram(h)
			if err != nil {
				t.Fatal(err)
			}
			back, err := DecodeHistogram(text)
			if err != nil {
				t.Fatal(err)
			}
			if !back.Equals(h) || back.TotalCount() != h.TotalCount() || back.Max() != h.Max() || back.Min() != h.Min() {
				t.Errorf("%d values from %d to %d became %d from %d to %d", h.TotalCount(), h.Min(), h.Max(), back.TotalCount(), back.Min(), back.Max())
			}
			again, err := EncodeHistogram(back)
			if err != nil || again != text {
				t.Errorf("the second text differs from the first: %v", err)
			}
		})
	}
}

func TestHistogramKeepsThreeFigures(t *testing.T) {
	for _, micros := range []int64{1, 999, 1000, 2047, 2049, 123_456, 59_999_999, MaxHistogramMicros} {
		h := filled(t, map[int64]int64{micros: 1})
		if got := h.ValueAtPercentile(50); math.Abs(float64(got-micros)) > float64(micros)/1000 {
			t.Errorf("%d µs became %d", micros, got)
		}
	}
}

func TestEncodeHistogramRefuses(t *testing.T) {
	if _, err := EncodeHistogram(nil); err == nil {
		t.Error("no histogram has a text")
	}
	if _, err := EncodeHistogram(hdrhistogram.New(1, 1000, 2)); err == nil || !strings.Contains(err.Error(), "use NewHistogram") {
		t.Errorf("another shape: %v", err)
	}
}

func TestDecodeHistogramRefuses(t *testing.T) {
	wide, err := hdrhistogram.New(1, math.MaxInt64/2, 5).Encode(hdrhistogram.V2CompressedEncodingCookieBase)
	if err != nil {
		t.Fatal(err)
	}
	good, err := EncodeHistogram(filled(t, map[int64]int64{5: 1, 900: 2}))
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ text, want string }{
		"empty":             {"", "too short"},
		"no base64":         {"!!", "illegal base64"},
		"no zlib":           {base64.StdEncoding.EncodeToString(make([]byte, 40)), "zlib"},
		"another shape":     {string(wide), "range or precision"},
		"half of it":        {good[:len(good)/2/4*4], "decode histogram"},
		"too long":          {strings.Repeat("A", maxEncodedBytes+1), "more than"},
		"too short to say":  {base64.StdEncoding.EncodeToString(append(make([]byte, 8), deflated(t, []byte("ab"))...)), "header"},
		"a flipped counter": {flipped(good), "decode histogram"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := DecodeHistogram(c.text); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v does not say %q", err, c.want)
			}
		})
	}
}

func deflated(t testing.TB, data []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	z := zlib.NewWriter(&b)
	if _, err := z.Write(data); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// flipped changes the checksum of the compressed part.
func flipped(text string) string {
	raw, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		panic(err)
	}
	raw[len(raw)-1] ^= 1
	return base64.StdEncoding.EncodeToString(raw)
}

func TestMerge(t *testing.T) {
	a, b := filled(t, map[int64]int64{10: 2, 5000: 1}), filled(t, map[int64]int64{10: 1, MaxHistogramMicros: 4})
	sum, err := Merge(a, b, NewHistogram())
	if err != nil {
		t.Fatal(err)
	}
	if want := filled(t, map[int64]int64{10: 3, 5000: 1, MaxHistogramMicros: 4}); !sum.Equals(want) || sum.TotalCount() != 8 {
		t.Errorf("%d values", sum.TotalCount())
	}
	if a.TotalCount() != 3 || b.TotalCount() != 5 {
		t.Error("what was merged has changed")
	}
	full := filled(t, map[int64]int64{1: math.MaxInt64})
	if _, err := Merge(full, full); err == nil {
		t.Error("a sum that does not fit was accepted")
	}
}

// What decodes has our shape, and its text decodes to the same.
func FuzzDecodeHistogram(f *testing.F) {
	for _, values := range []map[int64]int64{{}, {1: 1}, {7: 3, 800_000: 12, MaxHistogramMicros: 1}} {
		text, err := EncodeHistogram(filled(f, values))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Add("HISTFAAAAAB4nJNpmSzMAAA=")
	f.Fuzz(func(t *testing.T, text string) {
		h, err := DecodeHistogram(text)
		if err != nil {
			return
		}
		again, err := EncodeHistogram(h)
		if err != nil {
			t.Fatal(err)
		}
		back, err := DecodeHistogram(again)
		if err != nil || !back.Equals(h) {
			t.Fatalf("the second text is of another histogram: %v", err)
		}
		if _, err := Merge(h); err != nil {
			t.Fatal(err)
		}
	})
}

func BenchmarkDecodeHistogram(b *testing.B) {
	values := map[int64]int64{}
	for i := int64(1); i < 2000; i++ {
		values[i*i] = i
	}
	text, err := EncodeHistogram(filled(b, values))
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		if _, err := DecodeHistogram(text); err != nil {
			b.Fatal(err)
		}
	}
}
