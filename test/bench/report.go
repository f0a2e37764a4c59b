package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"
	"unicode/utf8"
)

// row is one line of the table.
type row struct {
	Bench   string `json:"bench"`
	What    string `json:"what"`
	Value   string `json:"value"`
	Bar     string `json:"bar,omitempty"`
	Verdict string `json:"verdict,omitempty"`
	Note    string `json:"note,omitempty"`
}

// report collects rows and writes raw samples as they come, one JSON object a
// line, so that an interrupted run keeps what it measured.
type report struct {
	raw   *os.File
	path  string
	rows  []row
	host  machine
	began time.Time
}

func openReport(ctx context.Context, s settings) (*report, error) {
	if err := os.MkdirAll(filepath.Dir(s.out), 0o755); err != nil {
		return nil, err
	}
	raw, err := os.Create(s.out)
	if err != nil {
		return nil, err
	}
	o := &report{raw: raw, path: s.out, began: time.Now(), host: describeMachine(ctx, s)}
	o.sample("run", map[string]any{"machine": o.host, "settings": s, "started": o.began.UTC()})
	for _, line := range o.host.lines() {
		o.say("%s", line)
	}
	if o.host.BusyShare > busyMost {
		o.say("WARNING: %.0f %% of the processors are busy before anything was started; the figures will say so too", 100*o.host.BusyShare)
	}
	return o, nil
}

// say shows progress; the table itself goes to standard output.
func (o *report) say(format string, args ...any) {
	fmt.Fprintf(os.Stderr, format+"\n", args...)
}

// sample writes one raw record.
func (o *report) sample(kind string, fields map[string]any) {
	fields["t"], fields["at"] = kind, time.Now().UTC()
	line, err := json.Marshal(fields)
	if err == nil {
		_, err = o.raw.Write(append(line, '\n'))
	}
	if err != nil {
		o.say("raw sample not written: %v", err)
	}
}

func (o *report) row(r row) {
	o.rows = append(o.rows, r)
	o.sample("row", map[string]any{"row": r})
	o.say("  %s: %s", r.What, strings.TrimSpace(r.Value+"  "+r.Verdict))
}

// close prints the table and writes it beside the raw file.
func (o *report) close() error {
	o.sample("end", map[string]any{"seconds": time.Since(o.began).Seconds(), "load": loadAverage()})
	markdown := strings.TrimSuffix(o.path, filepath.Ext(o.path)) + ".md"
	err := errors.Join(o.raw.Close(), os.WriteFile(markdown, []byte(o.markdown()), 0o644))
	fmt.Println()
	printTable(os.Stdout, o.rows)
	fmt.Printf("\n%s\nraw samples %s, table %s, %.1f minutes\n", totals(o.rows), o.path, markdown, time.Since(o.began).Minutes())
	return err
}

func (o *report) markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "Measured by `make bench` on %s:\n\n", o.began.UTC().Format("2 January 2006"))
	for _, line := range o.host.lines() {
		fmt.Fprintf(&b, "- %s\n", line)
	}
	fmt.Fprintf(&b, "- raw samples: `%s`\n\n", filepath.Base(o.path))
	b.WriteString("| What | Measured | Bar | | Note |\n|---|---|---|---|---|\n")
	cell := strings.NewReplacer("|", `\|`, "\n", " ")
	for _, r := range o.rows {
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", cell.Replace(r.What), cell.Replace(r.Value), cell.Replace(r.Bar), r.Verdict, cell.Replace(r.Note))
	}
	fmt.Fprintf(&b, "\n%s.\n", totals(o.rows))
	return b.String()
}

func printTable(w io.Writer, rows []row) {
	cells := [][]string{{"what", "measured", "bar", "verdict"}}
	for _, r := range rows {
		cells = append(cells, []string{r.What, r.Value, r.Bar, r.Verdict})
	}
	var widths [4]int
	for _, line := range cells {
		for n, c := range line {
			widths[n] = max(widths[n], utf8.RuneCountInString(c))
		}
	}
	for n, line := range cells {
		var b strings.Builder
		for m, c := range line {
			b.WriteString(c + strings.Repeat(" ", widths[m]-utf8.RuneCountInString(c)+2))
		}
		fmt.Fprintln(w, strings.TrimRight(b.String(), " "))
		if n > 0 && rows[n-1].Note != "" {
			fmt.Fprintln(w, "    "+rows[n-1].Note)
		}
	}
}
