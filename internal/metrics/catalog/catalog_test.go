package catalog

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
)

// row is how the guide tells a metric.
func row(d Definition) string {
	return fmt.Sprintf("| %s | `%s` | %s | %s | %s |", d.Namespace, d.Name, d.Unit, cmp.Or(map[string]string{postgres: "PostgreSQL", mariadb: "MariaDB"}[d.Engine], "both"), d.Help)
}

// The guide lists each metric, and no other.
func TestGuide(t *testing.T) {
	page, err := os.ReadFile("../../../docs/guide/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	var want, got []string
	for _, d := range slices.Concat(All, Proxies) {
		want = append(want, row(d))
	}
	for line := range strings.Lines(string(page)) {
		if strings.HasPrefix(line, "| "+RDS+" |") || strings.HasPrefix(line, "| "+Kurabe+" |") {
			got = append(got, strings.TrimSpace(line))
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("the tables in docs/guide/metrics.md are to be:\n%s", strings.Join(want, "\n"))
	}
}
