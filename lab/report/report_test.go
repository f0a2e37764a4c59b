package report

import (
	"bytes"
	"encoding/xml"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"kurabe/lab/result"
	"kurabe/lab/result/resulttest"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// golden compares with a file of testdata.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", filepath.FromSlash(name))
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil || got != string(want) {
		t.Errorf("%s: %v; run with -update and look at the change; got\n%s", name, err, got)
	}
}

// studies are the files that a report must be able to show. They are made once; no test
// may change them.
var studies = sync.OnceValue(func() map[string]*result.File {
	return map[string]*result.File{
		"general-log": resulttest.File(7, resulttest.Options{}),
		"alter":       resulttest.File(7, resulttest.Options{Alter: true, Blocks: 6}),
		"direction":   resulttest.File(7, resulttest.Options{Blocks: 3}),
		"one-block":   resulttest.File(7, resulttest.Options{Blocks: 1, Clean: true}),
		"empty":       resulttest.File(7, resulttest.Options{Blocks: -1}),
		"withheld":    resulttest.File(7, resulttest.Options{Effect: map[string]float64{"off′": 1.06}}),
		"many-blocks": resulttest.File(7, resulttest.Options{Blocks: 20, Noise: 0.02, Clean: true}),
		"scale":       ladderFile(3),
		"hostile":     hostileFile(),
	}
})

func render(t *testing.T, f *result.File) string {
	t.Helper()
	var b bytes.Buffer
	if err := HTML(&b, f, Options{File: "study.jsonl", SHA256: strings.Repeat("0123456789abcdef", 4)}); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func printed(t *testing.T, f *result.File, width int) string {
	t.Helper()
	var b bytes.Buffer
	if err := Terminal(&b, f, width); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// wellFormed reads a text as XML, or as HTML that closes what it opens.
func wellFormed(text string, strict bool) error {
	d := xml.NewDecoder(strings.NewReader(text))
	if d.Strict = strict; !strict {
		d.AutoClose, d.Entity = xml.HTMLAutoClose, xml.HTMLEntity
	}
	depth := 0
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			if depth != 0 {
				return fmt.Errorf("%d elements are open at the end", depth)
			}
			return nil
		}
		if err != nil {
			return err
		}
		switch token.(type) {
		case xml.StartElement:
			depth++
		case xml.EndElement:
			depth--
		}
	}
}

var (
	svgElement = regexp.MustCompile(`(?s)<svg .*?</svg>`)
	idName     = regexp.MustCompile(`\sid="([^"]*)"`)
	labelledBy = regexp.MustCompile(`aria-labelledby="([^"]*)"`)
	styleSheet = regexp.MustCompile(`(?s)<style>.*?</style>`)
)

const svgNamespace = "http://www.w3.org/2000/svg"

func TestPageIsWellFormedAndAlone(t *testing.T) {
	for name, f := range studies() {
		t.Run(name, func(t *testing.T) {
			page := render(t, f)
			if err := wellFormed(page, false); err != nil {
				t.Errorf("the page: %v", err)
			}
			for n, svg := range svgElement.FindAllString(page, -1) {
				if err := wellFormed(svg, true); err != nil {
					t.Errorf("chart %d: %v", n, err)
				}
				if strings.Contains(svg, "NaN") || strings.Contains(svg, "Inf") {
					t.Errorf("chart %d has a coordinate that is no number", n)
				}
			}
			without := strings.ReplaceAll(page, svgNamespace, "")
			for _, refused := range []string{"<script", "http://", "https://", " src=", " href=", "@import", "url(", "<link", "<iframe", "javascript:"} {
				if strings.Contains(strings.ToLower(without), refused) && name != "hostile" {
					t.Errorf("the page has %s", refused)
				}
			}
			seen := map[string]bool{}
			for _, m := range idName.FindAllStringSubmatch(page, -1) {
				if seen[m[1]] {
					t.Errorf("two elements have the id %s", m[1])
				}
				seen[m[1]] = true
			}
			for _, m := range labelledBy.FindAllStringSubmatch(page, -1) {
				for _, id := range strings.Fields(m[1]) {
					if !seen[id] {
						t.Errorf("a chart is labelled by %s, which is not there", id)
					}
				}
			}
		})
	}
}

func TestTerminalFits(t *testing.T) {
	for name, f := range studies() {
		v := mustView(t, f)
		for _, width := range []int{0, 40, 60, 80, 100, 132, 10000} {
			for n, line := range strings.Split(v.terminal(width), "\n") {
				if most := min(max(width, leastWidth), mostWidth); cells(line) > most {
					t.Errorf("%s at %d: line %d has %d columns: %q", name, width, n+1, cells(line), line)
				}
				if clean(line) != strings.TrimSpace(line) {
					t.Errorf("%s at %d: line %d has what a terminal may obey: %q", name, width, n+1, line)
				}
			}
		}
	}
}

func TestTerminalGolden(t *testing.T) {
	all := studies()
	for _, name := range []string{"general-log", "alter", "direction", "empty", "withheld", "scale"} {
		golden(t, "terminal/"+name+".txt", printed(t, all[name], 80))
	}
	golden(t, "terminal/general-log-50.txt", printed(t, all["general-log"], 50))
}

func TestPageGolden(t *testing.T) {
	page := render(t, resulttest.File(7, resulttest.Options{Blocks: -1}))
	golden(t, "page/empty.html", styleSheet.ReplaceAllString(page, "<style></style>"))
}

func TestChartGolden(t *testing.T) {
	small := resulttest.File(7, resulttest.Options{Blocks: 6})
	small.Study.Definition.Workloads = small.Study.Definition.Workloads[1:]
	v := mustView(t, small)
	forest, _ := v.forest()
	trials, _ := v.trialDots()
	all := v.distributions(v.workloads[0])
	percentiles, _ := v.percentiles("percentiles-1", "own", all)
	shifts, _ := v.shifts("shift-1", "own", all)
	series := v.series(v.workloads[0])
	plots := mustView(t, ladderFile(3)).scalePlots(1, mustView(t, ladderFile(3)).ladders()[0])
	for name, c := range map[string]chart{
		"forest": forest, "trials": trials, "percentiles": percentiles, "shift": shifts, "series": series[0], "scale": plots[0],
	} {
		if c.SVG == "" {
			t.Errorf("%s is empty", name)
			continue
		}
		golden(t, "chart/"+name+".svg", strings.ReplaceAll(string(c.SVG), "><", ">\n<")+"\n")
	}
}

func mustView(t *testing.T, f *result.File) *view {
	t.Helper()
	v, err := newView(f)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// failing refuses what is written to it.
type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, errors.New("full") }

func TestWriteErrors(t *testing.T) {
	f := resulttest.File(7, resulttest.Options{Blocks: 1, Clean: true})
	if err := HTML(failing{}, f, Options{}); err == nil || err.Error() != "write the report: full" {
		t.Errorf("HTML: %v", err)
	}
	if err := Terminal(failing{}, f, 80); err == nil || err.Error() != "print the report: full" {
		t.Errorf("Terminal: %v", err)
	}
	f.Study.Definition.Primary.Metric = "no such metric"
	if err := HTML(io.Discard, f, Options{}); err == nil || !strings.HasPrefix(err.Error(), "report the study general-log: ") {
		t.Errorf("an unknown metric: %v", err)
	}
}
