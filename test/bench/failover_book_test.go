package main

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
)

// pieceOf is a run into a file, or a further one, with one side whose losses take a moment.
func pieceOf(t *testing.T, path string, resume bool, s settings) (*run, *contender) {
	t.Helper()
	s.out, s.dir = path, t.TempDir()
	b := newBook()
	if resume {
		s.Resume = path
		var err error
		if b, err = readBook(path); err != nil {
			t.Fatal(err)
		}
	}
	r := &run{settings: s, rng: rand.New(rand.NewPCG(s.Seed, 0)), book: b, began: time.Now()}
	var err error
	if r.out, err = openReport(t.Context(), s, b); err != nil {
		t.Fatal(err)
	}
	first := fakeLoss(writerKilled.name, func(*fakeSide) (float64, error) { return 0.25, nil })
	second := fakeLoss(inOrder.name, func(f *fakeSide) (float64, error) { f.lost = append(f.lost, 7); return 0.5, nil })
	c, _, _ := fakeContender(r, []*loss{first, second})
	return r, c
}

func (r *run) partOnce(t *testing.T) (measured bool) {
	t.Helper()
	nowhere := func(context.Context) (*lab, error) { return nil, nil }
	err := r.once(t.Context(), partPrice, nowhere, func(context.Context, *lab) error {
		measured = true
		r.out.row(row{What: "the price", Value: "0.7"})
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
	r, c := pieceOf(t, path, false, settings{Rounds: 1, Only: "failover"})
	if err := r.inTurn(t.Context(), []*contender{c}); err != nil {
		t.Fatal(err)
	}
	if !r.partOnce(t) {
		t.Error("the part was not measured")
	}
	if err := r.out.close(); err != nil {
		t.Fatal(err)
	}
	cut, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	cut.WriteString(`{"t":"strike","strike":{"side":"Kur`)
	cut.Close()

	r, c = pieceOf(t, path, true, settings{Rounds: 3, Only: "failover"})
	if n := len(c.strikes); n != 2 {
		t.Fatalf("%d strikes were taken over", n)
	}
	if err := r.inTurn(t.Context(), []*contender{c}); err != nil {
		t.Fatal(err)
	}
	if r.partOnce(t) {
		t.Error("the part was measured again")
	}
	if err := r.out.close(); err != nil {
		t.Fatal(err)
	}

	b, err := readBook(path)
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
	if len(b.pieces) != 2 || len(b.parts[partPrice]) != 1 {
		t.Errorf("%d pieces, parts %v", len(b.pieces), b.parts)
	}

	if err := figuresOnly(settings{Resume: path}); err != nil {
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
	r, c := pieceOf(t, path, false, settings{Rounds: 3, Within: time.Nanosecond, Only: "failover"})
	if err := r.inTurn(t.Context(), []*contender{c}); err != nil {
		t.Fatal(err)
	}
	if r.partOnce(t) || len(c.strikes) != 0 || c.made != 0 {
		t.Errorf("something was begun: %+v", c.strikes)
	}
	if last := r.out.rows[0]; last.Value != notMeasured || last.Note != "left for another piece" {
		t.Errorf("%+v", last)
	}
}

// A file is gone on with where it was begun, in the sizes that it has, and by one run at a time.
func TestResumeElsewhere(t *testing.T) {
	path := filepath.Join(t.TempDir(), "raw.jsonl")
	r, _ := pieceOf(t, path, false, settings{})
	if _, err := openWhole(path); err == nil {
		t.Error("two runs write one file")
	}
	if err := r.out.close(); err != nil {
		t.Fatal(err)
	}
	if _, err := createNew(path); err == nil || !strings.Contains(err.Error(), "--resume") {
		t.Errorf("a file that is there is begun anew: %v", err)
	}
	b, err := readBook(path)
	if err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*machine){
		"":                         func(*machine) {},
		"of another kind":          func(m *machine) { m.CPU += " of another kind" },
		"another machine":          func(m *machine) { m.ID = "another" },
		"with 2":                   func(m *machine) { m.MemoryBytes *= 2 },
		"with false":               func(m *machine) { m.Root, b.pieces[0].Machine.Root = false, true },
		"on tape":                  func(m *machine) { m.FileSystem = "tape" },
		"postgres (PostgreSQL) 99": func(m *machine) { m.Versions = map[string]string{postgres: "postgres (PostgreSQL) 99"} },
	} {
		t.Run(name, func(t *testing.T) {
			if b, err = readBook(path); err != nil {
				t.Fatal(err)
			}
			b.pieces[0].Machine.ID, b.pieces[0].Machine.MemoryBytes = "this", 1<<30
			here := b.pieces[0].Machine
			change(&here)
			if err := b.sameMachine(here); (err == nil) != (name == "") {
				t.Errorf("%v", err)
			}
		})
	}
	later := machine{ID: "new", CPU: "x", MemoryBytes: 1 << 30}
	if how := later.differs(machine{CPU: "x", MemoryBytes: 1<<30 + 1<<20}); how != "" {
		t.Errorf("a file without an identity is refused: %s", how)
	}
	if b.sameSizes(settings{}) != nil || b.sameSizes(settings{Quick: true}) == nil || b.sameSizes(settings{Seconds: 9}) == nil {
		t.Error("rounds of other sizes are mixed")
	}
	if _, err := readBook(os.DevNull); err == nil {
		t.Error("nothing is a raw file")
	}
}

// The list counts what is left, by what it took so far.
func TestListFailovers(t *testing.T) {
	r := &run{settings: settings{Only: "failover", Rounds: 2, Peers: noPeers, Blocks: 6, Seconds: 1}, book: newBook()}
	each(r.book.side(about{Name: "Kurabe", Role: roleOwn}), losses, 1)
	for n := range r.book.tallies[0].strikes {
		r.book.tallies[0].strikes[n].Took = 60
	}
	r.book.parts[partPrice] = []row{{}}
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
