package study

import (
	"fmt"
	"strings"
)

// problemsMax bounds what is told of one file; who sees twenty faults mends some first.
const problemsMax = 20

// Problem is one fault of a definition. Path names the key, as workloads[0].mode; Line
// and Column count from 1 and are 0 for a study that was not read from a file.
type Problem struct {
	File         string
	Line, Column int
	Path         string
	Text         string
}

// String is "orders.yaml:14:5: workloads[0].mode: what is wrong and the way out".
func (p Problem) String() string {
	var b strings.Builder
	if p.Line > 0 {
		fmt.Fprintf(&b, "%s:%d:%d: ", p.File, p.Line, p.Column)
	}
	if p.Path != "" {
		b.WriteString(p.Path + ": ")
	}
	b.WriteString(p.Text)
	return b.String()
}

// Problems are all faults that were found, in the order of the file. As an error it
// names the first twenty, a line each.
type Problems []Problem

func (all Problems) Error() string {
	lines := make([]string, 0, min(len(all), problemsMax)+1)
	for _, p := range all[:min(len(all), problemsMax)] {
		lines = append(lines, p.String())
	}
	if more := len(all) - problemsMax; more > 0 {
		lines = append(lines, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(lines, "\n")
}
