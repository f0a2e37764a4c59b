package study

import (
	"encoding/json"
	"reflect"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func names(s *Study) (variants, workloads []string) {
	for _, v := range s.Variants {
		variants = append(variants, v.Name)
	}
	for _, w := range s.Workloads {
		workloads = append(workloads, w.Name)
	}
	return variants, workloads
}

func builtin(t *testing.T, name string) *Study {
	t.Helper()
	s, err := Builtin(name)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestQuick(t *testing.T) {
	q := Quick(builtin(t, "general-log"))
	v, w := names(q)
	if !slices.Equal(v, []string{"off", "file", "table-csv"}) || !slices.Equal(w, []string{"own"}) || q.Workloads[0].Scale != 2 {
		t.Errorf("%v %v %+v", v, w, q.Workloads)
	}
	want := Plan{BlocksMin: 6, BlocksMax: 6, Warm: Duration(time.Second), WarmMax: Duration(2 * time.Second), Measure: Duration(3 * time.Second)}
	if q.Plan != want {
		t.Errorf("%+v", q.Plan)
	}
	if q.Primary.Margin != 0.03 {
		t.Errorf("its margin is %v", q.Primary.Margin)
	}
	named := builtin(t, "general-log")
	named.Quick.Margin = 0.05
	if q := Quick(named); q.Primary.Margin != 0.05 {
		t.Errorf("the margin that it names became %v", q.Primary.Margin)
	}
	long := builtin(t, "general-log")
	long.Quick = nil
	if q := Quick(long); q.Plan.BlocksMax != DirectionBlocks || len(q.Workloads) != 2 {
		t.Errorf("a study without a section has %d blocks of %d workloads", q.Plan.BlocksMax, len(q.Workloads))
	}
	twin := Quick(WithTwin(builtin(t, "general-log")))
	if v, _ := names(twin); !slices.Equal(v, []string{"off", "off′", "file", "table-csv"}) {
		t.Errorf("the twin went: %v", v)
	}
}

func TestAsPublished(t *testing.T) {
	s := builtin(t, "scale")
	p, err := AsPublished(s)
	if err != nil {
		t.Fatal(err)
	}
	if p.Variants[0].Class != "db.r5.large" || p.Variants[3].StorageGiB != 600 || len(p.Variants) != 6 || p.Workloads[6].Scale != 1000 || p.Plan.Measure != Duration(5*time.Minute) {
		t.Errorf("%+v", p)
	}
	s.AsPublished = nil
	if _, err := AsPublished(s); err == nil {
		t.Error("a study that answers to nothing became as published")
	}
}

func TestScaled(t *testing.T) {
	s := &Study{Workloads: []Workload{{Scale: 10}, {Rows: 5}, {}, {Scale: ScaleMax}}}
	cases := []struct {
		name   string
		factor float64
		scales []int
		rows   int
	}{
		{"a tenth", 0.1, []int{1, 0, 0, ScaleMax / 10}, 1},
		{"a thousandth", 0.001, []int{1, 0, 0, ScaleMax / 1000}, 1},
		{"as it is", 1, []int{10, 0, 0, ScaleMax}, 5},
		{"three times", 3, []int{30, 0, 0, ScaleMax}, 15},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			out, err := Scaled(s, c.factor)
			if err != nil {
				t.Fatal(err)
			}
			var scales []int
			for _, w := range out.Workloads {
				scales = append(scales, w.Scale)
			}
			if !slices.Equal(scales, c.scales) || out.Workloads[1].Rows != c.rows {
				t.Errorf("%v, %d rows", scales, out.Workloads[1].Rows)
			}
		})
	}
	for _, factor := range []float64{0, -1, 1e9} {
		if _, err := Scaled(s, factor); err == nil {
			t.Errorf("%v was taken", factor)
		}
	}
}

func TestForEngine(t *testing.T) {
	s := builtin(t, "alter")
	pg, err := ForEngine(s, Postgres)
	if err != nil {
		t.Fatal(err)
	}
	v, _ := names(pg)
	if slices.Contains(v, "change-type-ptosc") || len(v) != 7 {
		t.Errorf("PostgreSQL has %v", v)
	}
	if change := pg.Variants[1].Change; len(change) != 1 || len(change[Postgres]) != 1 {
		t.Errorf("PostgreSQL adds an index by %v", change)
	}
	if _, err := ForEngine(builtin(t, "audit"), MariaDB); err == nil || err.Error() != "the study audit cannot be asked of mariadb: it is for postgres" {
		t.Errorf("%v", err)
	}
	logs, err := ForEngine(builtin(t, "general-log"), MySQL)
	if err != nil {
		t.Fatal(err)
	}
	if v, _ := names(logs); slices.Contains(v, "table-aria") || !slices.Contains(v, "table-myisam") {
		t.Errorf("MySQL has %v", v)
	}
}

func TestWithTwin(t *testing.T) {
	s := WithTwin(WithTwin(builtin(t, "proxy")))
	v, _ := names(s)
	if !slices.Equal(v, []string{"direct", "direct′", "pgbouncer", "haproxy", "service-proxy"}) || s.Variants[1].TwinOf != "direct" {
		t.Errorf("%v", v)
	}
	if left, _ := names(Without(s, "pgbouncer", "connect")); len(left) != 4 {
		t.Errorf("%v", left)
	}
}

// TestAdjustmentsArePure wants the study that they begin with to stay as it was.
func TestAdjustmentsArePure(t *testing.T) {
	each(t, func(t *testing.T, s *Study) {
		before, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		quick, published := s.Quick, s.AsPublished
		forms(t, s)
		Price(s, time.Second, nil)
		Without(s, s.Baseline)
		after, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		if string(before) != string(after) || s.Quick != quick || s.AsPublished != published {
			t.Errorf("%s\nbecame\n%s", before, after)
		}
	})
}

// TestStudySurvivesJSON: a resumed run reads its definition from the result file.
func TestStudySurvivesJSON(t *testing.T) {
	each(t, func(t *testing.T, s *Study) {
		s = WithTwin(s)
		data, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		var back Study
		if err := json.Unmarshal(data, &back); err != nil {
			t.Fatal(err)
		}
		back.Quick, back.AsPublished = s.Quick, s.AsPublished
		if !reflect.DeepEqual(&back, s) {
			t.Errorf("got  %+v\nwant %+v", &back, s)
		}
	})
}

func TestOrder(t *testing.T) {
	s := WithTwin(builtin(t, "alter"))
	rapid.Check(t, func(rt *rapid.T) {
		seed, block := rapid.Uint64().Draw(rt, "seed"), rapid.IntRange(1, BlocksMax).Draw(rt, "block")
		order := Order(s, seed, block)
		if !slices.Equal(order, Order(s, seed, block)) {
			rt.Fatal("the same seed and block gave two orders")
		}
		seen := map[Cell]int{}
		for _, c := range order {
			seen[c]++
		}
		for _, c := range Cells(s) {
			if seen[c] != 1 {
				rt.Fatalf("%v is there %d times", c, seen[c])
			}
		}
		if len(order) != len(Cells(s)) {
			rt.Fatalf("%d cells of %d", len(order), len(Cells(s)))
		}
	})
	if slices.Equal(Order(s, 1, 1), Order(s, 1, 2)) || slices.Equal(Order(s, 1, 1), Order(s, 2, 1)) {
		t.Error("another block or seed gave the same order")
	}
}

// TestOrderIsFair wants each cell first about equally often: of 6,000 blocks of three
// cells, 2,000 each with a deviation of 37; five of these never happen by chance.
func TestOrderIsFair(t *testing.T) {
	s := &Study{Engines: []string{Postgres}, Variants: []Variant{{Name: "a"}, {Name: "b"}, {Name: "c"}}, Workloads: []Workload{{Name: "w"}}}
	first := map[string]int{}
	for block := range 6000 {
		first[Order(s, 7, block)[0].Variant]++
	}
	for _, v := range s.Variants {
		if n := first[v.Name]; n < 2000-5*37 || n > 2000+5*37 {
			t.Errorf("%s was first %d times", v.Name, n)
		}
	}
}

// TestOrderStays: a run of an older build must resume, and its order be checked.
func TestOrderStays(t *testing.T) {
	s := &Study{Engines: []string{Postgres}, Variants: []Variant{{Name: "a"}, {Name: "b"}, {Name: "c"}, {Name: "d"}}, Workloads: []Workload{{Name: "w"}}}
	got := ""
	for _, c := range Order(s, 42, 3) {
		got += c.Variant
	}
	if got != "cdab" || TrialSeed(42, 3, "w") != 0x5e00667223088c0e {
		t.Errorf("%s %#x", got, TrialSeed(42, 3, "w"))
	}
}

func TestTrialSeed(t *testing.T) {
	seen := map[uint64]bool{}
	for block := 1; block <= 100; block++ {
		for _, workload := range []string{"a", "b", "ab", ""} {
			for _, seed := range []uint64{0, 1, 42} {
				n := TrialSeed(seed, block, workload)
				if seen[n] {
					t.Fatalf("%d %d %q has a seed of another trial", seed, block, workload)
				}
				seen[n] = true
			}
		}
	}
}

func TestCells(t *testing.T) {
	s := &Study{
		Engines:   []string{Postgres, MariaDB},
		Variants:  []Variant{{Name: "all"}, {Name: "pg", Engines: []string{Postgres}}},
		Workloads: []Workload{{Name: "both"}, {Name: "maria", Engines: []string{MariaDB}}},
	}
	if got, want := Cells(s), []Cell{{"all", "both"}, {"pg", "both"}, {"all", "maria"}}; !slices.Equal(got, want) {
		t.Errorf("%v", got)
	}
}

func TestStatements(t *testing.T) {
	by := map[string][]string{"": {"a"}, Postgres: {"b"}}
	if got := Statements(by, Postgres); !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("%v", got)
	}
	if got := Statements(by, MySQL); !slices.Equal(got, []string{"a"}) {
		t.Errorf("%v", got)
	}
}
