package report

import (
	"bytes"
	"embed"
	"fmt"
	"html/template"
	"io"
	"strconv"

	"kurabe/lab/result"
	"kurabe/lab/study"
)

//go:embed page.html style.css
var assets embed.FS

// pageTemplate is parsed once; a mistake in it is ours and shows in every test.
var pageTemplate = template.Must(template.New("page.html").Funcs(template.FuncMap{
	"mark": markIcon,
}).ParseFS(assets, "page.html"))

// Options of a page.
type Options struct {
	// File is the name of the result file and SHA256 its sum, for those who want to
	// compute the figures again; "" leaves them out.
	File   string
	SHA256 string
}

// page is what the template shows. Texts are escaped by it; charts are finished markup.
type page struct {
	Name, Question string
	Run            string
	Created        string
	Style          template.CSS
	Warning        string
	First          string // the workload of the answers
	FirstLoad      string
	Answers        []sentence
	Noise          string
	Missing        []missing
	Sources        []string
	SourceMark     func(string) string
	Comparisons    []workloadTables
	Forest, Trials *chart
	Legend         []legend
	Scales         []scaleSection
	Distributions  []distributionSection
	Series         []chart
	SeriesOf       string
	Metric         string
	Why            []workloadTables
	Incidents      *grid
	Differences    *grid
	Facts          []fact
	Command        string
	Seed           string
	Options        Options
	Recompute      string
}

type legend struct {
	Label string
	Look  look
	What  string
}

// workloadTables are tables of one workload.
type workloadTables struct {
	Workload   string
	Comparison comparison
	Grids      []*grid
	Folded     *grid // shown when it is asked for, and on paper
}

type scaleSection struct {
	Charts []chart
	Limits *grid
}

type distributionSection struct {
	Workload string
	Charts   []chart
	Open     bool // shown at once, others when they are asked for
}

// HTML writes the report as one page that needs nothing else: no network, no script.
func HTML(w io.Writer, f *result.File, o Options) error {
	v, err := newView(f)
	if err != nil {
		return err
	}
	style, err := assets.ReadFile("style.css")
	if err != nil {
		return fmt.Errorf("read the style sheet: %w", err)
	}
	p := v.page(o)
	p.Style = template.CSS(style)
	var b bytes.Buffer // nothing is written when something fails
	if err := pageTemplate.Execute(&b, p); err != nil {
		return fmt.Errorf("render the report: %w", err)
	}
	if _, err := w.Write(b.Bytes()); err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	return nil
}

func (v *view) page(o Options) *page {
	s := &v.file.Study
	p := &page{
		Name: label(v.def.Name), Question: reasonWords(v.def.Question), Run: v.runWords(), Created: s.Created.UTC().Format("2 January 2006, 15:04 UTC"),
		Warning: v.warning(), Missing: v.missing, Sources: sources(v.def.Published), SourceMark: v.sourceMark,
		Incidents: v.incidents(), Differences: v.differences(), Facts: v.facts(),
		Command: v.command(), Seed: strconv.FormatUint(s.Seed, 10), Options: Options{File: clean(o.File), SHA256: clean(o.SHA256)},
	}
	p.Recompute = "kurabe lab recompute " + shellWord(orElse(p.Options.File, "FILE"))
	for _, x := range v.variants {
		p.Legend = append(p.Legend, legend{Label: x.label, Look: x.look, What: v.recipe(x)})
	}
	if len(v.workloads) == 0 {
		return p
	}
	first := v.workloads[0]
	p.First, p.FirstLoad = workloadTitle(first), loadWords(first)
	p.Answers, p.Noise = v.answers(first.Name), v.noise(first.Name)
	for _, w := range v.workloads {
		p.Comparisons = append(p.Comparisons, workloadTables{
			Workload: workloadTitle(w), Comparison: v.comparison(w), Grids: some(v.figures(w), v.statements(w)), Folded: v.exploratory(w),
		})
		if grids := some(v.why(w), v.waits(w)); len(grids) > 0 && len(p.Why) < maxPanels {
			p.Why = append(p.Why, workloadTables{Workload: workloadTitle(w), Grids: grids})
		}
	}
	v.charts(p)
	return p
}

func (v *view) charts(p *page) {
	if c, ok := v.forest(); ok {
		p.Forest = &c
	}
	if c, ok := v.trialDots(); ok {
		p.Trials = &c
	}
	for n, l := range v.ladders() {
		if charts := v.scalePlots(n+1, l); len(charts) > 0 {
			p.Scales = append(p.Scales, scaleSection{charts, v.limits(l)})
		}
	}
	for n, w := range v.workloads[:min(len(v.workloads), maxPanels)] {
		s := distributionSection{Workload: workloadTitle(w), Open: len(p.Distributions) == 0}
		all := v.distributions(w)
		if c, ok := v.percentiles(fmt.Sprintf("percentiles-%d", n+1), s.Workload, all); ok {
			s.Charts = append(s.Charts, c)
		}
		if c, ok := v.shifts(fmt.Sprintf("shift-%d", n+1), s.Workload, all); ok {
			s.Charts = append(s.Charts, c)
		}
		if len(s.Charts) > 0 {
			p.Distributions = append(p.Distributions, s)
		}
		if len(p.Series) == 0 {
			p.Series, p.SeriesOf, p.Metric = v.series(w), s.Workload, v.primary(w.Name).title
		}
	}
}

// some are the tables that there are.
func some(all ...*grid) []*grid {
	var out []*grid
	for _, g := range all {
		if g != nil {
			out = append(out, g)
		}
	}
	return out
}

// recipe says in a line what a variant is.
func (v *view) recipe(x variant) string {
	if x.TwinOf != "" {
		return "the same recipe as " + v.label(x.TwinOf) + ", under another name: the noise floor"
	}
	return recipe(x.Variant)
}

func recipe(x study.Variant) string {
	var parts []string
	add := func(name, value string) {
		if value != "" {
			parts = append(parts, name+clean(value))
		}
	}
	for _, name := range sortedKeys(x.Parameters) {
		add(clean(name)+" = ", orElse(x.Parameters[name], "''"))
	}
	for _, engine := range sortedKeys(x.SQL) {
		for _, text := range x.SQL[engine] {
			add("", text)
		}
	}
	for _, engine := range sortedKeys(x.Change) {
		for _, text := range x.Change[engine] {
			add("while the load runs: ", text)
		}
	}
	add("class ", x.Class)
	add("storage ", x.StorageType)
	if x.IOPS > 0 {
		add("IOPS ", strconv.Itoa(x.IOPS))
	}
	if x.StorageGiB > 0 {
		add("GiB ", strconv.Itoa(x.StorageGiB))
	}
	add("through ", x.Endpoint)
	add("by ", x.Tool)
	text := ""
	for _, part := range parts {
		if text != "" {
			text += "; "
		}
		text += part
	}
	return cut(text, maxRecipe)
}

// maxRecipe bounds a recipe in the legend; the file has all of it.
const maxRecipe = 240

// markIcon is a variant's mark for use in text.
func markIcon(l look) template.HTML {
	d := &drawing{}
	d.mark(l, 7, 7, 4.5, markSolid)
	return template.HTML(`<svg class="icon" width="14" height="14" viewBox="0 0 14 14" aria-hidden="true">` + d.b.String() + `</svg>`)
}
