package report

import (
	"math"
	"testing"

	"kurabe/lab/stat"
)

func TestNum(t *testing.T) {
	for want, v := range map[string]float64{
		"0": 0, "1.23": 1.2345, "12.3": 12.345, "1,230": 1234.5, "1,000": 999.6, "0.0123": 0.012345, "−37.1": -37.14,
		"548,000": 548204, "10.0": 9.996, "1.00e−07": 1e-7, "–": math.NaN(),
	} {
		if got := num(v); got != want {
			t.Errorf("num(%v) is %q, want %q", v, got, want)
		}
	}
	if num(math.Inf(1)) != none {
		t.Error("infinity is a figure")
	}
}

func TestGivenKeepsTheDigitsOfOthers(t *testing.T) {
	for want, v := range map[string]float64{"0.95": 0.95, "548,204": 548204, "17.477": 17.477, "1,831": 1831.0, "1": 1} {
		if got := given(v); got != want {
			t.Errorf("given(%v) is %q, want %q", v, got, want)
		}
	}
}

func TestRatio(t *testing.T) {
	of := func(low, middle, high float64) stat.Ratio {
		return stat.Ratio{Estimate: middle, Interval: stat.Interval{Low: low, High: high, Level: 0.95}, Pairs: 12}
	}
	for name, c := range map[string]struct {
		r    stat.Ratio
		want string
	}{
		"near 1":       {of(0.98512, 0.99803, 1.01149), "0.998 [0.985, 1.011]"},
		"above 1":      {of(1.0188, 1.0309, 1.0442), "1.031 [1.019, 1.044]"},
		"some times":   {of(2.02, 2.4049, 2.91), "2.40 [2.02, 2.91]"},
		"many times":   {of(437.4, 445.2, 453.6), "445 [437, 454]"},
		"thousands":    {of(1806, 1836, 1859), "1,840 [1,810, 1,860]"},
		"small":        {of(0.00697, 0.00702, 0.00706), "0.00702 [0.00697, 0.00706]"},
		"no interval":  {stat.Ratio{Estimate: 1.02, Interval: stat.Interval{Low: math.NaN(), High: math.NaN()}, Pairs: 3}, "1.020 –"},
		"nothing":      {stat.Ratio{Estimate: math.NaN(), Interval: stat.Interval{Low: math.NaN(), High: math.NaN()}}, "– –"},
		"open to zero": {of(0, 0.5, 2), "0.500 –"},
	} {
		if got := ratio(c.r) + " " + interval(c.r); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

func TestChange(t *testing.T) {
	for want, v := range map[string]float64{
		"37.1\u00a0% lower": 0.629, "3.1\u00a0% higher": 1.031, "2.40 times as high": 2.4, "1,840 times as high": 1836,
		"the same to within 0.05\u00a0%": 1.0003, "–": math.NaN(),
	} {
		if got := change(v); got != want {
			t.Errorf("change(%v) is %q, want %q", v, got, want)
		}
	}
}

func TestQuantity(t *testing.T) {
	for want, c := range map[string]struct {
		v    float64
		unit string
	}{
		"8.97 kB": {8970, "bytes"}, "0 B": {0, "bytes"}, "1.00 MB": {999900, "bytes"}, "6.55 ms": {6.551, "ms"}, "1,220 /s": {1221, "1/s"}, "0.310": {0.31, ""},
	} {
		if got := quantity(c.v, c.unit); got != want {
			t.Errorf("%v %s is %q, want %q", c.v, c.unit, got, want)
		}
	}
}
