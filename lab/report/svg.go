package report

import (
	"html/template"
	"math"
	"strconv"
	"strings"
)

// Sizes of the page's charts, in pixels.
const (
	pageWide = 1080.0 // of a chart over the whole page
	halfWide = 530.0  // of one of two side by side
	textSize = 12.0   // as .svg text in the style sheet
	lineTall = 20.0   // a row of text
)

// drawing collects an SVG. Every text goes through words, so that nothing a user named
// can become markup; every number through px, so that none can be NaN.
type drawing struct {
	b    strings.Builder
	wide float64
	tall float64
	// labels are what is already written, for texts that must not overlap.
	labels []box
}

type box struct{ left, top, right, bottom float64 }

func (a box) meets(b box) bool {
	return a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom
}

// escaper leaves text that is text in HTML and in XML.
var escaper = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&#34;", "'", "&#39;")

func words(s string) string { return escaper.Replace(clean(s)) }

// px prints a coordinate with one decimal, which is finer than any screen.
func px(v float64) string {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return "0"
	}
	v = math.Round(v*10) / 10
	if v == 0 {
		v = 0 // not −0
	}
	return strconv.FormatFloat(v, 'f', -1, 64)
}

// raw adds markup that this package wrote.
func (d *drawing) raw(parts ...string) {
	for _, p := range parts {
		d.b.WriteString(p)
	}
}

func (d *drawing) line(x1, y1, x2, y2 float64, class string) {
	d.raw(`<line class="`, class, `" x1="`, px(x1), `" y1="`, px(y1), `" x2="`, px(x2), `" y2="`, px(y2), `"/>`)
}

func (d *drawing) rect(x, y, w, h float64, class string) {
	d.raw(`<rect class="`, class, `" x="`, px(x), `" y="`, px(y), `" width="`, px(max(0, w)), `" height="`, px(max(0, h)), `"/>`)
}

// Anchors of a text: where x is.
const (
	atStart  = "start"
	atMiddle = "middle"
	atEnd    = "end"
)

// text writes at a base line.
func (d *drawing) text(x, y float64, anchor, class, s string) {
	d.raw(`<text x="`, px(x), `" y="`, px(y), `"`)
	if anchor != atStart {
		d.raw(` text-anchor="`, anchor, `"`)
	}
	if class != "" {
		d.raw(` class="`, class, `"`)
	}
	d.raw(">", words(s), "</text>")
}

// upright writes the title of a vertical axis, reading upwards, centred at y.
func (d *drawing) upright(x, y float64, s string) {
	d.raw(`<text class="axis" text-anchor="middle" transform="translate(`, px(x), " ", px(y), `) rotate(-90)">`, words(s), "</text>")
}

// claim tells whether a text at a base line is free of others, and keeps its place if so.
func (d *drawing) claim(x, y float64, anchor, s string, size float64) bool {
	w := pixels(s, size)
	switch anchor {
	case atMiddle:
		x -= w / 2
	case atEnd:
		x -= w
	}
	b := box{x - 2, y - size, x + w + 2, y + size*0.3}
	for _, other := range d.labels {
		if b.meets(other) {
			return false
		}
	}
	d.labels = append(d.labels, b)
	return true
}

// point is a place in pixels.
type point struct{ x, y float64 }

// path joins points by straight lines; a point that is not a number breaks it.
func (d *drawing) path(points []point, class, dash string) {
	data := pathData(points)
	if data == "" {
		return
	}
	d.raw(`<path class="`, class, `"`)
	if dash != "" {
		d.raw(` stroke-dasharray="`, dash, `"`)
	}
	d.raw(` d="`, data, `"/>`)
}

func pathData(points []point) string {
	var b strings.Builder
	pen := false
	for _, p := range points {
		if math.IsNaN(p.x+p.y) || math.IsInf(p.x+p.y, 0) {
			pen = false
			continue
		}
		if pen {
			b.WriteByte('L')
		} else {
			b.WriteByte('M')
		}
		b.WriteString(px(p.x) + " " + px(p.y))
		pen = true
	}
	return b.String()
}

// area fills between an upper and a lower line of equal length.
func (d *drawing) area(upper, lower []point, class string) {
	data := pathData(upper)
	if data == "" {
		return
	}
	d.raw(`<path class="`, class, `" d="`, data)
	for n := len(lower) - 1; n >= 0; n-- {
		d.raw("L", px(lower[n].x), " ", px(lower[n].y))
	}
	d.raw(`Z"/>`)
}

// hint opens a group that shows a text when it is pointed at; end with endGroup.
func (d *drawing) hint(class, s string) {
	d.raw(`<g class="`, class, `"><title>`, words(s), `</title>`)
}

func (d *drawing) endGroup() { d.raw("</g>") }

// chart is a finished drawing with the words around it.
type chart struct {
	ID      string // unique in the page
	Title   string
	Caption string // how to read it
	Notes   []string
	Mark    template.HTML // before the title, of a chart that is of one variant
	SVG     template.HTML
}

// finish wraps the drawing as an element that says what it is to those who cannot see
// it. The text stays text: it can be selected and searched.
func (d *drawing) finish(id, title, caption string) chart {
	var b strings.Builder
	b.WriteString(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ` + px(d.wide) + " " + px(d.tall) + `" width="` + px(d.wide) + `" height="` + px(d.tall) +
		`" role="group" aria-labelledby="` + id + `-t ` + id + `-d">`)
	b.WriteString(`<title id="` + id + `-t">` + words(title) + `</title><desc id="` + id + `-d">` + words(caption) + `</desc>`)
	b.WriteString(d.b.String())
	b.WriteString("</svg>")
	return chart{ID: id, Title: title, Caption: caption, SVG: template.HTML(b.String())}
}

// frame draws the axes of a plot: grid lines, ticks and titles.
type frame struct {
	x, y           axis
	xTicks, yTicks []tick
	xTitle, yTitle string
}

func (d *drawing) frame(f frame) {
	left, right := min(f.x.from, f.x.to), max(f.x.from, f.x.to)
	top, bottom := min(f.y.from, f.y.to), max(f.y.from, f.y.to)
	for _, t := range f.yTicks {
		y := f.y.at(t.value)
		d.line(left, y, right, y, "grid")
		d.text(left-6, y+4, atEnd, "tick", t.label)
	}
	for _, t := range f.xTicks {
		x := f.x.at(t.value)
		d.line(x, top, x, bottom, "grid")
		d.text(x, bottom+16, atMiddle, "tick", t.label)
	}
	d.line(left, bottom, right, bottom, "rule")
	if f.xTitle != "" {
		d.text((left+right)/2, bottom+34, atMiddle, "axis", f.xTitle)
	}
	if f.yTitle != "" {
		d.upright(left-46, (top+bottom)/2, f.yTitle)
	}
}
