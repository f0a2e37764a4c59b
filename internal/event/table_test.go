package event

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

// guide are the rows of RDS's page that are told of. They were written down from the page, not
// from the declarations of this package.
func guide(t *testing.T) map[string]string {
	t.Helper()
	text, err := os.ReadFile("testdata/guide.txt")
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string]string{}
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		fields := strings.Split(strings.TrimSpace(line), " | ")
		if len(fields) != 4 {
			t.Fatalf("%q", line)
		}
		rows[fmt.Sprintf("RDS-EVENT-%s of %s: %s", fields[0], fields[1], fields[2])] = fields[3]
	}
	return rows
}

func TestKindsAreRDSs(t *testing.T) {
	want, seen := guide(t), map[string]bool{}
	for _, k := range All() {
		if !strings.HasPrefix(k.ID, "RDS-") {
			continue
		}
		row := fmt.Sprintf("%s of %s: %s", k.ID, k.Source, strings.Join(k.Categories, ", "))
		words, known := want[row]
		if !known || seen[row] || !strings.HasPrefix(k.Text, words) {
			t.Errorf("%s, %q: RDS says %q; seen before: %v", row, k.Text, words, seen[row])
		}
		seen[row] = true
	}
	for _, row := range slices.Sorted(maps.Keys(want)) {
		if !seen[row] {
			t.Errorf("%s is missing", row)
		}
	}
}

// oneThing are ids that several histories tell of: of a standby and a replica, of an instance and
// its snapshot.
var oneThing = []string{"KURABE-EVENT-0003", "KURABE-EVENT-0008", "KURABE-EVENT-0009", "KURABE-EVENT-0012", "KURABE-EVENT-0017", "KURABE-EVENT-0062"}

// TestOwnKinds: an own number has one meaning, and every category is one that clients can find.
func TestOwnKinds(t *testing.T) {
	seen := map[string]bool{}
	for _, k := range All() {
		if strings.HasPrefix(k.ID, "KURABE-") && seen[k.ID] && !slices.Contains(oneThing, k.ID) {
			t.Errorf("%s is there twice: take the next free number", k.ID)
		}
		seen[k.ID] = true
		known := slices.IndexFunc(Categories, func(c SourceCategories) bool { return c.SourceType == k.Source })
		if k.Source == Topic {
			continue
		}
		if known < 0 || len(k.Categories) == 0 {
			t.Errorf("%s: %q", k.ID, k.Source)
			continue
		}
		for _, c := range k.Categories {
			if !slices.Contains(Categories[known].Categories, c) {
				t.Errorf("%s: %s has no category %q", k.ID, k.Source, c)
			}
		}
	}
}

var noon = time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)

func TestWords(t *testing.T) {
	e := RestoredToPoint.With("100%d", "b").And(", as of 5%").Told(noon, "b", "db-B")
	if e.Message != "Restored from DB instance 100%d to b, as of 5%" || e.SourceType != "db-instance" || e.Source != "b" || e.SourceID != "db-B" ||
		e.ID != "RDS-EVENT-0019" || !slices.Equal(e.Categories, []string{"restoration"}) || !e.At.Equal(noon) {
		t.Errorf("%+v", e)
	}
	if strings.Contains(RestoredToPoint.Text, "100") {
		t.Error("a kind was changed by its use")
	}
}

const guidePage = "../../docs/guide/events.md"

// TestGuideHasEveryEvent holds the tables of the guide against All. KURABE_EVENTS=write writes them.
func TestGuideHasEveryEvent(t *testing.T) {
	text, err := os.ReadFile(guidePage)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, _ := strings.Cut(string(text), "\n<!-- events: begin -->\n")
	have, tail, ok := strings.Cut(rest, "<!-- events: end -->\n")
	if !ok {
		t.Fatal("the page has no place for the tables")
	}
	want := tables()
	if os.Getenv("KURABE_EVENTS") == "write" {
		page := head + "\n<!-- events: begin -->\n" + want + "<!-- events: end -->\n" + tail
		if err := os.WriteFile(guidePage, []byte(page), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if have != want {
		t.Error("the tables are out of date: KURABE_EVENTS=write go test ./internal/event -run TestGuideHasEveryEvent")
	}
}

// tables lists the events of each source type: RDS's by number, then Kurabe's own.
func tables() string {
	var b strings.Builder
	for _, c := range append(slices.Clone(Categories), SourceCategories{SourceType: Topic}) {
		fmt.Fprintf(&b, "\n### %s\n\n| event | categories | message |\n|---|---|---|\n", c.SourceType)
		kinds := slices.DeleteFunc(All(), func(k Kind) bool { return k.Source != c.SourceType })
		slices.SortStableFunc(kinds, func(a, b Kind) int {
			return cmp.Or(-strings.Compare(a.ID[:3], b.ID[:3]), strings.Compare(a.ID, b.ID))
		})
		for _, k := range kinds {
			words := strings.NewReplacer("%s", "…", "%d%%", "…", "%d", "…").Replace(k.Text)
			fmt.Fprintf(&b, "| %s | %s | %s |\n", k.ID, strings.Join(k.Categories, ", "), words)
		}
	}
	return b.String() + "\n"
}
