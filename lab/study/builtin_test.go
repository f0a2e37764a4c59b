package study

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

var update = flag.Bool("update", false, "write the golden files anew")

// each gives every built-in study and the template.
func each(t *testing.T, test func(t *testing.T, s *Study)) {
	for _, name := range Builtins() {
		t.Run(name, func(t *testing.T) {
			s, err := Builtin(name)
			if err != nil {
				t.Fatal(err)
			}
			if s.Name != name {
				t.Errorf("its name is %q", s.Name)
			}
			test(t, s)
		})
	}
	t.Run("template", func(t *testing.T) {
		s, err := Parse("template.yaml", Template(), Options{})
		if err != nil {
			t.Fatal(err)
		}
		test(t, s)
	})
}

// forms are a study as it is, quick, as published, larger and smaller, each for each of
// its engines and with its twin.
func forms(t *testing.T, s *Study) map[string]*Study {
	t.Helper()
	all := map[string]*Study{"": s}
	if p, err := AsPublished(s); err == nil {
		all["as-published "] = p
	}
	for _, factor := range []float64{0.001, 0.5, 3} {
		scaled, err := Scaled(s, factor)
		if err != nil {
			t.Fatal(err)
		}
		all[fmt.Sprint("times ", factor, " ")] = scaled
	}
	blocks, err := WithBlocks(s, 7)
	if err != nil {
		t.Fatal(err)
	}
	all["7 blocks "] = blocks
	out := map[string]*Study{"quick": Quick(s)}
	for name, form := range all {
		for _, engine := range s.Engines {
			one, err := ForEngine(form, engine)
			if err != nil {
				t.Fatal(err)
			}
			out[name+engine] = WithTwin(one)
			if name == "" {
				out["quick "+engine] = WithTwin(Quick(one))
			}
		}
	}
	return out
}

func TestBuiltins(t *testing.T) {
	if want := []string{"audit", "scale", "general-log", "alter", "proxy"}; !slices.Equal(Builtins(), want) {
		t.Errorf("%v", Builtins())
	}
	if _, err := Builtin("nothing"); err == nil || !strings.Contains(err.Error(), "audit, scale, general-log, alter, proxy") {
		t.Errorf("%v", err)
	}
	each(t, func(t *testing.T, s *Study) {
		for name, f := range forms(t, s) {
			if err := Check(f, Options{}); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			if len(Cells(f)) < 2 {
				t.Errorf("%s: nothing to compare", name)
			}
		}
	})
}

// Clients × classes × IOPS: a class is measured with each number of IOPS, here and in the
// sizes that were published.
func TestScaleIsAGrid(t *testing.T) {
	s := builtin(t, "scale")
	published, err := AsPublished(s)
	if err != nil {
		t.Fatal(err)
	}
	for _, form := range []*Study{s, published} {
		classes, iops, cells := map[string]bool{}, map[int]bool{}, map[string]bool{}
		for _, v := range form.Variants {
			classes[v.Class], iops[v.IOPS] = true, true
			cells[fmt.Sprint(v.Class, v.IOPS)] = true
		}
		if len(classes) != 3 || len(iops) != 2 || len(cells) != 6 || len(form.Variants) != 6 {
			t.Errorf("%d classes, %d numbers of IOPS, %d variants", len(classes), len(iops), len(form.Variants))
		}
	}
}

// MariaDB is asked for each way that it has of making a change; a rebuild is forced, as
// INPLACE alone is instant where that is possible.
func TestAlterOnMariaDB(t *testing.T) {
	s, err := ForEngine(builtin(t, "alter"), MariaDB)
	if err != nil {
		t.Fatal(err)
	}
	ways := map[string]string{
		"add-column-instant": "ALGORITHM=INSTANT", "drop-column-instant": "ALGORITHM=INSTANT", "rename-column-instant": "ALGORITHM=INSTANT",
		"add-column-inplace": "FORCE, ALGORITHM=INPLACE", "drop-column-inplace": "FORCE, ALGORITHM=INPLACE", "add-index-recommended": "ALGORITHM=NOCOPY",
	}
	tools := 0
	for _, v := range s.Variants {
		var statements []string
		for _, list := range v.Change {
			statements = append(statements, list...)
		}
		if last := statements[len(statements)-1]; !strings.Contains(last, ways[v.Name]) {
			t.Errorf("%s: %s", v.Name, last)
		}
		delete(ways, v.Name)
		if v.Tool != "" {
			tools++
		}
		if v.Name != s.Baseline && len(v.Changed) == 0 {
			t.Errorf("%s: nobody asks whether it was made", v.Name)
		}
	}
	if len(ways) > 0 || tools != 2 {
		t.Errorf("no variants %v, %d by a tool", ways, tools)
	}
	if p := Price(WithTwin(s), QuickReset, nil); p.TotalMax > 5*time.Hour {
		t.Errorf("it takes up to %v", p.TotalMax)
	} else {
		t.Logf("%d trials, %v to %v", p.TrialsMax, p.TotalMin, p.TotalMax)
	}
}

func TestQuickIsQuick(t *testing.T) {
	blocks := map[string]int{"audit": 6, "scale": 3, "general-log": 6, "alter": 6, "proxy": 6, "my-study": 6}
	each(t, func(t *testing.T, s *Study) {
		for _, engine := range s.Engines {
			one, err := ForEngine(s, engine)
			if err != nil {
				t.Fatal(err)
			}
			q := Quick(one)
			price := Price(WithTwin(q), QuickReset, nil)
			if price.TotalMin > QuickTotal || price.TotalMax > 3*time.Minute {
				t.Errorf("%s takes %v to %v", engine, price.TotalMin, price.TotalMax)
			}
			if q.Plan.BlocksMin != blocks[s.Name] || q.Plan.BlocksMax != q.Plan.BlocksMin {
				t.Errorf("%s has %d to %d blocks", engine, q.Plan.BlocksMin, q.Plan.BlocksMax)
			}
		}
	})
}

func TestPublished(t *testing.T) {
	rows := map[string]int{"audit": 4, "scale": 1, "general-log": 8, "alter": 18 + 24, "proxy": 2}
	each(t, func(t *testing.T, s *Study) {
		if len(s.Published) != rows[s.Name] {
			t.Errorf("%d rows", len(s.Published))
		}
	})
}

// TestTemplateExplains wants every key that a study can have in the template.
func TestTemplateExplains(t *testing.T) {
	text := string(Template())
	seen := map[reflect.Type]bool{}
	var visit func(reflect.Type)
	visit = func(of reflect.Type) {
		for of.Kind() == reflect.Pointer || of.Kind() == reflect.Slice {
			of = of.Elem()
		}
		if of.Kind() != reflect.Struct || seen[of] {
			return
		}
		seen[of] = true
		keys, _ := keysOf(of)
		for i, key := range keys {
			if key != "-" && !strings.Contains(text, key+":") {
				t.Errorf("the template does not explain %s of %s", key, of.Name())
			}
			visit(of.Field(i).Type)
		}
	}
	visit(reflect.TypeFor[Study]())
	for _, generator := range []string{GeneratorOwn, GeneratorPgbench, GeneratorSysbench} {
		for _, kit := range Kits(generator) {
			if !strings.Contains(text, kit) {
				t.Errorf("the template does not name the kit %s", kit)
			}
		}
	}
}

func TestPriceGolden(t *testing.T) {
	each(t, func(t *testing.T, s *Study) {
		one, err := ForEngine(s, s.Engines[0])
		if err != nil {
			t.Fatal(err)
		}
		var b strings.Builder
		fmt.Fprintf(&b, "%s\n\n--quick: %s", Price(WithTwin(one), 1500*time.Millisecond, nil), Price(WithTwin(Quick(one)), QuickReset, []float64{0.02, 0.1}))
		golden(t, filepath.Join("testdata", "price", s.Name), b.String())
	})
}

func golden(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs (make golden writes it anew); got\n%s", path, got)
	}
}
