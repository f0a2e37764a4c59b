//go:build integration

package report

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"image/png"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"kurabe/lab/result"
	"kurabe/lab/result/resulttest"
)

// drawn is a chart as a browser laid it out.
type drawn struct {
	Title          string
	Width, Height  float64
	X, Y, Boundary int // texts along each axis that can be read, and those that stick out
}

// measureCharts opens what is folded and looks at each chart: texts in the middle of
// their place are along the horizontal axis, those that end at the plot or name a row
// along the vertical one.
const measureCharts = `
[...document.querySelectorAll('details')].forEach(d => d.open = true);
[...document.querySelectorAll('figure svg:not(.icon)')].map(svg => {
  const box = svg.getBoundingClientRect();
  const readable = query => [...svg.querySelectorAll(query)].filter(t => t.getBoundingClientRect().width > 0 && t.textContent.trim() !== '').length;
  return {
    Title: svg.querySelector('title').textContent, Width: box.width, Height: box.height,
    X: readable('text.tick[text-anchor=middle]') && readable('text.axis[text-anchor=middle]:not([transform])'),
    Y: readable('text.tick[text-anchor=end]') + readable('text.name'),
    Boundary: [...svg.querySelectorAll('text')].filter(t => { const b = t.getBoundingClientRect(); return b.right < box.left || b.left > box.right || b.bottom < box.top || b.top > box.bottom }).length,
  };
})`

// pages are what a report may look like, each with its number of charts or more.
func pages() map[string]struct {
	file   *result.File
	charts int
} {
	type page = struct {
		file   *result.File
		charts int
	}
	all := studies()
	return map[string]page{
		"general-log": {all["general-log"], 8}, "alter": {all["alter"], 10}, "scale": {all["scale"], 4}, "hostile": {all["hostile"], 4}, "empty": {all["empty"], 0},
		"primaries": {resulttest.File(7, resulttest.Options{Blocks: 7, Primaries: true, Clean: true}), 4},
	}
}

// A page is whole in a browser that runs no script: nothing is fetched, nothing is
// complained of, and each chart has a size and words along both axes.
func TestPageInABrowser(t *testing.T) {
	c := startChromium(t)
	c.call("Emulation.setScriptExecutionDisabled", map[string]any{"value": true}, nil)
	folder := t.TempDir()
	for name, p := range pages() {
		path := filepath.Join(folder, name+".html")
		if err := os.WriteFile(path, []byte(render(t, p.file)), 0o600); err != nil {
			t.Fatal(err)
		}
		url := "file://" + path
		for _, complaint := range complaints(t, c.open(url), url) {
			t.Errorf("%s: %s", name, complaint)
		}
		var charts []drawn
		c.evaluate(measureCharts, &charts)
		if len(charts) < p.charts {
			t.Errorf("%s: %d charts, want %d", name, len(charts), p.charts)
		}
		for _, d := range charts {
			if d.Width <= 0 || d.Height <= 0 || d.X == 0 || d.Y == 0 || d.Boundary > 0 {
				t.Errorf("%s: %+v", name, d)
			}
		}
		var overflow bool
		if c.evaluate("document.documentElement.scrollWidth > document.documentElement.clientWidth", &overflow); overflow {
			t.Errorf("%s: the page is wider than the window", name)
		}
		var shot struct{ Data string }
		c.call("Page.captureScreenshot", map[string]any{"format": "png"}, &shot)
		if colours := coloursOf(t, shot.Data); colours < 3 {
			t.Errorf("%s: a picture of %d colours", name, colours)
		}
	}
}

// What the test above looks for is found in a page that has it.
func TestBrowserSeesAFault(t *testing.T) {
	c := startChromium(t)
	path := filepath.Join(t.TempDir(), "bad.html")
	text := `<!doctype html><title>x</title><figure><svg width="0" height="5"><title>none</title></svg></figure><img src="http://127.0.0.1:9/fetched.png"><script>console.error("complained")</script>`
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	found := strings.Join(complaints(t, c.open("file://"+path), "file://"+path), "\n")
	for _, want := range []string{"fetches http://127.0.0.1:9/fetched.png", "complained"} {
		if !strings.Contains(found, want) {
			t.Errorf("%q is not among %q", want, found)
		}
	}
	var charts []drawn
	if c.evaluate(measureCharts, &charts); len(charts) != 1 || charts[0].Width != 0 || charts[0].X != 0 || charts[0].Y != 0 {
		t.Errorf("%+v", charts)
	}
	// The same page without scripts says nothing.
	c.call("Emulation.setScriptExecutionDisabled", map[string]any{"value": true}, nil)
	if again := strings.Join(complaints(t, c.open("file://"+path), "file://"+path), "\n"); strings.Contains(again, "complained") {
		t.Errorf("a script ran: %q", again)
	}
}

// complaints are what the page fetched beside itself, and what stood in the console.
func complaints(t *testing.T, events []devtools, url string) []string {
	t.Helper()
	var found []string
	for _, e := range events {
		var p struct {
			Request struct{ URL string }
			Entry   struct{ Level, Text, URL string }
			Type    string
			Args    []struct{ Value any }
		}
		switch e.Method {
		case "Network.requestWillBeSent", "Log.entryAdded", "Runtime.consoleAPICalled", "Runtime.exceptionThrown":
		default:
			continue
		}
		if err := json.Unmarshal(e.Params, &p); err != nil {
			t.Fatal(err)
		}
		switch {
		case e.Method == "Network.requestWillBeSent" && p.Request.URL != url:
			found = append(found, "fetches "+p.Request.URL)
		case e.Method == "Log.entryAdded":
			found = append(found, p.Entry.Level+": "+p.Entry.Text+" "+p.Entry.URL)
		case strings.HasPrefix(e.Method, "Runtime."):
			found = append(found, string(e.Params))
		}
	}
	return found
}

func coloursOf(t *testing.T, data string) int {
	t.Helper()
	raw, err := base64.StdEncoding.DecodeString(data)
	if err != nil {
		t.Fatal(err)
	}
	picture, err := png.Decode(bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	var seen [][4]uint32
	size := picture.Bounds()
	for y := size.Min.Y; y < size.Max.Y; y += 3 {
		for x := size.Min.X; x < size.Max.X && len(seen) < 16; x += 3 {
			r, g, b, a := picture.At(x, y).RGBA()
			if colour := [4]uint32{r, g, b, a}; !slices.Contains(seen, colour) {
				seen = append(seen, colour)
			}
		}
	}
	return len(seen)
}
