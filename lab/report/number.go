package report

import (
	"math"
	"strconv"
	"strings"

	"kurabe/lab/stat"
)

// none stands where there is no figure.
const none = "–"

// num prints three significant digits, thousands grouped: 0.0123, 1.23, 12,300. More
// would claim a precision that a run does not have.
func num(v float64) string {
	switch {
	case math.IsNaN(v) || math.IsInf(v, 0):
		return none
	case v == 0:
		return "0"
	}
	const digits = 3
	exponent := int(math.Floor(math.Log10(math.Abs(v))))
	if exponent < -6 || exponent > 14 {
		return minus(strconv.FormatFloat(v, 'e', digits-1, 64))
	}
	step := math.Pow(10, float64(exponent-digits+1))
	rounded := math.Round(v/step) * step
	if math.Abs(rounded) >= math.Pow(10, float64(exponent+1)) {
		exponent++ // 999.6 became 1000
	}
	return fixed(rounded, max(0, digits-1-exponent))
}

// given prints a figure of somebody else as it was given, grouped.
func given(v float64) string {
	s := strconv.FormatFloat(v, 'f', -1, 64)
	_, decimals, _ := strings.Cut(s, ".")
	return fixed(v, len(decimals))
}

// fixed prints so many decimals, grouped; with −1 of them it rounds to tens.
func fixed(v float64, decimals int) string {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return none
	}
	if decimals < 0 {
		step := math.Pow10(-decimals)
		v, decimals = math.Round(v/step)*step, 0
	}
	s := strconv.FormatFloat(v, 'f', decimals, 64)
	sign := ""
	if strings.HasPrefix(s, "-") {
		sign, s = "-", s[1:]
		if strings.Trim(s, "0.") == "" {
			sign = "" // −0.0 is 0.0
		}
	}
	whole, rest, _ := strings.Cut(s, ".")
	for at := len(whole) - 3; at > 0; at -= 3 {
		whole = whole[:at] + "," + whole[at:]
	}
	if rest != "" {
		whole += "." + rest
	}
	return minus(sign + whole)
}

// count prints a whole number, grouped.
func count(n int64) string { return fixed(float64(n), 0) }

// minus replaces the hyphen of programs by the sign of print.
func minus(s string) string { return strings.ReplaceAll(s, "-", "−") }

// ratioDecimals is how many decimals a ratio and its interval share: three significant
// digits, and near 1, where it is the distance from 1 that says something, three decimals,
// so that 1.031 has as many as 0.969. Of thousands it is negative.
func ratioDecimals(v float64) int {
	v = math.Abs(v)
	if v >= 0.1 && v < 2 || v == 0 || math.IsNaN(v) || math.IsInf(v, 0) {
		return 3
	}
	return 2 - int(math.Floor(math.Log10(v)))
}

func ratio(r stat.Ratio) string { return fixed(r.Estimate, ratioDecimals(r.Estimate)) }

// hasInterval tells whether there were pairs enough for one.
func hasInterval(r stat.Ratio) bool {
	i := r.Interval
	return i.Level > 0 && i.Low > 0 && i.High > 0 && !math.IsNaN(i.Low+i.High) && !math.IsInf(i.Low+i.High, 0)
}

// interval prints the ends with the decimals of the estimate: "[0.985, 1.011]".
func interval(r stat.Ratio) string {
	if !hasInterval(r) {
		return none
	}
	d := ratioDecimals(r.Estimate)
	return "[" + fixed(r.Interval.Low, d) + ", " + fixed(r.Interval.High, d) + "]"
}

// change prints a ratio as what it does: "37.1 % lower", "2.40 times as high", "unchanged".
func change(v float64) string {
	switch p := math.Abs(v-1) * 100; {
	case math.IsNaN(v) || math.IsInf(v, 0) || v <= 0:
		return none
	case p < 0.05:
		return "the same to within 0.05\u00a0%"
	case v >= 2:
		return fixed(v, ratioDecimals(v)) + " times as high"
	case v > 1:
		return fixed(p, percentDecimals(p)) + "\u00a0% higher"
	default:
		return fixed(p, percentDecimals(p)) + "\u00a0% lower"
	}
}

func percentDecimals(p float64) int {
	if p < 99.95 {
		return 1
	}
	return 0
}

// percent prints a share of 1 with as many decimals as it needs, at the most two.
func percent(v float64) string {
	s := strconv.FormatFloat(math.Round(v*1e4)/1e2, 'f', -1, 64)
	return minus(s) + "\u00a0%"
}

// unitPrefixes step by a thousand from bytes on.
var unitPrefixes = []string{"B", "kB", "MB", "GB", "TB"}

// quantity prints a value with its unit; bytes get a prefix.
func quantity(v float64, unit string) string {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return none
	}
	switch unit {
	case "":
		return num(v)
	case "1/s":
		return num(v) + " /s"
	case "bytes", "B":
		n := 0
		for math.Abs(v) >= 999.5 && n < len(unitPrefixes)-1 {
			v, n = v/1000, n+1
		}
		return num(v) + " " + unitPrefixes[n]
	}
	return num(v) + " " + unit
}
