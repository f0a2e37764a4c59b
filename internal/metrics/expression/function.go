package expression

import (
	"math"
	"slices"
	"strings"
)

// maxPoints bounds the points that one FILL makes of all its series.
const maxPoints = 1 << 20

// aggregates make a number of one series, and one series of an array.
var aggregates = map[string]func([]float64) float64{
	"SUM": sum,
	"AVG": func(v []float64) float64 { return sum(v) / float64(len(v)) },
	"MIN": func(v []float64) float64 { return over(v, slices.Min) },
	"MAX": func(v []float64) float64 { return over(v, slices.Max) },
}

// maps replace every value.
var maps = map[string]func(float64) float64{"ABS": math.Abs, "CEIL": math.Ceil, "FLOOR": math.Floor}

func sum(v []float64) float64 {
	total := 0.0
	for _, x := range v {
		total += x
	}
	return over(v, func([]float64) float64 { return total })
}

// over is a function of values, of which there may be none: then the result is no number.
func over(v []float64, f func([]float64) float64) float64 {
	if len(v) == 0 {
		return math.NaN()
	}
	return f(v)
}

func aggregate(f func([]float64) float64, v Value) Value {
	switch v.Kind {
	case Number:
		return v
	case Single:
		values := make([]float64, len(v.Series[0].Points))
		for n, p := range v.Series[0].Points {
			values[n] = p.Value
		}
		return Value{Number: f(values)}
	}
	out := Series{}
	for _, s := range v.Series {
		out.Period = max(out.Period, s.Period)
	}
	times, values := columns(v.Series)
	for _, at := range times {
		out.Points = appendFinite(out.Points, at, f(values[at]))
	}
	return Of(out)
}

// rate is the change a second since the point before.
func rate(s Series) Series {
	points := make([]Point, 0, len(s.Points))
	for n := 1; n < len(s.Points); n++ {
		p, q := s.Points[n-1], s.Points[n]
		points = appendFinite(points, q.At, (q.Value-p.Value)/float64(q.At-p.At))
	}
	s.Points = points
	return s
}

// fill gives a series a point in every period from the one of from on, before to: a number, the
// last value before it (REPEAT), or one on the line between its neighbours (LINEAR). The two
// words leave what is before the first point, and LINEAR what is after the last one.
func fill(s Series, from, to int64, with node, number float64) Series {
	if s.Period <= 0 {
		return s
	}
	word, _ := with.(keyword)
	points, next := make([]Point, 0, (to-from)/s.Period+1), 0
	for at := from - from%s.Period; at < to; at += s.Period {
		for next < len(s.Points) && s.Points[next].At < at {
			next++
		}
		switch {
		case next < len(s.Points) && s.Points[next].At == at:
			points = append(points, s.Points[next])
		case word == "":
			points = appendFinite(points, at, number)
		case next == 0 || word == linear && next == len(s.Points):
		case word == repeat:
			points = append(points, Point{at, s.Points[next-1].Value})
		default:
			p, q := s.Points[next-1], s.Points[next]
			points = append(points, Point{at, p.Value + (q.Value-p.Value)*float64(at-p.At)/float64(q.At-p.At)})
		}
	}
	s.Points = points
	return s
}

// call is a function with its arguments.
type call struct {
	name string
	args []node
}

// arity has how many arguments each function takes, at least and at most.
var arity = map[string][2]int{"RATE": {1, 1}, "FILL": {2, 2}, "METRICS": {0, 1}, "SEARCH": {2, 3}, "PERIOD": {1, 1}}

func init() {
	for name := range aggregates {
		arity[name] = [2]int{1, 1}
	}
	for name := range maps {
		arity[name] = [2]int{1, 1}
	}
}

func (c call) eval(e *Environment) (Value, error) {
	if c.name == "METRICS" {
		part := ""
		if len(c.args) > 0 {
			part = string(c.args[0].(text))
		}
		return Value{Kind: Array, Series: e.Metrics(part)}, nil
	}
	v, err := c.args[0].eval(e)
	if err != nil {
		return v, err
	}
	if f := aggregates[c.name]; f != nil {
		return aggregate(f, v), nil
	}
	if f := maps[c.name]; f != nil {
		return v.mapped(f), nil
	}
	if v.Kind == Number {
		return v, invalid("The function %s needs a time series", c.name)
	}
	switch c.name {
	case "RATE":
		return v.each(rate), nil
	case "PERIOD":
		if v.Kind != Single {
			return v, invalid("The function PERIOD needs one time series")
		}
		return Value{Number: float64(v.Series[0].Period)}, nil
	}
	return c.filled(e, v)
}

func (c call) filled(e *Environment, v Value) (Value, error) {
	with := Value{}
	if _, word := c.args[1].(keyword); !word {
		var err error
		if with, err = c.args[1].eval(e); err != nil {
			return v, err
		}
	}
	if with.Kind != Number {
		return v, invalid("The second argument of FILL is a number, REPEAT or LINEAR")
	}
	points := int64(0)
	for _, s := range v.Series {
		points += (e.To - e.From) / max(s.Period, 1)
	}
	if points > maxPoints {
		return v, invalid("FILL would make %d data points, which exceeds the limit of %d", points, maxPoints)
	}
	return v.each(func(s Series) Series { return fill(s, e.From, e.To, c.args[1], with.Number) }), nil
}

// check says why a function does not take its arguments.
func (c call) check() error {
	bounds, known := arity[c.name]
	switch {
	case !known:
		return invalid("Unsupported function '%.40s': %s are supported", c.name, functionNames())
	case len(c.args) < bounds[0] || len(c.args) > bounds[1]:
		return invalid("Wrong number of arguments of the function %s", c.name)
	}
	for n, a := range c.args {
		_, word := a.(keyword)
		_, quoted := a.(text)
		switch {
		case word && (c.name != "FILL" || n != 1):
			return invalid("Unexpected '%s'", a)
		case quoted != (c.name == "METRICS" || c.name == "SEARCH" && n < 2):
			return invalid("Wrong type of argument %d of the function %s", n+1, c.name)
		}
	}
	return nil
}

func functionNames() string {
	names := make([]string, 0, len(arity))
	for name := range arity {
		names = append(names, name)
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}
