package failover

import (
	"bytes"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"context"

	"kurabe/test/bench/bed"
)

// pieceOf is a run into a file, or a further one, with one side whose losses take a moment.
func pieceOf(t *testing.T, path string, resume bool, s bed.Settings) (*comparison, *contender) {
	t.Helper()
	s.Out, s.Dir = path, t.TempDir()
	b := NewBook()
	if resume {
		s.Resume = path
		var err error
		if b, err = ReadBook(path); err != nil {
			t.Fatal(err)
		}
	}
	r := &comparison{Run: &bed.Run{Settings: s, Rng: rand.New(rand.NewPCG(s.Seed, 0))}, book: b, began: time.Now()}
	var err error
	if r.Out, err = bed.OpenReport(t.Context(), s, b.Pieces); err != nil {
		t.Fatal(err)
	}
	first := fakeLoss(writerKilled.name, func(*fakeSide) (float64, error) { return 0.25, nil })
	second := fakeLoss(inOrder.name, func(f *fakeSide) (float64, error) { f.lost = append(f.lost, 7); return 0.5, nil })
	c, _, _ := fakeContender(r, []*loss{first, second})
	return r, c
}

func (r *comparison) partOnce(t *testing.T) (measured bool) {
	t.Helper()
	nowhere := func(context.Context) (*site, error) { return nil, nil }
	err := r.once(t.Context(), partPrice, nowhere, func(context.Context, *site) error {
		measured = true
		r.Out.Row(bed.Row{What: "the price", Value: "0.7"})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return measured
}

// Rounds that are taken in pieces make the figures that they would have made in one go, also
// when a piece was cut off in the middle of a line.
func TestResume(t *testing.T) {
	path := filepath.Join(t.TempDir(), "raw.jsonl")
	r, c := pieceOf(t, path, false, bed.Settings{Rounds: 1, Only: "failover"})
	if err := r.inTurn(t.Context(), []*contender{c}); err != nil {
		t.Fatal(err)
	}
	if !r.partOnce(t) {
		t.Error("the part was not measured")
	}
	if err := r.Out.Close(); err != nil {
		t.Fatal(err)
	}
	cut, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	cut.WriteString(`{"t":"strike","strike":{"side":"Kur`)
	cut.Close()

	r, c = pieceOf(t, path, true, bed.Settings{Rounds: 3, Only: "failover"})
	if n := len(c.strikes); n != 2 {
		t.Fatalf("%d strikes were taken over", n)
	}
	if err := r.inTurn(t.Context(), []*contender{c}); err != nil {
		t.Fatal(err)
	}
	if r.partOnce(t) {
		t.Error("the part was measured again")
	}
	if err := r.Out.Close(); err != nil {
		t.Fatal(err)
	}

	b, err := ReadBook(path)
	if err != nil {
		t.Fatal(err)
	}
	again := b.only(roleOwn)
	if !reflect.DeepEqual(again, c.tally) {
		t.Errorf("the file has\n%+v, and measured was\n%+v", again, c.tally)
	}
	for _, x := range []*loss{writerKilled, inOrder} {
		if n := again.rounds(x); n != 3 {
			t.Errorf("%s: %d rounds", x.name, n)
		}
	}
	if _, missing, _, _ := again.sum(); missing != 3 {
		t.Errorf("%d rows are missing, want those of both pairs", missing)
	}
	if len(b.Pieces) != 2 || len(b.parts[partPrice]) != 1 {
		t.Errorf("%d pieces, parts %v", len(b.Pieces), b.parts)
	}

	if err := figuresOnly(bed.Settings{Resume: path}); err != nil {
		t.Fatal(err)
	}
	table, err := os.ReadFile(strings.TrimSuffix(path, ".jsonl") + ".md")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"median 0.25 s, worst 0.25 s | ≤ 2 s, each time | meets | 3 rounds", "| the price | 0.7 |", "in 2 pieces", "3 of "} {
		if !strings.Contains(string(table), want) {
			t.Errorf("no %q in\n%s", want, table)
		}
	}
}

// A piece whose time is up begins nothing new, and says so of what it leaves.
func TestWithin(t *testing.T) {
	path := filepath.Join(t.TempDir(), "raw.jsonl")
	r, c := pieceOf(t, path, false, bed.Settings{Rounds: 3, Within: time.Nanosecond, Only: "failover"})
	if err := r.inTurn(t.Context(), []*contender{c}); err != nil {
		t.Fatal(err)
	}
	if r.partOnce(t) || len(c.strikes) != 0 || c.made != 0 {
		t.Errorf("something was begun: %+v", c.strikes)
	}
	if last := r.Out.Rows[0]; last.Value != bed.NotMeasured || last.Note != "left for another piece" {
		t.Errorf("%+v", last)
	}
}

// A file is gone on with where it was begun, in the sizes that it has, and by one run at a time.
func TestResumeElsewhere(t *testing.T) {
	path := filepath.Join(t.TempDir(), "raw.jsonl")
	r, _ := pieceOf(t, path, false, bed.Settings{})
	if _, err := bed.OpenWhole(path); err == nil {
		t.Error("two runs write one file")
	}
	if err := r.Out.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := bed.CreateNew(path); err == nil || !strings.Contains(err.Error(), "--resume") {
		t.Errorf("a file that is there is begun anew: %v", err)
	}
	b, err := ReadBook(path)
	if err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*bed.Machine){
		"":                         func(*bed.Machine) {},
		"of another kind":          func(m *bed.Machine) { m.CPU += " of another kind" },
		"another machine":          func(m *bed.Machine) { m.ID = "another" },
		"with 2":                   func(m *bed.Machine) { m.MemoryBytes *= 2 },
		"with false":               func(m *bed.Machine) { m.Root, b.Pieces[0].Machine.Root = false, true },
		"on tape":                  func(m *bed.Machine) { m.FileSystem = "tape" },
		"postgres (PostgreSQL) 99": func(m *bed.Machine) { m.Versions = map[string]string{bed.Postgres: "postgres (PostgreSQL) 99"} },
	} {
		t.Run(name, func(t *testing.T) {
			if b, err = ReadBook(path); err != nil {
				t.Fatal(err)
			}
			b.Pieces[0].Machine.ID, b.Pieces[0].Machine.MemoryBytes = "this", 1<<30
			here := b.Pieces[0].Machine
			change(&here)
			if err := bed.SameSetting(b.Pieces, here, b.Pieces[0].Settings); (err == nil) != (name == "") {
				t.Errorf("%v", err)
			}
		})
	}
	later := bed.Machine{ID: "new", CPU: "x", MemoryBytes: 1 << 30}
	if how := later.Differs(bed.Machine{CPU: "x", MemoryBytes: 1<<30 + 1<<20}); how != "" {
		t.Errorf("a file without an identity is refused: %s", how)
	}
	sizes := func(s bed.Settings) error { return bed.SameSetting(b.Pieces, b.Pieces[0].Machine, s) }
	if sizes(bed.Settings{}) != nil || sizes(bed.Settings{Quick: true}) == nil || sizes(bed.Settings{Seconds: 9}) == nil {
		t.Error("rounds of other sizes are mixed")
	}
	if _, err := ReadBook(os.DevNull); err == nil {
		t.Error("nothing is a raw file")
	}
}

// The list counts what is left, by what it took so far.
func TestListFailovers(t *testing.T) {
	r := &comparison{Run: &bed.Run{Settings: bed.Settings{Only: "failover", Rounds: 2, Peers: NoPeers, Blocks: 6, Seconds: 1}}, book: NewBook()}
	each(r.book.side(about{Name: "Kurabe", Role: roleOwn}), losses, 1)
	for n := range r.book.tallies[0].strikes {
		r.book.tallies[0].strikes[n].Took = 60
	}
	r.book.parts[partPrice] = []bed.Row{{}}
	var out bytes.Buffer
	r.listFailovers(&out)
	lines := strings.Split(out.String(), "\n")
	find := func(prefix string) string {
		for _, line := range lines {
			if strings.HasPrefix(line, prefix) {
				return strings.Join(strings.Fields(line), " ")
			}
		}
		return ""
	}
	if got, want := find("Kurabe"), "Kurabe 8 losses, 8.0 min a round; 8 left: 8.0 min"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got, want := find(partPrice), partPrice+" 0.0 min"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if !strings.Contains(find("MariaDB"), "16 left") || find("all that is left") == "" {
		t.Errorf("%s", out.String())
	}
}
