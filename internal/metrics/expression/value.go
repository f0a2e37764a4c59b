package expression

import (
	"math"
	"slices"
)

// Point is the value of one period, which begins at a Unix time in seconds.
type Point struct {
	At    int64
	Value float64
}

// Series is points by time, at most one in each period.
type Series struct {
	Label  string
	Period int64 // seconds
	Points []Point
}

// Kind is the type of a value. A binary operation has the greater one of its operands.
type Kind int

// The kinds. A Single has one series, an Array any number.
const (
	Number Kind = iota
	Single
	Array
)

func (k Kind) String() string { return [...]string{"Number", "TimeSeries", "Array[TimeSeries]"}[k] }

// Value is a number, one series, or an array of series.
type Value struct {
	Kind   Kind
	Number float64
	Series []Series
}

// Of returns the value of one series.
func Of(s Series) Value { return Value{Kind: Single, Series: []Series{s}} }

// each returns a value with every series replaced.
func (v Value) each(edit func(Series) Series) Value {
	out := Value{Kind: v.Kind, Series: make([]Series, len(v.Series))}
	for n, s := range v.Series {
		out.Series[n] = edit(s)
	}
	return out
}

// mapped returns a value with every number replaced. Results that are no number have no point.
func (v Value) mapped(f func(float64) float64) Value {
	if v.Kind == Number {
		return Value{Number: f(v.Number)}
	}
	return v.each(func(s Series) Series {
		points := make([]Point, 0, len(s.Points))
		for _, p := range s.Points {
			points = appendFinite(points, p.At, f(p.Value))
		}
		s.Points = points
		return s
	})
}

func appendFinite(points []Point, at int64, value float64) []Point {
	if math.IsNaN(value) || math.IsInf(value, 0) {
		return points // a division by zero
	}
	return append(points, Point{at, value})
}

func calculate(op byte, a, b float64) float64 {
	switch op {
	case '+':
		return a + b
	case '-':
		return a - b
	case '*':
		return a * b
	case '/':
		return a / b
	default:
		return math.Pow(a, b)
	}
}

// combine is a binary operation. One series goes with each of an array.
func combine(op byte, a, b Value) (Value, error) {
	switch {
	case a.Kind == Array && b.Kind == Array:
		return Value{}, invalid("Unsupported operand type(s) for %c: '%s' and '%s'", op, a.Kind, b.Kind)
	case b.Kind == Number:
		return a.mapped(func(x float64) float64 { return calculate(op, x, b.Number) }), nil
	case a.Kind == Number:
		return b.mapped(func(x float64) float64 { return calculate(op, a.Number, x) }), nil
	case b.Kind == Array:
		return b.each(func(s Series) Series { return join(op, a.Series[0], s, s.Label) }), nil
	}
	return a.each(func(s Series) Series { return join(op, s, b.Series[0], s.Label) }), nil
}

// join combines the points of the times that both series have.
func join(op byte, a, b Series, label string) Series {
	out := Series{Label: label, Period: max(a.Period, b.Period)}
	for n, m := 0, 0; n < len(a.Points) && m < len(b.Points); {
		p, q := a.Points[n], b.Points[m]
		switch {
		case p.At < q.At:
			n++
		case p.At > q.At:
			m++
		default:
			out.Points = appendFinite(out.Points, p.At, calculate(op, p.Value, q.Value))
			n, m = n+1, m+1
		}
	}
	return out
}

// columns returns the values of an array by time, with the times in order. A time has the
// values of those series that have one.
func columns(list []Series) (times []int64, values map[int64][]float64) {
	values = map[int64][]float64{}
	for _, s := range list {
		for _, p := range s.Points {
			if _, seen := values[p.At]; !seen {
				times = append(times, p.At)
			}
			values[p.At] = append(values[p.At], p.Value)
		}
	}
	slices.Sort(times)
	return times, values
}
