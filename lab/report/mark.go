package report

import (
	"math"
	"strconv"
	"strings"
)

// Looks repeat only after colours × marks variants, so that two that share a colour
// have other marks.
const (
	colours = 8
	shapes  = 8
)

// look is how a variant is drawn everywhere in a page: the colour by a class of the
// style sheet, which has one set for light and one for dark, and a mark and a dash that
// tell it apart without colour.
type look struct {
	class string
	shape int
	dash  string
}

// dashes of lines; the first two are the baseline's and its twin's.
var dashes = []string{"", "2 3", "7 3", "", "10 3 2 3", "4 2", "12 4", "1 3", "6 2 1 2 1 2"}

// lookOf gives the look of the nth variant; 0 is the baseline, 1 its twin.
func lookOf(n int) look {
	if n < 2 {
		return look{class: "v" + strconv.Itoa(n), shape: n, dash: dashes[n]}
	}
	k := n - 2
	return look{
		class: "v" + strconv.Itoa(2+k%colours),
		shape: (2 + k + k/colours) % shapes,
		dash:  dashes[2+k%(len(dashes)-2)],
	}
}

// State of a mark.
const (
	markSolid  = "mk"
	markHollow = "mk hollow" // an unsettled trial
	markOut    = "mk out"    // one that does not count
)

// mark draws a variant's mark around a point.
func (d *drawing) mark(l look, x, y, size float64, state string) {
	d.raw(`<path class="`, state, " ", l.class, `" d="`, shapeData(l.shape, x, y, size), `"/>`)
	if state == markOut {
		a := size * 1.25
		d.raw(`<path class="cross" d="M`, px(x-a), " ", px(y-a), "L", px(x+a), " ", px(y+a), "M", px(x-a), " ", px(y+a), "L", px(x+a), " ", px(y-a), `"/>`)
	}
}

// shapeData is the outline of a mark: circle, diamond, square, three triangles, a star
// and a plus, of about the same area.
func shapeData(shape int, x, y, r float64) string {
	switch shape {
	case 0:
		s := px(r)
		return "M" + px(x-r) + " " + px(y) + "a" + s + " " + s + " 0 1 0 " + px(2*r) + " 0a" + s + " " + s + " 0 1 0 " + px(-2*r) + " 0Z"
	case 1:
		return polygon(x, y, r*1.25, 4, 0)
	case 2:
		return polygon(x, y, r*1.25, 4, math.Pi/4)
	case 3:
		return polygon(x, y+r*0.2, r*1.35, 3, -math.Pi/2)
	case 4:
		return polygon(x, y-r*0.2, r*1.35, 3, math.Pi/2)
	case 5:
		return star(x, y, r*1.5, r*0.65)
	case 6:
		a, b := r*1.15, r*0.4
		return corners(x, y, [][2]float64{{-b, -a}, {b, -a}, {b, -b}, {a, -b}, {a, b}, {b, b}, {b, a}, {-b, a}, {-b, b}, {-a, b}, {-a, -b}, {-b, -b}})
	}
	return polygon(x+r*0.2, y, r*1.35, 3, 0)
}

func polygon(x, y, r float64, n int, turn float64) string {
	var at [][2]float64
	for k := range n {
		a := turn + 2*math.Pi*float64(k)/float64(n)
		at = append(at, [2]float64{r * math.Cos(a), r * math.Sin(a)})
	}
	return corners(x, y, at)
}

func star(x, y, outer, inner float64) string {
	const points = 5
	var at [][2]float64
	for k := range 2 * points {
		r := outer
		if k%2 == 1 {
			r = inner
		}
		a := -math.Pi/2 + math.Pi*float64(k)/points
		at = append(at, [2]float64{r * math.Cos(a), r * math.Sin(a)})
	}
	return corners(x, y, at)
}

func corners(x, y float64, at [][2]float64) string {
	var b strings.Builder
	for n, c := range at {
		if n == 0 {
			b.WriteByte('M')
		} else {
			b.WriteByte('L')
		}
		b.WriteString(px(x+c[0]) + " " + px(y+c[1]))
	}
	return b.String() + "Z"
}
