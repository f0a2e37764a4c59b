package report

import (
	"encoding/xml"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
)

// pageElements are all that the template and the charts use.
var pageElements = []string{
	"html", "head", "meta", "title", "style", "body", "main", "header", "section", "p", "h1", "h2", "h3", "ul", "li", "strong", "b", "em", "span", "div",
	"table", "caption", "thead", "tbody", "tr", "th", "td", "figure", "figcaption", "details", "summary", "dl", "dt", "dd", "code",
	"svg", "desc", "g", "line", "rect", "path", "text",
}

func TestHostileNames(t *testing.T) {
	page := render(t, hostileFile())
	d := xml.NewDecoder(strings.NewReader(page))
	d.Strict, d.AutoClose, d.Entity = false, xml.HTMLAutoClose, xml.HTMLEntity
	shown := 0
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		switch token := token.(type) {
		case xml.StartElement:
			if !slices.Contains(pageElements, token.Name.Local) {
				t.Errorf("the page has an element %s", token.Name.Local)
			}
			for _, a := range token.Attr {
				if strings.HasPrefix(a.Name.Local, "on") || a.Name.Local == "src" || a.Name.Local == "href" {
					t.Errorf("the page has an attribute %s of %s", a.Name.Local, token.Name.Local)
				}
			}
		case xml.CharData:
			if strings.Contains(string(token), "<script>alert(1)</script>") {
				shown++ // as text
			}
			if strings.ContainsAny(string(token), "\x00\x1b\u202e") {
				t.Errorf("a text has what cannot be seen: %q", token)
			}
		}
	}
	if shown < 20 {
		t.Errorf("the name is shown %d times: it was lost, not escaped", shown)
	}
	const most = 4 << 20
	if len(page) > most {
		t.Errorf("the page has %d bytes: long names are not cut", len(page))
	}
}

func TestShellWord(t *testing.T) {
	for in, want := range map[string]string{
		"general-log": "general-log", "--target=url": "--target=url", "it's": `'it'\''s'`, "a b": "'a b'", "": "''", "$(x)": "'$(x)'", "監査": "'監査'",
	} {
		if got := shellWord(in); got != want {
			t.Errorf("%q is %s, want %s", in, got, want)
		}
	}
}
