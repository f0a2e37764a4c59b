package result_test

import (
	"encoding/csv"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"kurabe/lab/result"
	"kurabe/lab/result/resulttest"
	"kurabe/lab/stat"
)

// The real benchstat reads the export, takes the variants for columns and the baseline
// for what they are compared with, and finds the medians of the trials.
func TestBenchstatReadsTheExport(t *testing.T) {
	f := resulttest.File(1, resulttest.Options{Blocks: 7})
	path := filepath.Join(t.TempDir(), "trials.txt")
	out, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := result.WriteBenchfmt(out, f); err != nil {
		t.Fatal(err)
	}
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
	rows := benchstat(t, path)
	variants := []string{"off", "off′", "file", "table-csv", "table-myisam", "table-aria", "slow-log"}
	for metric, unit := range map[string]string{"tps": "tps", "resp_p95": "resp_p95-ms"} {
		header, row := tableOf(t, rows, unit, "Own-8")
		for n, variant := range variants {
			column := indexOf(header, variant)
			if column < 0 {
				t.Fatalf("%s has no column of %s in %v", unit, variant, header)
			}
			got, err := strconv.ParseFloat(row[column], 64)
			if want := stat.Median(counted(f, "own", variant, metric)); err != nil || math.Abs(got/want-1) > 1e-9 {
				t.Errorf("%s of %s is %v, want %v (%v)", unit, variant, got, want, err)
			}
			if n > 0 && indexOf(header[:column], "off") < 0 {
				t.Errorf("%s does not stand after the baseline: %v", variant, header)
			}
		}
	}
}

// benchstat gives the cells that the tool prints.
func benchstat(t *testing.T, path string) [][]string {
	t.Helper()
	cmd := exec.Command("go", "tool", "benchstat", "-format", "csv", "-col", "/variant", path)
	var complaints strings.Builder
	cmd.Stderr = &complaints
	text, err := cmd.Output()
	if err != nil {
		t.Fatalf("benchstat: %v: %s", err, complaints.String())
	}
	r := csv.NewReader(strings.NewReader(string(text)))
	r.FieldsPerRecord = -1
	rows, err := r.ReadAll()
	if err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return rows
}

// tableOf finds the table of a unit: the row of its columns, above that of units, and the
// row of a benchmark.
func tableOf(t *testing.T, rows [][]string, unit, name string) (header, row []string) {
	t.Helper()
	for n, units := range rows {
		if n == 0 || len(units) < 2 || units[0] != "" || units[1] != unit {
			continue
		}
		for _, row := range rows[n+1:] {
			if row[0] == "" {
				break
			}
			if row[0] == name {
				return rows[n-1], row
			}
		}
	}
	t.Fatalf("there is no table of %s with %s in %v", unit, name, rows)
	return nil, nil
}

func indexOf(all []string, wanted string) int {
	for i, s := range all {
		if s == wanted {
			return i
		}
	}
	return -1
}

// counted are a metric's values in the trials that count.
func counted(f *result.File, workload, variant, metric string) []float64 {
	var all []float64
	for i := range f.Trials {
		t := &f.Trials[i]
		if x, ok := result.Value(t, metric); ok && t.Counts() && t.Workload == workload && t.Variant == variant {
			all = append(all, x)
		}
	}
	return all
}
