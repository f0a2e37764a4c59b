package study

import (
	"encoding/json"
	"errors"
	"testing"
)

// sections are those that valid has not.
const sections = `metrics: [resp_p95]
workloads:
  - {name: s, generator: kurabe, script: SELECT 1, setup: {postgres: [SELECT 2]}, protocol: prepared, connect: true, mode: series, clients: 1, requests: 9, scale: 2}
  - {name: p, generator: sysbench, engines: [mysql], kit: oltp_insert, mode: closed, clients: 1, rows: 9}
published: [{source: s, variant: a, workload: w, label: l, values: {ratio: 1}}]
quick: {scale: 0.5, variants: [a], workloads: [s], plan: {measure: 2s}}
as_published: {put_variants: [{name: a, iops: 5, storage_type: io1, class: db.t3.micro}], put_workloads: []}
`

// FuzzParse wants of every input a study that passes its own checks and survives JSON, or
// problems that say where they are. The seeds are small: of one as long as a built-in
// study the fuzzer spends its time on making it shorter.
func FuzzParse(f *testing.F) {
	f.Add([]byte(valid))
	f.Add([]byte(changed))
	f.Add([]byte(sections))
	f.Add([]byte("a: &a [*a]\n<<: *a\n? [x]\n: y\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := Parse("f.yaml", data, Options{CheckMetric: metrics})
		if err != nil {
			var all Problems
			if !errors.As(err, &all) || len(all) == 0 {
				t.Fatalf("%T: %v", err, err)
			}
			for _, p := range all {
				if p.File != "f.yaml" || p.Line < 1 || p.Column < 1 || p.Text == "" {
					t.Fatalf("%+v", p)
				}
			}
			return
		}
		if err := Check(s, Options{CheckMetric: metrics}); err != nil {
			t.Fatal(err)
		}
		for _, engine := range s.Engines {
			one, err := ForEngine(s, engine)
			if err != nil {
				t.Fatal(err)
			}
			if err := Check(Quick(one), Options{}); err != nil {
				t.Fatalf("quick: %v", err)
			}
			if p, err := AsPublished(one); err == nil {
				if err := Check(p, Options{}); err != nil {
					t.Fatalf("as published: %v", err)
				}
			}
			if len(Order(WithTwin(one), 1, 1)) < 2 {
				t.Fatal("no cell and its twin")
			}
		}
		data, err = json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		var back Study
		if err := json.Unmarshal(data, &back); err != nil {
			t.Fatal(err)
		}
	})
}
