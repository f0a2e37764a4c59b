package study

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"
)

// valid is a whole study on few lines; cases replace a part of it.
const valid = `name: orders
question: What does it cost?
engines: [postgres]
primary: {metric: tps, margin: 0.03}
baseline: a
variants:
  - name: a
  - name: b
    parameters: {work_mem: 1}
workloads:
  - name: w
    generator: kurabe
    kit: tpcb-like
    mode: open
    rate: 100
    clients: 4
plan:
  blocks_min: 6
  blocks_max: 12
  warm: 1s
  warm_max: 2s
  measure: 10s
`

func metrics(name string) error {
	if name == "tps" || name == "resp_p95" || name == "resp_p95@during/idle" {
		return nil
	}
	return fmt.Errorf("%q is no metric", name)
}

// A workload is decided by its own primary metric, or by the study's.
func TestPrimaryOfAWorkload(t *testing.T) {
	text := strings.Replace(valid, "baseline: a", "metrics: [resp_p95]\nbaseline: a", 1)
	own := strings.Replace(text, "    kit: tpcb-like", "    primary: {metric: resp_p95, margin: 0.1}\n    kit: tpcb-like", 1)
	for text, want := range map[string]struct {
		primary Primary
		metrics []string
	}{
		text: {Primary{"tps", 0.03}, []string{"tps", "resp_p95"}}, own: {Primary{"resp_p95", 0.1}, []string{"resp_p95", "tps"}},
	} {
		s, err := Parse("orders.yaml", []byte(text), Options{CheckMetric: metrics})
		if err != nil {
			t.Fatal(err)
		}
		if got := s.PrimaryOf("w"); got != want.primary || !slices.Equal(s.MetricsOf("w"), want.metrics) {
			t.Errorf("%+v, %v, want %+v", got, s.MetricsOf("w"), want)
		}
		if got := s.PrimaryOf("another"); got != (Primary{"tps", 0.03}) {
			t.Errorf("the study's is %+v", got)
		}
	}
}

func TestParse(t *testing.T) {
	s, err := Parse("orders.yaml", []byte(valid), Options{CheckMetric: metrics})
	if err != nil {
		t.Fatal(err)
	}
	want := &Study{
		Name: "orders", Question: "What does it cost?", Engines: []string{Postgres}, Primary: Primary{"tps", 0.03}, Baseline: "a",
		Variants:  []Variant{{Name: "a"}, {Name: "b", Parameters: map[string]string{"work_mem": "1"}}},
		Workloads: []Workload{{Name: "w", Generator: GeneratorOwn, Kit: "tpcb-like", Mode: ModeOpen, Rate: 100, Arrival: ArrivalPoisson, Clients: 4}},
		Plan:      Plan{BlocksMin: 6, BlocksMax: 12, Warm: Duration(time.Second), WarmMax: Duration(2 * time.Second), Measure: Duration(10 * time.Second)},
	}
	if !reflect.DeepEqual(s, want) {
		t.Errorf("got  %+v\nwant %+v", s, want)
	}
}

// changed is what a variant needs in a study with changes.
var changed = strings.NewReplacer("  - name: a\n", "  - name: a\n    change: {\"\": [SELECT 1]}\n", "    parameters: {work_mem: 1}\n", "    change: {\"\": [\"DROP TABLE {table}\"]}\n",
	"kit: tpcb-like", "kit: writers\n    rows: 10", "  measure: 10s\n", "  measure: 10s\n  during_min: 1s\n  after: 1s\n").Replace(valid)

func TestParseWhole(t *testing.T) {
	cases := []struct{ name, text, want string }{
		{"empty", "", "o.yaml:1:1: the file is empty; `kurabe lab init` writes one to begin with"},
		{"comments only", "# nothing\n", "o.yaml:1:1: the file is empty; `kurabe lab init` writes one to begin with"},
		{"a list", "- a\n", "o.yaml:1:1: a study is a mapping, lines of `key: value`; `kurabe lab init` writes one to begin with"},
		{"a word", "study\n", "o.yaml:1:1: a study is a mapping, lines of `key: value`; `kurabe lab init` writes one to begin with"},
		{"two documents", valid + "---\n" + valid, "o.yaml:23:1: a second document; a file holds one study"},
		{"not YAML", "name: a\n\tb: c\n", "o.yaml:2:1: not YAML: found a tab character that violates indentation"},
		{"too large", strings.Repeat("#", SizeMax+1), "o.yaml:1:1: the file has 1048577 bytes; 1048576 are read at the most"},
		{"an alias", strings.Replace(valid, "baseline: a", "baseline: &x a\nmetrics: [*x]", 1),
			"o.yaml:5:1: baseline: anchors (&x) are not read; write it out where it is wanted\no.yaml:6:11: metrics[0]: aliases (*x) are not read; write it out"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			_, err := Parse("o.yaml", []byte(c.text), Options{})
			if fmt.Sprint(err) != c.want {
				t.Errorf("got  %v\nwant %s", err, c.want)
			}
		})
	}
}

func TestParseTellsAll(t *testing.T) {
	text := strings.NewReplacer("mode: open", "mode: opne", "margin: 0.03", "margin: 2", "measure: 10s", "measure: 1").Replace(valid)
	_, err := Parse("o.yaml", []byte(text), Options{})
	var all Problems
	if !errors.As(err, &all) || len(all) != 3 || all[0].Line != 4 || all[1].Line != 14 || all[2].Line != 22 {
		t.Errorf("three problems in the order of the file are wanted, not\n%v", err)
	}
	many := valid
	for i := range 50 {
		many += fmt.Sprintf("x%d: 1\n", i)
	}
	_, err = Parse("o.yaml", []byte(many), Options{})
	if lines := strings.Split(err.Error(), "\n"); len(lines) != problemsMax+1 || lines[problemsMax] != "and 30 more" {
		t.Errorf("the error has %d lines, the last %q", len(lines), lines[len(lines)-1])
	}
}

func TestParseAliasBomb(t *testing.T) {
	var b strings.Builder
	b.WriteString("a0: &a0 [x,x,x,x,x,x,x,x,x]\n")
	for i := 1; i < 30; i++ {
		fmt.Fprintf(&b, "a%d: &a%d [*a%d,*a%d,*a%d,*a%d,*a%d,*a%d,*a%d,*a%d,*a%d]\n", i, i, i-1, i-1, i-1, i-1, i-1, i-1, i-1, i-1, i-1)
	}
	b.WriteString(strings.Replace(valid, "engines: [postgres]", "engines: *a29", 1))
	if _, err := Parse("o.yaml", []byte(b.String()), Options{}); err == nil {
		t.Error("nine to the thirtieth items were read")
	}
}

func TestDuration(t *testing.T) {
	cases := map[string]string{"90s": "1m30s", "5m": "5m", "1h": "1h", "1h30m": "1h30m", "250ms": "250ms", "0s": "0s", "60m0s": "1h", "10s": "10s"}
	for in, want := range cases {
		t.Run(in, func(t *testing.T) {
			var fromJSON, fromYAML struct{ D Duration }
			if err := json.Unmarshal([]byte(`{"D":"`+in+`"}`), &fromJSON); err != nil {
				t.Fatal(err)
			}
			if err := yaml.Unmarshal([]byte("d: "+in), &fromYAML); err != nil {
				t.Fatal(err)
			}
			j, err := json.Marshal(fromJSON)
			if err != nil || string(j) != `{"D":"`+want+`"}` {
				t.Errorf("JSON %s, %v", j, err)
			}
			y, err := yaml.Marshal(fromYAML)
			if err != nil || string(y) != "d: "+want+"\n" {
				t.Errorf("YAML %s, %v", y, err)
			}
		})
	}
	for _, in := range []string{"", "0", "5", "5 s", "s", "1d", "never"} {
		if err := new(Duration).UnmarshalText([]byte(in)); err == nil {
			t.Errorf("%q was read", in)
		}
	}
}
