package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"golang.org/x/sys/unix"
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
	raw    *os.File // nil: nothing is measured
	path   string
	rows   []row
	host   machine
	began  time.Time
	pieces []piece // this one, and those before it in the same file
}

// openReport begins a raw file, or a further piece of one.
func openReport(ctx context.Context, s settings, b *book) (*report, error) {
	o := &report{path: s.out, began: time.Now(), host: describeMachine(ctx, s)}
	o.pieces = append(slices.Clone(b.pieces), piece{Machine: o.host, Started: o.began.UTC()})
	if err := errors.Join(b.sameMachine(o.host), b.sameSizes(s)); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Dir(o.path), 0o755); err != nil {
		return nil, err
	}
	var err error
	if s.Resume != "" {
		o.path = s.Resume
		o.raw, err = openWhole(o.path)
	} else {
		o.raw, err = createNew(o.path)
	}
	if err != nil {
		return nil, err
	}
	o.sample("run", map[string]any{"machine": o.host, "settings": s, "started": o.began.UTC()})
	for _, line := range o.host.lines() {
		o.say("%s", line)
	}
	if o.host.BusyShare > busyMost {
		o.say("WARNING: %.0f %% of the processors are busy before anything was started; the figures will say so too", 100*o.host.BusyShare)
	}
	return o, nil
}

// createNew begins a file. One that is there has hours of rounds, perhaps.
func createNew(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY|os.O_APPEND, 0o644)
	if errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("%s is there: --resume goes on with it, and --out can name another file", path)
	}
	if err != nil {
		return nil, err
	}
	return f, alone(f)
}

// openWhole opens a file of lines to append to, without a last one that was cut off.
func openWhole(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_APPEND, 0)
	if err != nil {
		return nil, err
	}
	if err := alone(f); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	raw, err := io.ReadAll(f)
	if err == nil {
		err = f.Truncate(int64(bytes.LastIndexByte(raw, '\n') + 1))
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// alone keeps another run from going on with the same file meanwhile: each would measure what
// the other one does. The end of this process gives it back.
func alone(f *os.File) error {
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return fmt.Errorf("%s: another run writes it: %w", f.Name(), err)
	}
	return nil
}

// keep has what was measured outlive the machine.
func (o *report) keep() {
	if o.raw == nil {
		return
	}
	if err := o.raw.Sync(); err != nil {
		o.say("raw samples may not be on disk: %v", err)
	}
}

// say shows progress; the table itself goes to standard output.
func (o *report) say(format string, args ...any) {
	fmt.Fprintf(os.Stderr, format+"\n", args...)
}

// sample writes one raw record.
func (o *report) sample(kind string, fields map[string]any) {
	if o.raw == nil {
		return
	}
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
	if o.raw == nil {
		return // it is printed with the table
	}
	o.sample("row", map[string]any{"row": r})
	o.say("  %s: %s", r.What, strings.TrimSpace(r.Value+"  "+r.Verdict))
}

// close ends the raw file and prints the table.
func (o *report) close() error {
	o.sample(recordEnd, map[string]any{"seconds": time.Since(o.began).Seconds(), "load": loadAverage()})
	o.pieces[len(o.pieces)-1].seconds = time.Since(o.began).Seconds()
	return errors.Join(o.raw.Close(), o.print())
}

// print prints the table and writes it beside the raw file.
func (o *report) print() error {
	markdown := strings.TrimSuffix(o.path, filepath.Ext(o.path)) + ".md"
	err := os.WriteFile(markdown, []byte(o.markdown()), 0o644)
	fmt.Println()
	printTable(os.Stdout, o.rows)
	fmt.Printf("\n%s\nraw samples %s, table %s, %s\n", totals(o.rows), o.path, markdown, o.took())
	return err
}

// took is the time of all pieces that came to their end.
func (o *report) took() string {
	seconds, cut := 0.0, 0
	for _, p := range o.pieces {
		if seconds += p.seconds; p.seconds == 0 {
			cut++
		}
	}
	text := fmt.Sprintf("%.1f minutes", seconds/60)
	if len(o.pieces) > 1 {
		text += fmt.Sprintf(" in %d pieces", len(o.pieces))
	}
	if cut > 0 {
		text += fmt.Sprintf(", without those of %d that were cut off", cut)
	}
	return text
}

// lines are the machine in words, and what there is to say of pieces.
func (o *report) lines() []string {
	lines := o.host.lines()
	if len(o.pieces) < 2 {
		return lines
	}
	var versions, loads []string
	for _, p := range o.pieces {
		if v := p.Machine.Versions["kurabe"]; !slices.Contains(versions, v) {
			versions = append(versions, v)
		}
		loads = append(loads, fmt.Sprintf("%s, %.0f %%", p.Started.UTC().Format("2 January 15:04"), 100*p.Machine.BusyShare))
	}
	lines = append(lines, fmt.Sprintf("%d pieces, with the share of the processors that was busy before each: %s", len(o.pieces), strings.Join(loads, "; ")))
	if len(versions) > 1 {
		lines = append(lines, "WARNING: they are of different versions: "+strings.Join(versions, "; "))
	}
	return lines
}

func (o *report) markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "Measured by `make bench` on %s, %s:\n\n", o.pieces[0].Started.UTC().Format("2 January 2006"), o.took())
	for _, line := range o.lines() {
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
