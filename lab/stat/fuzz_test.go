package stat

import (
	"encoding/binary"
	"math"
	"testing"
)

// numbers reads a float64 from each eight bytes.
func numbers(raw []byte) []float64 {
	var out []float64
	for ; len(raw) >= 8; raw = raw[8:] {
		out = append(out, math.Float64frombits(binary.LittleEndian.Uint64(raw)))
	}
	return out
}

func bytesOf(values ...float64) []byte {
	var out []byte
	for _, v := range values {
		out = binary.LittleEndian.AppendUint64(out, math.Float64bits(v))
	}
	return out
}

func FuzzJudge(f *testing.F) {
	f.Add(1.05, 1.02, 1.08, 12, 0.03, 1)
	f.Add(math.NaN(), math.Inf(1), -1.0, -5, math.NaN(), 7)
	f.Add(1.0, 0.0, math.Inf(1), 6, 0.0, 2)
	f.Add(1.0, 2.0, 0.5, math.MaxInt, math.Inf(1), 2)
	f.Fuzz(func(t *testing.T, estimate, low, high float64, pairs int, margin float64, direction int) {
		r := Ratio{Estimate: estimate, Interval: Interval{Low: low, High: high, Level: 0.95}, Pairs: pairs}
		verdict := Judge(r, margin, Direction(direction))
		switch verdict {
		case Costs, Improves:
			if low <= 1 && 1 <= high || pairs < MinPairs {
				t.Errorf("%+v %s", r, verdict)
			}
		case NoMaterialCost, Undecided, DirectionOnly, Withheld:
		default:
			t.Errorf("verdict %q", verdict)
		}
		floor, ok, why := Floor(r, margin)
		if ok != (why == "") || ok && (low > 1 || high < 1 || floor < margin) {
			t.Errorf("%+v: floor %v, %v, %q", r, floor, ok, why)
		}
		if over := JudgeOver(r, margin, floor, Direction(direction)); over != verdict && over != Undecided {
			t.Errorf("%+v is %s, and %s over the floor %v", r, verdict, over, floor)
		}
		if more := MoreBlocks(r, margin); more < 0 || more > MaxPairs {
			t.Errorf("%+v needs %d more blocks", r, more)
		}
	})
}

func FuzzPairedRatio(f *testing.F) {
	f.Add(bytesOf(1, 2, 3, 4, 5, 6), bytesOf(6, 5, 4, 3, 2, 1), 0.95)
	f.Add(bytesOf(skewed[0]...), bytesOf(skewed[1]...), 0.9)
	f.Add(bytesOf(math.NaN(), math.Inf(1), 0, -1), bytesOf(1, 2, 3, 4), math.NaN())
	f.Add(bytesOf(math.MaxFloat64, math.SmallestNonzeroFloat64), bytesOf(math.SmallestNonzeroFloat64, 1), 2.0)
	f.Add([]byte{}, bytesOf(1), -1.0)
	f.Fuzz(func(t *testing.T, rawA, rawB []byte, level float64) {
		a, b := numbers(rawA), numbers(rawB)
		if len(a) > 64 || len(b) > 64 {
			return // only slower
		}
		r := PairedRatio(a, b, level)
		if i := r.Interval; i.Level > 0 && !(i.Low <= i.High) {
			t.Errorf("%v / %v at %v: %+v", a, b, level, r)
		}
		if (r.Method == "") != (CheckPairs(a, b) != nil) {
			t.Errorf("%v / %v: %+v, and the check says %v", a, b, r, CheckPairs(a, b))
		}
		Judge(r, 0.03, HigherIsBetter)
		MoreBlocks(r, 0.03)
		Holm(a)
		Median(a)
		Quantile(a, level)
		HodgesLehmann(a)
		SignedRankInterval(a, level)
		if p := SignedRankP(a); p < 0 || p > 1 {
			t.Errorf("%v has the p-value %v", a, p)
		}
	})
}

func FuzzSettled(f *testing.F) {
	f.Add(bytesOf(1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2, 2), 5)
	f.Add(bytesOf(math.NaN(), math.Inf(1), math.Inf(-1), math.NaN(), 0), -3)
	f.Add([]byte{}, 0)
	f.Fuzz(func(t *testing.T, raw []byte, quiet int) {
		points := numbers(raw)
		from, ok := Settled(points, quiet)
		if from < 0 || from > len(points) || ok && len(points)-from < quiet {
			t.Errorf("%v, quiet %d: from %d, %v", points, quiet, from, ok)
		}
	})
}
