package load

import (
	"fmt"
	"slices"

	"kurabe/lab/study"
)

// CheckAll says what is wrong with the workloads of a study, each by itself and two
// beside each other: they run on one set of data, so two that fill a table of the same
// name differently would leave one of them with the data of the other.
func CheckAll(workloads []study.Workload) error {
	type filler struct {
		workload study.Workload
		rows     int64
	}
	fillers := map[string][]filler{} // by the name of the table
	for _, w := range workloads {
		g, err := New(w)
		if err != nil {
			return err
		}
		if err := Check(w); err != nil {
			return err
		}
		for _, t := range tablesOf(g) {
			for _, o := range fillers[t.name] {
				if o.rows != t.rows && meet(o.workload.Engines, w.Engines) {
					return fmt.Errorf("workloads %q and %q fill table %s with %d and %d rows; give them the same size, or a study each", o.workload.Name, w.Name, t.name, o.rows, t.rows)
				}
			}
			fillers[t.name] = append(fillers[t.name], filler{w, t.rows})
		}
	}
	return nil
}

// tablesOf are the tables that a generator fills.
func tablesOf(g Generator) []table {
	switch g := g.(type) {
	case *own:
		if g.kit != nil {
			return g.kit.tables(g.Workload)
		}
	case *pgbench:
		if g.Script == "" {
			return pgbenchTables(g.Workload)
		}
	case *sysbench:
		return []table{{name: sysbenchTable, rows: rowsOf(g.Workload)}}
	}
	return nil
}

// meet says whether two lists of engines, of which an empty one means all, have one in
// common.
func meet(a, b []string) bool {
	return len(a) == 0 || len(b) == 0 || slices.ContainsFunc(a, func(e string) bool { return slices.Contains(b, e) })
}
