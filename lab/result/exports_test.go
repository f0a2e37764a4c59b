package result_test

import (
	"bytes"
	"encoding/csv"
	"errors"
	"math"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"kurabe/lab/result"
	"kurabe/lab/result/resulttest"
	"kurabe/lab/stat"
)

// The Go benchmark data format, as its proposal and the reader of x/perf have it.
var (
	configLine = regexp.MustCompile(`^[a-z][^\sA-Z:]*: [^\n]+$`)
	unitLine   = regexp.MustCompile(`^Unit [^\s]+ better=(higher|lower)$`)
	benchLine  = regexp.MustCompile(`^Benchmark\p{Lu}[^\s/=]*(/[^\s/=]+=[^\s/=]*)*-[1-9][0-9]* [1-9][0-9]*( [0-9][0-9.e+-]* [^\s]+)+$`)
)

// benchResult is a line taken apart.
type benchResult struct {
	name   string
	values map[string]float64
}

func parseBench(t *testing.T, text string) (config map[string]string, units map[string]string, results []benchResult) {
	t.Helper()
	config, units = map[string]string{}, map[string]string{}
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		fields := strings.Fields(line)
		switch {
		case benchLine.MatchString(line):
			r := benchResult{fields[0], map[string]float64{}}
			for i := 2; i < len(fields); i += 2 {
				x, err := strconv.ParseFloat(fields[i], 64)
				if err != nil || math.IsNaN(x) {
					t.Fatalf("%s: %v", line, err)
				}
				r.values[fields[i+1]] = x
			}
			results = append(results, r)
		case unitLine.MatchString(line):
			units[fields[1]] = fields[2]
		case configLine.MatchString(line):
			key, value, _ := strings.Cut(line, ": ")
			config[key] = value
		default:
			t.Fatalf("no line of the format: %q", line)
		}
	}
	return config, units, results
}

func TestWriteBenchfmt(t *testing.T) {
	for name, o := range map[string]resulttest.Options{"general-log": {Blocks: 7}, "alter": {Alter: true, Blocks: 6}, "only begun": {Blocks: -1}} {
		t.Run(name, func(t *testing.T) {
			f := resulttest.File(1, o)
			var out bytes.Buffer
			if err := result.WriteBenchfmt(&out, f); err != nil {
				t.Fatal(err)
			}
			config, units, results := parseBench(t, out.String())
			if config["goos"] != "linux" || config["goarch"] != "amd64" || config["cpu"] != "Example 4210 @ 2.20GHz" || config["pkg"] != "kurabe/lab/"+f.Study.Definition.Name {
				t.Errorf("%v", config)
			}
			counted := 0
			for i := range f.Trials {
				if f.Trials[i].Counts() {
					counted++
				}
			}
			if len(results) != counted {
				t.Errorf("%d lines for %d trials that count", len(results), counted)
			}
			for _, r := range results {
				for unit := range r.values {
					if units[unit] == "" {
						t.Fatalf("%s has no direction", unit)
					}
				}
			}
			if counted > 0 && !strings.Contains(results[0].name, "/variant="+f.Study.Definition.Baseline+"-") {
				t.Errorf("the first line is not the baseline's: %s", results[0].name)
			}
		})
	}
}

func TestWriteBenchfmtSaysWhatValueSays(t *testing.T) {
	f := resulttest.File(2, resulttest.Options{Alter: true, Blocks: 1, Clean: true})
	var out bytes.Buffer
	if err := result.WriteBenchfmt(&out, f); err != nil {
		t.Fatal(err)
	}
	_, units, results := parseBench(t, out.String())
	got := map[string]map[string]float64{}
	for _, r := range results {
		got[r.name] = r.values
	}
	for i := range f.Trials {
		trial := &f.Trials[i]
		name := "BenchmarkWriters-4/variant=" + trial.Variant + "-4"
		if trial.Workload == "writers-8" {
			name = "BenchmarkWriters-8/variant=" + trial.Variant + "-8"
		}
		for metric, unit := range map[string]string{"resp_p95@during/idle": "resp_p95@during:idle", "tps@idle": "tps@idle", "serv_avg@after": "serv_avg@after-ms", "change_s": "change_s-s"} {
			want, ok := result.Value(trial, metric)
			if x, has := got[name][unit]; !ok || !has || x != want {
				t.Errorf("%s of %s is %v (%v), want %v", unit, name, x, has, want)
			}
		}
	}
	if units["tps@idle"] != "better=higher" || units["change_s-s"] != "better=lower" {
		t.Errorf("%v", units)
	}
}

// Names come from people's own study files.
func TestWriteBenchfmtEscapes(t *testing.T) {
	for name, want := range map[string]string{
		"on":            "BenchmarkOn/variant=on-4",
		"On":            "BenchmarkOn/variant=On-4",
		"two words":     "BenchmarkTwo%20words/variant=two%20words-4",
		"a/b=c%\n":      "BenchmarkA%2Fb%3Dc%25%0A/variant=a%2Fb%3Dc%25%0A-4",
		"c-32":          "BenchmarkC-32/variant=c-32-4",
		"32":            "BenchmarkX_32/variant=32-4",
		"表":             "BenchmarkX_表/variant=表-4",
		"é":             "BenchmarkÉ/variant=é-4",
		"no-\xffutf":    "BenchmarkNo-%FFutf/variant=no-%FFutf-4",
		"\u00a0\u2028x": "BenchmarkX_%C2%A0%E2%80%A8x/variant=%C2%A0%E2%80%A8x-4",
	} {
		f := resulttest.File(1, resulttest.Options{Blocks: 1, Clean: true})
		d := &f.Study.Definition
		d.Baseline, d.Variants[0].Name = name, name
		d.Workloads[0].Name, d.Workloads[0].Clients = name, 4
		for i := range f.Trials {
			f.Trials[i].Variant, f.Trials[i].Workload = name, name
		}
		f.Env[0].Host["cpu"] = "one\nBenchmarkTwo 1 2 x"
		var out bytes.Buffer
		if err := result.WriteBenchfmt(&out, f); err != nil {
			t.Fatal(err)
		}
		config, _, results := parseBench(t, out.String())
		if len(results) != len(f.Trials) || results[0].name != want {
			t.Errorf("%q became %q", name, results[0].name)
		}
		if config["cpu"] != "one BenchmarkTwo 1 2 x" {
			t.Errorf("%v", config)
		}
	}
}

func TestWriteCSV(t *testing.T) {
	f := resulttest.File(1, resulttest.Options{Alter: true, Blocks: 3})
	var out bytes.Buffer
	if err := result.WriteCSV(&out, f); err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(&out).ReadAll() // refuses rows of other lengths
	if err != nil {
		t.Fatal(err)
	}
	if len(rows) != len(f.Trials)+1 {
		t.Fatalf("%d rows for %d trials", len(rows), len(f.Trials))
	}
	for i := range f.Trials {
		trial, row := &f.Trials[i], rows[i+1]
		if row[3] != trial.Variant || row[7] != trial.Status || row[9] != trial.Reason {
			t.Errorf("row %d: %v", i, row[:10])
		}
		sheet := result.NewSheet(trial)
		for k, metric := range rows[0][10:] {
			want, ok := sheet.Value(metric)
			if !ok && row[10+k] == "" {
				continue
			}
			if got, err := strconv.ParseFloat(row[10+k], 64); err != nil || !ok || got != want {
				t.Fatalf("%s of trial %d is %q, want %v (%v)", metric, i+1, row[10+k], want, ok)
			}
		}
	}
	header := strings.Join(rows[0], ",")
	for _, name := range []string{"change_s", "tps@idle", "resp_p95@during", "gap_max@during", "tps@after", "resp_p95@during/idle"} {
		if !strings.Contains(header, name) {
			t.Errorf("%s is not in %s", name, header)
		}
	}
}

func TestWriteEstimatesCSV(t *testing.T) {
	f := resulttest.File(1, resulttest.Options{})
	var out bytes.Buffer
	if err := result.WriteEstimatesCSV(&out, f, 0.95); err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(&out).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	estimates, err := result.Estimates(f, 0.95)
	if err != nil {
		t.Fatal(err)
	}
	if len(rows) != 1+6*2 || rows[0][0] != "time" || rows[1][0] != "2026-11-21T09:00:00Z" {
		t.Fatalf("%d rows, %v", len(rows), rows[0])
	}
	column := map[string]int{}
	for i, name := range rows[0] {
		column[name] = i
	}
	for _, e := range estimates {
		for _, row := range rows[1:] {
			if row[column["variant"]] != e.Variant || row[column["workload"]] != e.Workload {
				continue
			}
			for name, want := range map[string]float64{".ratio": e.Ratio.Estimate, ".low": e.Ratio.Interval.Low, ".high": e.Ratio.Interval.High, ".median": e.B} {
				text := row[column[e.Metric+name]]
				if math.IsNaN(want) {
					if text != "" {
						t.Errorf("%s%s is %q, though there is none", e.Metric, name, text)
					}
				} else if got, err := strconv.ParseFloat(text, 64); err != nil || got != want {
					t.Errorf("%s%s is %q, want %v", e.Metric, name, text, want)
				}
			}
			if e.Primary && row[column["verdict"]] != strings.ReplaceAll(string(e.Verdict), " ", "-") {
				t.Errorf("verdict %q", row[column["verdict"]])
			}
		}
	}
}

// full is a writer without room.
type full struct{}

var errFull = errors.New("no space left")

func (full) Write([]byte) (int, error) { return 0, errFull }

func TestExportsTellOfFailedWrites(t *testing.T) {
	f := resulttest.File(1, resulttest.Options{Blocks: 2})
	for name, err := range map[string]error{
		"benchfmt": result.WriteBenchfmt(full{}, f), "csv": result.WriteCSV(full{}, f), "estimates": result.WriteEstimatesCSV(full{}, f, 0.95),
	} {
		if !errors.Is(err, errFull) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A study of known effect: the estimates say what was put in.
func TestEstimatesFindWhatIsThere(t *testing.T) {
	f := resulttest.File(3, resulttest.Options{Effect: map[string]float64{"file": 0.9, "slow-log": 1, "table-csv": 1.2}})
	all, err := result.Estimates(f, 0.95)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]struct {
		ratio   float64
		verdict stat.Verdict
	}{
		"off′": {1, stat.NoMaterialCost}, "file": {0.9, stat.Costs}, "slow-log": {1, stat.NoMaterialCost}, "table-csv": {1.2, stat.Improves},
		"table-myisam": {0.7, stat.Costs}, "table-aria": {0.68, stat.Costs},
	}
	seen := 0
	for _, e := range all {
		if !e.Primary {
			continue
		}
		seen++
		w := want[e.Variant]
		if math.Abs(e.Ratio.Estimate/w.ratio-1) > 0.02 || e.Verdict != w.verdict || e.Ratio.Pairs != 12 {
			t.Errorf("%s under %s: %v %s, want %v %s", e.Variant, e.Workload, e.Ratio, e.Verdict, w.ratio, w.verdict)
		}
	}
	if seen != 2*len(want) {
		t.Errorf("%d estimates of the primary metric", seen)
	}
}

// What is computed from a file that was written and read is what was computed before.
func TestEstimatesAreTheSameAfterReading(t *testing.T) {
	for _, o := range []resulttest.Options{{Blocks: 2}, {Alter: true, Blocks: 1}} {
		f := resulttest.File(5, o)
		path := filepath.Join(t.TempDir(), "study.jsonl")
		if err := resulttest.Write(path, f); err != nil {
			t.Fatal(err)
		}
		back, err := result.Read(path)
		if err != nil {
			t.Fatal(err)
		}
		var a, b bytes.Buffer
		if err := errors.Join(result.WriteEstimatesCSV(&a, f, 0.95), result.WriteEstimatesCSV(&b, back, 0.95)); err != nil {
			t.Fatal(err)
		}
		if a.String() != b.String() {
			t.Error("the estimates differ")
		}
	}
}
