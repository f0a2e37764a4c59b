package result

import (
	"encoding/csv"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"time"
)

// WriteCSV writes a row for every trial in the order in which they ran, also of those
// that do not count, with every metric that any of them has. The first row has the
// names; units are those of Metrics. What was not measured is empty.
func WriteCSV(w io.Writer, f *File) error {
	sheets := sheetsOf(f)
	columns := columns(f, sheets)
	header := []string{"trial", "block", "position", "variant", "workload", "seed", "start", "status", "counts", "reason"}
	for _, c := range columns {
		header = append(header, c.Name)
	}
	out := csv.NewWriter(w)
	rows := [][]string{header}
	for i := range f.Trials {
		t := &f.Trials[i]
		row := []string{
			strconv.Itoa(i + 1), strconv.Itoa(t.Block), strconv.Itoa(t.Position), t.Variant, t.Workload, strconv.FormatUint(t.Seed, 10),
			t.Start.UTC().Format(time.RFC3339Nano), t.Status, strconv.FormatBool(t.Counts()), t.Reason,
		}
		sheet := sheets[i]
		for _, c := range columns {
			value, ok := sheet.Value(c.Name)
			row = append(row, cellText(value, ok))
		}
		if err := sheet.Err(); err != nil {
			return fmt.Errorf("write trials as CSV: %w", err)
		}
		rows = append(rows, row)
	}
	if err := out.WriteAll(rows); err != nil {
		return fmt.Errorf("write trials as CSV: %w", err)
	}
	return nil
}

func cellText(value float64, ok bool) string {
	if !ok || math.IsNaN(value) || math.IsInf(value, 0) {
		return ""
	}
	return number(value)
}

// WriteEstimatesCSV writes the estimates as a history wants them, as Apache Otava reads
// it: the time of the run, its attributes, then the metrics, a row for each variant and
// workload. Rows of several runs of one study, each without its header but the first,
// are the history. A metric has four columns: the ratio to the baseline, the ends of its
// interval, and the variant's own median.
func WriteEstimatesCSV(w io.Writer, f *File, level float64) error {
	estimates, err := Estimates(f, level)
	if err != nil {
		return fmt.Errorf("write estimates as CSV: %w", err)
	}
	header := []string{"time", "study", "run", "engine", "engine_version", "lab_version", "variant", "workload", "verdict"}
	metrics := studyMetrics(&f.Study.Definition)
	for _, m := range metrics {
		header = append(header, m+".ratio", m+".low", m+".high", m+".median")
	}
	env := lastEnv(f)
	byCell := map[cell]map[string]Estimate{}
	var order []cell
	for _, e := range estimates {
		c := cell{e.Variant, e.Workload}
		if byCell[c] == nil {
			byCell[c] = map[string]Estimate{}
			order = append(order, c)
		}
		byCell[c][e.Metric] = e
	}
	rows := [][]string{header}
	for _, c := range order {
		primary := f.Study.Definition.PrimaryOf(c.workload)
		row := []string{
			f.Study.Created.UTC().Format(time.RFC3339), f.Study.Definition.Name, f.Study.ID, f.Study.Engine, env.Engine["version"],
			env.Lab["version"], c.variant, c.workload, strings.ReplaceAll(string(byCell[c][primary.Metric].Verdict), " ", "-"),
		}
		for _, m := range metrics {
			e, asked := byCell[c][m]
			if !asked { // it is primary under another workload and of no interest here
				row = append(row, "", "", "", "")
				continue
			}
			row = append(row, cellText(e.Ratio.Estimate, true), cellText(e.Ratio.Interval.Low, true), cellText(e.Ratio.Interval.High, true), cellText(e.B, true))
		}
		rows = append(rows, row)
	}
	if err := csv.NewWriter(w).WriteAll(rows); err != nil {
		return fmt.Errorf("write estimates as CSV: %w", err)
	}
	return nil
}
