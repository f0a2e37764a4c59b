package load

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kurabe/lab/study"
)

// The tables of the kits, as SQL and as their first rows.
func TestTablesGolden(t *testing.T) {
	for _, k := range kits {
		if k.name != "tpcb-like" && k.name != "tpcc-like" && k.name != kitWriters {
			continue // the same tables as one of these, or none
		}
		for _, engine := range []string{study.Postgres, study.MariaDB} {
			name := k.name + "." + engine
			t.Run(name, func(t *testing.T) {
				golden(t, filepath.Join("tables", name+".sql"), describe(k.tables(study.Workload{Kit: k.name, Scale: 2, Rows: 20}), engine))
			})
		}
	}
}

func describe(tables []table, engine string) string {
	var b strings.Builder
	for _, t := range tables {
		b.WriteString(t.create(engine) + ";\n")
		r := newRow(engine)
		for n := range min(t.rows, 3) {
			r.begin()
			t.fill(r, n)
			r.end()
		}
		b.Write(r.buffer)
		b.WriteString("\n" + strings.Join(append(t.finish(engine), ""), ";\n"))
	}
	return b.String()
}

// golden compares with a file that -update writes.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil || got != string(want) {
		t.Errorf("%v; got\n%s\nwant\n%s", err, got, want)
	}
}

// A COPY has every row once, whatever the size of the reader's buffer.
func TestCopyReader(t *testing.T) {
	const rows = 2000
	x := table{rows: rows, fill: func(r *row, n int64) { r.integer(n); r.digits(100) }}
	var one, other strings.Builder
	if _, err := io.Copy(&one, &copyReader{table: x, row: newRow(study.Postgres)}); err != nil {
		t.Fatal(err)
	}
	if _, err := io.CopyBuffer(struct{ io.Writer }{&other}, &copyReader{table: x, row: newRow(study.Postgres)}, make([]byte, 7)); err != nil {
		t.Fatal(err)
	}
	if one.String() != other.String() || strings.Count(one.String(), "\n") != rows || !strings.Contains(one.String(), "\n1999\t") {
		t.Errorf("%d bytes and %d bytes", one.Len(), other.Len())
	}
}
